"""Tables in files of any kind: CSV and its kin, workbooks and Parquet, whose columns have types."""

import warnings
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import TypeVar

import polars as pl

from bayesrep.errors import StudyError, TableWarning, did_you_mean, listing, reason
from bayesrep.files import delimited, parquet
from bayesrep.files.names import normalize_cells
from bayesrep.files.row_numbers import TEXT_ENDINGS, Place
from bayesrep.files.text_table import Rename, Sheet, leave_out_index, name_columns, take_only_sheet

TABLE_ENDINGS = (*TEXT_ENDINGS, ".parquet")
_COLUMN_SPELLINGS = {"data_set": "dataset"}

_T = TypeVar("_T")


def read_sheets(
    path: str | Path, columns: Collection[str] = (), rename: Rename = list
) -> list[Sheet]:
    """Read every table of a file; `rename` is asked for headings before their case is folded."""

    def name(headings: list[str]) -> list[str]:
        return fold_headings(rename(headings), columns)

    file = Path(path)
    index: Collection[str] = ()
    if file.name.lower().endswith(".parquet"):
        frame = _open_table(path, lambda: parquet.read(file, str(path), (), further=None))
        index = parquet.index_names(pl.read_parquet_metadata(file))
        frame.columns = name_columns(frame.columns, str(path), name)
        sheets = [Sheet(normalize_cells(frame), Place(str(path)))]
    else:
        read = partial(delimited.read, file, name)
        sheets, size = _open_table(path, lambda: (read(), file.stat().st_size))
        for sheet in sheets:
            # A text may be of a length that an array of them would not fit into memory with.
            if line := parquet.too_wide(sheet.frame, size, sheet.place.name):
                raise StudyError(line)
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
    headings = frame.collect_schema().names()
    names = name_columns(headings, str(path), rename)
    return normalize_cells(frame.rename(dict(zip(headings, names, strict=True))))


def _open_table(path: str | Path, read: Callable[[], _T]) -> _T:
    """Read a table of a known type, with errors of the file system as a StudyError."""
    if not str(path).lower().endswith(TABLE_ENDINGS):
        choices = ", ".join((*TEXT_ENDINGS[:3], ".xlsx", ".parquet"))
        raise StudyError("table-file-type-unknown", path=path, choices=choices)
    try:
        with open(path, "rb"):  # the reason why not, of whatever reads it then
            pass
        return read()
    except OSError as error:
        raise StudyError("file-unreadable", path=path, reason=reason(error)) from error


def fold_headings(headings: list[str], columns: Collection[str]) -> list[str]:
    """Rename known columns regardless of case, blanks and hyphens."""
    name_of = {fold_heading(name): name for name in columns}
    return [name_of.get(fold_heading(heading), heading) for heading in headings]


def fold_heading(name: str) -> str:
    """A heading in lower case, with underscores for blanks and hyphens."""
    folded = name.lower().replace(" ", "_").replace("-", "_")
    return _COLUMN_SPELLINGS.get(folded, folded)


def warn_unread(
    columns: Collection[str], kind: str, readable: Collection[str], where: str | Place
) -> None:
    """Warn of columns that are not read, with a suggestion for a misspelt one."""
    if columns:
        hint = next(filter(None, (did_you_mean(name, readable) for name in columns)), "")
        verb = "is" if len(columns) == 1 else "are"
        text = f"{where}: {listing(columns, 'column')} of {kind} {verb} not read{hint}"
        warnings.warn(TableWarning(text), stacklevel=3)
