"""The naive estimate as a function of the number of annotators, and its linearity in 1/n.

If the naive estimate bends (Engstrom et al., 2020, appendix E.1 and figure 12),

    θ_n = A + β/n + γ/n²,

the jackknife from n annotators still has the bias −γ/(n(n − 1)); its difference from the jackknife
of about half the annotators identifies γ. With the mixtures of EM + spline the naive estimate of
any n is Σ_k P₁(k) E₂[g | k of n].
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from bayesrep import bounds
from bayesrep.errors import EstimateWarning, InterpolationWarning, OptionError
from bayesrep.estimators.annotator_match import take_annotated, usual_annotators
from bayesrep.estimators.em_spline import EMSpline, fit_parametric
from bayesrep.estimators.intervals import percentile
from bayesrep.estimators.jackknife import correct_estimate
from bayesrep.estimators.naive import (
    at_every_count,
    forget_one_annotator,
    matched_accuracy,
    thinned_counts,
)
from bayesrep.estimators.replicates import Replicates
from bayesrep.estimators.replicates import bootstrap as bootstrap_images
from bayesrep.numerics.settings import own_settings
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study
from bayesrep.types import Float, Floats

MAX_EXTRAPOLATED = 10_000
"""Largest number of annotators that `extrapolate` takes."""

MAX_COMPARED_ANNOTATORS = 2_000
"""Largest n' of naive estimates: beyond it they no longer change."""


@dataclass(frozen=True)
class Linearity:
    """Linearity in 1/n' of the naive estimate, averaged over classifiers."""

    annotators: int  # n, the most that 99 % of the images have
    half: int  # n/2, rounded up
    r_squared: float  # of the line through the naive estimates of n' = n/2..n, equal weights
    jackknife: float  # mean jackknife estimate that starts from n annotators
    jackknife_from_half: float  # and from n/2
    left: float  # bias that curvature leaves in it, if the rest is quadratic: > 0 if too low


def compare_annotators(study: Study | SufficientStatistics) -> pl.DataFrame:
    """Compute naive and jackknife estimates for every number of annotators n' = 1..n.

    Parameters
    ----------
    study
        A study, or its sufficient statistics.

    Returns
    -------
    polars.DataFrame
        One row per n' and classifier: annotators, classifier, reference_accuracy, naive, jackknife
        (delete one; null for n' = 1). n is the most annotators that 99 % of the images of each data
        set have, but 2,000 at most (images with fewer are left out); each image's own are thinned
        to n' in exact expectation.

    Warns
    -----
    InterpolationWarning
        Where the replication has no image at a count of n that the reference has.
    """
    statistics = SufficientStatistics.of(study)
    naive = _naive(Replicates.from_study(statistics))[:, 0]
    size, classifiers = naive.shape
    n = np.arange(2, size + 1)[:, None]
    jackknife = correct_estimate(naive[1:], naive[:-1], n, 1)
    return pl.DataFrame(
        {
            "annotators": np.repeat(np.arange(1, size + 1), classifiers),
            "classifier": list(statistics.classifiers) * size,
            "reference_accuracy": np.tile(statistics.accuracy("reference"), size),
            "naive": naive.ravel(),
            "jackknife": np.concatenate([np.full(classifiers, np.nan), jackknife.ravel()]),
        }
    ).fill_nan(None)


def linearity(table: pl.DataFrame) -> Linearity | None:
    """Judge the line in 1/n' from the rows of `compare_annotators`.

    None with fewer than four annotators per image, which show no curvature.
    """
    means = table.group_by("annotators", maintain_order=True).agg(
        pl.col("naive").mean(), pl.col("jackknife").mean()
    )
    annotators, naive, jackknife = (column.to_numpy() for column in means)
    n = int(annotators[-1])
    if n < 4:
        return None
    half = (n + 1) // 2
    # Small n' are left out: there terms of higher order in 1/n' dominate.
    late = annotators >= half
    fit = np.corrcoef(1 / annotators[late], naive[late])[0, 1] ** 2 if np.ptp(naive[late]) else 1.0
    factor, factor_half = (1 / (size * (size - 1)) for size in (n, half))
    difference = jackknife[n - 1] - jackknife[half - 1]
    # θ_J(n) = A − γ/(n (n − 1)): two values of n identify γ.
    left = difference * factor / (factor_half - factor)
    return Linearity(n, half, *map(float, (fit, jackknife[n - 1], jackknife[half - 1], left)))


