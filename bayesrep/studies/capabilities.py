"""Capabilities of a benchmark's data: comparisons of two versions that they support or lack."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from bayesrep.numerics.estimands import Z_975
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.attempts import Attempts
from bayesrep.studies.representation import number, spread
from bayesrep.studies.selection import truncating
from bayesrep.studies.study import Study
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.studies.vocabulary import Words, words_of

State: TypeAlias = Literal["yes", "with care", "no"]

MIN_ANSWERS = 5  # per item; with fewer the prior dominates
MAX_PANEL_JUDGES = 20  # judges; more are a crowd even if each answered about every item
MIN_PANEL_SHARE = 0.95
MIN_CUT_ITEMS = 20  # items at the lowest count: a smooth distribution would have some below it too


@dataclass(frozen=True)
class Allowed:
    """One possible use of the data."""

    what: str  # a few words
    state: State  # "yes", "with care" or "no"
    because: str  # evidence for the state, in a sentence
    missing: str = ""  # data that are needed, and how much of them; empty if none are


def supports_adjustment(findings: Sequence[Allowed]) -> bool:
    """Test whether the data can separate a drop in accuracy from harder items."""
    return any(each.what == ADJUSTED_USE and each.state != "no" for each in findings)


RAW_USE, ADJUSTED_USE = "raw comparison", "adjusted comparison"
WORKERS_KNOWN, PASS_AT_K = "who answered", "pass@k"


def of_study(study: Study, attempts: Sequence[Attempts] = ()) -> list[Allowed]:
    """Judge a study's capabilities."""
    words = words_of(study)
    return [
        _judge_raw(study, words),
        *_judge_adjusted(study, words),
        _judge_workers(study, words),
        of_attempts(attempts, words),
    ]


def of_answers(
    names: Sequence[str], items: Sequence[int], models: int, words: Words
) -> list[Allowed]:
    """Judge the capabilities of right and wrong answers without any counts."""
    if len(names) < 2:
        evidence = f"{names[0]} alone" if names else "nothing"
        return [
            Allowed(RAW_USE, "no", f"there is {evidence}", "give both versions"),
            Allowed(ADJUSTED_USE, "no", "there is no second data set"),
        ]
    pairs = zip(names, items, strict=True)
    size = ", ".join(f"{number(count, words.image)} in {name}" for name, count in pairs)
    answers = MIN_ANSWERS * sum(items)
    return [
        Allowed(RAW_USE, "yes", f"{number(models, words.classifier)}; {size}"),
        Allowed(
            ADJUSTED_USE,
            "no",
            f"nobody judged the {words.images}, so that a drop may come from the "
            f"{words.classifiers} or from the {words.images}",
            f"answers of people or judges about the {words.images} of both: {answers:,} for "
            f"{MIN_ANSWERS} each, {2 * answers:,} for 10 (bayesrep collect plan says how few do)",
        ),
        Allowed(WORKERS_KNOWN, "no", "there are no answers", "keep who gave each of them"),
    ]


def of_attempts(attempts: Sequence[Attempts], words: Words) -> Allowed:
    """Judge the capabilities of repeated attempts."""
    if not attempts:
        lacking = f"several attempts at every {words.image}"
        return Allowed(PASS_AT_K, "no", "no repeated attempts are known", lacking)
    most = max(int(each.attempts.max()) for each in attempts)
    if most < 2:
        return Allowed(
            PASS_AT_K,
            "no",
            f"every {words.image} was tried once, which gives pass@1 and nothing beyond",
            f"two attempts or more at every {words.image}",
        )
    every = np.concatenate([each.attempts for each in attempts])
    models = len({each.classifier for each in attempts})
    return Allowed(
        PASS_AT_K,
        "yes",
        f"{number(models, words.classifier)} with {spread(every)} attempts at an {words.image}: "
        f"pass@k for any k, by the form of a mixture beyond {every.min()}",
    )


def _judge_raw(study: Study, words: Words) -> Allowed:
    both = (study.reference, study.replication)
    accuracy, sizes = [data.correct.mean() for data in both], [len(data.images) for data in both]
    models = number(len(study.classifiers), words.classifier)
    error = np.sqrt(sum(p * (1 - p) / n for p, n in zip(accuracy, sizes, strict=True)))
    return Allowed(
        RAW_USE,
        "yes",
        f"{models} on {sizes[0]:,} and {sizes[1]:,} {words.images}; a drop of one of them under "
        f"{100 * Z_975 * error:.1f} points is within chance",
    )


