"""Read logs of evaluations into a study, or into answers that await their counts.

Counts are verdicts of judges, attempts of solvers, or a table; a model's first attempt counts.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.choices import Key
from bayesrep.errors import OptionError, StudyError, listing, plain_text
from bayesrep.files.names import normalize_name
from bayesrep.sources.evals import match_items
from bayesrep.sources.evals.count_source import CountedItems, from_answers, from_table, on_items
from bayesrep.sources.evals.detect_format import read_logs
from bayesrep.sources.evals.evidence import Evidence, find_verdicts, gather_evidence
from bayesrep.sources.evals.records import (
    UNSCORED_SCORE,
    Log,
    LogChoices,
    Names,
    list_names,
    name_columns,
)
from bayesrep.sources.evals.solved import lacking_judges
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.attempts import Attempts
from bayesrep.studies.draft import StudyContents
from bayesrep.studies.manifest import JSON
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.study import Study
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.studies.vocabulary import PROVENANCE_ENTRY
from bayesrep.types import Bools


def read_evaluations(
    paths: Sequence[str | Path],
    *,
    reference: str | None = None,
    replication: str | None = None,
    name: str | None = None,
    metric: Names = None,
    filter: Names = None,
    scorer: Names = None,
    judges: Names = None,
    solvers: Names = None,
    counts: str | Path | None = None,
    threshold: float | None = None,
    key: Key = "auto",
    repeats: bool = False,
    common: bool = False,
    group: Mapping[str, Sequence[str]] | None = None,
    item: str | None = None,
    model: str | None = None,
    score: str | None = None,
    dataset: str | None = None,
    progress: bool = False,
) -> StudyContents:
    """Read two data sets from logs of evaluations of language models.

    Parameters
    ----------
    paths
        Logs, folders of them, or `NAME=PATH` to name a log's model (see `bayesrep.sources.evals`).
    reference, replication
        Names of the two data sets in the logs: a task's, or a group's.
    name
        The study's name.
    metric, filter, scorer
        The one that decides if items are solved, if logs hold several: one name, or several of
        which each log has one.
    judges
        Scorers whose verdicts are counted. Where logs are of several models, `solvers` names the
        one whose answers they judge.
    solvers
        Models whose attempts are counted.
    counts
        A table of dataset, item, selected, shown.
    threshold
        The least score of a solved item, for scores that are neither right nor wrong.
    key
        Identifier of items: "id" or "content"; "auto" takes the id, and refuses if contents
        differ.
    repeats
        Records of one model and item that come again are further attempts.
    common
        Keep the items that all models have, where a model lacks more than 5 %.
    group
        For a data set that is several tasks, their names, or patterns of these such as "mmlu_*".
        Groups that results_*.json of lm-evaluation-harness knows need none.
    item, model, score, dataset
        Columns of tables and JSON Lines of unknown tools (see
        `bayesrep.sources.evals.score_tables`).
    progress
        Show a bar on standard error, where there is much to read.

    Returns
    -------
    StudyContents
        Items in the order of the first log; models in that of the logs. Without counts, `answers`
        are which of "right" and "wrong" each model's answer to each item is; `attempts` are those
        of models that were asked several times.

    Raises
    ------
    StudyError
        In one line, naming the file, the items or models, the rule broken and what to do.
    OptionError
        If a choice is needed; it lists the possible ones.
    """
    reference, replication = (each and normalize_name(each) for each in (reference, replication))
    choices = LogChoices(
        *(list_names(each) for each in (metric, filter, scorer, judges)),
        key=key,
        tasks=(reference, replication) if reference and replication else (),
        groups={name: tuple(members) for name, members in (group or {}).items()},
        columns=name_columns(item, model, score, dataset),
    )
    solving = list_names(solvers)
    _check(choices, solving, counts, threshold)
    logs = read_logs(paths, choices, progress=progress)
    records = match_items.join_records(logs)
    tasks = _tasks(logs, records, reference, replication)
    evidence, notes = gather_evidence(
        logs, records, tasks, choices, solving, threshold, repeats=repeats
    )
    models = tuple(evidence.models)
    datasets: dict[str, AnnotatedSet] = {}
    answers: list[Predictions] = []
    for role, task in zip(REQUIRED_ROLES, tasks, strict=True):
        items, correct, counted, more_notes = _scored_items(
            evidence, task, counts, choices.judges, solving, common=common
        )
        notes += more_notes
        if counted is not None:
            k, n, raters = counted.selected, counted.shown, counted.answers
            datasets[role] = AnnotatedSet(task, items, k, n, correct, answers=raters)
            continue
        # Without counts, which of "right" and "wrong" each model's answer is.
        given = np.where(correct.T, 0, 1).astype(np.int8)[:, :, None]
        right = np.zeros(len(items), dtype=np.int8)
        answers.append(Predictions(task, items, ("right", "wrong"), right, models, given))
    facts: dict[str, JSON] = {
        "source": "evals",
        PROVENANCE_ENTRY: "evaluation",
        "files": sorted(plain_text(Path(log.where).name) for log in logs),
        "tools": sorted({log.tool for log in logs}),
        "threshold": threshold,
        "notes": notes,
    }
    attempts = _attempts(evidence.verdicts, tasks)
    # Without counts there is no study, but answers that `papers compare` takes.
    if not datasets:
        return StudyContents(
            answers=answers, attempts=attempts, provenance=facts, notes=tuple(notes)
        )
    if counts is not None:
        facts["counts"] = {"table": Path(counts).name}
    elif choices.judges:
        of_models: dict[str, JSON] = {"of": list(solving)} if solving else {}
        facts["counts"] = {"judges": list(choices.judges), **of_models}
    else:
        facts |= {"counts": {"solvers": list(solving)}, PROVENANCE_ENTRY: "solvers"}
    study = Study(datasets, models, name or "study", facts)
    return StudyContents.from_study(study, attempts=attempts, notes=tuple(notes))


def _scored_items(
    evidence: Evidence,
    task: str,
    counts: str | Path | None,
    judges: Sequence[str],
    solvers: Sequence[str],
    *,
    common: bool,
) -> tuple[NDArray[np.str_], Bools, CountedItems | None, list[str]]:
    """A data set's items [N] that all models have, correctness [N, C], counts if any, notes."""
    of_task = pl.col("task") == task
    first = evidence.first_verdicts.filter(of_task)
    scored_items, notes = _keep_scored_items(evidence.records.filter(of_task), first["item"], task)
    items, more_notes = match_items.common_items(
        first, scored_items, evidence.models, task, common=common
    )
    notes += more_notes
    counted: CountedItems | None = None
    if counts is not None:
        counted = from_table(counts, task, scored_items.unique())
    elif evidence.judged is not None:
        judged = evidence.judged.filter(of_task)
        names = judged["scorer"].unique(maintain_order=True)  # of a panel each judge's
        names = [*names, *lacking_judges(judged, judges)]
        counted = from_answers(judged, "scorer", names, task)
    elif solvers:
        counted = from_answers(evidence.verdicts.filter(of_task), "model", solvers, task)
    # Of items that are scored only those are kept that have counts, too.
    if counted is not None:
        whole, counted = len(items), on_items(counted, items)
        if len(counted.items) < whole:
            notes.append(f"{whole - len(counted.items):,} items of {task!r} have no counts")
        if not counted.items:
            raise StudyError("no-item-counted-and-scored", dataset=task)
        items = counted.items
    rows = pl.DataFrame({"item": items}).with_row_index("row")
    columns = pl.DataFrame({"model": evidence.models}).with_row_index("column")
    placed = first.join(rows, on="item").join(columns, on="model")
    correct = np.zeros((len(items), len(evidence.models)), dtype=np.bool_)
    correct[placed["row"].to_numpy(), placed["column"].to_numpy()] = placed["solved"].to_numpy()
    return np.array(items, dtype=np.str_), correct, counted, notes


