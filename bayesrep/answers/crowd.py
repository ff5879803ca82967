"""What the crowd did to the numbers: who answered, how they differ, and what that adds to errors.

The mean selection frequency of a data set, Σ_x k_x / (n_x N), has an error over images, their
standard deviation over √N, which holds the annotators' own scatter; and one over workers, by
`bayesrep.numerics.crowd` with δ_x = 1 / (n_x N). Of the difference between two data sets, the
second is small where the same workers answered for both.

*Intra-worker correlation.* Of two answers of one worker about two images, given the images' s:
Σ_w ((Σ_x r)² − Σ_x r²) over pairs of a worker's images, relative to the mean of s (1 − s).

*Effective answers.* As many as would leave the mean the same variance over annotators, if every one
came from a worker of its own: their number, times the variance of independent answers over that
with what workers add. Effective annotators are so many an image.

*Leniency.* A worker's mean residual r, drawn towards 0 by what of its variance is chance.

*Drift.* By how much more often a worker selects at the end of his answers than at the beginning,
as an image's other annotators do: the slope of r on t, from −1/2 for a worker's first answer to
1/2 for his last, over all workers with two answers at least; its error is over workers.

*Ways to answer.* A worker may look at the images: logit P(yes) = logit p + leniency, p of the
image's other answers and leniency ~ N(0, 1); or answer yes (or no) to 98 % of everything; or at
random, at a rate of his own, uniform. Probabilities of the four by Bayes' rule, from 90, 4, 3 and
3 %.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse
from scipy.special import betaln, logsumexp

from bayesrep.errors import StudyError
from bayesrep.numerics.crowd import overlap_correction, residuals
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.crowds import frequency_covariance, residuals_of
from bayesrep.studies.rules import REQUIRED_ROLES
from bayesrep.studies.study import Study
from bayesrep.studies.words import Words, words_of
from bayesrep.studies.worker_answers import WorkerAnswers
from bayesrep.types import Float, Floats

WAYS = {"looks": 0.90, "always_yes": 0.04, "always_no": 0.03, "at_random": 0.03}
"""Ways to answer, and how probable each is before a worker's answers are seen."""
CONSTANT_SHARE = 0.98
"""Share of equal answers of who always gives the same."""
LENIENCIES = np.linspace(-3.0, 3.0, 13)
"""Over which a sum stands for the integral."""


@dataclass(frozen=True, eq=False)
class CrowdDescription:
    """Who answered, and what it adds to errors.

    Attributes
    ----------
    datasets
        One row a data set with known workers: `dataset`, `images`, `answers`, `workers`,
        `answers_a_worker` (median), `selection_frequency` (mean over images), its standard errors
        `error_images` and `error_workers`, `correlation` of a worker's answers, `annotators` an
        image (mean), `effective_answers` and `effective_annotators`; `drift` and `drift_error`
        where it is known what a worker answered first, else null.
    workers
        One row a worker and data set: `dataset`, `worker`, `answers`, `yes` (their share),
        `leniency`, and the probabilities of `WAYS`.
    in_common
        Workers of both data sets; None where one's are unknown.
    difference_images, difference_workers
        Standard errors of the difference of the two mean selection frequencies; None likewise.
    sentence
        The same in words.
    """

    datasets: pl.DataFrame
    workers: pl.DataFrame
    in_common: int | None
    difference_images: float | None
    difference_workers: float | None
    sentence: str


@dataclass(frozen=True, eq=False)
class _Answered:
    """A data set, its answers, and their residuals among the workers of the study."""

    data: AnnotatedSet
    answers: WorkerAnswers
    residual: sparse.csr_array


