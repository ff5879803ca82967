"""From logs of evaluations to a study, or to answers that await their counts.

A study needs two things of every item of both data sets: whether each model solves it, and how many
of how many said yes of it. The first is in the logs. The second is told by one of

    judges     scorers of the logs whose verdicts on one model's answers are counted
    solvers    models whose attempts are counted (k of n solve the item); the others are evaluated
    counts     a table of dataset, item, selected, shown

and without any of them the answers alone are returned, which `bayesrep compare` takes.

Of several attempts of an evaluated model its first counts as its answer: it is one draw, as the
answer of a model that was asked once is. All of them are in `attempts`.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl

from bayesrep.choices import Key
from bayesrep.errors import OptionError, StudyError, listing, plain_text
from bayesrep.files.names import normalize_name
from bayesrep.sources.evals import joined
from bayesrep.sources.evals.counted import CountedItems, from_answers, from_table, on_items
from bayesrep.sources.evals.recognised import read_logs
from bayesrep.sources.evals.records import UNSCORED_SCORE, Log, LogChoices, name_columns
from bayesrep.sources.evals.verdicts import add_solved
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.attempts import Attempts
from bayesrep.studies.contents import StudyContents
from bayesrep.studies.manifest import JSON
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.rules import REQUIRED_ROLES
from bayesrep.studies.study import Study
from bayesrep.studies.words import ENTRY
from bayesrep.types import Bools

Names = Sequence[str] | str | None


def read_evaluations(
    paths: Sequence[str | Path],
    *,
    reference: str | None = None,
    replication: str | None = None,
    name: str = "study",
    metric: Names = None,
    filter: Names = None,
    scorer: Names = None,
    split: Names = None,
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
    """Read what logs of evaluations of language models say of two data sets.

    Parameters
    ----------
    paths
        Logs, folders of them, or `NAME=PATH` to name a log's model (see `bayesrep.sources.evals`).
    reference, replication
        What the logs call the two data sets: a task's name, or a group's.
    name
        The study's name.
    metric, filter, scorer, split
        Which one says what is solved, where logs hold several: one name, or several of which each
        log has one. Of the splits of HELM "test" counts where no other is asked for; logs of
        different ones are read where all of them are named.
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
        What tells items apart: "id" or "content"; "auto" takes the id, and refuses where contents
        differ.
    repeats
        Records of one model and item that come again are further attempts.
    common
        Keep the items that all models have, where a model lacks more than 5 %.
    group
        For a data set that is several tasks, their names, or patterns of these such as "mmlu_*".
        Groups that results_*.json of lm-evaluation-harness knows need none.
    item, model, score, dataset
        For tables and JSON Lines that no tool is known for: which column is what (see
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
        Where something has to be chosen; it lists what there is.
    """
    reference, replication = (each and normalize_name(each) for each in (reference, replication))
    asked = LogChoices(
        *(_names(each) for each in (metric, filter, scorer, judges)),
        key=key,
        tasks=(reference, replication) if reference and replication else (),
        split=_names(split),
        groups={name: tuple(members) for name, members in (group or {}).items()},
        columns=name_columns(item, model, score, dataset),
    )
    solving = _names(solvers)
    _check(asked, solving, counts, threshold)
    # Records of the two data sets alone, whichever logs hold them.
    logs = read_logs(paths, asked, progress=progress)
    records = joined.join_records(logs)
    tasks = _tasks(logs, records, reference, replication)
    records, notes = _of_tasks(logs, records, tasks)
    for task in tasks:
        joined.check_one_data_set(logs, records.filter(pl.col("task") == task), task, key)
    # What says that an item is solved, and what judges say of answers.
    verdicts, judged, told = _verdicts(logs, records, asked, threshold, repeats=repeats)
    notes += told
    if judged is not None:
        judged = _of_one_model(judged, solving)
        notes += joined.describe_unscored_firsts(records, judged, repeats=repeats)
    by_models = solving if counts is None and judged is None else ()
    # Who is evaluated, by the first attempt at each item.
    models, told = _models(verdicts, tasks, solving)
    notes += told
    first = verdicts.sort("attempt", maintain_order=True).unique(
        ["task", "model", "item"], keep="first", maintain_order=True
    )
    if len(first) < len(verdicts):
        notes.append("of several attempts at an item a model's first counts as its answer")
    counting = first.filter(pl.col("model").is_in(models))
    notes += joined.describe_unscored_firsts(records, counting, repeats=repeats)
    datasets: dict[str, AnnotatedSet] = {}
    answers: list[Predictions] = []
    # Items that all models have, with counts from a table, judges or models.
    for role, task in zip(REQUIRED_ROLES, tasks, strict=True):
        of_task = pl.col("task") == task
        known, told = _keep_scored_items(
            records.filter(of_task), first.filter(of_task)["item"], task
        )
        notes += told
        items, told = joined.common_items(first.filter(of_task), known, models, task, common=common)
        notes += told
        counted: CountedItems | None = None
        if counts is not None:
            counted = from_table(counts, task, known.unique())
        elif judged is not None:
            counted = from_answers(judged.filter(of_task), "scorer", asked.judges, task)
        elif by_models:
            counted = from_answers(verdicts.filter(of_task), "model", by_models, task)
        if counted is not None:
            whole, counted = len(items), on_items(counted, items)
            if len(counted.items) < whole:
                notes.append(f"{whole - len(counted.items):,} items of {task!r} have no counts")
            if not counted.items:
                raise StudyError("no-item-counted-and-scored", dataset=task)
            items = counted.items
        images = np.array(items, dtype=np.str_)
        correct = _correct(first.filter(of_task), items, models)
        answers.append(_right_or_wrong(task, images, models, correct))
        if counted is not None:
            datasets[role] = AnnotatedSet(
                task, images, counted.selected, counted.shown, correct, answers=counted.answers
            )
    # Where all this came from.
    facts: dict[str, JSON] = {
        "source": "evals",
        ENTRY: "evaluation",
        "files": sorted(plain_text(Path(log.where).name) for log in logs),
        "tools": sorted({log.tool for log in logs}),
        "threshold": threshold,
        "notes": notes,
    }
    attempts = _attempts(verdicts, tasks)
    if not datasets:
        return StudyContents(
            answers=answers, attempts=attempts, provenance=facts, notes=tuple(notes)
        )
    facts["counts"] = _counts_from(counts, asked.judges, solving)
    study = Study(datasets, tuple(models), name, facts)
    return StudyContents.from_study(study, attempts=attempts, notes=tuple(notes))


def explain_refusals(
    logs: Sequence[Log], records: pl.DataFrame, asked: LogChoices
) -> dict[str, Exception]:
    """The error that each data set would raise that could not be imported as it is.

    Parameters
    ----------
    logs, records
        As read, with all data sets.
    asked
        What was chosen.
    """
    refused: dict[str, Exception] = {}
    for (name,), rows in records.group_by("task", maintain_order=True):
        task = str(name)
        try:
            joined.check_one_data_set(logs, rows, task, asked.key)
            verdicts, *_ = _verdicts(logs, rows, asked, None, repeats=False)
            known, _ = _keep_scored_items(rows, verdicts["item"], task)
            models = verdicts["model"].unique(maintain_order=True).to_list()
            joined.common_items(verdicts, known, models, task, common=False)
        except (StudyError, OptionError) as error:
            refused[task] = error
    return refused


def _keep_scored_items(
    records: pl.DataFrame, solved: pl.Series, task: str
) -> tuple[pl.Series, list[str]]:
    """The items of a data set but those that no model's log scored, and a sentence about these."""
    items = records["item"].unique(maintain_order=True)
    said = records.filter(pl.col("score") == UNSCORED_SCORE)["item"].unique(maintain_order=True)
    never = said.filter(~said.is_in(solved.implode()))
    if not len(never):
        return items, []
    told = f"{listing(never, 'item')} of the {len(items):,} of {task!r}: scored of no model"
    return items.filter(~items.is_in(never.implode())), [f"{told}; left out"]


def _names(given: Names) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given or ())


