"""Quantization of draws to 16-bit integers: whole steps from the middle of their range."""

from typing import NamedTuple

import numpy as np

from bayesrep.types import Float, Int

MAX_CODE = 2**15 - 1  # largest code: steps on either side of the middle
MISSING_CODE = -MAX_CODE - 1  # code of a draw that is not a number


class Codes(NamedTuple):
    """Draws as `middle + step * code`, off by half a step at most: 1 / 131,068 of their range."""

    code: Int[np.ndarray, "chain draw *quantity"]
    middle: Float[np.ndarray, "..."]
    step: Float[np.ndarray, "..."]


def encode(draws: Float[np.ndarray, "chain draw *quantity"]) -> Codes:
    """Quantize draws to 16-bit integers."""
    low, high = draws.min(axis=(0, 1)), draws.max(axis=(0, 1))
    all_finite = np.isfinite(low).all() and np.isfinite(high).all()
    if not all_finite:
        finite = np.isfinite(draws)
        low = draws.min(axis=(0, 1), initial=np.inf, where=finite)
        high = draws.max(axis=(0, 1), initial=-np.inf, where=finite)
        has_finite = low <= high
        low, high = (np.where(has_finite, end, 0.0) for end in (low, high))
    # Steps in double precision: a range of float32 draws may overflow its own type.
    low, high = low.astype(np.float64), high.astype(np.float64)
    middle, step = (low + high) / 2, np.maximum((high - low) / (2 * MAX_CODE), np.finfo(float).tiny)
    code, steps = np.empty(draws.shape, dtype=np.int16), np.empty(draws.shape[2:])
    for place in np.ndindex(draws.shape[:2]):  # all at once take four times the memory
        np.subtract(draws[place], middle, out=steps)
        np.rint(np.divide(steps, step, out=steps), out=steps)
        code[place] = steps if all_finite else np.where(np.isfinite(steps), steps, MISSING_CODE)
    return Codes(code, middle, step)


def decode(codes: Codes) -> Float[np.ndarray, "chain draw *quantity"]:
    """Return the draws in float32."""
    draws = codes.code * codes.step.astype(np.float32)
    draws += codes.middle.astype(np.float32)
    if (missing := codes.code == MISSING_CODE).any():
        draws[missing] = np.nan
    return draws
