"""A Parquet or CSV table of question, model and score, as LiveBench publishes its judgements.

Columns go by the first of these names that is there: item, question_id, question, sample_id,
instance_id, image, id; model, model_id, classifier; score, solved, correct, is_correct; and
optionally dataset, benchmark, task, category; attempt, epoch, trial; judge, scorer; metric. A table
without a data set's name is called as its file.
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from bayesrep.errors import StudyError
from bayesrep.sources.evals.records import Log, recorded
from bayesrep.sources.table_files import read_table, require, whole_numbers

TOOL = "table of scores"
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "item": ("item", "question_id", "question", "sample_id", "instance_id", "image", "id"),
    "model": ("model", "model_id", "classifier"),
    "score": ("score", "solved", "correct", "is_correct"),
}
_FURTHER: Mapping[str, tuple[str, ...]] = {
    "task": ("dataset", "benchmark", "task", "category"),
    "attempt": ("attempt", "epoch", "trial"),
    "scorer": ("judge", "scorer"),
    "metric": ("metric",),
}
_KNOWN = _NEEDED | _FURTHER
_TEXT = {name for field, names in _KNOWN.items() if field != "attempt" for name in names}


def read(path: Path, model: str | None) -> Log:
    """The records of one table.

    Parameters
    ----------
    path
        The file.
    model
        Its name, where the user gave one and the table has none.
    """
    where = str(path)
    table = read_table(path, _TEXT)
    found = {
        field: next(name for name in names if name in table.columns)
        for field, names in _KNOWN.items()
        if set(names) & set(table.columns)
    }
    if model is not None:
        table = table.with_columns(pl.lit(model).alias("model"))
        found["model"] = "model"
    if missing := [field for field in _NEEDED if field not in found]:
        known = " or ".join(_NEEDED[missing[0]])
        raise StudyError(
            "score-table-lacks-column",
            where=where,
            column=missing[0],
            columns=", ".join(table.columns),
            known_names=known,
        )
    require(table, list(found.values()), where)
    columns = [
        whole_numbers(table[name], where).alias(field)
        if field == "attempt"
        else table[name].cast(pl.String).alias(field)
        for field, name in found.items()
    ]
    return Log(where, TOOL, found["item"], recorded(pl.DataFrame(columns), where, task=path.stem))
