"""Quadrature under beta mixtures by one fixed rule: the trapezoid on the logit scale.

With t = logit s a beta density is s^a (1 − s)^b / B(a, b): its poles are gone, and the rule
converges geometrically. t = c sinh(u / c) extends the range far enough for the slowest decay.
"""

import jax
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp

from bayesrep.numerics.binomial import log_binomial
from bayesrep.numerics.rising import log_rising
from bayesrep.types import Float, Int

N_NODES = 200
MAX_NODE_LOGIT = 200.0  # exp(−200 a) is negligible for a of 0.2 and more
_SINH_SCALE = 2.0  # c
SMALLEST_DEPENDENCE = 1e-6  # correlation that stands for 0 in the program of correlated answers


def nodes(
    leniency: float = 0.0,
) -> tuple[Float[np.ndarray, "node"], Float[np.ndarray, "node"], Float[np.ndarray, "node"]]:
    """Return log s, log(1 − s), as a lenient crowd has them, and the log weights of dt."""
    end = _SINH_SCALE * np.arcsinh(MAX_NODE_LOGIT / _SINH_SCALE)
    u = np.linspace(-end, end, N_NODES)
    t = _SINH_SCALE * np.sinh(u / _SINH_SCALE)
    seen = t + leniency
    return -np.logaddexp(0, -seen), -np.logaddexp(0, seen), np.log(np.cosh(u / _SINH_SCALE))


def log_mixture_weights(
    log_weights: Float[Array, "*mixture component"],
    a: Float[Array, "component"],
    b: Float[Array, "component"],
) -> Float[Array, "*mixture node"]:
    """Compute the nodes' log probabilities under one or several mixtures of the same betas."""
    log_s, log_rest, log_width = nodes()
    along = a[:, None] * log_s[None, :] + b[:, None] * log_rest[None, :] + log_width[None, :]
    # Normalised over nodes, so that no beta function is needed.
    density = jax.nn.log_softmax(along, axis=-1)
    outer = (1,) * (log_weights.ndim - 1)
    return logsumexp(log_weights[..., None] + density.reshape(*outer, *density.shape), axis=-2)


def log_likelihood(
    selected: Float[Array, "cell"] | Int[np.ndarray, "cell"],
    rejected: Float[Array, "cell"] | Int[np.ndarray, "cell"],
) -> Float[Array, "cell node"] | Float[np.ndarray, "cell node"]:
    """Compute log s^k (1 − s)^(n − k), the binomial log likelihood, at the nodes."""
    log_s, log_rest, _ = nodes()
    return selected[:, None] * log_s[None, :] + rejected[:, None] * log_rest[None, :]


def log_dependent(
    selected: Int[np.ndarray, "cell"],
    rejected: Int[np.ndarray, "cell"],
    dependence: float,
    leniency: float = 0.0,
) -> Float[np.ndarray, "cell node"]:
    """Compute the log likelihood of correlated answers: a beta-binomial around s, without C(n, k).

    With an intraclass correlation ρ and φ = 1/ρ − 1, log B(k + s φ, n − k + (1 − s) φ) −
    log B(s φ, (1 − s) φ); with a crowd's leniency λ logit s + λ takes the place of logit s.
    """
    # Ratios of beta functions as rising factorials: gamma functions cancel where φ is large.
    total = 1 / (dependence or SMALLEST_DEPENDENCE) - 1
    log_s, log_rest, _ = nodes(leniency)
    return (
        log_rising(total * np.exp(log_s), selected)
        + log_rising(total * np.exp(log_rest), rejected)
        - log_rising(np.array([total]), selected + rejected)
    ).T


def virtual_annotators(degree: int) -> Float[np.ndarray, "node {degree}+1"]:
    """Compute Binomial(j; d, s), j of d virtual annotators, at the nodes."""
    log_s, log_rest, _ = nodes()
    j = np.arange(degree + 1)
    log_mass = j * log_s[:, None] + (degree - j) * log_rest[:, None]
    return np.exp(log_binomial(degree, j) + log_mass)
