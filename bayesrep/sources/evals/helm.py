"""HELM: `per_instance_stats.json` of a run, with `scenario_state.json` beside it.

The first holds for every instance (and trial) the mean of many statistics, of which some are
scores; the second says which model it was. The data set is called as the run, without the model's
name. Instances that were perturbed are records of a filter called as the perturbation, the others
of the filter "none" then. Trials are attempts.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.errors import StudyError
from bayesrep.files import json_parts
from bayesrep.sources.evals.records import Asked, Log, only_one, recorded, unread

TOOL = "HELM"
STATS, STATE, SPEC = "per_instance_stats.json", "scenario_state.json", "run_spec.json"
_NO_SCORES = re.compile(
    r"num_|training_|inference_|finish_reason_|batch_size|prompt_truncated|max_prob|logprob"
    r"|bits_per_byte|logprob_per_byte|perplexity|predicted_index"
)


def is_stats(first: object) -> bool:
    """Whether the first element of a list is of an instance."""
    return isinstance(first, dict) and {"instance_id", "stats"} <= set(first)


def read(path: Path, text: str, asked: Asked, model: str | None) -> Log:
    """The records of one file.

    Parameters
    ----------
    path, text
        The file, and what it holds.
    asked
        Which metric.
    model
        Its name, where the user gave one.
    """
    where = str(path)
    if asked.key == "content":
        raise StudyError("helm-items-without-hash", where=where)
    named = model or _model(path)
    task = _task(path, named)
    if asked.tasks and task not in asked.tasks:
        return unread(where, TOOL, task)
    names: dict[str, None] = {}
    rows: list[tuple[Any, ...]] = []
    metric: str | None = None
    for _, instance in json_parts.parts(text, where):
        if not is_stats(instance):
            raise StudyError("helm-entry-not-instance", where=where)
        means = dict(_means(instance["stats"], where))
        if metric is None:
            names = dict.fromkeys(name for name in means if not _NO_SCORES.match(name))
            present = [*names, *(name for name in asked.metric if name in means)]
            if not present:
                raise StudyError("helm-instance-without-score", where=where)
            metric = only_one(list(dict.fromkeys(present)), asked.metric, "metric", where)
        perturbed = instance.get("perturbation")
        name = perturbed.get("name") if isinstance(perturbed, dict) else None
        trial = instance.get("train_trial_index") or 0
        if not isinstance(trial, int) or isinstance(trial, bool) or not 0 <= trial < 2**31:
            raise StudyError("helm-trial-not-number", where=where, trial=trial)
        words = (json_parts.as_word(each) for each in (instance["instance_id"], means.get(metric)))
        rows.append((*words, trial + 1, None if name is None else str(name)))
    if metric is None:
        raise StudyError("helm-log-without-instances", where=where)
    columns = ["item", "score", "attempt", "filter"]
    schema = dict(zip(columns, (pl.String, pl.String, pl.Int64, pl.String), strict=True))
    table = pl.DataFrame(rows, schema=schema, orient="row")
    plainly = "none" if table["filter"].null_count() < len(table) else ""
    table = table.with_columns(pl.col("filter").fill_null(plainly))
    records = recorded(table, where, task=task, model=named, metric=metric)
    return Log(where, TOOL, "instance_id", records)


def _means(stats: Any, where: str) -> Iterator[tuple[str, Any]]:
    try:
        for each in stats:
            if each["count"]:
                yield str(each["name"]["name"]), each.get("mean")
    except (TypeError, KeyError, AttributeError):
        raise StudyError("helm-stats-incomplete", where=where) from None


def _beside(path: Path, other: str) -> Path:
    return path.with_name(path.name.removesuffix(STATS) + other)


def _model(path: Path) -> str:
    for other in (STATE, SPEC):
        file = _beside(path, other)
        if not file.exists():
            continue
        for key, value in json_parts.parts(json_parts.read_text(file), str(file)):
            if key == "adapter_spec" and isinstance(value, Mapping) and value.get("model"):
                return str(value["model"])
    raise StudyError("helm-model-unnamed", path=path, state_file=_beside(path, STATE).name)


def _task(path: Path, model: str) -> str:
    """The run's name without the model's."""
    spec = _beside(path, SPEC)
    name = ""
    if spec.exists():
        for key, value in json_parts.parts(json_parts.read_text(spec), str(spec)):
            name = str(value) if key == "name" else name
    name = name or path.name.removesuffix(STATS).rstrip("-_. ") or path.absolute().parent.name
    slug = re.escape(model.replace("/", "_"))
    return re.sub(rf"(?<=[,_:])model(?:=[^,]*|_{slug})(?:,|$)", "", name).rstrip(",_:") or name
