"""Answers in tables of any kind: a row an answer, or a column a rater."""

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from bayesrep.errors import StudyError, TableWarning, listing
from bayesrep.files.names import normalize_names
from bayesrep.files.row_numbers import Place
from bayesrep.files.tables import read_only, require, warn_unread
from bayesrep.files.values import durations, texts
from bayesrep.sources.exports.columns import Columns, drop_marked


def read_answer_table(path: str | Path, columns: Columns) -> pl.DataFrame:
    """Read any table, by the names of its columns."""
    names = {"image": columns.image or "image", "worker": columns.worker or "worker"}
    names["answer"] = columns.answer or "answer"
    if columns.label:
        names["label"] = columns.label
    optional, raters = ("task", "control", "seconds"), "*" in names["answer"]
    table, where = read_only(path, (*names.values(), *optional, "dataset"))
    name_columns = [column for name, column in names.items() if name in ("image", "label")]
    needed = name_columns if raters else names.values()
    if missing := [name for name in needed if name not in table.columns]:
        raise StudyError(
            "answer-columns-missing",
            where=where,
            columns=listing(missing, "column"),
            held=", ".join(map(repr, table.columns[:8])),
        )
    require(table, (), where)
    if "dataset" in table.columns and table["dataset"].n_unique() > 1:
        datasets = listing(
            table["dataset"].cast(pl.String).fill_null("").unique().sort(), "data set"
        )
        raise StudyError("answers-of-several-data-sets", where=path, datasets=datasets)
    # Check values before rows are stacked or left out, so that messages have the file's lines.
    table = table.with_columns(texts(table[name], where) for name in name_columns)
    if "seconds" in table.columns and "seconds" not in names.values():
        table = table.with_columns(durations(table["seconds"], where, missing=True))
    table = table.with_columns(pl.col("^(task|control)$").cast(pl.String))
    if raters:
        table = _stack_raters(table, names, [*optional, "dataset"], where)
        names["answer"] = "answer"
    used = {*names.values(), *optional, "dataset"}
    table = drop_marked(table, where, used)
    unread = [name for name in table.columns if name not in used]
    warn_unread(unread, "answers", set(optional).difference(table.columns), where)
    chosen = [normalize_names(table[column]).alias(name) for name, column in names.items()]
    more = [name for name in optional if name in table.columns and name not in names.values()]
    return table.select(*chosen, *more)


def _stack_raters(
    table: pl.DataFrame, names: Mapping[str, str], others: Sequence[str], where: Place
) -> pl.DataFrame:
    pattern, own = re.escape(names["answer"]).replace(r"\*", ".*"), (*names.values(), *others)
    raters = [name for name in table.columns if name not in own and re.fullmatch(pattern, name)]
    if not raters:
        columns_text = ", ".join(table.columns)
        raise StudyError(
            "no-column-of-pattern", where=where, column=names["answer"], columns=columns_text
        )
    rest = [name for name in table.columns if name not in raters]
    if clash := {names["worker"], "answer"}.intersection(rest):
        raise StudyError("answer-named-like-column", where=where, column=min(clash))
    stacked = table.with_columns(normalize_names(table[name]) for name in raters).unpivot(
        raters, index=rest, variable_name=names["worker"], value_name="answer"
    )
    answers = stacked.drop_nulls("answer")
    if empty := len(stacked) - len(answers):
        text = f"{where}: {empty:,} empty cells of raters are no answers"
        warnings.warn(TableWarning(text), stacklevel=2)
    return answers


def read_crowd_kit(path: str | Path, columns: Columns) -> pl.DataFrame:
    """Read crowd-kit's own columns; its tasks are images, its labels answers."""
    names = Columns(
        columns.image or "task", columns.worker or "worker", columns.answer or "label", None
    )
    return read_answer_table(path, names).drop("task", strict=False)
