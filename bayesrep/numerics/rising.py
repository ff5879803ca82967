"""Rising factorials of any length on the host, without a gamma function.

    log (x)_r = log x + log (x + 1) + ⋯ + log (x + r − 1)

The first steps are summed. What follows starts at y = x + 64 or above, where Stirling's series
gives log Γ(y + m) − log Γ(y) to the last digit; its large terms are subtracted before they are
computed, so that nothing cancels at a large x.
"""

import numpy as np

from bayesrep.types import Float, Floats, Int

SUMMED_STEPS = 64  # steps; from there three terms of the series are exact to 1e-16


def log_rising(
    x: Float[np.ndarray, "*batch"], counts: Int[np.ndarray, "count"]
) -> Float[np.ndarray, "*batch count"]:
    """log (x)_r for every x > 0 and every count r ≥ 0."""
    few = np.minimum(counts, SUMMED_STEPS)
    steps = int(few.max(initial=0))
    sums = np.zeros((*x.shape, steps + 1))
    np.cumsum(np.log(x[..., None] + np.arange(steps)), axis=-1, out=sums[..., 1:])
    logs = sums[..., few]
    many = counts > SUMMED_STEPS
    if many.any():
        logs[..., many] += _stirling_difference(
            x[..., None] + SUMMED_STEPS, (counts[many] - SUMMED_STEPS).astype(float)
        )
    return logs


def log_ratio(
    b: Float[np.ndarray, "*batch"],
    a: Float[np.ndarray, "*batch"],
    counts: Int[np.ndarray, "count"],
) -> Float[np.ndarray, "*batch count"]:
    """log (b)_r / (a + b)_r for every pair and count r, to the last digit also where r is large.

    The difference of two long rising factorials is turned around: behind the first steps it is
    Γ(y + a) / Γ(y) at the begin over the same at the end.
    """
    few = np.minimum(counts, SUMMED_STEPS)
    logs = log_rising(b, few) - log_rising(a + b, few)
    many = counts > SUMMED_STEPS
    if many.any():
        begin, end = b[..., None] + SUMMED_STEPS, b[..., None] + counts[many]
        logs[..., many] += _stirling_difference(begin, a[..., None]) - _stirling_difference(
            end, a[..., None]
        )
    return logs


def _stirling_difference(y: Floats, m: Floats) -> Floats:
    """log Γ(y + m) − log Γ(y) for y of at least `SUMMED_STEPS`."""
    end = y + m
    return (y - 0.5) * np.log1p(m / y) + m * (np.log(end) - 1) + _tail(end) - _tail(y)


def _tail(y: Floats) -> Floats:
    square = np.square(y)
    return (1 - (1 - 2 / (7 * square)) / (30 * square)) / (12 * y)
