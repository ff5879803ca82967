"""Evidence of logs on two data sets: items that each model solves, and judges' verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.sources.evals import match_items
from bayesrep.sources.evals.records import UNSCORED_SCORE, Log, LogChoices
from bayesrep.sources.evals.solved import (
    add_solved,
    lacking_judges,
    refuse_no_score_codes,
    split_panels,
)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence of the logs on two data sets."""

    records: pl.DataFrame  # records of these data sets
    verdicts: pl.DataFrame  # solved or not, for every attempt of every model at every item
    judged: pl.DataFrame | None  # judges' verdicts on one model's first answers
    models: Sequence[str]  # models that are evaluated

    @cached_property
    def first_verdicts(self) -> pl.DataFrame:
        """The verdicts on the first attempt of each model at each item."""
        by_attempt = self.verdicts.sort("attempt", maintain_order=True)
        return by_attempt.unique(["task", "model", "item"], keep="first", maintain_order=True)


def gather_evidence(
    logs: Sequence[Log],
    records: pl.DataFrame,
    tasks: Sequence[str],
    choices: LogChoices,
    solvers: Sequence[str],
    threshold: float | None,
    *,
    repeats: bool,
) -> tuple[Evidence, list[str]]:
    """Gather the evidence on two data sets, with notes on omissions and assumptions."""
    records, notes = _keep_tasks(logs, records, tasks)
    for task in tasks:
        match_items.check_one_data_set(
            logs, records.filter(pl.col("task") == task), task, choices.key
        )
    verdicts, judged, more_notes = find_verdicts(logs, records, choices, threshold, repeats=repeats)
    notes += more_notes
    if judged is not None:
        judging = judged["model"].unique(maintain_order=True).to_list()
        chosen = [name for name in judging if name in solvers] if solvers else judging
        if len(chosen) != 1:
            raise OptionError("judged-model-unclear", models=listing(judging, "model"))
        judged = judged.filter(pl.col("model") == chosen[0]).sort("attempt", maintain_order=True)
        judged = judged.unique(["task", "scorer", "item"], keep="first", maintain_order=True)
        notes += match_items.describe_unscored_firsts(records, judged, repeats=repeats)
    models, more_notes = _models(records, verdicts, tasks, solvers)
    evidence = Evidence(records, verdicts, judged, models)
    notes += more_notes
    if len(evidence.first_verdicts) < len(verdicts):
        notes.append("of several attempts at an item a model's first counts as its answer")
    counting = evidence.first_verdicts.filter(pl.col("model").is_in(models))
    notes += match_items.describe_unscored_firsts(records, counting, repeats=repeats)
    return evidence, notes


def _keep_tasks(
    logs: Sequence[Log], records: pl.DataFrame, tasks: Sequence[str]
) -> tuple[pl.DataFrame, list[str]]:
    selected = records.filter(pl.col("task").is_in(list(tasks)))
    notes = [note for number in selected["log"].unique().sort() for note in logs[number].notes]
    tasks_present = records["task"].unique(maintain_order=True).to_list()
    others = [*(task for log in logs for task in log.unread), *tasks_present]
    others = [task for task in dict.fromkeys(others) if task not in tasks]
    if others:
        notes.append(f"left out: {listing(others, 'data set')}, which the logs hold too")
    keys = {f"{logs[number].key} ({logs[number].tool})" for number in selected["log"].unique()}
    notes.append(f"items told apart by {', '.join(sorted(keys))}")
    return selected, notes


def find_verdicts(
    logs: Sequence[Log],
    records: pl.DataFrame,
    choices: LogChoices,
    threshold: float | None,
    *,
    repeats: bool,
) -> tuple[pl.DataFrame, pl.DataFrame | None, list[str]]:
    """Find the models' verdicts and the judges', both with `solved`."""
    scored = records.filter(pl.col("score") != UNSCORED_SCORE)
    if not len(scored):
        raise StudyError("logs-without-scores", where=logs[0].where)
    scorers = scored["scorer"].unique(maintain_order=True).to_list()
    judging = pl.col("scorer").is_in(list(choices.judges))
    judged = split_panels(scored.filter(judging))
    if absent := lacking_judges(judged, choices.judges):
        scorer_names = listing([name for name in scorers if name] or ["none"], "scorer")
        raise OptionError(
            "judge-without-scores", judges=listing(absent, "judge"), scorers=scorer_names
        )
    all_notes: list[str] = []
    parts: list[pl.DataFrame] = []
    for part, scorer in ((scored.filter(~judging), choices.scorer), (judged, None)):
        if scorer is not None:
            if not len(part):
                raise OptionError("all-scorers-are-judges")
            try:  # of the one that decides if items are solved
                part = match_items.select_scores(part, "scorer", scorer)
            except OptionError as error:
                if scorer:
                    raise
                judges = ", and which are judges whose verdicts are to be counted (--judges)"
                raise OptionError(error.violation.append_text(judges)) from None
        elif not len(part):
            break
        for field, names in (("metric", choices.metric), ("filter", choices.filter)):
            part = match_items.select_scores(part, field, names if scorer is not None else ())
        # Codes for "no score" are detected among all scores of one kind, in all files.
        counting = part if threshold is not None else part.filter(pl.col("said").is_null())
        for _, rows in counting.group_by("metric", "scorer", maintain_order=True):
            refuse_no_score_codes(rows, [log.where for log in logs])
        solved: list[pl.DataFrame] = []
        for (number,), rows in part.group_by("log", maintain_order=True):
            verdicts, notes = add_solved(rows, threshold, logs[int(str(number))].where)
            solved.append(verdicts)
            all_notes += notes
        numbered, notes = match_items.attempts_numbered(logs, pl.concat(solved), repeats=repeats)
        parts.append(numbered)
        all_notes += notes
    return parts[0], parts[1] if len(parts) > 1 else None, all_notes


def _models(
    records: pl.DataFrame, verdicts: pl.DataFrame, tasks: Sequence[str], solvers: Sequence[str]
) -> tuple[list[str], list[str]]:
    by_task = [
        verdicts.filter(pl.col("task") == task)["model"].unique(maintain_order=True).to_list()
        for task in tasks
    ]
    every = records["model"].unique(maintain_order=True).to_list()
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
        suffix = f" beside the solvers {', '.join(solvers)}" if solvers else ""
        raise StudyError(
            "no-model-on-both-sets",
            beside_solvers=suffix,
            reference=tasks[0],
            replication=tasks[1],
            notes=f" ({'; '.join(notes)})" if notes else "",
        )
    return evaluated, notes
