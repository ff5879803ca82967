"""A reference of clear images and a pool to match it from."""

import numpy as np


def drawn(rng, size, n, a, b):
    s = rng.beta(a, b, size)
    return s, (rng.binomial(n, s), np.full(size, n))


def world(seed=0, n=10, reference=20_000, pool=20_000):
    """A reference of clear images and a pool of harder ones."""
    rng = np.random.default_rng(seed)
    _, first = drawn(rng, reference, n, 8.0, 2.0)
    s, second = drawn(rng, pool, n, 3.0, 2.0)
    return first, second, s