def _check(
    asked: LogChoices, solvers: Sequence[str], counts: str | Path | None, threshold: float | None
) -> None:
    if asked.key not in get_args(Key):
        raise OptionError("unknown-item-key", choices=", ".join(get_args(Key)), key=asked.key)
    if threshold is not None and not isfinite(threshold):
        raise OptionError("threshold-not-finite", threshold=threshold)
    if counts is not None and (solvers or asked.judges):
        raise OptionError("two-sources-of-counts")
    if both := [name for name in asked.scorer if name in asked.judges]:
        raise OptionError("scorer-also-judge", scorer=both[0])


def _tasks(
    logs: Sequence[Log], records: pl.DataFrame, reference: str | None, replication: str | None
) -> tuple[str, str]:
    """The names of the two data sets, which the logs have to have."""
    held = records.group_by("task", maintain_order=True).agg(
        pl.col("item").n_unique(), pl.col("model").n_unique()
    )
    told = [
        f"{task} ({n:,} item{'s' if n != 1 else ''}, {m:,} model{'s' if m != 1 else ''})"
        for task, n, m in held.iter_rows()
    ]
    told += dict.fromkeys(task for log in logs for task in log.unread)
    known = ", ".join(told[:20]) + (", ..." if len(told) > 20 else "")
    if reference is None or replication is None:
        raise OptionError("reference-and-replication-unnamed", datasets=known)
    if reference == replication:
        raise OptionError("reference-is-replication", dataset=reference)
    for task in (reference, replication):
        if task not in set(held["task"]):
            raise OptionError("no-log-of-data-set", dataset=task, datasets=known)
    return reference, replication


