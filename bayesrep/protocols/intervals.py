"""Intervals for accuracies and for differences of two accuracies: arrays in, arrays out.

Counts may be fractions, as averages over random matchings are.
"""

from collections.abc import Callable
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv, ndtri

from bayesrep.choices import AccuracyInterval
from bayesrep.errors import OptionError
from bayesrep.numerics.estimands import INTERVAL
from bayesrep.types import Floats

INTERVALS = get_args(AccuracyInterval)
_QUANTILE_TOLERANCE = 1e-5  # of the spread: where a quantile is good enough


def _nodes(count: int) -> tuple[Floats, Floats]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    places, lengths = np.polynomial.legendre.leggauss(count)
    return (places + 1) / 2, lengths / 2


_MANY_NODES, _MANY_WEIGHTS = _nodes(128)
_PAIR_NODES, _PAIR_WEIGHTS = _nodes(32)  # for pairs, of which there are tens of thousands


def proportion_interval(
    right: ArrayLike, images: ArrayLike, kind: str = "jeffreys"
) -> tuple[Floats, Floats]:
    """95 % interval of an accuracy.

    Parameters
    ----------
    right, images
        How many of how many answers are right; any shapes that broadcast.
    kind
        "jeffreys": the Bayesian interval, equal tails of Beta(right + 1/2, wrong + 1/2), its end
        moved to 0 or 1 where nothing or everything is right; "wilson": by inverting the score
        test; "clopper-pearson": by inverting the exact binomial test, which never covers less
        than 95 % and often much more (all three: Brown, Cai and DasGupta, 2001).

    Returns
    -------
    lower, upper : float64
        NaN where there are no images.

    Raises
    ------
    OptionError
        For another kind.
    """
    x, n = np.broadcast_arrays(np.asarray(right, float), np.asarray(images, float))
    n = np.where(n > 0, n, np.nan)
    if kind == "jeffreys":
        lower, upper = (betaincinv(x + 0.5, n - x + 0.5, tail) for tail in INTERVAL)
    elif kind == "clopper-pearson":
        # Where nothing is right, x = 0 is not a parameter of a beta function; the end is 0 there.
        lower = betaincinv(np.where(x > 0, x, 1), n - x + 1, INTERVAL[0])
        upper = betaincinv(x + 1, np.where(x < n, n - x, 1), INTERVAL[1])
    elif kind == "wilson":
        z = ndtri(INTERVAL[1])
        middle = (x + z**2 / 2) / (n + z**2)
        half = z / (n + z**2) * np.sqrt(x * (n - x) / n + z**2 / 4)
        return np.maximum(middle - half, 0), np.minimum(middle + half, 1)
    else:
        known = ", ".join(INTERVALS)
        raise OptionError("unknown-proportion-interval", interval=kind, choices=known)
    none = np.isnan(n)
    lower, upper = np.where(x == 0, 0, lower), np.where(x == n, 1, upper)
    return np.where(none, np.nan, lower), np.where(none, np.nan, upper)


