"""Answers in tables of any kind: a row an answer, or a column a rater."""

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from bayesrep.errors import StudyError, TableWarning, listing
from bayesrep.files.names import normalize_names
from bayesrep.files.places import Place
from bayesrep.files.tables import read_only, require, warn_unread
from bayesrep.files.values import durations, texts
from bayesrep.sources.exports.columns import Columns, drop_marked


def read_answer_table(path: str | Path, asked: Columns) -> pl.DataFrame:
    """Any table; its columns by name."""
    names = {"image": asked.image or "image", "worker": asked.worker or "worker"}
    names["answer"] = asked.answer or "answer"
    if asked.label:
        names["label"] = asked.label
    known, raters = ("task", "control", "seconds"), "*" in names["answer"]
    table, where = read_only(path, (*names.values(), *known, "dataset"))
    told = [column for name, column in names.items() if name in ("image", "label")]
    needed = told if raters else names.values()
    if missing := [name for name in needed if name not in table.columns]:
        raise StudyError(
            "answer-columns-missing",
            where=where,
            columns=listing(missing, "column"),
            held=", ".join(map(repr, table.columns[:8])),
        )
    require(table, (), where)
    if "dataset" in table.columns and table["dataset"].n_unique() > 1:
        held = listing(table["dataset"].cast(pl.String).fill_null("").unique().sort(), "data set")
        raise StudyError("answers-of-several-data-sets", where=path, datasets=held)
    # What is refused goes by the lines of the file: before rows are stacked or left out.
    table = table.with_columns(texts(table[name], where) for name in told)
    if "seconds" in table.columns and "seconds" not in names.values():
        table = table.with_columns(durations(table["seconds"], where, missing=True))
    table = table.with_columns(pl.col("^(task|control)$").cast(pl.String))
    if raters:
        table = _stack_raters(table, names, [*known, "dataset"], where)
        names["answer"] = "answer"
    used = {*names.values(), *known, "dataset"}
    table = drop_marked(table, where, used)
    unread = [name for name in table.columns if name not in used]
    warn_unread(unread, "answers", set(known).difference(table.columns), where)
    chosen = [normalize_names(table[column]).alias(name) for name, column in names.items()]
    more = [name for name in known if name in table.columns and name not in names.values()]
    return table.select(*chosen, *more)


def _stack_raters(
    table: pl.DataFrame, names: Mapping[str, str], others: Sequence[str], where: Place
) -> pl.DataFrame:
    """A row an answer, of a table whose columns of one pattern are a rater each."""
    pattern, own = re.escape(names["answer"]).replace(r"\*", ".*"), (*names.values(), *others)
    raters = [name for name in table.columns if name not in own and re.fullmatch(pattern, name)]
    if not raters:
        held = ", ".join(table.columns)
        raise StudyError("no-column-of-pattern", where=where, column=names["answer"], columns=held)
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


def read_crowd_kit(path: str | Path, asked: Columns) -> pl.DataFrame:
    """crowd-kit's own columns; its tasks are images, its labels answers."""
    names = Columns(asked.image or "task", asked.worker or "worker", asked.answer or "label", None)
    return read_answer_table(path, names).drop("task", strict=False)