def _of_tasks(
    logs: Sequence[Log], records: pl.DataFrame, tasks: Sequence[str]
) -> tuple[pl.DataFrame, list[str]]:
    """The records of the two data sets, and what their logs say."""
    kept = records.filter(pl.col("task").is_in(list(tasks)))
    notes = [note for number in kept["log"].unique().sort() for note in logs[number].notes]
    held = records["task"].unique(maintain_order=True).to_list()
    others = [*(task for log in logs for task in log.unread), *held]
    others = [task for task in dict.fromkeys(others) if task not in tasks]
    if others:
        notes.append(f"left out: {listing(others, 'data set')}, which the logs hold too")
    keys = {f"{logs[number].key} ({logs[number].tool})" for number in kept["log"].unique()}
    notes.append(f"items told apart by {', '.join(sorted(keys))}")
    return kept, notes


def _verdicts(
    logs: Sequence[Log],
    records: pl.DataFrame,
    asked: LogChoices,
    threshold: float | None,
    *,
    repeats: bool,
) -> tuple[pl.DataFrame, pl.DataFrame | None, list[str]]:
    """What says which items are solved, and what judges say; both with `solved`."""
    scored = records.filter(pl.col("score") != UNSCORED_SCORE)
    if not len(scored):
        raise StudyError("logs-without-scores", where=logs[0].where)
    scorers = scored["scorer"].unique(maintain_order=True).to_list()
    if absent := [name for name in asked.judges if name not in scorers]:
        known = listing([name for name in scorers if name] or ["none"], "scorer")
        raise OptionError("judge-without-scores", judges=listing(absent, "judge"), scorers=known)
    judging = pl.col("scorer").is_in(list(asked.judges))
    told: list[str] = []
    parts: list[pl.DataFrame] = []
    for part, scorer in ((scored.filter(~judging), asked.scorer), (scored.filter(judging), None)):
        if scorer is not None:
            if not len(part):
                raise OptionError("all-scorers-are-judges")
            part = _scorer(part, scorer)
        elif not len(part):
            break
        for field, names in (("metric", asked.metric), ("filter", asked.filter)):
            part = joined.select_scores(part, field, names if scorer is not None else ())
        solved: list[pl.DataFrame] = []
        for (number,), rows in part.group_by("log", maintain_order=True):
            verdicts, notes = add_solved(rows, threshold, logs[int(str(number))].where)
            solved.append(verdicts)
            told += notes
        numbered, notes = joined.attempts_numbered(logs, pl.concat(solved), repeats=repeats)
        parts.append(numbered)
        told += notes
    return parts[0], parts[1] if len(parts) > 1 else None, told


