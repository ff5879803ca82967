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


def read_mturk(path: str | Path, asked: Columns) -> pl.DataFrame:
    """Batch results: a row an assignment, with inputs and answers of one image or of a grid."""
    where, needed = str(path), ("HITId", "WorkerId")
    table = read_only(path, needed).frame.with_columns(normalize_names(pl.all()))
    require(table, needed, where)
    if "Answer.taskAnswers" in table.columns:
        table = with_task_answers(table, where, asked)
    image, answer = (
        each or _single_column(table.columns, prefix, option, where)
        for each, prefix, option in (
            (asked.image, "Input.", "image"),
            (asked.answer, "Answer.", "answer"),
        )
    )
    keys = [("worker", "WorkerId"), ("task", "HITId")]
    if "WorkTimeInSeconds" in table.columns:
        keys.append(("seconds", "WorkTimeInSeconds"))
        table = table.with_columns(durations(table["WorkTimeInSeconds"], where, missing=True))
    if asked.label:
        keys.append(("label", asked.label))
    pairs = _pairs(image, answer, table.columns, where)
    used = {name for each in (pairs, keys) for pair in each for name in pair}
    table = drop_marked(table, where, used)
    unticked = [said for _, said in pairs if "*" in answer and said not in table.columns]
    table = table.with_columns(pl.lit(None, pl.String).alias(name) for name in unticked)
    parts: list[pl.DataFrame] = []
    for shown, said in pairs:
        require(table, (shown, said, *(column for _, column in keys)), where)
        named = [pl.col(column).alias(name) for name, column in keys]
        part = table.select(pl.col(shown).alias("image"), pl.col(said).alias("answer"), *named)
        parts.append(part.filter(pl.col("image").fill_null("") != ""))
    own = [name for name in table.columns if name.startswith(("Input.", "Answer."))]
    warn_unread([name for name in own if name not in used], "answers", (), where)
    return pl.concat(parts)


def _single_column(columns: Sequence[str], prefix: str, option: str, where: str) -> str:
    """The one column with a prefix."""
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
    """Columns of images and of answers about them: none of a box that nobody ticked."""
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
    if not any(said in columns for _, said in pairs):
        raise StudyError(
            "no-column-of-pattern", where=where, column=answer, columns=", ".join(columns)
        )
    return pairs


def with_task_answers(
    table: pl.DataFrame, where: str, asked: Columns | None = None
) -> pl.DataFrame:
    """The answers of a form as columns: `Answer.name` of `[{"name": ...}]` or of its choices."""
    rows, said = list[dict[str, str]](), asked or Columns()
    for number, text in enumerate(table["Answer.taskAnswers"].fill_null("[]").to_list(), 1):
        try:
            forms = strict_json.parse(text)
            rows.append(
                {f"Answer.{k}": v for form in forms for k, v in _form(form, said, where).items()}
            )
        except StudyError:
            raise
        except (ValueError, TypeError, AttributeError) as error:
            raise StudyError(
                "task-answers-not-a-list", where=where, row=number, reason=reason(error)
            ) from None
    names = list(dict.fromkeys(name for row in rows for name in row))
    if taken := sorted(set(names) & set(table.columns)):
        raise StudyError("answer-named-like-column", where=where, column=taken[0])
    new = {name: pl.Series([row.get(name) for row in rows], dtype=pl.String) for name in names}
    return table.drop("Answer.taskAnswers").with_columns(**new)


def _form(form: Mapping[str, Any], asked: Columns, where: str) -> dict[str, str]:
    """The fields of a form as text; of choices the one that is true."""
    forms: dict[str, str] = {}
    for name, value in form.items():
        if isinstance(value, dict):
            chosen = [str(key) for key, on in value.items() if on is True]
            if list(value) == ["on"]:
                chosen = ["true" if value["on"] else "false"]
            value = join_choices(chosen, asked, where)
        forms[name] = "" if value is None else str(value)
    return forms
