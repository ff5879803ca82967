"""SWE-bench: the report of a run, `MODEL.RUN_ID.json`, which lists ids by what became of them.

What was resolved is solved; what was not, ended in an error or is an empty patch is not. Instances
for which nothing was submitted have no score. The data set is not in the report: it is called as
the run, so that the reports of several models on it have one `--run_id`.
"""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from bayesrep.errors import StudyError
from bayesrep.files import json_parts
from bayesrep.sources.evals.records import UNANSWERED_SCORE, Log, LogChoices, make_records

TOOL = "SWE-bench"
_SCORES = {
    "resolved_ids": "1",
    "unresolved_ids": "0",
    "error_ids": "0",
    "empty_patch_ids": "0",
    "incomplete_ids": UNANSWERED_SCORE,
}


def is_report(keys: Sequence[str]) -> bool:
    """Whether the first keys of a JSON file are those of a report."""
    return {"total_instances", "resolved_instances"} <= set(keys)


def read(path: Path, text: str, asked: LogChoices, model: str | None) -> Log:
    """The records of one report.

    Parameters
    ----------
    path, text
        The file, and what it holds.
    asked
        What tells items apart.
    model
        Its name, where the user gave one.

    Raises
    ------
    StudyError
        Where it lists no instances, or its name has no run's.
    """
    where = str(path)
    held = dict(json_parts.all_parts(text, where))
    lists = {key: held.get(key) for key in _SCORES}
    if not isinstance(lists["resolved_ids"], list) or asked.key == "content":
        raise StudyError("report-without-instances", where=where)
    rows = [
        (json_parts.as_word(item, where), _SCORES[key])
        for key, items in lists.items()
        for item in (items if isinstance(items, list) else ())
    ]
    before, _, run = path.stem.rpartition(".")
    if not (model or before):
        raise StudyError("report-model-unnamed", path=path)
    table = pl.DataFrame(rows, schema={"item": pl.String, "score": pl.String}, orient="row")
    if not len(table):
        raise StudyError("report-without-instances", where=where)
    named = model or before.replace("__", "/")
    return Log(where, TOOL, "instance_id", make_records(table, where, task=run, model=named))
