"""Batch results of Amazon Mechanical Turk: a row an assignment, of one image or of a grid."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.errors import OptionError, StudyError, reason
from bayesrep.files import strict_json
from bayesrep.files.names import normalize_names
from bayesrep.files.tables import read_only, require, warn_unread
from bayesrep.files.values import durations
from bayesrep.sources.exports.columns import Columns, drop_marked, join_choices


def read_mturk(path: str | Path, columns: Columns) -> pl.DataFrame:
    """Read batch results: a row an assignment, with inputs and answers of one image or a grid."""
    where, needed = str(path), ("HITId", "WorkerId")
    table = read_only(path, needed).frame.with_columns(normalize_names(pl.all()))
    require(table, needed, where)
    if "Answer.taskAnswers" in table.columns:
        table = with_task_answers(table, where, columns)
    image, answer = (
        each or _single_column(table.columns, prefix, option, where)
        for each, prefix, option in (
            (columns.image, "Input.", "image"),
            (columns.answer, "Answer.", "answer"),
        )
    )
    keys = [("worker", "WorkerId"), ("task", "HITId")]
    if "WorkTimeInSeconds" in table.columns:
        keys.append(("seconds", "WorkTimeInSeconds"))
        table = table.with_columns(durations(table["WorkTimeInSeconds"], where, missing=True))
    if columns.label:
        keys.append(("label", columns.label))
    pairs = _pairs(image, answer, table.columns, where)
    used = {name for each in (pairs, keys) for pair in each for name in pair}
    table = drop_marked(table, where, used)
    unticked = [name for _, name in pairs if "*" in answer and name not in table.columns]
    table = table.with_columns(pl.lit(None, pl.String).alias(name) for name in unticked)
    parts: list[pl.DataFrame] = []
    for source, target in pairs:
        require(table, (source, target, *(column for _, column in keys)), where)
        named = [pl.col(column).alias(name) for name, column in keys]
        part = table.select(pl.col(source).alias("image"), pl.col(target).alias("answer"), *named)
        parts.append(part.filter(pl.col("image").fill_null("") != ""))
    own = [name for name in table.columns if name.startswith(("Input.", "Answer."))]
    warn_unread([name for name in own if name not in used], "answers", (), where)
    return pl.concat(parts)


def _single_column(columns: Sequence[str], prefix: str, option: str, where: str) -> str:
    matching = [name for name in columns if name.startswith(prefix)]
    if len(matching) != 1:
        raise StudyError(
            "assignment-column-ambiguous",
            where=where,
            prefix=prefix,
            columns=", ".join(matching) or "none",
            option=option,
        )
    return matching[0]


def _pairs(image: str, answer: str, columns: Sequence[str], where: str) -> list[tuple[str, str]]:
    """Pair columns of images and of answers; a box that nobody ticked has no column."""
    if "*" not in image + answer:
        return [(image, answer)]
    if image.count("*") != 1 or answer.count("*") != 1:
        raise OptionError(
            "column-patterns-need-one-star", image_pattern=image, answer_pattern=answer
        )
    pattern = re.compile(re.escape(image).replace(r"\*", r"(\d+)"))
    stars = [match[1] for name in columns if (match := pattern.fullmatch(name))]
    if not stars:
        raise StudyError(
            "no-column-of-pattern", where=where, column=image, columns=", ".join(columns)
        )
    pairs = [(image.replace("*", star), answer.replace("*", star)) for star in stars]
    if not any(name in columns for _, name in pairs):
        raise StudyError(
            "no-column-of-pattern", where=where, column=answer, columns=", ".join(columns)
        )
    return pairs


def with_task_answers(
    table: pl.DataFrame, where: str, columns: Columns | None = None
) -> pl.DataFrame:
    """Convert a form's answers to columns: `Answer.name` of `[{"name": ...}]` or its choices."""
    rows, own_columns = list[dict[str, str]](), columns or Columns()
    for number, text in enumerate(table["Answer.taskAnswers"].fill_null("[]").to_list(), 1):
        try:
            forms = strict_json.parse(text)
            rows.append(
                {
                    f"Answer.{k}": v
                    for form in forms
                    for k, v in _form(form, own_columns, where).items()
                }
            )
        except StudyError:
            raise
        except (ValueError, TypeError, AttributeError) as error:
            raise StudyError(
                "task-answers-not-a-list", where=where, row=number, reason=reason(error)
            ) from None
    names = list(dict.fromkeys(name for row in rows for name in row))
    if repeated := sorted(set(names) & set(table.columns)):
        raise StudyError("answer-named-like-column", where=where, column=repeated[0])
    new = {name: pl.Series([row.get(name) for row in rows], dtype=pl.String) for name in names}
    return table.drop("Answer.taskAnswers").with_columns(**new)


def _form(form: Mapping[str, Any], columns: Columns, where: str) -> dict[str, str]:
    """Convert the fields of a form to text; of choices the true ones."""
    forms: dict[str, str] = {}
    for name, value in form.items():
        if isinstance(value, dict):
            chosen = [str(key) for key, on in value.items() if on is True]
            if list(value) == ["on"]:
                chosen = ["true" if value["on"] else "false"]
            value = join_choices(chosen, columns, where)
        forms[name] = "" if value is None else str(value)
    return forms