def describe_crowd(study: Study) -> CrowdDescription:
    """Say who answered, how workers differ, and what that adds to the error of the means.

    Parameters
    ----------
    study
        With the answers by worker of a data set at least.

    Raises
    ------
    StudyError
        If it is not known of any data set who answered.

    Notes
    -----
    Cameron, Gelbach and Miller (2011), "Robust inference with multiway clustering".

    Examples
    --------
    >>> study = bayesrep.simulate_study(
    ...     seed=8, images=600, classifiers=3, scenario="two-crowds"
    ... )
    >>> bayesrep.describe_crowd(study).datasets["workers"].to_list()
    RESULT
    """
    known = _add_residuals(study)
    errors = frequency_covariance(
        [each.data for each in known.values()], [each.residual for each in known.values()]
    )
    # The covariance of the data sets' means: its diagonal is each one's own error.
    rows = {
        role: _row(each, float(np.sqrt(errors[at, at])))
        for at, (role, each) in enumerate(known.items())
    }
    # Whether the two versions share workers can only be told where both name theirs.
    in_common, images, crowd = None, None, None
    if set(REQUIRED_ROLES) <= set(known):
        one, other = (list(known).index(role) for role in REQUIRED_ROLES)
        asked = [set(known[role].answers.asked().tolist()) for role in REQUIRED_ROLES]
        in_common = len(set.intersection(*asked))
        images = float(np.hypot(*(rows[role]["error_images"] for role in REQUIRED_ROLES)))
        # Var(a − b): shared workers move both means together, which cancels.
        change = errors[one, one] + errors[other, other] - 2 * errors[one, other]
        crowd = float(np.sqrt(max(change, 0.0)))
    return CrowdDescription(
        pl.DataFrame(list(rows.values())),
        pl.concat([_workers(each) for each in known.values()]),
        in_common,
        images,
        crowd,
        _sentence(list(rows.values()), in_common, images, crowd, words_of(study)),
    )


def known_answers(study: Study) -> Mapping[str, tuple[AnnotatedSet, WorkerAnswers]]:
    """The data sets whose workers are known, by role, and their answers; `StudyError` of none."""
    known = {
        role: (data, data.answers)
        for role, data in study.datasets.items()
        if data.answers is not None
    }
    if not known:
        raise StudyError("study-without-known-workers", study=study.name)
    return known


def _add_residuals(study: Study) -> Mapping[str, _Answered]:
    """The same with residuals."""
    known = known_answers(study)
    left = residuals_of([data for data, _ in known.values()])
    return {
        role: _Answered(*both, residual)
        for (role, both), residual in zip(known.items(), left, strict=True)
    }


def _row(each: _Answered, error: float) -> dict[str, Any]:
    """One data set, of whose mean this is the standard error over workers."""
    k, n = (np.asarray(of, dtype=float) for of in (each.data.selected, each.data.shown))
    share, images = k / n, len(k)
    count = np.bincount(each.answers.worker)
    several = n > 1
    scatter = share[several] * (1 - share[several]) * n[several] / (n[several] - 1)
    alone = float(np.sum(scatter / n[several])) / images**2
    worth = alone / (alone + error**2) if alone > 0 else None
    pairs, total = float(np.sum(count * (count - 1.0))), each.residual.sum(axis=0)
    between = np.square(total).sum() - each.residual.power(2).sum()
    told = pairs > 0 and alone > 0
    return {
        "dataset": each.data.name,
        "images": images,
        "answers": len(each.answers.image),
        "workers": int(np.count_nonzero(count)),
        "answers_a_worker": float(np.median(count[count > 0])),
        "selection_frequency": float(share.mean()),
        "error_images": float(share.std(ddof=1) / np.sqrt(images)) if images > 1 else np.nan,
        "error_workers": error,
        "correlation": float(between / overlap_correction([each.residual]) / pairs / scatter.mean())
        if told
        else None,
        "annotators": float(n.mean()),
        "effective_answers": None if worth is None else worth * len(each.answers.image),
        "effective_annotators": None if worth is None else worth * float(n.mean()),
        **_drift(each),
    }


def _drift(each: _Answered) -> dict[str, float | None]:
    """By how much more often workers select in the end, and its standard error over workers."""
    answers = each.answers
    nothing: dict[str, float | None] = {"drift": None, "drift_error": None}
    if answers.position is None:
        return nothing
    told = pl.DataFrame({"worker": answers.worker, "position": answers.position})
    rank = told.select(pl.col("position").rank("average").over("worker"))["position"].to_numpy()
    count = np.bincount(answers.worker)[answers.worker]
    several = count > 1
    t = (rank - 1) / np.maximum(count - 1, 1) - 0.5
    size = len(each.data.images), len(answers.workers)
    matrix = residuals(answers.image, answers.worker, answers.selected, *size)
    r = np.asarray(matrix[answers.image, answers.worker])
    total = np.square(t[several]).sum()
    if total == 0:
        return nothing
    slope = float(t[several] @ r[several] / total)
    sums = np.bincount(answers.worker[several], t[several] * (r[several] - slope * t[several]))
    return {"drift": slope, "drift_error": float(np.sqrt(np.square(sums).sum()) / total)}


