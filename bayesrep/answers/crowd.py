"""Description of a crowd: its workers, their differences, and their effect on standard errors.

The mean selection frequency of a data set, Σ_x k_x / (n_x N), has an error over images, their
standard deviation over √N, which holds the annotators' own scatter; and one over workers, by
`bayesrep.numerics.crowd` with δ_x = 1 / (n_x N).

Intra-worker correlation: Σ_w ((Σ_x r)² − Σ_x r²) over pairs of a worker's images, relative to the
mean of s (1 − s). Effective answers: their number, times the variance of independent answers over
that with what workers add. Leniency: a worker's mean residual r, drawn towards 0 by what of its
variance is chance. Drift: the slope of r on t, from −1/2 for a worker's first answer to 1/2 for
their last; its error is over workers.

Ways to answer: logit P(yes) = logit p + leniency, p of the image's other answers and leniency ~
N(0, 1); yes (or no) to 98 % of everything; or at random, at a rate of their own, uniform.
Probabilities of the four by Bayes' rule.
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
from bayesrep.studies.study import Study
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.studies.vocabulary import Words, words_of
from bayesrep.studies.worker_answers import WorkerAnswers
from bayesrep.types import Float, Floats

PRIOR_OF_WAYS = {"looks": 0.90, "always_yes": 0.04, "always_no": 0.03, "at_random": 0.03}
"""Ways to answer, with their prior probabilities."""
CONSTANT_SHARE = 0.98  # share of equal answers of workers who always give the same
LENIENCY_NODES = np.linspace(-3.0, 3.0, 13)  # quadrature nodes of the leniency


@dataclass(frozen=True, eq=False)
class CrowdDescription:
    """Workers, and their effect on standard errors.

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
        `leniency`, and the probabilities of `PRIOR_OF_WAYS`.
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


def describe_crowd(study: Study) -> CrowdDescription:
    """Describe the workers, their differences, and their effect on standard errors of the means.

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
    [100, 100]
    """
    known = known_answers(study)
    residuals = residuals_of([data for data, _ in known.values()])
    errors = frequency_covariance([data for data, _ in known.values()], residuals)
    # The covariance of the data sets' means: its diagonal is each one's own error.
    deviations = np.sqrt(np.diagonal(errors)).tolist()
    rows = {
        role: _row(*both, residual, error)
        for (role, both), residual, error in zip(known.items(), residuals, deviations, strict=True)
    }
    # Shared workers are known only if both data sets name theirs.
    in_common, images, crowd = None, None, None
    if set(REQUIRED_ROLES) <= set(known):
        one, other = (list(known).index(role) for role in REQUIRED_ROLES)
        workers = [set(known[role][1].asked().tolist()) for role in REQUIRED_ROLES]
        in_common = len(set.intersection(*workers))
        images = float(np.hypot(*(rows[role]["error_images"] for role in REQUIRED_ROLES)))
        # Var(a − b): shared workers move both means together, which cancels.
        change = errors[one, one] + errors[other, other] - 2 * errors[one, other]
        crowd = float(np.sqrt(max(change, 0.0)))
    return CrowdDescription(
        pl.DataFrame(list(rows.values())),
        pl.concat([_workers(*both) for both in known.values()]),
        in_common,
        images,
        crowd,
        _sentence(list(rows.values()), in_common, images, crowd, words_of(study)),
    )


def known_answers(study: Study) -> Mapping[str, tuple[AnnotatedSet, WorkerAnswers]]:
    """List data sets with known workers, by role, and their answers; `StudyError` if none."""
    answered = {
        role: (data, data.answers)
        for role, data in study.datasets.items()
        if data.answers is not None
    }
    if not answered:
        raise StudyError("study-without-known-workers", study=study.name)
    return answered


def _row(
    data: AnnotatedSet, answers: WorkerAnswers, residual: sparse.csr_array, error: float
) -> dict[str, Any]:
    """Summarize one data set; `error` is the standard error of its mean over workers."""
    k, n = (np.asarray(values, dtype=float) for values in (data.selected, data.shown))
    share, images = k / n, len(k)
    count = np.bincount(answers.worker)
    several = n > 1
    scatter = share[several] * (1 - share[several]) * n[several] / (n[several] - 1)
    variance = float(np.sum(scatter / n[several])) / images**2
    worth = variance / (variance + error**2) if variance > 0 else None
    pairs, total = float(np.sum(count * (count - 1.0))), residual.sum(axis=0)
    between = np.square(total).sum() - residual.power(2).sum()
    is_estimable = pairs > 0 and variance > 0
    return {
        "dataset": data.name,
        "images": images,
        "answers": len(answers.image),
        "workers": int(np.count_nonzero(count)),
        "answers_a_worker": float(np.median(count[count > 0])),
        "selection_frequency": float(share.mean()),
        "error_images": float(share.std(ddof=1) / np.sqrt(images)) if images > 1 else np.nan,
        "error_workers": error,
        "correlation": float(between / overlap_correction([residual]) / pairs / scatter.mean())
        if is_estimable
        else None,
        "annotators": float(n.mean()),
        "effective_answers": None if worth is None else worth * len(answers.image),
        "effective_annotators": None if worth is None else worth * float(n.mean()),
        **_drift(data, answers),
    }