def independent_difference(
    right: ArrayLike, images: ArrayLike, other_right: ArrayLike, other_images: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    """Posterior of the difference of accuracies on two data sets, with Jeffreys' priors.

    Parameters
    ----------
    right, images
        Right answers and images of the first data set; any shape.
    other_right, other_images
        Right answers and images of the second, of the same shape.

    Returns
    -------
    lower, upper, positive : float64
        Ends of the equal-tailed 95 % interval of first less second, and the probability that it
        is positive. As the ends of one accuracy go to 0 and 1 where nothing or everything is right,
        these go as far as what was observed.
    """
    counts = (np.asarray(each, float) for each in (right, images, other_right, other_images))
    x, n, y, m = np.broadcast_arrays(*counts)
    wide, narrow = (x + 0.5, n - x + 0.5), (y + 0.5, m - y + 0.5)
    variances = _beta_variance(*wide), _beta_variance(*narrow)
    # Where both are as wide, the order of the arguments must not decide what is integrated.
    swap = (variances[0] < variances[1]) | ((variances[0] == variances[1]) & (x > y))
    a, b = (np.where(swap, two, one) for one, two in zip(wide, narrow, strict=True))
    c, d = (np.where(swap, one, two) for one, two in zip(wide, narrow, strict=True))
    other = betaincinv(c[..., None], d[..., None], _MANY_NODES)  # [..., node], the narrower one

    def probability_below(difference: Floats) -> Floats:
        upper = np.clip(difference[..., None] + other, 0, 1)
        return betainc(a[..., None], b[..., None], upper) @ _MANY_WEIGHTS

    spread = np.sqrt(_beta_variance(a, b) + _beta_variance(c, d))
    low, high = (
        _quantile(probability_below, a / (a + b) - c / (c + d), spread, tail) for tail in INTERVAL
    )
    low, high = np.where(swap, -high, low), np.where(swap, -low, high)
    negative = probability_below(np.zeros_like(a))
    with np.errstate(invalid="ignore"):
        observed = x / n - y / m
    return np.fmin(low, observed), np.fmax(high, observed), np.where(swap, negative, 1 - negative)


def paired_difference(
    first: ArrayLike, second: ArrayLike, alike: ArrayLike
) -> tuple[Floats, Floats, Floats, Floats]:
    """Posterior of the difference of two accuracies on the same images (or on matched pairs).

    Images fall into four cells (both right, only the first, only the second, none) whose
    probabilities have a Dirichlet(1/4, 1/4, 1/4, 1/4) prior, so that each accuracy alone has
    Jeffreys' Beta(1/2, 1/2). The difference is q (2 t - 1), where q ~ Beta is the probability
    that just one is right and t ~ Beta, independent of it, that this is the first.

    Parameters
    ----------
    first, second
        Images that only the first, only the second got right; any shape.
    alike
        Images that both or none got right, of the same shape.

    Returns
    -------
    mean, lower, upper, positive : float64
        Mean and equal-tailed 95 % interval of first less second, and the probability that it is
        positive.
    """
    counts = np.broadcast_arrays(*(np.asarray(each, float) for each in (first, second, alike)))
    b, c, rest = (each + prior for each, prior in zip(counts, (0.25, 0.25, 0.5), strict=True))
    total = b + c + rest
    mean = (b - c) / total
    spread = np.sqrt(((b + c) / total - mean**2) / (total + 1))
    # Each integral runs over the narrower of q and t, so that its integrand is smooth.
    by_share = (b - c) ** 2 * _beta_variance(b + c, rest) > (
        4 * ((b + c) ** 2 / total) ** 2 * _beta_variance(b, c)
    )
    ends = np.empty((2, *mean.shape))
    for part, below in ((by_share, _below_by_share), (~by_share, _first_conditional)):
        cell = below(b[part], c[part], rest[part])
        for end, tail in enumerate(INTERVAL):
            ends[end, part] = _quantile(cell, mean[part], spread[part], tail)
    return mean, ends[0], ends[1], betainc(c, b, 0.5)


def _first_conditional(b: Floats, c: Floats, rest: Floats) -> Callable[[Floats], Floats]:
    """P(q (2 t - 1) <= difference) by P(t <= ...) over the quantiles of q."""
    q = betaincinv((b + c)[..., None], rest[..., None], _PAIR_NODES)
    q = np.maximum(q, np.finfo(float).tiny)

    def probability_below(difference: Floats) -> Floats:
        upper = (1 + np.clip(difference[..., None] / q, -1, 1)) / 2
        return betainc(b[..., None], c[..., None], upper) @ _PAIR_WEIGHTS

    return probability_below


def _below_by_share(b: Floats, c: Floats, rest: Floats) -> Callable[[Floats], Floats]:
    """P(q (2 t - 1) <= difference) by P(q <= ...) over the quantiles of t."""
    r = 2 * betaincinv(b[..., None], c[..., None], _PAIR_NODES) - 1
    r = np.where(r == 0, np.finfo(float).tiny, r)

    def probability_below(difference: Floats) -> Floats:
        upper = np.clip(difference[..., None] / r, 0, 1)
        under = betainc((b + c)[..., None], rest[..., None], upper)
        return np.where(r > 0, under, 1 - under) @ _PAIR_WEIGHTS

    return probability_below


def _beta_variance(a: Floats, b: Floats) -> Floats:
    return a * b / ((a + b) ** 2 * (a + b + 1))


def _quantile(
    below: Callable[[Floats], Floats], mean: Floats, spread: Floats, tail: float
) -> Floats:
    """Invert a distribution function on [-1, 1]: secants from the normal's end, in brackets."""
    low, high = np.full_like(mean, -1.0), np.full_like(mean, 1.0)
    last, x = mean, np.clip(mean + ndtri(tail) * spread, -1, 1)
    last_excess, excess = below(last) - tail, below(x) - tail
    enough = _QUANTILE_TOLERANCE * spread
    for _ in range(100):
        low, high = np.where(excess <= 0, x, low), np.where(excess > 0, x, high)
        if np.all((high - low < enough) | (np.abs(x - last) < enough) | ~np.isfinite(excess)):
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            secant = x - excess * (x - last) / (excess - last_excess)
        last, last_excess = x, excess
        x = np.where((secant > low) & (secant < high), secant, (low + high) / 2)
        excess = below(x) - tail
    return x
