"""Representations of data: one line at a prompt, a table in a notebook, frames."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from typing import Any

import numpy as np

from bayesrep.errors import plain_text


class Compared:
    """Base of frozen dataclasses of arrays: equality of all fields."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return are_equal(self, other)

    def __hash__(self) -> int:
        texts = (value for value in _values(self).values() if isinstance(value, str | tuple))
        return hash((type(self), *texts))


def are_equal(one: Any, other: Any) -> bool:
    """Compare two values: arrays by their entries, mappings and dataclasses by theirs."""
    if one is other:
        return True
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        kinds = np.asarray(one).dtype.kind + np.asarray(other).dtype.kind
        return bool(np.array_equal(one, other, equal_nan=kinds == "ff"))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(are_equal(one[key], other[key]) for key in one)
    if is_dataclass(one) and type(one) is type(other):
        return are_equal(_values(one), _values(other))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(are_equal, one, other))
    return bool(one == other)


def _values(data: Any) -> dict[str, Any]:
    return {field.name: getattr(data, field.name) for field in fields(data)}


def brief(data: object, *facts: str) -> str:
    """One line for a prompt, safe for a terminal."""
    return plain_text(f"<{type(data).__name__}: {', '.join(filter(None, facts))}>")


def number(count: int, noun: str) -> str:
    """A number of things, as 1 image and 2,000 images."""
    return f"{count:,} {noun}{'s' if count != 1 else ''}"


def spread(values: Any) -> str:
    """The least and the largest of some numbers, or the one that all are."""
    low, high = np.min(values), np.max(values)
    return f"{low}" if low == high else f"{low} to {high}"


def align_rows(rows: Sequence[Sequence[str]]) -> str:
    """Rows of words in columns, all to the left."""
    table = [[plain_text(cell) for cell in row] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)) for row in table]
    return "\n".join(line.rstrip() for line in lines)


def html_table(
    caption: str, header: Sequence[str], rows: Iterable[Sequence[str]], *notes: str
) -> str:
    """A table for a notebook: a caption above, notes below, every text escaped."""

    def row(cells: Sequence[str], tag: str) -> str:
        inner = "".join(
            f'<{tag} style="text-align: left">{_escape_markup(cell)}</{tag}>' for cell in cells
        )
        return f"<tr>{inner}</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    return (
        f"<div><p><strong>{_escape_markup(caption)}</strong></p>"
        f"<table><thead>{row(header, 'th')}</thead><tbody>{body}</tbody></table>"
        + "".join(f"<p>{_escape_markup(note)}</p>" for note in notes)
        + "</div>"
    )


def _escape_markup(text: str) -> str:
    return escape(plain_text(text))
