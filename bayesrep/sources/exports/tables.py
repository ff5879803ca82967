"""Answers in tables of any kind: a row an answer."""

from pathlib import Path

import polars as pl

from bayesrep.errors import StudyError, listing
from bayesrep.files.names import normalize_names
from bayesrep.files.tables import read_only, require
from bayesrep.files.values import durations
from bayesrep.sources.exports.columns import Columns


def read_answer_table(path: str | Path, asked: Columns) -> pl.DataFrame:
    """Any table; its columns by name."""
    names = {"image": asked.image or "image", "worker": asked.worker or "worker"}
    names["answer"] = asked.answer or "answer"
    if asked.label:
        names["label"] = asked.label
    known = ("task", "control", "seconds")
    table, where = read_only(path, (*names.values(), *known, "dataset"))
    require(table, tuple(names.values()), where)
    if "dataset" in table.columns and table["dataset"].n_unique() > 1:
        held = listing(table["dataset"].cast(pl.String).fill_null("").unique().sort(), "data set")
        raise StudyError("answers-of-several-data-sets", where=path, datasets=held)
    more = [
        durations(table[name], where, missing=True)
        if name == "seconds"
        else table[name].cast(pl.String)
        for name in known
        if name in table.columns and name not in names.values()
    ]
    chosen = [normalize_names(pl.col(column)).alias(name) for name, column in names.items()]
    return table.select(*chosen, *more)


def read_crowd_kit(path: str | Path, asked: Columns) -> pl.DataFrame:
    """crowd-kit's own columns; its tasks are images, its labels answers."""
    names = Columns(asked.image or "task", asked.worker or "worker", asked.answer or "label", None)
    return read_answer_table(path, names).drop("task", strict=False)
