"""95 % intervals from bootstrap replicates: percentile and BCa (Efron, 1987).

Engstrom et al. (2020), appendix F.1, take the percentiles. BCa moves them by z₀, the median bias of
the replicates, and a, the skewness of the influence function, here from the jackknife over images:

    α' = Φ(z₀ + (z₀ + z_α) / (1 − a (z₀ + z_α))).
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from bayesrep.numerics.estimands import INTERVAL
from bayesrep.types import Float


def percentile(
    replicates: Float[np.ndarray, "replicate quantity"],
) -> Float[np.ndarray, "2 quantity"]:
    """Compute the percentile interval of each quantity."""
    return np.quantile(replicates, INTERVAL, axis=0)


def bca(
    estimate: Float[np.ndarray, "quantity"],
    replicates: Float[np.ndarray, "replicate quantity"],
    acceleration: Float[np.ndarray, "quantity"],
) -> Float[np.ndarray, "2 quantity"]:
    """Compute the BCa interval; it is the estimate itself where no replicate differs."""
    size = len(replicates)
    below = (replicates < estimate).mean(axis=0) + (replicates == estimate).mean(axis=0) / 2
    # z₀: the normal quantile of the replicates' share below the estimate, ties counted half.
    center = ndtri(np.clip(below, 0.5 / size, 1 - 0.5 / size))
    z = center + ndtri(np.array(INTERVAL))[:, None]
    # The same as Φ(z₀ + (z₀ + z_α) / (1 − a (z₀ + z_α))): z already includes z₀.
    levels = ndtr(center + z / (1 - acceleration * z))
    columns = zip(replicates.T, levels.T, strict=True)
    return np.stack([np.quantile(column, level) for column, level in columns], axis=1)


def acceleration(
    samples: Sequence[Float[np.ndarray, "_ quantity"]],
) -> Float[np.ndarray, "quantity"]:
    """Compute BCa's a from leave-one-out values of independent samples; 0 without influence."""
    squares, cubes = np.zeros(samples[0].shape[1]), np.zeros(samples[0].shape[1])
    for values in samples:
        size = len(values)
        # Jackknife influence values; samples are independent, so their sums add up.
        influence = (size - 1) / size * (values.mean(axis=0) - values)
        squares += (influence**2).sum(axis=0)
        cubes += (influence**3).sum(axis=0)
    scale = np.where(squares > 0, squares, 1.0) ** 1.5
    return np.where(squares > 0, cubes / (6 * scale), 0.0)
