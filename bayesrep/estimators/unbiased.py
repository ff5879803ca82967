"""pass@k without a model, where every item has at least k attempts.

Chen et al. (2021), "Evaluating large language models trained on code", equation 1: of an item with
c of n attempts right,

    1 − C(n − c, k) / C(n, k)

is unbiased for 1 − (1 − s)^k. The errors differ for these items and for their population.
"""

import numpy as np
from scipy.special import stdtrit

from bayesrep.choices import PassTarget
from bayesrep.numerics.binomial import log_binomial
from bayesrep.numerics.estimands import INTERVAL
from bayesrep.studies.attempts import Attempts
from bayesrep.types import Float, Floats, Int, Ints


def item_passes(
    solved: Int[np.ndarray, "item"], attempts: Int[np.ndarray, "item"], k: int
) -> Float[np.ndarray, "item"]:
    """Estimate pass@k of each item, none of which has fewer than k attempts."""
    return 1 - np.exp(log_binomial(attempts - solved, k) - log_binomial(attempts, k))


def item_variances(
    solved: Int[np.ndarray, "item"], attempts: Int[np.ndarray, "item"], k: int
) -> Float[np.ndarray, "item"]:
    """Estimate, without bias, the variance of each item's estimate; at least 2k attempts each."""
    failed = 1 - item_passes(solved, attempts, k)
    return np.square(failed) - (1 - item_passes(solved, attempts, 2 * k))


def estimate_mean(
    data: Attempts, passes: Floats, k: int, target: PassTarget
) -> tuple[float, float | None, float | None]:
    """Estimate the mean of `item_passes`, and its 95 % interval where it has one."""
    value = float(passes.mean())
    variance = _mean_variance(data, passes, k, target)
    if variance is None:
        return value, None, None
    half = _half_width(variance, len(passes))
    return value, max(value - half, 0.0), min(value + half, 1.0)


def estimate_difference(
    data: tuple[Attempts, Attempts],
    passes: tuple[Floats, Floats],
    common: tuple[Ints, Ints],
    k: int,
    target: PassTarget,
) -> tuple[float, float | None, float | None]:
    """Estimate one model's mean less another's, and its 95 % interval where it has one."""
    (a, b), (ours, theirs) = passes, common
    value = float(a.mean() - b.mean())
    variances = [_mean_variance(*each, k, target) for each in zip(data, passes, strict=True)]
    if variances[0] is None or variances[1] is None:
        return value, None, None
    variance = variances[0] + variances[1]
    if target == "population":
        shared = (a[ours] - a.mean()) @ (b[theirs] - b.mean())
        # Items that both models were tried on covary; their covariance is unbiased with n − 1.
        correction = len(ours) / max(len(ours) - 1, 1)
        variance -= 2 * correction * shared / (len(a) * len(b))
    # Student's t with the fewer items of both.
    half = _half_width(variance, min(len(a), len(b)))
    return value, max(value - half, -1.0), min(value + half, 1.0)


def _mean_variance(data: Attempts, passes: Floats, k: int, target: PassTarget) -> float | None:
    """Estimate the variance of the mean; for these very items only where all have 2k attempts."""
    if target == "population":
        return float(passes.var(ddof=1) / len(passes))
    if 2 * k > data.attempts.min():
        return None
    return float(item_variances(data.solved, data.attempts, k).sum() / len(passes) ** 2)


def _half_width(variance: float, items: int) -> float:
    return float(stdtrit(items - 1, INTERVAL[1]) * np.sqrt(max(variance, 0.0)))
