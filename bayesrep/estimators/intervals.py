"""95 % intervals from bootstrap replicates: percentile and BCa.

Engstrom et al. (2020), appendix F.1, take the 2.5 % and 97.5 % percentiles. The bias-corrected and
accelerated interval (Efron, 1987) moves them by z₀, the median bias of the replicates, and by a,
the skewness of the estimate's influence function, here from the jackknife over images:

    α' = Φ(z₀ + (z₀ + z_α) / (1 − a (z₀ + z_α))).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

__all__ = ["LEVELS", "acceleration", "bca", "percentile"]

Floats = NDArray[np.float64]

LEVELS = (0.025, 0.975)


def percentile(replicates: Floats) -> Floats:
    """The percentile interval of each column of ``replicates`` [B, S]; returns [2, S]."""
    return np.quantile(replicates, LEVELS, axis=0)


def bca(estimate: Floats, replicates: Floats, acceleration: Floats) -> Floats:
    """The bias-corrected and accelerated interval.

    Parameters
    ----------
    estimate : float64 [S]
    replicates : float64 [B, S]
    acceleration : float64 [S]
        From `acceleration`.

    Returns
    -------
    float64 [2, S]
        The estimate itself where all replicates equal it.
    """
    size = len(replicates)
    below = (replicates < estimate).mean(axis=0) + (replicates == estimate).mean(axis=0) / 2
    center = ndtri(np.clip(below, 0.5 / size, 1 - 0.5 / size))
    z = center + ndtri(np.array(LEVELS))[:, None]
    levels = ndtr(center + z / (1 - acceleration * z))
    columns = zip(replicates.T, levels.T, strict=True)
    return np.stack([np.quantile(column, level) for column, level in columns], axis=1)


def acceleration(samples: list[Floats]) -> Floats:
    """BCa's a from the leave-one-out values of independent samples.

    Parameters
    ----------
    samples
        For each sample (the reference's images, the replication's) the statistics without each
        image in turn, [N, S].

    Returns
    -------
    float64 [S]
        0 where no image has influence.
    """
    squares, cubes = np.zeros(samples[0].shape[1]), np.zeros(samples[0].shape[1])
    for values in samples:
        size = len(values)
        influence = (size - 1) / size * (values.mean(axis=0) - values)
        squares += (influence**2).sum(axis=0)
        cubes += (influence**3).sum(axis=0)
    scale = np.where(squares > 0, squares, 1.0) ** 1.5
    return np.where(squares > 0, cubes / (6 * scale), 0.0)