def _workers(each: _Answered) -> pl.DataFrame:
    """One row a worker of a data set."""
    answers, size = each.answers, len(each.answers.workers)

    def total(values: Floats) -> Float[np.ndarray, "worker"]:
        return np.bincount(answers.worker, values, minlength=size)

    selected = answers.selected
    shown = each.data.shown[answers.image]
    others = each.data.selected[answers.image] - selected
    mean = float(selected.mean())
    # Two answers of the mean are added: an image has few others.
    p = np.clip((others + 2 * mean) / (shown + 1), 1e-3, 1 - 1e-3)
    r = residuals(answers.image, answers.worker, selected, len(each.data.images), size)
    count, yes = total(np.ones(len(selected))), total(selected.astype(float))
    odds = p / (1 - p)
    looks = np.stack(
        [
            total(np.log(np.where(selected, 1.0, 0.0) + np.where(selected, -1, 1) / (1 + odds * e)))
            for e in np.exp(LENIENCIES)
        ]
    )
    weight = np.exp(-np.square(LENIENCIES) / 2)
    evidence = np.stack(
        [
            np.asarray(logsumexp(looks, axis=0, b=(weight / weight.sum())[:, None])),
            yes * np.log(CONSTANT_SHARE) + (count - yes) * np.log1p(-CONSTANT_SHARE),
            yes * np.log1p(-CONSTANT_SHARE) + (count - yes) * np.log(CONSTANT_SHARE),
            betaln(1 + yes, 1 + count - yes),
        ]
    )
    evidence += np.log(np.array(list(WAYS.values())))[:, None]
    probability = np.exp(evidence - np.asarray(logsumexp(evidence, axis=0)))
    table = {
        "dataset": np.repeat(each.data.name, size),
        "worker": answers.workers,
        "answers": count.astype(np.int64),
        "yes": yes / np.maximum(count, 1),
        "leniency": _shrink_means(count, r.sum(axis=0), r.power(2).sum(axis=0)),
        **dict(zip(WAYS, probability, strict=True)),
    }
    return pl.DataFrame(table).filter(pl.col("answers") > 0)


def _shrink_means(
    count: Float[np.ndarray, "worker"],
    total: Float[np.ndarray, "worker"],
    square: Float[np.ndarray, "worker"],
) -> Float[np.ndarray, "worker"]:
    """Workers' mean residuals, drawn to 0 by what of their variance is chance."""
    chance = square.sum() / max(count.sum(), 1)
    between = np.sum(np.square(total) - square) / max(np.sum(count * (count - 1)), 1)
    between = max(float(between), 0.0)
    return total * between / np.maximum(count * between + chance, 1e-300)


def _sentence(
    rows: Sequence[Mapping[str, Any]],
    in_common: int | None,
    images: float | None,
    crowd: float | None,
    words: Words,
) -> str:
    """What workers add to the error of the difference, or of the one mean that is known."""
    if alone := [row["dataset"] for row in rows if row["workers"] == 1]:
        return (
            f"All answers of {' and '.join(alone)} are one {words.worker}'s: what another would "
            "have said cannot be known, and no interval allows for it."
        )
    if images is None or crowd is None or in_common is None:
        row = rows[0]
        return (
            f"Who answered is known of {row['dataset']} alone: its mean selection frequency has a "
            f"standard error of {100 * row['error_workers']:.2f} points over {words.workers}, and "
            f"of {100 * row['error_images']:.2f} over {words.images}."
        )
    largest, least = (of(row["workers"] for row in rows) for of in (max, min))
    if not in_common:
        who = f"Two crowds, no {words.worker} in common"
    elif in_common == largest:
        who = "One crowd for both data sets"
    else:
        who = f"{in_common} {words.workers} answered for both data sets, of {least} to {largest}"
    return (
        f"{who}: the difference of the mean selection frequencies has a standard error of "
        f"{100 * crowd:.2f} points over {words.workers}, and of {100 * images:.2f} over "
        f"{words.images}."
    )