def _drift(data: AnnotatedSet, answers: WorkerAnswers) -> dict[str, float | None]:
    nothing: dict[str, float | None] = {"drift": None, "drift_error": None}
    if answers.position is None:
        return nothing
    times = pl.DataFrame({"worker": answers.worker, "position": answers.position})
    rank = times.select(pl.col("position").rank("average").over("worker"))["position"].to_numpy()
    count = np.bincount(answers.worker)[answers.worker]
    several = count > 1
    t = (rank - 1) / np.maximum(count - 1, 1) - 0.5
    size = len(data.images), len(answers.workers)
    matrix = residuals(answers.image, answers.worker, answers.selected, *size)
    r = np.asarray(matrix[answers.image, answers.worker])
    total = np.square(t[several]).sum()
    if total == 0:
        return nothing
    slope = float(t[several] @ r[several] / total)
    sums = np.bincount(answers.worker[several], t[several] * (r[several] - slope * t[several]))
    return {"drift": slope, "drift_error": float(np.sqrt(np.square(sums).sum()) / total)}


def _workers(data: AnnotatedSet, answers: WorkerAnswers) -> pl.DataFrame:
    size = len(answers.workers)

    def total(values: Floats) -> Float[np.ndarray, "worker"]:
        return np.bincount(answers.worker, values, minlength=size)

    selected = answers.selected
    n_answers = data.shown[answers.image]
    others = data.selected[answers.image] - selected
    mean = float(selected.mean())
    # Add two answers of the mean: an image has few others.
    p = np.clip((others + 2 * mean) / (n_answers + 1), 1e-3, 1 - 1e-3)
    r = residuals(answers.image, answers.worker, selected, len(data.images), size)
    count, yes = total(np.ones(len(selected))), total(selected.astype(float))
    odds = p / (1 - p)
    looks = np.stack(
        [
            total(np.log(np.where(selected, 1.0, 0.0) + np.where(selected, -1, 1) / (1 + odds * e)))
            for e in np.exp(LENIENCY_NODES)
        ]
    )
    weight = np.exp(-np.square(LENIENCY_NODES) / 2)
    evidence = np.stack(
        [
            np.asarray(logsumexp(looks, axis=0, b=(weight / weight.sum())[:, None])),
            yes * np.log(CONSTANT_SHARE) + (count - yes) * np.log1p(-CONSTANT_SHARE),
            yes * np.log1p(-CONSTANT_SHARE) + (count - yes) * np.log(CONSTANT_SHARE),
            betaln(1 + yes, 1 + count - yes),
        ]
    )
    evidence += np.log(np.array(list(PRIOR_OF_WAYS.values())))[:, None]
    probability = np.exp(evidence - np.asarray(logsumexp(evidence, axis=0)))
    moved, square = r.sum(axis=0), r.power(2).sum(axis=0)
    chance = square.sum() / max(count.sum(), 1)
    between = float(np.sum(np.square(moved) - square) / max(np.sum(count * (count - 1)), 1))
    between = max(between, 0.0)
    table = {
        "dataset": np.repeat(data.name, size),
        "worker": answers.workers,
        "answers": count.astype(np.int64),
        "yes": yes / np.maximum(count, 1),
        "leniency": moved * between / np.maximum(count * between + chance, 1e-300),
        **dict(zip(PRIOR_OF_WAYS, probability, strict=True)),
    }
    return pl.DataFrame(table).filter(pl.col("answers") > 0)


def _sentence(
    rows: Sequence[Mapping[str, Any]],
    in_common: int | None,
    images: float | None,
    crowd: float | None,
    words: Words,
) -> str:
    """State the standard error over workers of the difference, or of one known mean."""
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
    largest, least = (values(row["workers"] for row in rows) for values in (max, min))
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
