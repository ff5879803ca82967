"""Pivotal discrepancies of counts and answers from a model at its draws: honest p-values.

Let X²(y, θ) be Pearson's discrepancy on K bins, expected counts taken at θ itself. If θ* ~ prior
and y ~ p(y | θ*), then a draw θ of the posterior given y has, together with y, the same joint
distribution as θ*. So at *one posterior draw* X² is distributed as Pearson's statistic at known
parameters, no degrees of freedom lost (Johnson 2004, theorem 1). With F its distribution function,
z(θ) = Φ⁻¹(F(X²(y, θ))) is standard normal over (y, θ). The average z̄ over all draws has mean 0,
and by the law of total variance

    Var(z̄) = 1 − E[Var(z(θ) | y)],        p = 1 − Φ(z̄ / √(1 − Var_draws(z)))

is uniform under the model as far as z̄ is normal. F is a gamma distribution with the mean and the
variance of X² at θ: for counts K − 1 and 2 (K − 1), or Haldane's exact variance where all images
have one n; for answers, 1 and 2 + κ₄/σ⁴ for each bin, exactly.

Measured: in 40 fits to data drawn from a fitted model 5.0 % of 80 p-values of counts and 5.0 % of
320 of answers were below 5 %; where the truth had three components and the fit two (2,000 images),
20 % of those of counts were.

References: Johnson (2004), "A Bayesian χ² test for goodness-of-fit", Annals of Statistics 32;
Meng (1994), "Posterior predictive p-values", on their bias towards one half.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.special import gammaincc, ndtr, ndtri

from bayesrep.models.answers import BINOMIAL, AnswerDistribution
from bayesrep.posterior.groups import CellNames
from bayesrep.types import Float, Floats, Int, Ints

MIN_EXPECTED = 5.0
MAX_BINS = 40
MIN_Z_VARIANCE = 0.2  # of z̄: keeps p conservative if the posterior is nearly the prior


def calibrated_p(x2: Floats, mean: Floats | float, variance: Floats | float) -> float:
    """Compute the p-value of a pivotal discrepancy X² [draw] by the module's formula."""
    z = standardise(x2, mean, variance)
    spread = max(1 - float(z.var()), MIN_Z_VARIANCE)
    return float(ndtr(-z.mean() / np.sqrt(spread)))


def standardise(x2: Floats, mean: Floats | float, variance: Floats | float) -> Floats:
    """Compute Φ⁻¹(F(x²)) with F the gamma distribution of this mean and variance."""
    shape, scale = np.square(mean) / variance, variance / np.asarray(mean)
    tail = np.asarray(gammaincc(shape, x2 / scale))
    with np.errstate(divide="ignore"):
        exact = -ndtri(tail)
    # Wilson and Hilferty's cube root if the tail underflows.
    approximate = (np.cbrt(x2 / (shape * scale)) - 1 + 1 / (9 * shape)) * 3 * np.sqrt(shape)
    return np.where((tail > 1e-300) & (tail < 1), exact, approximate)


def merge(sizes: Floats, min_size: float) -> Ints:
    """Assign cells to bins [M]: merge neighbours until each size [M] or [M, R] is large enough."""
    table = sizes.reshape(len(sizes), -1)
    bins = np.zeros(len(table), dtype=np.int64)
    number, total = 0, np.zeros(table.shape[1])
    for index, size in enumerate(table):
        bins[index] = number
        total = total + size
        if (total >= min_size).all():
            number, total = number + 1, np.zeros(table.shape[1])
    return np.minimum(bins, max(number - 1, 0))  # a last bin that is too small joins its neighbour


def _indicator(bins: Ints) -> Floats:
    return (bins[:, None] == np.arange(bins.max() + 1)).astype(np.float64)


class Fit(NamedTuple):
    """Discrepancy of one data set or classifier from the model."""

    discrepancy: float  # posterior mean of X²
    bins: int  # K
    p: float
    worst: Int[np.ndarray, "member"]  # cells of the bin that contributes most
    observed: float  # in that bin: images, or share of right answers
    expected: float


class Strata(NamedTuple):
    """Cells of one data set: images shown to n annotators (of a group) are one multinomial."""

    stratum: Ints  # [M]
    position: Floats  # [M] k/n, the order in which cells are merged


def strata_of(cells: CellNames) -> Strata:
    """Number the strata of cells: one for each group and number of annotators."""
    group = np.unique(cells.group, return_inverse=True)[1]
    key = group * (int(cells.shown.max()) + 1) + cells.shown
    return Strata(np.unique(key, return_inverse=True)[1], cells.selected / cells.shown)


