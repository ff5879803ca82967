"""Binomial coefficients on the host, without JAX."""

import numpy as np

from bayesrep.types import Float, Shaped

Count = Shaped[np.ndarray, "..."] | int


def log_binomial(n: Count, k: Count) -> Float[np.ndarray, "..."]:
    """log C(n, k), elementwise, from exact cumulative sums of logarithms; −∞ where k > n."""
    n, k = np.broadcast_arrays(np.asarray(n, dtype=np.int64), np.asarray(k, dtype=np.int64))
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n.max(initial=0) + 1)))])
    rest, chosen = np.maximum(n - k, 0), np.minimum(k, n)
    choices = log_factorial[n] - log_factorial[chosen] - log_factorial[rest]
    return np.where(k > n, -np.inf, choices)
