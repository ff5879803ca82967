"""HELM: `per_instance_stats.json` of a run, with `scenario_state.json` beside it.

The first holds for every instance (and trial) the mean of many statistics, of which some are
scores; the second says which model it was. The data set is called as the run, without the model's
name. Instances that were perturbed are records of a filter called as the perturbation, the others
of the filter "none" then. Trials are attempts. Instances are of splits, which HELM never pools:
where there are several, those of "test" are read. Instances without a split are none of these.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.errors import StudyError
from bayesrep.files import json_parts
from bayesrep.files.names import normalize_name
from bayesrep.sources.evals.records import Log, LogChoices, choose_name, make_records, unread_log

TOOL = "HELM"
TEST = "test"
STATS, STATE, SPEC = "per_instance_stats.json", "scenario_state.json", "run_spec.json"
_NO_SCORES = re.compile(
    r"num_|training_|inference_|finish_reason_|batch_size|prompt_truncated|max_prob|logprob"
    r"|bits_per_byte|logprob_per_byte|perplexity|predicted_index"
)


def is_stats(first: object) -> bool:
    """Whether the first element of a list is of an instance."""
    return isinstance(first, dict) and {"instance_id", "stats"} <= set(first)


def read(path: Path, text: str, asked: LogChoices, model: str | None) -> Log:
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
    task = normalize_name(_task(path, named))
    if not asked.wants(task):
        return unread_log(where, TOOL, task)
    names: list[str] = []
    rows: list[tuple[Any, ...]] = []
    metric: str | None = None
    # One instance at a time: these files are large.
    for _, instance in json_parts.parts(text, where):
        if not is_stats(instance):
            raise StudyError("helm-entry-not-instance", where=where)
        stats = list(_stats(instance["stats"], where))
        means = {name: mean for name, _, mean in stats}
        # The first instance shows which scores there are; the rest are costs and lengths.
        if metric is None:
            scores = [name for name in means if not _NO_SCORES.match(name)]
            others = [name for name in asked.metric if name in means]
            names = list(dict.fromkeys([*scores, *others]))
            if not names:
                raise StudyError("helm-instance-without-score", where=where)
            metric = asked.one_metric(names, where)
        perturbed = instance.get("perturbation")
        name = perturbed.get("name") if isinstance(perturbed, dict) else None
        trial = instance.get("train_trial_index") or 0
        if not isinstance(trial, int) or isinstance(trial, bool) or not 0 <= trial < 2**31:
            raise StudyError("helm-trial-not-number", where=where, trial=trial)
        # The split is that of the chosen metric, or of any where the metric is missing.
        of_any = stats[0][1] if stats else None
        split = next((split for each, split, _ in stats if each == metric), of_any)
        words = (instance["instance_id"], means.get(metric), name, split)
        rows.append((*(json_parts.as_word(each, where) for each in words), trial + 1))
    if metric is None:
        raise StudyError("helm-log-without-instances", where=where)
    schema = dict.fromkeys(("item", "score", "filter", "split"), pl.String) | {"attempt": pl.Int64}
    table, split, notes = _of_split(pl.DataFrame(rows, schema=schema, orient="row"), asked, path)
    # Unperturbed instances are a filter of their own only beside perturbed ones.
    plainly = "none" if table["filter"].null_count() < len(table) else ""
    table = table.with_columns(pl.col("filter").fill_null(plainly))
    records = make_records(table, where, task=task, model=named, metric=metric)
    return Log(where, TOOL, "instance_id", records, notes=notes, metrics=tuple(names), split=split)


def _of_split(
    table: pl.DataFrame, asked: LogChoices, path: Path
) -> tuple[pl.DataFrame, str, list[str]]:
    """The instances of one split, its name, and how many are of others or of none."""
    splits = table["split"].drop_nulls().unique(maintain_order=True).to_list()
    usual = (TEST,) if TEST in splits else ()
    if not splits or (len(splits) > 1 and asked.survey and not (usual or asked.split)):
        return table, "", []
    split = choose_name(splits, asked.split or usual, "split", str(path))
    others = table.filter(pl.col("split").ne_missing(split))
    counts = others["split"].drop_nulls().value_counts(sort=True)
    told = [f"{count:,} of the split {name!r}" for name, count in counts.iter_rows()]
    told += [f"{none:,} without a split" for none in (others["split"].null_count(),) if none]
    run = path.absolute().parent.name if path.name == STATS else path.name
    note = f"{run}: instances of the split {split!r}" + ("; left out: " if told else "")
    notes = [note + ", ".join(told)] if told or split != TEST else []
    return table.filter(pl.col("split") == split), split, notes


def check_one_split(logs: Sequence[Log], asked: LogChoices) -> None:
    """Refuse logs of which one lacks the split that the others are of.

    Parameters
    ----------
    logs
        Any.
    asked
        With the splits that the user named: logs may be of several of these.

    Raises
    ------
    StudyError
        Naming both logs.
    """
    mine = [log for log in logs if log.split is not None]
    mine.sort(key=lambda log: (log.split != TEST, not log.split))
    for log in mine[1:]:
        first = mine[0]
        if log.split != first.split and (not asked.split or "" in (log.split, first.split)):
            raise StudyError(
                "helm-splits-differ",
                where=log.where,
                split=_name_split(log),
                other_log=first.where,
                other_split=_name_split(first),
            )


def _name_split(log: Log) -> str:
    return f"the split {log.split!r}" if log.split else "no split"


def _stats(stats: Any, where: str) -> Iterator[tuple[str, Any, Any]]:
    """(name, split, mean) of every statistic of an instance."""
    try:
        for each in stats:
            if each["count"]:
                name = str(json_parts.as_word(each["name"]["name"], where))
                yield name, each["name"].get("split"), each.get("mean")
    except (TypeError, KeyError, AttributeError):
        raise StudyError("helm-stats-incomplete", where=where) from None


def _sibling_file(path: Path, other: str) -> Path:
    return path.with_name(path.name.removesuffix(STATS) + other)


def _model(path: Path) -> str:
    for other in (STATE, SPEC):
        file = _sibling_file(path, other)
        if not file.exists():
            continue
        for key, value in json_parts.parts(json_parts.read_text(file), str(file)):
            if key == "adapter_spec" and isinstance(value, Mapping) and value.get("model"):
                return str(json_parts.as_word(value["model"], str(file)))
    raise StudyError("helm-model-unnamed", path=path, state_file=_sibling_file(path, STATE).name)


def _task(path: Path, model: str) -> str:
    """The run's name without the model's."""
    spec = _sibling_file(path, SPEC)
    name = ""
    if spec.exists():
        for key, value in json_parts.parts(json_parts.read_text(spec), str(spec)):
            name = str(json_parts.as_word(value, str(spec))) if key == "name" else name
    name = name or path.name.removesuffix(STATS).rstrip("-_. ") or path.absolute().parent.name
    slug = re.escape(model.replace("/", "_"))
    return re.sub(rf"(?<=[,_:])model(?:=[^,]*|_{slug})(?:,|$)", "", name).rstrip(",_:") or name
