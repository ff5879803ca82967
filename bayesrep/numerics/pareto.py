"""Pareto smoothed importance sampling (PSIS), batched over problems.

References: Vehtari, Simpson, Gelman, Yao, Gabry (2024), "Pareto smoothed importance sampling",
JMLR 25: a tail of min(S/5, 3 √S) draws, k drawn towards 0.5 with the weight of ten of them. Zhang,
Stephens (2009), "A new and efficient estimation method for the generalized Pareto distribution",
Technometrics 51: the mean of b = −k/σ under its profile likelihood and a weak prior, on a grid.
"""

import numpy as np
from scipy.special import logsumexp

from bayesrep.numerics.constants import SMALLEST_POSITIVE
from bayesrep.types import Float

MIN_TAIL = 5
_PRIOR_SIZE = 10  # prior sample size of the weak prior k = 0.5


def tail_length(count: int) -> int:
    """Return the tail length min(S/5, 3 √S) of S weights."""
    return int(np.ceil(min(count / 5, 3 * np.sqrt(count))))


def pareto_smooth(
    log_ratios: Float[np.ndarray, "problem draw"],
) -> tuple[Float[np.ndarray, "problem draw"], Float[np.ndarray, "problem"]]:
    """Smooth the tail of log weights, and estimate its Pareto shape k (up to 0.7 reliable)."""
    count = log_ratios.shape[1]
    weights = log_ratios - log_ratios.max(axis=1, keepdims=True)
    length = tail_length(count)
    shape = np.full(len(weights), -np.inf)
    if length >= MIN_TAIL:
        order = np.argpartition(weights, count - length - 1, axis=1)[:, -length - 1 :]
        tail = np.take_along_axis(weights, order, axis=1)
        inner = np.argsort(tail, axis=1)
        order, tail = (np.take_along_axis(each, inner, axis=1) for each in (order, tail))
        # Excesses over the largest weight below the tail.
        cutoff = np.exp(tail[:, :1])
        excess = np.exp(tail[:, 1:]) - cutoff
        # Equal weights have no tail to smooth.
        fitted = excess[:, -1] > 1e-12
        if fitted.any():
            k, sigma = _fit_pareto(np.maximum(excess[fitted], SMALLEST_POSITIVE))
            steps = (np.arange(length) + 0.5) / length
            # Repeated draws may fit shapes of hundreds, of infinite quantiles: weights end at 1.
            is_zero, safe = np.abs(k) < 1e-12, np.where(np.abs(k) < 1e-12, 1.0, k)[:, None]
            with np.errstate(over="ignore"):
                powers = np.expm1(-safe * np.log1p(-steps)) / safe
            quantiles = sigma[:, None] * np.where(is_zero[:, None], -np.log1p(-steps), powers)
            smooth = np.minimum(np.log(quantiles + cutoff[fitted]), 0)
            rows = np.flatnonzero(fitted)[:, None]
            weights[rows, order[fitted, 1:]] = smooth
            shape[fitted] = k
    return weights - logsumexp(weights, axis=1, keepdims=True), shape


def _fit_pareto(
    excess: Float[np.ndarray, "problem step"],
) -> tuple[Float[np.ndarray, "problem"], Float[np.ndarray, "problem"]]:
    """Fit shape k and scale σ of generalised Pareto distributions to sorted excesses."""
    rows, size = excess.shape
    grid = 30 + int(np.sqrt(size))
    quartile = excess[:, int(size / 4 + 0.5) - 1]
    # Their grid of b, scaled by the first quartile of the excesses.
    b = 1 - np.sqrt(grid / (np.arange(grid) + 0.5))
    b = b / (3 * np.maximum(quartile, SMALLEST_POSITIVE)[:, None]) + 1 / excess[:, -1:]
    k = np.empty((rows, grid))
    for column in range(grid):  # not at once: problems may be thousands
        k[:, column] = np.log1p(-b[:, column, None] * excess).mean(axis=1)
    # Zhang and Stephens: average b over its profile likelihood on the grid.
    profile = size * (np.log(-b / k) - k - 1)
    weight = np.exp(profile - logsumexp(profile, axis=1, keepdims=True))
    best = (b * weight).sum(axis=1)
    shape = np.log1p(-best[:, None] * excess).mean(axis=1)
    sigma = -shape / best
    return (size * shape + _PRIOR_SIZE * 0.5) / (size + _PRIOR_SIZE), sigma
