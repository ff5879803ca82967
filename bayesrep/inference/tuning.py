"""What the surrogate learns from visited points: ridge regressions on the host.

The penalty of each regression is chosen by generalised cross-validation, so that few points teach
little and many points much. Points far up in the potential count less: the surrogate has to be right
where the posterior is.

References
----------
Golub, Heath, Wahba (1979), "Generalized cross-validation as a method for choosing a good ridge
parameter", Technometrics 21.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from bayesrep.inference.marginal import Guide, features
from bayesrep.types import Float

PENALTIES = 10.0 ** np.arange(-4, 5)
CRUDE = 0.3
"""Largest sd of what a quadratic leaves, in nats, with which the surrogate need not see units."""
LATEST = 600
"""Points to learn from, at most."""


class Visits(NamedTuple):
    """Points ξ at which the units were looked at.

    `potential` is that of the marginal; `level` and `log_factor` are the sums over units of V_c and
    of log |L_c|.
    """

    shared: Float[Array, "*point shared"]
    potential: Float[Array, "*point"]
    level: Float[Array, "*point"]
    log_factor: Float[Array, "*point"]
    center: Float[Array, "*point unit own"]


class Ridge(NamedTuple):
    """Coefficients, and the standard deviation of what they leave on points not seen."""

    coefficients: Float[np.ndarray, "feature output"]
    left: float


def ridge(
    inputs: Float[np.ndarray, "point feature"],
    outputs: Float[np.ndarray, "point output"],
    weights: Float[np.ndarray, "point"],
) -> Ridge:
    """Regress outputs on features, the first of which is constant and free of the penalty."""
    weights = weights / weights.sum()
    means = weights @ inputs[:, 1:], weights @ outputs
    scale = np.sqrt(weights * len(weights))[:, None]
    left, right = scale * (inputs[:, 1:] - means[0]), scale * (outputs - means[1])
    values, vectors = np.linalg.eigh(left @ left.T)
    values = np.maximum(values, 0.0)
    turned = vectors.T @ right
    squares = np.square(turned).sum(axis=1)

    def risk(penalty: float) -> float:
        missed = penalty / (values + penalty)
        free = max(missed.sum() - 1, 1e-2 * len(values))
        return float(len(values) * (missed**2 @ squares) / free**2)

    penalty = min(PENALTIES, key=risk)
    slopes = left.T @ (vectors @ (turned / (values + penalty)[:, None]))
    constant = means[1] - means[0] @ slopes
    deviation = float(np.sqrt(risk(penalty) / outputs.shape[1]))
    return Ridge(np.concatenate([constant[None], slopes]), deviation)


def importance(potential: Float[np.ndarray, "point"], size: int) -> Float[np.ndarray, "point"]:
    """Weights of points: 1 about the typical potential, less above."""
    above = np.maximum(potential - np.median(potential) - size, 0.0)
    return 1 / np.square(1 + above / size)


def learn(guide: Guide, visits: Sequence[Visits]) -> Guide:
    """A better guide, from visits in their order, the later half of which is learnt from."""
    late = visits[max(0, len(visits) // 2 - 1) :]
    every = Visits(*(np.concatenate(leaves)[-LATEST:] for leaves in zip(*late, strict=True)))
    usable = np.isfinite(every.potential) & np.isfinite(every.center).all(axis=(1, 2))
    count, size = len(guide.level), every.shared.shape[1]
    if usable.sum() < 2 * (1 + size):
        return guide
    every = Visits(*(np.asarray(leaf)[usable] for leaf in every))
    inputs = features(np.asarray(every.shared), count)
    weights = importance(np.asarray(every.potential), size)
    level = ridge(inputs, every.level[:, None], weights)
    whole = len(inputs) < 2 * count or level.left > CRUDE
    guess = guide.guess
    if whole or bool(guide.whole):
        some = inputs[:, : len(guess)]
        centers = every.center.reshape(len(inputs), -1)
        fitted = ridge(some, centers, weights).coefficients
        guess = jnp.asarray(fitted.reshape(guess.shape))
        if whole:
            # At the guess a unit's potential is above V − log |L|, by half the distance squared.
            missed = np.square(some @ fitted - centers).sum(axis=1)
            level = ridge(inputs, (every.log_factor - 0.5 * missed)[:, None], weights)
    coefficients = np.append(0.0, level.coefficients[1:, 0])
    return Guide(jnp.asarray(coefficients), guess, jnp.asarray(whole))
