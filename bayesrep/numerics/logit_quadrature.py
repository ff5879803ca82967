"""Integrals under beta mixtures by one fixed rule: the trapezoid on the logit scale.

With t = log(s / (1 − s)) a beta density becomes s^a (1 − s)^b / B(a, b), analytic and decaying like
exp(−a |t|) and exp(−b |t|): the poles of Beta(a < 1, b < 1) at 0 and 1 are gone, and the trapezoid
rule converges geometrically. A further substitution t = c sinh(u / c) carries the ends far enough
out for the slowest decay. Weights are normalised, so no beta function is needed either.
"""

import jax
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp

from bayesrep.types import Float

POINTS = 200
REACH = 200.0  # largest |logit|: exp(−a · 200) is nothing from a = 0.2 on
_SCALE = 2.0


def nodes() -> tuple[
    Float[np.ndarray, "node"], Float[np.ndarray, "node"], Float[np.ndarray, "node"]
]:
    """log s, log(1 − s) and the log weights of dt at the nodes."""
    end = _SCALE * np.arcsinh(REACH / _SCALE)
    u = np.linspace(-end, end, POINTS)
    t = _SCALE * np.sinh(u / _SCALE)
    return -np.logaddexp(0, -t), -np.logaddexp(0, t), np.log(np.cosh(u / _SCALE))


def log_mixture_weights(
    log_weights: Float[Array, "*mixture component"],
    a: Float[Array, "component"],
    b: Float[Array, "component"],
) -> Float[Array, "*mixture node"]:
    """Logarithms of the nodes' probabilities under one or several mixtures of the same betas."""
    log_s, log_rest, log_width = nodes()
    along = a[:, None] * log_s[None, :] + b[:, None] * log_rest[None, :] + log_width[None, :]
    density = jax.nn.log_softmax(along, axis=-1)
    outer = (1,) * (log_weights.ndim - 1)
    return logsumexp(log_weights[..., None] + density.reshape(*outer, *density.shape), axis=-2)


def log_likelihood(
    selected: Float[Array, "cell"], rejected: Float[Array, "cell"]
) -> Float[Array, "cell node"]:
    """log of s^k (1 − s)^(n − k) at the nodes."""
    log_s, log_rest, _ = nodes()
    return selected[:, None] * log_s[None, :] + rejected[:, None] * log_rest[None, :]