def _scorer(scored: pl.DataFrame, asked: Sequence[str]) -> pl.DataFrame:
    """The scores of the one scorer that says what is solved."""
    try:
        return joined.select_scores(scored, "scorer", asked)
    except OptionError as error:
        if asked:
            raise
        judges = ", and which are judges whose verdicts are to be counted (--judges)"
        raise OptionError(error.violation.append_text(judges)) from None


def _of_one_model(judged: pl.DataFrame, solvers: Sequence[str]) -> pl.DataFrame:
    """What judges say of one model's answers, its first attempt at each item."""
    models = judged["model"].unique(maintain_order=True).to_list()
    chosen = [name for name in models if name in solvers] if solvers else models
    if len(chosen) != 1:
        raise OptionError("judged-model-unclear", models=listing(models, "model"))
    mine = judged.filter(pl.col("model") == chosen[0]).sort("attempt", maintain_order=True)
    return mine.unique(["task", "scorer", "item"], keep="first", maintain_order=True)


def _models(
    verdicts: pl.DataFrame, tasks: Sequence[str], solvers: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The models that are evaluated on both data sets, and what is said of the others."""
    by_task = [
        verdicts.filter(pl.col("task") == task)["model"].unique(maintain_order=True).to_list()
        for task in tasks
    ]
    every = verdicts["model"].unique(maintain_order=True).to_list()
    if absent := [name for name in solvers if name not in every]:
        raise OptionError(
            "unknown-solver-model",
            models=listing(absent, "model"),
            known_models=listing(every, "model"),
        )
    models = [name for name in every if all(name in names for names in by_task)]
    evaluated = [name for name in models if name not in solvers]
    notes = [
        f"left out: {name!r}, which has no scores on {task!r}"
        for task, names in zip(tasks, by_task, strict=True)
        for name in every
        if name not in names
    ]
    if not evaluated:
        of = f" beside the solvers {', '.join(solvers)}" if solvers else ""
        raise StudyError(
            "no-model-on-both-sets",
            beside_solvers=of,
            reference=tasks[0],
            replication=tasks[1],
            notes=f" ({'; '.join(notes)})" if notes else "",
        )
    return evaluated, notes


def _correct(first: pl.DataFrame, items: Sequence[str], models: Sequence[str]) -> Bools:
    """Whether each model solves each item, [N, C]; every one is there."""
    rows = pl.DataFrame({"item": items}).with_row_index("row")
    columns = pl.DataFrame({"model": models}).with_row_index("column")
    placed = first.join(rows, on="item").join(columns, on="model")
    correct = np.zeros((len(items), len(models)), dtype=np.bool_)
    correct[placed["row"].to_numpy(), placed["column"].to_numpy()] = placed["solved"].to_numpy()
    return correct


def _right_or_wrong(task: str, images: Any, models: Sequence[str], correct: Bools) -> Predictions:
    return Predictions(
        task,
        images,
        ("right", "wrong"),
        np.zeros(len(images), dtype=np.int8),
        tuple(models),
        np.where(correct.T, 0, 1).astype(np.int8)[:, :, None],
    )


def _counts_from(
    counts: str | Path | None, judges: Sequence[str], solvers: Sequence[str]
) -> dict[str, JSON]:
    if counts is not None:
        return {"table": Path(counts).name}
    if judges:
        return {"judges": list(judges), **({"of": list(solvers)} if solvers else {})}
    return {"solvers": list(solvers)}


def _attempts(verdicts: pl.DataFrame, tasks: Sequence[str]) -> list[Attempts]:
    """The attempts of the models that tried an item several times."""
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