def explain_refusals(
    logs: Sequence[Log], records: pl.DataFrame, choices: LogChoices
) -> dict[str, Exception]:
    """Collect the error of each data set that cannot be imported as it is."""
    error_of_task: dict[str, Exception] = {}
    for (name,), rows in records.group_by("task", maintain_order=True):
        task = str(name)
        try:
            match_items.check_one_data_set(logs, rows, task, choices.key)
            verdicts, *_ = find_verdicts(logs, rows, choices, None, repeats=False)
            scored_items, _ = _keep_scored_items(rows, verdicts["item"], task)
            models = verdicts["model"].unique(maintain_order=True).to_list()
            match_items.common_items(verdicts, scored_items, models, task, common=False)
        except (StudyError, OptionError) as error:
            error_of_task[task] = error
    return error_of_task


def _keep_scored_items(
    records: pl.DataFrame, solved: pl.Series, task: str
) -> tuple[pl.Series, list[str]]:
    items = records["item"].unique(maintain_order=True)
    unscored = records.filter(pl.col("score") == UNSCORED_SCORE)["item"].unique(maintain_order=True)
    never = unscored.filter(~unscored.is_in(solved.implode()))
    if not len(never):
        return items, []
    note = f"{listing(never, 'item')} of the {len(items):,} of {task!r}: scored of no model"
    return items.filter(~items.is_in(never.implode())), [f"{note}; left out"]


