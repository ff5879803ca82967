"""Rising factorials of any length on the host: log (x)_r = log x + ⋯ + log (x + r − 1).

Beyond the first steps by Stirling's series, its large terms subtracted before they are computed.
"""

import numpy as np

from bayesrep.types import Float, Floats, Int

SUMMED_STEPS = 64  # beyond, three terms of the series are exact to 1e-16


def log_rising(
    x: Float[np.ndarray, "*batch"], counts: Int[np.ndarray, "count"]
) -> Float[np.ndarray, "*batch count"]:
    """Compute log (x)_r for every x > 0 and every count r ≥ 0."""
    head = np.minimum(counts, SUMMED_STEPS)
    steps = int(head.max(initial=0))
    sums = np.zeros((*x.shape, steps + 1))
    np.cumsum(np.log(x[..., None] + np.arange(steps)), axis=-1, out=sums[..., 1:])
    logs = sums[..., head]
    is_long = counts > SUMMED_STEPS
    if is_long.any():
        logs[..., is_long] += _stirling_difference(
            x[..., None] + SUMMED_STEPS, (counts[is_long] - SUMMED_STEPS).astype(float)
        )
    return logs


def log_ratio(
    b: Float[np.ndarray, "*batch"], a: Float[np.ndarray, "*batch"], counts: Int[np.ndarray, "count"]
) -> Float[np.ndarray, "*batch count"]:
    """Compute log (b)_r / (a + b)_r for every pair and count r, also exactly where r is large."""
    head = np.minimum(counts, SUMMED_STEPS)
    logs = log_rising(b, head) - log_rising(a + b, head)
    is_long = counts > SUMMED_STEPS
    if is_long.any():
        # Γ(b + r) / Γ(a + b + r) rearranged: large terms cancel within each difference.
        begin, end = b[..., None] + SUMMED_STEPS, b[..., None] + counts[is_long]
        logs[..., is_long] += _stirling_difference(begin, a[..., None]) - _stirling_difference(
            end, a[..., None]
        )
    return logs


def _stirling_difference(y: Floats, m: Floats) -> Floats:
    """Compute log Γ(y + m) − log Γ(y) for y of at least `SUMMED_STEPS`."""
    end = y + m
    return (y - 0.5) * np.log1p(m / y) + m * (np.log(end) - 1) + _tail(end) - _tail(y)


def _tail(y: Floats) -> Floats:
    square = np.square(y)
    return (1 - (1 - 2 / (7 * square)) / (30 * square)) / (12 * y)
