"""Beta-binomial tables from rising factorials.

Every ratio of beta functions that a beta-binomial needs is a ratio of rising factorials
(a)_r = a (a + 1) ⋯ (a + r − 1), hence a sum of logarithms:

    B(a + k, b + n − k) / B(a, b) = (a)_k (b)_{n−k} / (a + b)_n

No gamma function is evaluated, so nothing cancels at large a + b, and the sums are products with
constant triangular 0/1 matrices, whose gradients are again products (no gather, no scatter).

The same sums make an image shown to n annotators and then to d further ones one beta-binomial draw
of n + d, so the joint mass of k of n and then j of d,

    P(k, j) = C(n, k) C(d, j) f_{n+d}(k + j),
    f_N(r) = Σ_m w_m (a_m)_r (b_m)_{N−r} / (a_m + b_m)_N,

depends on k + j alone: n + d + 1 numbers make the whole table, and its row sums are f_n(k).

Array names: K components, M cells, d degree (number of virtual annotators).
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp
from jax.typing import ArrayLike
from numpy.typing import NDArray


def below(counts: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """The 0/1 matrix [M, size] with ones where the column number is below ``counts`` [M].

    Its product with log(a + 0..size−1) is the logarithm of the rising factorials (a)_counts.
    """
    return (np.arange(size) < np.asarray(counts)[:, None]).astype(np.float64)


def log_binomial(n: ArrayLike, k: ArrayLike) -> NDArray[np.float64]:
    """log C(n, k) on the host, elementwise, from exact cumulative sums of logarithms."""
    n, k = np.broadcast_arrays(np.asarray(n, dtype=np.int64), np.asarray(k, dtype=np.int64))
    largest = int(n.max(initial=0))
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, largest + 1)))])
    return log_factorial[n] - log_factorial[k] - log_factorial[n - k]


def log_rising(a: Array, below_counts: ArrayLike) -> Array:
    """log (a)_r for every component and count.

    Parameters
    ----------
    a : [K]
        Positive.
    below_counts : [M, R]
        From :func:`below`: the counts r, none larger than R.

    Returns
    -------
    [K, M]
    """
    steps = jnp.arange(jnp.shape(below_counts)[1], dtype=a.dtype)
    return jnp.log(a[:, None] + steps[None, :]) @ jnp.asarray(below_counts).T


def log_cells(
    a: Array, b: Array, below_selected: ArrayLike, below_rejected: ArrayLike, below_shown: ArrayLike
) -> Array:
    """log of (a)_k (b)_{n−k} / (a + b)_n, the beta-binomial mass without its C(n, k).

    Parameters
    ----------
    a, b : [K]
        Beta parameters of the components.
    below_selected, below_rejected, below_shown : [M, R]
        From :func:`below`, for k, n − k and n of the cells.

    Returns
    -------
    [K, M]
    """
    return (
        log_rising(a, below_selected)
        + log_rising(b, below_rejected)
        - log_rising(a + b, below_shown)
    )


def log_mixture(log_weights: Array, log_components: Array) -> Array:
    """log Σ_m w_m p_m for log weights [K] and component log masses [K, M]; returns [M]."""
    return logsumexp(log_weights[:, None] + log_components, axis=0)


def log_masses(log_weights: Array, a: Array, b: Array, trials: Sequence[int]) -> Array:
    """log f_N(r) for every N of ``trials`` and r = 0..max N, without C(N, r): equation M2.

    Parameters
    ----------
    log_weights : [..., K]
        Of one or several mixtures of the same components.
    a, b : [K]
        Beta parameters of the components.
    trials
        D numbers N, increasing.

    Returns
    -------
    [..., D, max N + 1]
        Entries with r > N mean nothing, and are finite.
    """
    low, high = trials[0], trials[-1]
    before = below(np.arange(high + 1), high).T
    steps = np.arange(high, dtype=np.float64)[None, None, :]
    logs = jnp.log(jnp.stack([a, b, a + b])[:, :, None] + steps)
    selected, rejected, shown = logs @ before  # each [K, high + 1], log (.)_r
    chosen = np.array([n - low for n in trials])
    # Row N, column r of the second holds log (b)_{N−r}, 0 where N < r.
    padded = jnp.pad(rejected, ((0, 0), (high - low, 0)))
    shifted = hankel(padded, high - low + 1, high + 1)[..., ::-1]
    if len(trials) != high - low + 1:
        shifted = np.eye(high - low + 1)[chosen] @ shifted
    all_shown = (
        shown[:, low:]
        if len(trials) == high - low + 1
        else shown @ np.eye(high + 1)[:, np.asarray(trials)]
    )
    components = selected[:, None, :] + shifted - all_shown[:, :, None]  # [K, D, high + 1]
    outer = (1,) * (log_weights.ndim - 1)
    components = components.reshape(*outer, *components.shape)
    return logsumexp(log_weights[..., None, None] + components, axis=-3)


def hankel(values: Array, rows: int, columns: int) -> Array:
    """The matrices whose entry (i, j) is ``values[..., i + j]``, without a gather.

    ``values`` [..., L], L = rows + columns − 1, are written one after another and read back in
    rows longer by one, each of which therefore starts one entry later.
    """
    length = rows + columns - 1
    outer = values.shape[:-1]
    tiled = jnp.broadcast_to(values[..., None, :], (*outer, rows + 1, length))
    flat = tiled.reshape(*outer, -1)[..., : rows * (length + 1)]
    return flat.reshape(*outer, rows, length + 1)[..., :columns]


def virtual_annotators(a: Array, b: Array, degree: int) -> Array:
    """P(J = j | component) when an image is shown to ``degree`` further annotators.

    Beta-binomial(degree, a, b) for arrays of parameters of any shape [...]; a posterior predictive
    given k of n uses a + k and b + n − k.

    Returns
    -------
    [..., degree + 1]
        Sums to 1 over the last axis.
    """
    ones_before = below(np.arange(degree + 1), degree)
    ones_after = below(degree - np.arange(degree + 1), degree)
    steps = jnp.arange(degree, dtype=a.dtype)
    along = (1,) * a.ndim + (-1,)
    steps = steps.reshape(along)
    log_selected = jnp.log(a[..., None] + steps) @ ones_before.T
    log_rejected = jnp.log(b[..., None] + steps) @ ones_after.T
    log_shown = jnp.log((a + b)[..., None] + steps).sum(axis=-1, keepdims=True)
    choices = log_binomial(degree, np.arange(degree + 1)).reshape(along)
    return jnp.exp(choices + log_selected + log_rejected - log_shown)
