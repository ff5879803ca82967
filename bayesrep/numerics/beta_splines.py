"""Integrals of splines against beta mixtures, exact at any a and b.

For s ~ Beta(A, B) and a knot t, with the regularised incomplete beta function I,

    E[s^p 1(s > t)] = (A)_p / (A + B)_p · I_{1−t}(B, A + p),        p = 0..3
    I_{1−t}(B, A + 1) = I_{1−t}(B, A) + t^A (1 − t)^B / (A B(A, B)),

so a truncated power (s − t)³₊ takes one incomplete beta function, and sums of positive terms.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import betainc, gammaln, xlogy
from jax.typing import ArrayLike

from bayesrep.numerics.splines import KNOTS, bspline_basis, bsplines_in_truncated_powers
from bayesrep.types import Float

GRID_POINTS = 1000  # number of points of the published code's grid on [0, 1]


def expected_bsplines(a: ArrayLike, b: ArrayLike) -> Float[Array, "*batch 7"]:
    """Compute E[B_j(s)], s ~ Beta(a, b), of the 7 B-splines for parameters of any shape."""
    a, b = jnp.asarray(a), jnp.asarray(b)
    # Moments E[s^p], p = 0..3, as ratios of rising factorials.
    steps = [(a + i) / (a + b + i) for i in range(3)]
    products = steps[0], steps[0] * steps[1], steps[0] * steps[1] * steps[2]
    moments = jnp.stack([jnp.ones_like(a), *products], axis=-1)
    expected = jnp.concatenate([moments, _above_knots(a, b, moments)], axis=-1)
    return expected @ bsplines_in_truncated_powers()


def _above_knots(
    a: Float[Array, "*batch"], b: Float[Array, "*batch"], moments: Float[Array, "*batch 4"]
) -> Float[Array, "*batch 3"]:
    """Compute the truncated moments E[(s − t)³₊] for every knot t."""
    knots = jnp.asarray(KNOTS).reshape((1,) * a.ndim + (-1,))
    a, b = a[..., None], b[..., None]
    mass = betainc(*jnp.broadcast_arrays(b, a, 1 - knots))  # P(s > t)
    # The recurrence of the module's docstring: from I(B, A) to I(B, A + 1) by a positive step.
    step = jnp.exp(xlogy(a, knots) + xlogy(b, 1 - knots) - _log_beta(a, b)) / a
    # (s − t)³ = s³ − 3 t s² + 3 t² s − t³, term by term.
    total = -(knots**3) * mass
    for power, choices in ((1, 3), (2, 3), (3, 1)):
        mass = mass + step
        # t^A (1 − t)^B / (A B(A, B)) for A one larger
        step = step * knots * (a + b + power - 1) / (a + power)
        total = total + choices * (-knots) ** (3 - power) * moments[..., power, None] * mass
    return jnp.maximum(total, 0.0)


def _log_beta(a: Float[Array, "..."], b: Float[Array, "..."]) -> Float[Array, "..."]:
    """Compute log B(a, b); jax.scipy.special.betaln is off by 1e-6 near a = 8."""
    return gammaln(a) + gammaln(b) - gammaln(a + b)


def published_sum(
    a: ArrayLike, b: ArrayLike, weights: ArrayLike, likelihood: ArrayLike
) -> Float[Array, "cell 7"]:
    """Compute ∫ B_j(s) P(k | n, s) p(s) ds by the published code's rule, for comparison.

    A left Riemann sum on `linspace(0, 1, 1000)`, infinite densities set to 0
    (MadryLab/dataset-replication-analysis, src/utils/splineqp_utils.py).
    """
    a, b, weights = map(jnp.asarray, (a, b, weights))
    s = jnp.asarray(published_grid())[None, :]
    log_density = xlogy(a[:, None] - 1, s) + xlogy(b[:, None] - 1, 1 - s) - _log_beta(a, b)[:, None]
    density = weights @ jnp.exp(log_density)
    density = jnp.where(jnp.isfinite(density), density, 0.0)[None, :]
    products = jnp.asarray(likelihood) * density
    return products[:, :-1] @ bspline_basis(published_grid())[:-1] / GRID_POINTS


def published_grid() -> Float[np.ndarray, "1000"]:
    """Return the 1,000 points on which the published code bounds and integrates curves."""
    return np.linspace(0.0, 1.0, GRID_POINTS)
