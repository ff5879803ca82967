"""Excel workbooks, every cell as its displayed text: no formula or declared size is trusted."""

import re
import warnings
import zipfile
from collections.abc import Iterable
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.errors import StudyError, TableWarning, plain_text, reason
from bayesrep.files.row_numbers import Place
from bayesrep.files.text_table import (
    MAX_EXPANSION,
    MAX_TEXT_BYTES,
    UNNAMED_PREFIX,
    Rename,
    Sheet,
    name_columns,
    tidy_sheet,
)

_FORMULA_PATTERN = re.compile(rb"<(?:\w+:)?f[\s/>]")


def read_workbook(file: Path, rename: Rename) -> list[Sheet]:
    """Read every sheet of a workbook that is not empty."""
    from openpyxl import load_workbook

    where, most = str(file), max(MAX_TEXT_BYTES, MAX_EXPANSION * file.stat().st_size)
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            if sum(each.file_size for each in entries) > most:
                raise StudyError("workbook-too-large", where=where, most_bytes=most)
            pages = (each for each in entries if each.filename.startswith("xl/worksheets/"))
            computed = any(_FORMULA_PATTERN.search(archive.read(each)) for each in pages)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions that are not read
            book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
            hidden = [each.title for each in book.worksheets if each.sheet_state != "visible"]
            visible = [each for each in book.worksheets if each.title not in hidden]
            sheets = [(each.title, _rows(each)) for each in visible or book.worksheets]
            if computed:
                _refuse_formulas(file, book, [title for title, _ in sheets])
            book.close()
    except OSError:
        raise
    except StudyError:
        raise
    except Exception as error:  # openpyxl raises many types on damaged archives
        charts = isinstance(error, AttributeError) and any(
            each.startswith("xl/chartsheets/") for each in zipfile.ZipFile(file).namelist()
        )
        fault = "a sheet of it is for a chart that is not there" if charts else reason(error)
        raise StudyError("workbook-damaged", where=where, reason=fault) from error
    if hidden and visible:
        names = ", ".join(repr(plain_text(title)) for title in hidden)
        warnings.warn(TableWarning(f"{where}: hidden sheets are left out: {names}"), stacklevel=2)
    full = [(title, rows) for title, rows in sheets if any(rows)]
    if not full:
        raise StudyError("table-file-empty", where=where)
    return [
        _sheet(rows, where if len(full) == 1 else f"{where}, sheet {title!r}", rename)
        for title, rows in full
    ]


_Cells = dict[int, tuple[str, bool]]  # a row's text by column, and True for a date


def _rows(sheet: Any) -> list[_Cells]:
    """The rows of a sheet, however large it says that it is."""
    sheet.reset_dimensions()
    return [
        {
            place: (text, isinstance(cell.value, date | time))
            for place, cell in enumerate(row)
            if cell.value is not None and (text := _text(cell)).strip()
        }
        for row in sheet.iter_rows()
    ]


def _refuse_formulas(file: Path, book: Any, titles: Iterable[str]) -> None:
    """Refuse formulas whose values were not stored, as programs write them that compute nothing."""
    from openpyxl import load_workbook

    formulas = load_workbook(file, read_only=True, keep_links=False)
    for title in titles:
        formulas[title].reset_dimensions()
        for row, values in zip(formulas[title].iter_rows(), book[title].iter_rows(), strict=True):
            for cell, stored in zip(row, values, strict=True):
                empty_text = stored.data_type == "str"
                if cell.data_type == "f" and stored.value is None and not empty_text:
                    where = f"{file}, sheet {plain_text(title)!r}"
                    raise StudyError(
                        "workbook-formula-without-value", where=where, cell=cell.coordinate
                    )
    formulas.close()


def _text(cell: Any) -> str:
    """A cell as it is shown: whole numbers without decimals, zeros at either end; percent."""
    value, form = cell.value, cell.number_format or ""
    if isinstance(value, int | float) and not isinstance(value, bool) and "%" in form:
        return f"{100 * value:g}%"
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, float) and not value.is_integer() and re.fullmatch(r"0\.0+", form):
        return max(str(value), f"{value:.{len(form) - 2}f}", key=len)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        filled = re.fullmatch(r"0+", form)
        return str(value).zfill(len(filled[0]) if filled else 1)
    return str(value)


def _sheet(rows: list[_Cells], where: str, rename: Rename) -> Sheet:
    start = next(place for place, row in enumerate(rows) if row)
    body = rows[start + 1 :]
    used = sorted({place for row in rows[start:] for place in row})
    header = [rows[start].get(place, ("", False))[0] for place in used]
    names = name_columns(header, where, rename)
    names = [
        f"{UNNAMED_PREFIX}{place}" if not title else name
        for place, title, name in zip(used, header, names, strict=True)
    ]
    place = Place(where, "line", start + 2)
    columns: list[pl.Series] = []
    for number, name in zip(used, names, strict=True):
        cells = [row.get(number) for row in body]
        texts = pl.Series(name, [cell and cell[0] for cell in cells], dtype=pl.String)
        dates = pl.Series([cell[1] if cell else None for cell in cells], dtype=pl.Boolean)
        timed = dates.all() and re.search("time|date|_at$", name.lower())
        if dates.any() and not timed:
            warnings.warn(
                TableWarning(
                    f"{where}: column {name!r} holds dates "
                    f"({place.rows(dates.fill_null(value=False), texts)}): Excel makes them of "
                    "names such as MAR1 and of shares such as 3/5; write what is none anew in "
                    "cells that are formatted as text"
                ),
                stacklevel=2,
            )
        columns.append(texts)
    return tidy_sheet(pl.DataFrame(columns), place)
