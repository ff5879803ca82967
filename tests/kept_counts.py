"""Counts of a known mixture that selected their own images."""

import numpy as np

A, B, WEIGHT = np.array([2.0, 6.0]), np.array([3.0, 1.2]), np.array([0.4, 0.6])


def dealt(seed, size=4_000):
    """Items of a known mixture that at least 3 of 5 selected, and their true frequencies."""
    rng = np.random.default_rng(seed)
    component = rng.choice(2, size=size, p=WEIGHT)
    s = rng.beta(A[component], B[component])
    k = rng.binomial(5, s)
    return k[k >= 3], s[k >= 3]
