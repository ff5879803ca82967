"""Beta-binomial probabilities from rising factorials (a)_r = a (a + 1) ⋯ (a + r − 1).

    B(a + k, b + n − k) / B(a, b) = (a)_k (b)_{n−k} / (a + b)_n

No gamma function is evaluated, so nothing cancels at large a + b, and the sums of logarithms are
products with constant triangular 0/1 matrices, whose gradients are again products.

An image shown to n annotators and then to d virtual ones is one draw of n + d, so the joint mass of
k of n and then j of d,

    P(k, j) = C(n, k) C(d, j) f_{n+d}(k + j),
    f_N(r) = Σ_m w_m (a_m)_r (b_m)_{N−r} / (a_m + b_m)_N,

depends on k + j alone: n + d + 1 numbers make the whole table, and its row sums are f_n(k).
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp

from bayesrep.numerics.binomial import log_binomial
from bayesrep.types import Float, Int

Below = Float[np.ndarray, "#cell step"] | Float[Array, "#cell step"]


def counts_below(counts: Int[np.ndarray, "cell"], size: int) -> Float[np.ndarray, "cell {size}"]:
    """Build the 0/1 matrix whose product with log(a + 0..size−1) is log (a)_counts."""
    return (np.arange(size) < counts[:, None]).astype(np.float64)


def log_rising(a: Float[Array, "*batch"], below_counts: Below) -> Float[Array, "*batch cell"]:
    """Compute log (a)_r for every a and count r of `counts_below`: equation M2."""
    steps = jnp.arange(below_counts.shape[1], dtype=a.dtype).reshape((1,) * a.ndim + (-1,))
    return jnp.log(a[..., None] + steps) @ jnp.asarray(below_counts).T


def log_cells(
    a: Float[Array, "*batch"],
    b: Float[Array, "*batch"],
    below_selected: Below,
    below_rejected: Below,
    below_shown: Below,
) -> Float[Array, "*batch cell"]:
    """Compute log (a)_k (b)_{n−k} / (a + b)_n by `counts_below` of k, n − k and n."""
    return (
        log_rising(a, below_selected)
        + log_rising(b, below_rejected)
        - log_rising(a + b, below_shown)
    )


def log_mixture(
    log_weights: Float[Array, "component"], log_components: Float[Array, "component cell"]
) -> Float[Array, "cell"]:
    """Compute log Σ_m w_m p_m, the log mass of a mixture."""
    return logsumexp(log_weights[:, None] + log_components, axis=0)


def log_masses(
    log_weights: Float[Array, "*mixture component"],
    a: Float[Array, "component"],
    b: Float[Array, "component"],
    trials: Sequence[int],
) -> Float[Array, "*mixture size selected"]:
    """Compute log f_N(r), r ≤ N, of increasing `trials` N, without C(N, r): equation M2."""
    low, high = trials[0], trials[-1]
    # One product with a triangular matrix gives all rising factorials of a, b and a + b.
    below = counts_below(np.arange(high + 1), high).T
    steps = np.arange(high, dtype=np.float64)[None, None, :]
    logs = jnp.log(jnp.stack([a, b, a + b])[:, :, None] + steps)
    selected, rejected, totals = logs @ below  # log (.)_r
    rows = np.array([n - low for n in trials])
    # Row N, column r of the second holds log (b)_{N−r}, 0 where N < r.
    padded = jnp.pad(rejected, ((0, 0), (high - low, 0)))
    shifted = hankel(padded, high - low + 1, high + 1)[..., ::-1]
    if len(trials) != high - low + 1:
        shifted = np.eye(high - low + 1)[rows] @ shifted
    total_by_n = (
        totals[:, low:]
        if len(trials) == high - low + 1
        else totals @ np.eye(high + 1)[:, np.asarray(trials)]
    )
    # One term per component; mixtures may have leading axes, over which it is broadcast.
    components = selected[:, None, :] + shifted - total_by_n[:, :, None]
    outer = (1,) * (log_weights.ndim - 1)
    components = components.reshape(*outer, *components.shape)
    return logsumexp(log_weights[..., None, None] + components, axis=-3)


def hankel(
    values: Float[Array, "*batch {rows}+{columns}-1"], rows: int, columns: int
) -> Float[Array, "*batch {rows} {columns}"]:
    """Build the Hankel matrices with entries (i, j) = `values[..., i + j]`, without a gather."""
    # Read back in rows longer by one, repeated values start one entry later in each.
    length = rows + columns - 1
    outer = values.shape[:-1]
    tiled = jnp.broadcast_to(values[..., None, :], (*outer, rows + 1, length))
    flat = tiled.reshape(*outer, -1)[..., : rows * (length + 1)]
    return flat.reshape(*outer, rows, length + 1)[..., :columns]


def virtual_annotators(
    a: Float[Array, "*batch"], b: Float[Array, "*batch"], degree: int
) -> Float[Array, "*batch {degree}+1"]:
    """Compute P(J = j | component), J of `degree` further ones: Beta-binomial(degree, a, b)."""
    below = counts_below(np.arange(degree + 1), degree)
    log_mass = log_cells(a, b, below, below[::-1], counts_below(np.array([degree]), degree))
    choices = log_binomial(degree, np.arange(degree + 1)).reshape((1,) * a.ndim + (-1,))
    return jnp.exp(choices + log_mass)
