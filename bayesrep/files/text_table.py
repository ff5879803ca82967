"""A table of texts: its columns by name, without what spreadsheets and data frames leave."""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import polars as pl

from bayesrep.errors import StudyError, TableWarning, Violation, listing, plain_text
from bayesrep.files.names import normalize_cells, normalize_name, normalize_names
from bayesrep.files.row_numbers import Place

MAX_TEXT_BYTES, MAX_EXPANSION = 2**26, 50  # of an unpacked table: bytes, or times its file's
MAX_COLUMNS = 2**16  # largest number of columns, each of which costs time however short it is
MAX_LINES_ABOVE = 5  # lines below the first among which a header is looked for
UNNAMED_PREFIX = "\0"  # start of the name of an unnamed column; no other name has it
_NAMELESS_PATTERN = re.compile(
    rf"{UNNAMED_PREFIX}\d+|Unnamed: \d+(\.\d+)*|__index_level_\d+__|\.\.\.\d+"
)
_INDEX_PATTERN = re.compile(rf"{_NAMELESS_PATTERN.pattern}|None|index|level_\d|row[._]?names?|rn|X")
"""Names of row numbers in pandas, polars and R."""

Rename = Callable[[list[str]], list[str]]


class Sheet(NamedTuple):
    """One table of a file: its columns by name, and its place for messages."""

    frame: pl.DataFrame
    place: Place


def take_only_sheet(sheets: list[Sheet], path: str | Path) -> Sheet:
    """The one table of a file; a workbook of several is refused."""
    if len(sheets) > 1:
        names = ", ".join(sheet.place.name for sheet in sheets)
        raise StudyError("several-sheets-in-workbook", path=path, sheets=names)
    return sheets[0]


def name_columns(raw: Iterable[str], where: str, rename: Rename) -> list[str]:
    """Name all columns, each once; unnamed ones by `UNNAMED` and their number."""
    stripped = [normalize_name(name) for name in raw]
    if len(stripped) > MAX_COLUMNS:
        raise StudyError(
            "table-with-many-columns", where=where, columns=len(stripped), most=MAX_COLUMNS
        )
    names = rename(stripped)
    times = Counter(name for name in names if name)
    if repeated := sorted(name for name, count in times.items() if count > 1):
        headings = [old for old, new in zip(stripped, names, strict=True) if new == repeated[0]]
        raise StudyError(
            "column-name-repeated",
            where=where,
            column=repeated[0],
            headings=", ".join(map(repr, headings)),
        )
    return [name or f"{UNNAMED_PREFIX}{place}" for place, name in enumerate(names)]


def tidy_sheet(frame: pl.DataFrame, place: Place) -> Sheet:
    """Without what spreadsheets leave: columns without a name and a value, empty rows."""
    # A row of commas is a column each: those that hold nothing go before their texts are looked at.
    nameless = (column for column in frame if column.name.startswith(UNNAMED_PREFIX))
    frame = frame.drop(column.name for column in nameless if column.null_count() == len(column))
    frame = normalize_cells(frame)
    nameless = (column for column in frame if column.name.startswith(UNNAMED_PREFIX))
    frame = frame.drop(column.name for column in nameless if column.null_count() == len(column))
    if frame.width and frame.height:
        full = frame.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
        if not full.all():
            frame, place = frame.filter(full), place.select_rows(full)
    return Sheet(frame, place)


def leave_out_index(
    frame: pl.DataFrame, place: Place, columns: Collection[str] = (), index: Collection[str] = ()
) -> pl.DataFrame:
    """Drop the index of a data frame, which is neither a classifier nor a group of images."""
    # Names among `columns` are the reader's own; those among `index` are an index by metadata.
    unnamed_columns, named = list[str](), list[str]()
    for number, column in enumerate(frame, 1):
        name, unnamed = column.name, column.name.startswith(UNNAMED_PREFIX)
        if name in columns or not (name in index or _INDEX_PATTERN.fullmatch(name)):
            continue
        nameless = unnamed or _NAMELESS_PATTERN.fullmatch(name) is not None
        if not nameless and (name in index or _are_row_numbers(column)):
            named.append(name)
        elif nameless and not (unnamed and number > 1) and _are_row_numbers(column):
            unnamed_columns.append(name)
        elif nameless:
            _refuse_title(frame, place)
            called = f"column {int(name[1:]) + 1 if unnamed else number}"
            value = normalize_names(column).drop_nulls().first()
            raise StudyError("column-without-name", where=place.name, column=called, value=value)
    if named:
        text = f"{place}: {listing(named, 'column')} left out, as the index of a data frame"
        advice = "what is a column wants reset_index() before, or another name"
        warnings.warn(TableWarning(f"{text}; {advice}"), stacklevel=3)
    return frame.drop(unnamed_columns, named)


def _are_row_numbers(column: pl.Series) -> bool:
    """Test whether a column numbers rows: each once, or increasing in runs as of joined tables."""
    texts = normalize_names(column)
    if texts.null_count() or not texts.str.contains(r"^(0|[1-9]\d*)(\.\d+)?$").all():
        return False
    # The answers 0 and 1 of a classifier without a name do not grow in three rows of four.
    grows = texts.cast(pl.Float64).diff() > 0
    return texts.n_unique() == len(texts) or 4 * (~grows).sum() <= len(texts)


def _refuse_title(frame: pl.DataFrame, place: Place) -> None:
    """Refuse a title where a header should be: one cell, the first, above several words."""
    title, *others = frame.columns
    if title.startswith(UNNAMED_PREFIX) or not all(
        name.startswith(UNNAMED_PREFIX) for name in others
    ):
        return
    for row, cells in enumerate(frame.head(MAX_LINES_ABOVE).iter_rows()):
        words = [cell for cell in cells if cell is not None]
        if len(words) > 1:
            if not has_number(words):
                header = place.number(row)
                raise StudyError(describe_title(place.name, header, title, place.first - 1))
            return


def has_number(cells: Iterable[str]) -> bool:
    """Test whether a row holds a number, as a header rarely does."""
    return any(re.fullmatch(r"\s*[-+]?[\d.,]+%?\s*", cell) for cell in cells)


def describe_title(where: str, header: int, title: str, line: int) -> Violation:
    """In one line, that a title stands where a header should be, and where the header is."""
    facts = {"where": where, "line": line, "title": plain_text(title[:60]), "header": header}
    return Violation("title-above-header", **facts)