def _judge_adjusted(study: Study, words: Words) -> list[Allowed]:
    findings = [_judge_counts(study.datasets[role], words) for role in REQUIRED_ROLES]
    worst = max(findings, key=lambda each: ("yes", "with care", "no").index(each.state))
    if worst.state == "yes":
        one, other = study.reference, study.replication
        ranges = f"{spread(one.shown)} and {spread(other.shown)} answers per {words.image}"
        return [Allowed(ADJUSTED_USE, "yes", f"{ranges}, on {one.name} and {other.name}")]
    return [each for each in findings if each.state != "yes"]


def _judge_counts(data: AnnotatedSet, words: Words) -> Allowed:
    """Judge whether one data set's counts measure its items."""
    lacking = int(np.maximum(MIN_ANSWERS - data.shown, 0).sum())
    has = f"{data.name} has {spread(data.shown)} answers per {words.image}"
    if data.selection is None and (cut := looks_cut(data)) is not None:
        k, n, size = cut
        return Allowed(
            ADJUSTED_USE,
            "no",
            f"of {data.name}'s {words.images} {size:,} have {k} of {n}, and none has fewer: they "
            "look kept by these very counts, which is not said",
            f"state the rule (import with --selection '{data.name}=at least {k} of {n}'), or 'by "
            "other answers' where these were given afterwards; or have them answered anew",
        )
    if int(data.shown.max()) < 2:
        return Allowed(
            ADJUSTED_USE,
            "no",
            f"{data.name} has one answer per {words.image}, which gives the mean frequency and "
            "nothing else",
            f"{lacking:,} more answers, for {MIN_ANSWERS} each",
        )
    if (rule := truncating(data.selection)) is not None:
        counts, size = np.arange(int(data.shown.max()) + 1), int(data.shown.max())
        n_accepted = int((rule.probability(counts, np.full(size + 1, size)) > 0).sum())
        remaining = "one count, which tells nothing" if n_accepted == 1 else f"{n_accepted} counts"
        return Allowed(
            ADJUSTED_USE,
            "no" if n_accepted == 1 else "with care",
            f"{data.name} was kept by its own counts ({rule.rule}), which leaves {remaining}",
            f"fresh answers about its {len(data.images):,} {words.images}: "
            f"{MIN_ANSWERS * len(data.images):,} for {MIN_ANSWERS} each",
        )
    if lacking:
        return Allowed(
            ADJUSTED_USE,
            "with care",
            f"{has}, so that the prior matters",
            f"{lacking:,} more answers, for {MIN_ANSWERS} each",
        )
    return Allowed(ADJUSTED_USE, "yes", has)


def looks_cut(data: AnnotatedSet) -> tuple[int, int, int] | None:
    """The lowest k of n, and its items, where counts look selected by themselves; else None."""
    sizes, many = np.unique(data.shown, return_counts=True)
    n = int(sizes[many.argmax()])
    counts = np.bincount(data.selected[data.shown == n], minlength=n + 1)
    lowest = int(np.flatnonzero(counts)[0])
    # Without a rule, the probability of k − 1 would be of the same order.
    if lowest == 0 or n < 2 or counts[lowest] < MIN_CUT_ITEMS:
        return None
    return lowest, n, int(counts[lowest])


def panel_of(data: AnnotatedSet) -> int | None:
    """Return the number of judges if they are few and each answered about every item."""
    if data.answers is None:
        return None
    workers = np.unique(data.answers.worker)
    count = np.bincount(data.answers.worker)[workers]
    few = 1 < len(workers) <= MAX_PANEL_JUDGES
    return len(workers) if few and (count >= MIN_PANEL_SHARE * len(data.images)).all() else None


def _judge_workers(study: Study, words: Words) -> Allowed:
    both = [study.datasets[role] for role in REQUIRED_ROLES]
    with_workers = [data.name for data in both if data.answers is not None]
    panels = {data.name: size for data in both if (size := panel_of(data)) is not None}
    if panels:
        evidence = " and ".join(
            f"{size} {words.annotators} answered all of {n}" for n, size in panels.items()
        )
        return Allowed(
            WORKERS_KNOWN,
            "with care",
            f"{evidence}: a fixed panel, not draws of a crowd",
            f"choose what s is a share of: all {words.annotators} there might be (fit --model "
            "workers, wide), or these (--model workers --set panel=true)",
        )
    if len(with_workers) < 2:
        evidence = f"for {with_workers[0]} alone" if with_workers else "for neither data set"
        return Allowed(
            WORKERS_KNOWN,
            "no",
            f"who gave which answer is known {evidence}",
            f"a table of dataset, {words.image}, {words.worker}, selected, in place of counts",
        )
    return Allowed(WORKERS_KNOWN, "yes", "for both data sets; intervals allow for it")
