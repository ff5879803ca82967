"""Rounding to integers with a given sum, and formatting of percentage points."""

import numpy as np

from bayesrep.types import Float, Int


def largest_remainders(shares: Float[np.ndarray, "part"], total: int) -> Int[np.ndarray, "part"]:
    """Round shares of a total, which sum to one, to integers of that sum by largest remainders."""
    exact = shares * total
    whole = np.floor(exact).astype(np.int64)
    largest = np.argsort(whole - exact, kind="stable")[: total - whole.sum()]
    whole[largest] += 1
    return whole


def write_points(fraction: float, digits: int = 2) -> str:
    """Format a fraction in percentage points, with a real minus sign and no negative zero."""
    text = f"{100 * fraction:.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.") else text.replace("-", "\N{MINUS SIGN}")
