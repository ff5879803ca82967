"""Draws in two bytes each: whole numbers of steps from the middle of what they range over."""

from typing import NamedTuple

import numpy as np

from bayesrep.types import Float, Int

MOST = 2**15 - 1
"""Steps on either side of the middle."""
NONE = -MOST - 1
"""Code of a draw that is not a number."""


class Codes(NamedTuple):
    """Draws of quantities, each coded by itself: `middle + step * code`.

    A draw is off by half a step at most, 1 / 131,068 of the range of its quantity's draws.
    """

    code: Int[np.ndarray, "chain draw *quantity"]
    middle: Float[np.ndarray, "*quantity"]
    step: Float[np.ndarray, "*quantity"]


def encode(draws: Float[np.ndarray, "chain draw *quantity"]) -> Codes:
    """Draws in two bytes each."""
    known = np.isfinite(draws).all()
    low, high = (
        ends(draws, axis=(0, 1), initial=start, where=True if known else np.isfinite(draws))
        for ends, start in ((np.min, np.inf), (np.max, -np.inf))
    )
    some = low <= high
    low, high = (np.where(some, end, 0.0).astype(np.float64) for end in (low, high))
    middle, step = (low + high) / 2, np.maximum((high - low) / (2 * MOST), np.finfo(float).tiny)
    code = np.empty(draws.shape, dtype=np.int16)
    for place in np.ndindex(draws.shape[:2]):  # all at once take four times the memory
        away = np.rint((draws[place] - middle) / step)
        code[place] = away if known else np.where(np.isfinite(away), away, NONE)
    return Codes(code, middle, step)


def decode(codes: Codes) -> Float[np.ndarray, "chain draw *quantity"]:
    """The draws, in float32."""
    draws = codes.code * codes.step.astype(np.float32)
    draws += codes.middle.astype(np.float32)
    if (missing := codes.code == NONE).any():
        draws[missing] = np.nan
    return draws
