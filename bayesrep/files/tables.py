"""Tables in files of any kind: CSV and its kin, workbooks and Parquet.

Columns of Parquet have their types; all others are text (`bayesrep.files.delimited`). Of both, text
is without blanks around it and in NFC (`bayesrep.files.names`), so that names in a table are what
they are in any other.
"""

import warnings
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import TypeVar

import polars as pl

from bayesrep.errors import StudyError, TableWarning, did_you_mean, listing, reason
from bayesrep.files import delimited, parquet
from bayesrep.files.names import normalize_cells
from bayesrep.files.places import TEXTUAL, Place
from bayesrep.files.sheets import (
    Sheet,
    check_width,
    leave_out_index,
    name_columns,
    take_only_sheet,
)

ENDINGS = (*TEXTUAL, ".parquet")
_SPELLINGS = {"data_set": "dataset"}

_T = TypeVar("_T")


def read_sheets(path: str | Path, columns: Collection[str] = ()) -> list[Sheet]:
    """Read every table of a file."""
    file, rename = Path(path), partial(fold_headings, columns=columns)
    index: Collection[str] = ()
    if file.name.lower().endswith(".parquet"):
        frame = _open_table(path, lambda: parquet.read(file, str(path), (), further=None))
        index = parquet.index_names(pl.read_parquet_metadata(file))
        frame.columns = name_columns(frame.columns, str(path), rename)
        sheets = [Sheet(normalize_cells(frame), Place(str(path)))]
    else:
        read = partial(delimited.read, file, rename)
        sheets, size = _open_table(path, lambda: (read(), file.stat().st_size))
        for sheet in sheets:
            check_width(sheet, size)
    return [Sheet(leave_out_index(*sheet, columns, index), sheet.place) for sheet in sheets]


def read_only(path: str | Path, columns: Collection[str] = ()) -> Sheet:
    """Read the one table of a file; see `read_sheets`."""
    return take_only_sheet(read_sheets(path, columns), path)


def require(frame: pl.DataFrame, columns: Collection[str], where: str | Place) -> None:
    """Raise `StudyError` unless the table has the columns and at least one row."""
    if missing := [name for name in columns if name not in frame.columns]:
        raise StudyError(
            "table-lacks-columns",
            where=where,
            columns=listing(missing, "column"),
            needed=", ".join(columns),
        )
    if frame.height == 0:
        raise StudyError("table-without-rows", where=where)


def scan(path: str | Path, columns: Collection[str] = ()) -> pl.LazyFrame:
    """Scan the one table of a file, of which not all need be in memory; see `read_sheets`."""
    file, rename = Path(path), partial(fold_headings, columns=columns)
    if not file.name.lower().endswith(".parquet"):
        return normalize_cells(_open_table(path, lambda: delimited.scan(file, rename)))
    frame = _open_table(path, lambda: pl.scan_parquet(file, glob=False))
    held = frame.collect_schema().names()
    names = name_columns(held, str(path), rename)
    return normalize_cells(frame.rename(dict(zip(held, names, strict=True))))


def _open_table(path: str | Path, read: Callable[[], _T]) -> _T:
    """What is read from a file that is there and of a kind that is known."""
    if not str(path).lower().endswith(ENDINGS):
        known = ", ".join((*TEXTUAL[:3], ".xlsx", ".parquet"))
        raise StudyError("table-file-type-unknown", path=path, choices=known)
    try:
        with open(path, "rb"):  # the reason why not, of whatever reads it then
            pass
        return read()
    except OSError as error:
        raise StudyError("file-unreadable", path=path, reason=reason(error)) from error


def fold_headings(headings: list[str], columns: Collection[str]) -> list[str]:
    """The names of columns; case, blanks and hyphens of those that mean something do not count."""
    known = {_fold(name): name for name in columns}
    return [known.get(_fold(heading), heading) for heading in headings]


def _fold(name: str) -> str:
    folded = name.lower().replace(" ", "_").replace("-", "_")
    return _SPELLINGS.get(folded, folded)


def warn_unread(
    columns: Collection[str], kind: str, wanted: Collection[str], where: str | Place
) -> None:
    """Say which columns mean nothing to anybody, and what one was perhaps meant to be."""
    if columns:
        hint = next(filter(None, (did_you_mean(name, wanted) for name in columns)), "")
        verb = "is" if len(columns) == 1 else "are"
        text = f"{where}: {listing(columns, 'column')} of {kind} {verb} not read{hint}"
        warnings.warn(TableWarning(text), stacklevel=3)
