"""Tables of single answers."""

from pathlib import Path

import polars as pl

from bayesrep.errors import StudyError
from bayesrep.files.names import normalize_names
from bayesrep.files.tables import read_only, require
from bayesrep.files.values import all_flags, durations, is_missing, people, texts
from bayesrep.studies.column_aliases import COLUMN_ALIASES, in_our_words


def read_answers(path: str | Path) -> pl.DataFrame:
    """Read a table of single answers: dataset, image, worker, selected, and all other columns."""
    named = ("dataset", "image", "worker")
    table, where = read_only(
        path, (*named, *COLUMN_ALIASES, "selected", "task", "control", "seconds")
    )
    table = table.rename(in_our_words(table.columns))
    require(table, (*named, "selected"), where)
    columns = [texts(table[name], where) for name in ("dataset", "image")]
    columns += [people(table["worker"], where), all_flags(table["selected"], where)]
    if "task" in table.columns:
        columns.append(texts(table["task"], where))
    if "control" in table.columns:
        control = normalize_names(table["control"])
        control = control.str.to_lowercase().set(is_missing(control), None)
        strange = ~control.is_in(["positive", "negative"]).fill_null(value=True)
        if strange.any():
            rows = where.rows(strange, control)
            raise StudyError("control-unknown", where=where, column="control", rows=rows)
        columns.append(control)
    if "seconds" in table.columns:
        columns.append(durations(table["seconds"], where))
    return table.with_columns(columns)
