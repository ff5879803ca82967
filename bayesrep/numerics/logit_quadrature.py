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

from bayesrep.numerics.binomial import log_binomial
from bayesrep.types import Float, Int

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


def log_dependent(
    selected: Int[np.ndarray, "cell"], rejected: Int[np.ndarray, "cell"], dependence: float
) -> Float[np.ndarray, "cell node"]:
    """The same where answers depend on each other: a beta-binomial around s, without C(n, k).

    With an intraclass correlation ρ, answers are Bernoulli of s' ~ Beta(s φ, (1 − s) φ),
    φ = 1/ρ − 1:

        log B(k + s φ, n − k + (1 − s) φ) − log B(s φ, (1 − s) φ)
    """
    total = 1 / dependence - 1
    log_s, log_rest, _ = nodes()
    return (
        _log_rising(selected, total * np.exp(log_s))
        + _log_rising(rejected, total * np.exp(log_rest))
        - _log_rising(selected + rejected, np.array([total]))
    )


def _log_rising(
    count: Int[np.ndarray, "cell"], start: Float[np.ndarray, "node"]
) -> Float[np.ndarray, "cell node"]:
    """log of (a)_r, by sums: differences of gamma functions cancel where a is large."""
    steps = np.arange(max(int(count.max(initial=0)), 1))
    sums = np.cumsum(np.log(start[None, :] + steps[:, None]), axis=0)
    return np.vstack([np.zeros_like(start), sums])[count]


def virtual_annotators(degree: int) -> Float[np.ndarray, "node {degree}+1"]:
    """Binomial(j; d, s) at the nodes."""
    log_s, log_rest, _ = nodes()
    j = np.arange(degree + 1)
    log_mass = j * log_s[:, None] + (degree - j) * log_rest[:, None]
    return np.exp(log_binomial(degree, j) + log_mass)
