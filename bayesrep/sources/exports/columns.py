"""Columns of exports, and answers of several choices, for all readers of exports."""

import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from bayesrep.errors import StudyError, TableWarning, listing, plain_text
from bayesrep.files.json_stream import as_word
from bayesrep.files.row_numbers import Place
from bayesrep.files.values import flags, is_missing


@dataclass(frozen=True)
class Columns:
    """Columns of a file; None for the source's default."""

    # image, worker, answer: columns of a table. Of Mechanical Turk image and answer may hold a
    # ``*`` each, for the numbers of an assignment's images: `Input.image*` and `Answer.image*`. Of
    # Label Studio `image` is a key of the task's data, `answer` the name of a control.
    image: str | None = None
    worker: str | None = None
    answer: str | None = None
    label: str | None = None  # column of the label in question
    separator: str | None = None  # of answers with several choices (`label_questions.ask_each`)


def name_image(data: Mapping[str, Any], field: str, where: str) -> str:
    """Read a task's name of its image: a text, or a number as text."""
    if field not in data:
        fields = ", ".join(map(plain_text, data))
        raise StudyError("task-without-image", where=where, field=field, fields=fields)
    value = data[field]
    image = as_word(value, where)
    if image is None or isinstance(value, bool | list | dict):
        value_text = plain_text(image or "null")
        raise StudyError("task-image-without-name", where=where, field=field, value=value_text)
    if image.startswith("data:"):
        raise StudyError("image-contents-for-name", where=where, field=field)
    return image


def join_choices(choices: Sequence[str], columns: Columns, where: str) -> str:
    """Join several choices into one answer."""
    separator = columns.separator or "|"
    for choice in choices if columns.separator else ():
        if separator in choice:
            raise StudyError(
                "choice-holds-separator", where=where, choice=choice, separator=separator
            )
    return separator.join(choices)


_REJECTED_STATES = ("rejected", "skipped", "expired", "active")
_MARK_TESTS: Mapping[str, Callable[[pl.Series, str | Place], pl.Series]] = {
    r"ASSIGNMENT:status|AssignmentStatus|last_action|review": lambda column, _: (
        column.cast(pl.String).str.to_lowercase().is_in(_REJECTED_STATES)
    ),
    r"_golden|_tainted|_canary|ground_truth|was_cancelled": flags,
    r"GOLDEN:.*|Reject": lambda column, _: ~is_missing(column),
    r"ACCEPT:verdict": lambda column, _: column.cast(pl.String) == "-",
}
"""Columns in which tools mark rejected or planted answers, with tests for marked rows."""


def find_marks(
    table: pl.DataFrame, where: str | Place, used: Collection[str] = ()
) -> dict[str, pl.Series]:
    """Find the rows that the tool itself marked as rejected or planted."""
    return {
        name: find_marked(table[name], where)
        for name in table.columns
        for heading, find_marked in _MARK_TESTS.items()
        if name not in used and re.fullmatch(heading, name)
    }


def drop_marked(
    table: pl.DataFrame, where: str | Place, used: Collection[str] = ()
) -> pl.DataFrame:
    """Leave out, and tell, rows that the tool itself rejected or planted, by marks not `used`."""
    marks = find_marks(table, where, used)
    counted = table.with_columns(**marks).filter(
        ~pl.any_horizontal(pl.lit(value=False), *marks).fill_null(value=False)
    )
    if left_out := len(table) - len(counted):
        counts = [f"{name} ({mark.sum():,})" for name, mark in marks.items() if mark.any()]
        text = (
            f"{where}: {left_out:,} of {len(table):,} answers are left out, which the tool "
            f"rejected or planted: {listing(counts, 'mark')}"
        )
        warnings.warn(TableWarning(text), stacklevel=3)
    return counted.drop(marks)


def tell_anonymous(number: int, where: str, what: str) -> None:
    """Warn of answers that name nobody, if there are any: each counts as another worker's."""
    if number:
        its = "each counts as that of a worker of its own, so repeats cannot be seen"
        text = f"{where}: {number:,} answers name nobody ({what}); {its}"
        warnings.warn(TableWarning(text), stacklevel=2)
