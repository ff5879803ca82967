"""Whole numbers with a given sum."""

import numpy as np

from bayesrep.types import Float, Int


def largest_remainders(shares: Float[np.ndarray, "part"], total: int) -> Int[np.ndarray, "part"]:
    """Round shares of a total to whole numbers of that sum; the largest remainders go up.

    Parameters
    ----------
    shares
        That sum to one.
    total
        What to share out.
    """
    exact = shares * total
    whole = np.floor(exact).astype(np.int64)
    largest = np.argsort(whole - exact, kind="stable")[: total - whole.sum()]
    whole[largest] += 1
    return whole
