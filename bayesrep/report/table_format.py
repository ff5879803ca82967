"""Tables for a terminal: plain text, percent, one line a row; or Markdown for a paper."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from string import Formatter
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from bayesrep.errors import plain_text
from bayesrep.studies.representation import align_rows
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words

MISSING_TEXT = "-"
TEXT_FORMAT: ContextVar[str] = ContextVar("TEXT_FORMAT", default="text")
"""Format of tables and sentences: a key of `TABLE_WRITERS` and `TEXT_ESCAPES`."""
WRITTEN_TABLES: ContextVar[list[str] | None] = ContextVar("WRITTEN_TABLES", default=None)
"""The tables that stand so far in what is printed in another format than text."""


class Name(str):
    """A cell that is somebody's word, of which no part is a number."""


Row: TypeAlias = Mapping[str, Any]
Cell: TypeAlias = str | Callable[[Row], str]
"""Cell of a column: a format string of a row's names (`_CellFormatter`), or a function."""


def percent(value: float | None, digits: int = 1) -> str:
    """A fraction as percent, '-' where there is none."""
    if value is None or not np.isfinite(value):
        return MISSING_TEXT
    text = f"{100 * value:.{digits}f}"
    return text if text.strip("-0.") else text.lstrip("-")


def ends(
    lower: float | None, upper: float | None, digits: int = 1, none: str = MISSING_TEXT
) -> str:
    """An interval as percent."""
    return none if lower is None else f"{percent(lower, digits)} to {percent(upper, digits)}"


def columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, as `TEXT_FORMAT` has it; the first column to the left, the others to the right."""
    return _write((header, *rows))


def _write(table: Iterable[Sequence[str]]) -> str:
    written = TABLE_WRITERS[TEXT_FORMAT.get()](_plain_cells(table))
    if (every := WRITTEN_TABLES.get()) is not None:
        every.append(written)
    return written


def write_sentences(text: str) -> str:
    """Print sentences, escaping names that a format would read as markup."""
    tables = sorted(filter(None, WRITTEN_TABLES.get() or ()), key=len, reverse=True)
    parts = re.split(f"({'|'.join(map(re.escape, tables))})", text) if tables else [text]
    return "".join(
        part if n % 2 else TEXT_ESCAPES[TEXT_FORMAT.get()](part) for n, part in enumerate(parts)
    )


def _plain_cells(table: Iterable[Sequence[str]]) -> list[list[str]]:
    """The cells as they cannot steer a terminal, before they are put in line."""
    return [[type(cell)(plain_text(cell)) for cell in row] for row in table]


def _align_right(table: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]

    def line(row: Sequence[str]) -> str:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        return "  ".join(cells).rstrip()

    return "\n".join([line(table[0]), "  ".join("-" * w for w in widths), *map(line, table[1:])])


_NUMBER_CELL = re.compile(r"(?:to|[\s\d.,()%±*+-])+")
_HYPHEN_MINUS = re.compile(r"(?<![\w-])-(?=[\d.])")


def _with_minus(cell: str) -> str:
    """A number with a real minus sign, as in a paper; any other cell as it is."""
    is_number = not isinstance(cell, Name) and _NUMBER_CELL.fullmatch(cell)
    return _HYPHEN_MINUS.sub("\N{MINUS SIGN}", cell) if is_number else cell


_MARKDOWN_SIGNS = re.compile(r"[\\|<>\[\]*`~$]|&(?=#?\w+;)|(?<!\w)_|_(?!\w)|^#", re.MULTILINE)
"""Characters that Markdown reads as markup; an underline within a word is none."""


def _escape_markdown(text: str) -> str:
    return _MARKDOWN_SIGNS.sub(r"\\\g<0>", text)


def _markdown(table: Sequence[Sequence[str]]) -> str:
    # Names, which rows begin with, stay as they are.
    signed = ([row[0], *map(_with_minus, row[1:])] for row in table)
    header, *rows = [list(map(_escape_markdown, row)) for row in signed]
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))


TABLE_WRITERS: Mapping[str, Callable[[Sequence[Sequence[str]]], str]] = {
    "text": _align_right,
    "markdown": _markdown,
}
TEXT_ESCAPES: Mapping[str, Callable[[str], str]] = {
    "text": str,
    "markdown": _escape_markdown,
}


class _Missing(Exception):
    """A cell lacks what it shows."""


class _CellFormatter(Formatter):
    """Format strings; ``{name:2p}`` is a share as percent to two digits."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None:
            raise _Missing
        if format_spec.endswith("p"):
            return percent(value, int(format_spec[:-1]))
        return format(value, format_spec)


def list_rows(rows: pl.DataFrame | Iterable[Row], cells: Mapping[str, Cell]) -> str:
    """Rows of a table under each other: of every column its heading, and what it shows."""
    each = rows.iter_rows(named=True) if isinstance(rows, pl.DataFrame) else rows
    return columns(list(cells), [[cell_text(row, cell) for cell in cells.values()] for row in each])


def cell_text(row: Row, cell: Cell) -> str:
    """Format a column's cell of a row; '-' where a value is missing."""
    try:
        if callable(cell):
            return cell(row)
        value = row.get(cell[1:-1])  # where a name alone is shown
        return Name(value) if isinstance(value, str) else _CellFormatter().vformat(cell, (), row)
    except _Missing:
        return MISSING_TEXT


def group_quantities(table: pl.DataFrame, *names: str) -> list[dict[str, Any]]:
    """A row for each of what ``names`` tell apart, with the rows of its quantities by name."""
    return [
        {
            **dict(zip(names, each, strict=True)),
            **{row["quantity"]: row for row in rows.iter_rows(named=True)},
        }
        for each, rows in table.group_by(names, maintain_order=True)
    ]


def rows_table(table: pl.DataFrame, digits: int = 3, words: Words = IMAGE_WORDS) -> str:
    """Any table as it is, numbers to some digits; columns have the study's words for names."""

    def cell(value: Any) -> str:
        if value is None:
            return MISSING_TEXT
        return f"{value:.{digits}f}" if isinstance(value, float) else str(value)

    header = [words.name_of(name) for name in table.columns]
    return columns(header, [[cell(value) for value in row] for row in table.iter_rows()])


def align_columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows of words in columns, all to the left."""
    return align_rows(_plain_cells(rows)) if TEXT_FORMAT.get() == "text" else _write(rows)
