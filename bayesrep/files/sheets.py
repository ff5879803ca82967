"""A table of texts: its columns by name, without what spreadsheets and data frames leave."""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from bayesrep.errors import StudyError, TableWarning, Violation, listing, plain_text
from bayesrep.files import parquet
from bayesrep.files.names import normalize_cells, normalize_name, normalize_names
from bayesrep.files.places import Place

LARGEST_TEXT, SWELLING = 2**26, 50
"""Bytes that a compressed table may hold in any case, and times those of its file."""

COLUMNS = 2**16
"""Columns of a table, each of which costs time however short it is."""
LINES_ABOVE = 5  # lines below the first among which a header is looked for
UNNAMED = "\0"
"""How the name of a column begins that has none, and that of no other does."""

NUMBERED = ("index", "level_0", "level_1", "rowname", "rownames", "row.names", "rn", "X")
"""Names that pandas, polars and R give to the numbers of rows, where these are made a column."""
_NAMELESS = re.compile(rf"{UNNAMED}\d+|Unnamed: \d+(\.\d+)*|__index_level_\d+__|\.\.\.\d+")

Rename = Callable[[list[str]], list[str]]


@dataclass(frozen=True, eq=False)
class Sheet:
    """One table of a file.

    Attributes
    ----------
    place
        What a message calls it and its rows.
    frame
        Its columns by name.
    """

    place: Place
    frame: pl.DataFrame


def take_only_sheet(sheets: list[Sheet], path: str | Path) -> Sheet:
    """The one table of a file; a workbook of several is refused."""
    if len(sheets) > 1:
        names = ", ".join(sheet.place.name for sheet in sheets)
        raise StudyError("several-sheets-in-workbook", path=path, sheets=names)
    return sheets[0]


def name_columns(raw: Iterable[str], where: str, rename: Rename) -> list[str]:
    """Names of columns, each once; those that have none get one that no header can have."""
    stripped = [normalize_name(name) for name in raw]
    if len(stripped) > COLUMNS:
        raise StudyError(
            "table-with-many-columns", where=where, columns=len(stripped), most=COLUMNS
        )
    names = rename(stripped)
    times = Counter(name for name in names if name)
    if repeated := sorted(name for name, count in times.items() if count > 1):
        said = [old for old, new in zip(stripped, names, strict=True) if new == repeated[0]]
        raise StudyError(
            "column-name-repeated",
            where=where,
            column=repeated[0],
            headings=", ".join(map(repr, said)),
        )
    return [name or f"{UNNAMED}{place}" for place, name in enumerate(names)]


def tidy_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """Without what spreadsheets leave: columns without a name and a value, empty last rows."""
    # A row of commas is a column each: those that hold nothing go before their texts are looked at.
    nameless = [name for name in frame.columns if name.startswith(UNNAMED)]
    frame = frame.drop(name for name in nameless if frame[name].null_count() == frame.height)
    frame = normalize_cells(frame)
    frame = frame.drop(
        name
        for name in set(nameless) & set(frame.columns)
        if frame[name].null_count() == len(frame)
    )
    if frame.width and frame.height:
        places = frame.select(pl.any_horizontal(pl.all().is_not_null())).to_series().arg_true()
        frame = frame.head(int(places[-1]) + 1 if len(places) else 0)
    return frame


def leave_out_index(
    frame: pl.DataFrame, place: Place, columns: Collection[str] = (), index: Collection[str] = ()
) -> pl.DataFrame:
    """A table without the index of a data frame, which is no classifier and no group of images.

    pandas, R and polars write numbers of rows before the columns without a heading, behind them as
    `__index_level_0__`, or under a name of their own (`NUMBERED`).

    Parameters
    ----------
    frame, place
        The table, and what a message calls it and its rows.
    columns
        Names that mean something to who reads it: a column that is called so is one.
    index
        Names of the columns of which the file itself says that they are an index.

    Raises
    ------
    StudyError
        Where a column without a name holds something else.

    Warns
    -----
    TableWarning
        Where what is left out has a name.
    """
    left, named, leading = list[str](), list[str](), True
    for number, column in enumerate(frame, 1):
        name = column.name
        leading &= name.startswith(UNNAMED)
        if _NAMELESS.fullmatch(name) and name not in columns:
            if not (leading or not name.startswith(UNNAMED)) or not _are_row_numbers(column):
                _refuse_title(frame, place)
                value = normalize_names(column).drop_nulls().first()
                number = int(name[1:]) + 1 if name.startswith(UNNAMED) else number
                called = "the index" if name.startswith("__index") else f"column {number}"
                raise StudyError(
                    "column-without-name", where=place.name, column=called, value=value
                )
            left.append(name)
        elif name not in columns and (
            name in index or (name in NUMBERED and _are_row_numbers(column, counted=True))
        ):
            named.append(name)
    if named:
        text = (
            f"{place}: {listing(named, 'column')} left out, as the index of a data frame; give "
            "what is a column another name"
        )
        warnings.warn(TableWarning(text), stacklevel=3)
    return frame.drop(left, named)


def _are_row_numbers(column: pl.Series, *, counted: bool = False) -> bool:
    """Whether a column holds numbers as rows have them; those that are counted, each once.

    They may begin again, as where frames are put below each other.
    """
    texts = normalize_names(column)
    if texts.null_count() or not texts.str.contains(r"^(0|[1-9]\d*)(\.\d+)?$").all():
        return False
    if not counted or texts.n_unique() == len(texts):
        return True
    numbers = texts.cast(pl.Float64)
    return bool(((numbers == numbers[0]) | (numbers.diff() == 1)).all())


def _refuse_title(frame: pl.DataFrame, place: Place) -> None:
    """Refuse a title where a header should be: one cell, the first, above several words."""
    title, *others = frame.columns
    if title.startswith(UNNAMED) or not all(name.startswith(UNNAMED) for name in others):
        return
    for row, cells in enumerate(frame.head(LINES_ABOVE).iter_rows()):
        words = [cell for cell in cells if cell is not None]
        if len(words) > 1:
            if not has_number(words):
                raise StudyError(
                    describe_title(place.name, place.first + row, title, place.first - 1)
                )
            return


def has_number(cells: Iterable[str]) -> bool:
    """Whether a row holds a number, as a header rarely does."""
    return any(re.fullmatch(r"\s*[-+]?[\d.,]+%?\s*", cell) for cell in cells)


def describe_title(where: str, header: int, title: str, line: int) -> Violation:
    """In one line, that a title stands where a header should be, and where the header is."""
    facts = {"where": where, "line": line, "title": plain_text(title[:60]), "header": header}
    return Violation("title-above-header", **facts)


def check_width(sheet: Sheet, size: int) -> None:
    """Refuse a text of a length that an array of them would not fit into memory with."""
    if line := parquet.too_wide(sheet.frame, size, sheet.place.name):
        raise StudyError(line)