def gaps_by_annotators(study: Study, *, bootstrap: int, seed: int) -> pl.DataFrame:
    """Compute the mean gap [95 %] after naive matching with 1..n annotators (figure 11)."""
    bounds.refuse_above("bootstrap", bootstrap, bounds.MAX_BOOTSTRAP)
    statistics = SufficientStatistics.from_study(study)
    table = compare_annotators(statistics)
    gap = (pl.col("reference_accuracy") - pl.col("naive")).mean()
    means = table.group_by("annotators", maintain_order=True).agg(gap=gap)
    rows: list[Floats] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EstimateWarning)  # raised once, for the study itself
        # The replicates are those of `bayesrep.estimate` with the same seed.
        for block in bootstrap_images(study, statistics, size=bootstrap, seed=seed):
            gaps = block.reference.accuracy() - _naive(block)
            rows.append(gaps.mean(axis=-1).T[1:])
    lower, upper = percentile(np.concatenate(rows))
    return means.with_columns(lower=lower, upper=upper)


def extrapolate(
    study: Study | SufficientStatistics, numbers: Sequence[int] | None = None, *, seed: int = 0
) -> pl.DataFrame:
    """Predict the naive gap of other n by EM + spline, and by how much it is too large, `left`."""
    from bayesrep.numerics.beta_splines import expected_bsplines

    statistics = SufficientStatistics.of(study)
    observed = Replicates.from_study(statistics)
    if numbers is None:
        numbers = [times * usual_annotators(observed) for times in (1, 2, 4, 10)]
    if min(numbers, default=0) < 1 or max(numbers) > MAX_EXTRAPOLATED:
        facts = {"most": MAX_EXTRAPOLATED, "numbers": list(numbers)}
        raise OptionError("annotator-numbers-out-of-range", **facts)
    # The fitted mixtures and curves take the place of the true ones.
    options = EMSpline(components=2, loss="binomial", bounds="everywhere")
    fitted = fit_parametric(options, observed, seed=seed)
    reference, replication = (fitted.mixtures.mixture(role) for role in range(2))
    accuracy = statistics.accuracy("reference")
    noiseless_gap = float((accuracy - fitted.adjusted_accuracy[0]).mean())
    rows: list[dict[str, float]] = []
    for n in numbers:
        # Match on n answers: p(s | k) of the replication, weighted by the reference's p(k).
        a, b, conditional = replication.condition_on_counts(n)
        with own_settings():
            basis = np.asarray(expected_bsplines(a, b))
        weights = reference.masses(n)[:, None] * conditional
        naive = fitted.curves @ np.einsum("kj,kjb->b", weights, basis)
        gap = float((accuracy - naive).mean())
        rows.append({"annotators": n, "gap": gap, "left": gap - noiseless_gap})
    return pl.DataFrame(rows)


def _naive(versions: Replicates) -> Float[np.ndarray, "annotators version classifier"]:
    """Compute naive estimates of every version for n' = 1..n."""
    n = min(usual_annotators(versions), MAX_COMPARED_ANNOTATORS)
    # Dropping annotators one by one is cheaper than thinning anew for every n'.
    counts = at_every_count(thinned_counts(take_annotated(versions, n), n))
    accuracies = [matched_accuracy(counts, versions.words)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InterpolationWarning)  # raised once, for n
        while counts.annotators > 1:
            counts = forget_one_annotator(counts)
            accuracies.append(matched_accuracy(counts))
    return np.stack(accuracies[::-1])