def _check(
    choices: LogChoices, solvers: Sequence[str], counts: str | Path | None, threshold: float | None
) -> None:
    if choices.key not in get_args(Key):
        raise OptionError("unknown-item-key", choices=", ".join(get_args(Key)), key=choices.key)
    if threshold is not None and not isfinite(threshold):
        raise OptionError("threshold-not-finite", threshold=threshold)
    if counts is not None and (solvers or choices.judges):
        raise OptionError("two-sources-of-counts")
    if both := [name for name in choices.scorer if name in choices.judges]:
        raise OptionError("scorer-also-judge", scorer=both[0])


def _tasks(
    logs: Sequence[Log], records: pl.DataFrame, reference: str | None, replication: str | None
) -> tuple[str, str]:
    sizes = records.group_by("task", maintain_order=True).agg(
        pl.col("item").n_unique(), pl.col("model").n_unique()
    )
    datasets = [
        f"{task} ({n:,} item{'s' if n != 1 else ''}, {m:,} model{'s' if m != 1 else ''})"
        for task, n, m in sizes.iter_rows()
    ]
    datasets += dict.fromkeys(task for log in logs for task in log.unread)
    datasets_text = ", ".join(datasets[:20]) + (", ..." if len(datasets) > 20 else "")
    if reference is None or replication is None:
        raise OptionError("reference-and-replication-unnamed", datasets=datasets_text)
    if reference == replication:
        raise OptionError("reference-is-replication", dataset=reference)
    for task in (reference, replication):
        if task not in set(sizes["task"]):
            raise OptionError("no-log-of-data-set", dataset=task, datasets=datasets_text)
    return reference, replication


def _attempts(verdicts: pl.DataFrame, tasks: Sequence[str]) -> list[Attempts]:
    counted = verdicts.group_by("task", "model", "item", maintain_order=True).agg(
        pl.col("solved").sum().cast(pl.Int64), pl.len().cast(pl.Int64)
    )
    attempts: list[Attempts] = []
    for task in tasks:
        of_task = counted.filter(pl.col("task") == task)
        for (model,), rows in of_task.group_by("model", maintain_order=True):
            if (rows["len"] > 1).any():
                images = rows["item"].to_numpy().astype(np.str_)
                counts = (rows[name].to_numpy() for name in ("solved", "len"))
                attempts.append(Attempts(task, str(model), images, *counts))
    return attempts