def check_counts(
    images: Int[np.ndarray, "cell"], mass: Float[np.ndarray, "draw cell"], strata: Strata
) -> Fit:
    """Compare the images in cells with multinomials."""
    stratum = strata.stratum
    totals = np.bincount(stratum, images).astype(np.float64)
    # Neighbours in k/n are merged, whatever their stratum, by expected counts alone: merging cells
    # because no image fell into them would find a deficit there in every sound fit.
    order = np.argsort(strata.position, kind="stable")
    expected = totals[stratum] * mass.mean(axis=0)
    min_size = max(MIN_EXPECTED, float(images.sum()) / MAX_BINS / 4)
    bins = np.empty_like(order)
    bins[order] = merge(expected[order], min_size)
    free = _free_bins(bins, stratum)
    x2, parts, expectation = _multinomial_x2(images, mass, stratum, totals, bins, free)
    variance = np.asarray(2.0 * len(free))
    if len(totals) == 1:  # Var(X²) is exact for one stratum (Haldane 1937)
        size = expectation.shape[1]
        variance = 2.0 * (size - 1) + (1 / expectation).sum(axis=1)
        variance -= (size**2 + 2 * size - 2) / expectation.sum(axis=1)
    # Report the bin that contributes most to X².
    worst = int(parts.mean(axis=0).argmax())
    inside = np.flatnonzero(bins == worst)
    return Fit(
        float(x2.mean()),
        int(bins.max()) + 1,
        calibrated_p(x2, float(len(free)), variance) if len(free) else float("nan"),
        inside,
        float(images[inside].sum()),
        float(expectation[:, worst].mean()),
    )


def _free_bins(bins: Ints, stratum: Ints) -> Ints:
    """Select the bins less one of each set that holds whole strata, which follows from the rest."""
    size = int(bins.max()) + 1
    shape = (size, int(stratum.max()) + 1)
    shared = sparse.coo_array((np.ones(len(bins)), (bins, stratum)), shape=shape).tocsr()
    # Bins that share strata are connected; totals of strata fix one bin of each component.
    component = csgraph.connected_components(shared @ shared.T, directed=False)[1]
    _, last = np.unique(component[::-1], return_index=True)
    return np.setdiff1d(np.arange(size), size - 1 - last)


def _multinomial_x2(
    observed: Ints, mass: Floats, stratum: Ints, totals: Floats, bins: Ints, free: Ints
) -> tuple[Floats, Floats, Floats]:
    """Compute X² [S], O − E in its covariance, each bin's (O − E)²/E [S, K] and E [S, K]."""
    member = _indicator(bins)
    expected = mass * totals[stratum] @ member
    # Covariance of a sum of multinomials: diag(E) − Σ_n N_n π_n π_nᵀ.
    covariance = np.einsum("sk,kl->skl", expected, np.eye(expected.shape[1]))
    for number, total in enumerate(totals):
        cells = stratum == number
        own = mass[:, cells] @ member[cells]
        covariance -= total * own[:, :, None] * own[:, None, :]
    residual = observed @ member - expected
    parts = residual**2 / expected
    if not len(free):
        return np.zeros(len(mass)), parts, expected
    free_residual = residual[:, free, None]
    solved = np.linalg.solve(covariance[:, free[:, None], free], free_residual)
    return (free_residual * solved).sum(axis=(1, 2)), parts, expected


def check_answers(
    right: Int[np.ndarray, "cell"],
    images: Int[np.ndarray, "cell"],
    accuracy: Float[np.ndarray, "draw cell"],
    position: Float[np.ndarray, "cell"],
    answers: AnswerDistribution = BINOMIAL,
) -> Fit:
    """Compare one classifier's right answers by cell with their distribution."""
    occupied = np.flatnonzero(images > 0)
    occupied = occupied[np.argsort(position[occupied], kind="stable")]
    counts, q = images[occupied], accuracy[:, occupied]
    sizes = counts[:, None] * np.stack([q.mean(axis=0), 1 - q.mean(axis=0)], axis=1)
    # Merge neighbouring cells until both right and wrong answers are expected often enough.
    member = _indicator(merge(sizes, MIN_EXPECTED))
    if member.shape[1] > MAX_BINS:
        member = _indicator(merge(counts, float(counts.sum()) / MAX_BINS))
    expected = (counts * q) @ member
    # Bins are sums of independent cells.
    variance = answers.variance(counts, q) @ member
    # Fourth cumulant: with few answers Var(X²) exceeds 2 a bin.
    fourth = answers.fourth_cumulant(counts, q) @ member
    parts = (right[occupied] @ member - expected) ** 2 / variance
    size = member.shape[1]
    x2 = parts.sum(axis=1)
    p = calibrated_p(x2, float(size), 2.0 * size + (fourth / variance**2).sum(axis=1))
    worst = int(parts.mean(axis=0).argmax())
    inside = occupied[member[:, worst] > 0]
    total = float(images[inside].sum())
    return Fit(
        float(x2.mean()),
        size,
        p,
        inside,
        float(right[inside].sum()) / total,
        float(expected[:, worst].mean()) / total,
    )
