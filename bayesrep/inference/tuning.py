"""What the surrogate learns from visited points: ridge regressions on the host.

The penalty of each regression is chosen by generalised cross-validation, so that few points teach
little and many points much. Points far up in the potential count less: the surrogate has to be
right where the posterior is.

References
----------
Golub, Heath, Wahba (1979), "Generalized cross-validation as a method for choosing a good ridge
parameter", Technometrics 21.
"""

from typing import NamedTuple

import jax
import numpy as np
from jax import Array

from bayesrep.inference.marginal import Guide, Visits, draw_in
from bayesrep.types import Float, Floats, Shaped

MANY = 3
"""Points a feature; of fewer, guesses are linear."""
PENALTIES = 10.0 ** np.arange(-4, 5)
_ROUNDING = 1e-13
"""Share of the largest of the features' products below which a direction is rounding."""
AT_ONCE = 2**23
"""Values in a regression, at most."""
IN_CACHE = 2**17
"""Values of it that are looked at together."""


class Ridge(NamedTuple):
    """Coefficients, and the standard deviation of what they leave on points not seen."""

    coefficients: Float[np.ndarray, "feature output"]
    left: float


def ridge(
    inputs: Float[np.ndarray, "point feature"],
    outputs: Shaped[np.ndarray, "point output"],
    weights: Float[np.ndarray, "point"],
) -> Ridge:
    """Regress outputs on features, the first of which is constant and free of the penalty."""
    weights = weights / weights.sum()
    center = weights @ inputs[:, 1:]
    scale = np.sqrt(weights * len(weights))[:, None]
    left = scale * (inputs[:, 1:] - center)
    # By the features' products, not the singular values: a fifth of the time, and what rounding
    # leaves of the smallest is far below the least penalty.
    squared, axes = np.linalg.eigh(left.T @ left)
    squared = np.where(squared > _ROUNDING * squared[-1], squared, 0.0)
    means, total = np.zeros(outputs.shape[1]), 0.0
    turned = np.zeros((len(squared), outputs.shape[1]))
    # Some outputs at a time: memory that is new costs more than what is done with it.
    step = max(1, IN_CACHE // len(outputs))
    for begin in range(0, outputs.shape[1], step):
        part = slice(begin, begin + step)
        some = outputs[:, part].astype(float)
        means[part] = weights @ some
        right = scale * (some - means[part])
        turned[:, part] = left.T @ right
        total += float(np.square(right).sum())
    turned = axes.T @ turned
    told = np.divide(1.0, squared, out=np.zeros_like(squared), where=squared > 0)
    squares = told * np.square(turned).sum(axis=1)
    beyond = max(total - float(squares.sum()), 0.0)

    def risk(penalty: float) -> float:
        missed = penalty / (squared + penalty)
        free = max(len(left) - len(squared) + missed.sum() - 1, 1e-2 * len(left))
        return float(len(left) * (beyond + missed**2 @ squares) / free**2)

    penalty = min(PENALTIES, key=risk)
    slopes = axes @ (turned / (squared + penalty)[:, None])
    constant = means - center @ slopes
    deviation = float(np.sqrt(risk(penalty) / outputs.shape[1]))
    return Ridge(np.concatenate([constant[None], slopes]), deviation)


def products(shared: Float[np.ndarray, "point shared"]) -> Float[np.ndarray, "point feature"]:
    """1, ξ, and ξ_i ξ_j for i ≤ j."""
    first, second = np.triu_indices(shared.shape[1])
    return np.concatenate(
        [np.ones((len(shared), 1)), shared, shared[:, first] * shared[:, second]], axis=1
    )


def importance(potential: Float[np.ndarray, "point"], size: int) -> Float[np.ndarray, "point"]:
    """Weights of points: 1 about the typical potential, less above."""
    above = np.maximum(potential - np.median(potential) - size, 0.0)
    return 1 / np.square(1 + above / size)


def learn(guide: Guide, weight: Float[np.ndarray, "unit"], every: Visits) -> Guide:
    """A guide from visits; `weight` is what each unit of the surrogate's sample counts in all."""
    usable = np.isfinite(every.potential) & np.isfinite(every.center).all(axis=(1, 2))
    size = every.shared.shape[1]
    if usable.sum() < 2 * (1 + size):
        return guide
    if not usable.all():  # of thousands of units a copy takes long
        every = Visits(*(np.asarray(leaf)[usable] for leaf in every))
    inputs = products(draw_in(np.asarray(every.shared)))
    weights = importance(np.asarray(every.potential), size)

    def fitted(values: Shaped[np.ndarray, "point unit entry"], like: Array) -> Floats:
        """Coefficients, of some units at a time: of thousands the values fill the memory."""
        some = inputs if len(inputs) > MANY * len(like) else inputs[:, : 1 + size]
        some = some[:, : len(like)]
        coefficients = np.zeros(like.shape)
        step = max(1, AT_ONCE // (len(values) * values.shape[2]))
        for begin in range(0, values.shape[1], step):
            part = values[:, begin : begin + step]
            found = ridge(some, part.reshape(len(part), -1), weights).coefficients
            coefficients[: len(found), begin : begin + step] = found.reshape(-1, *part.shape[1:])
        return coefficients

    guess, root = fitted(every.center, guide.guess), fitted(every.root, guide.root)
    rows = np.flatnonzero(weight)
    told = np.tensordot(inputs[:, : len(guess)], guess[:, rows], axes=1)
    # At the guess a unit's potential is above V + log |R|, by half the distance squared.
    missed = told - every.center[:, rows]
    above = 0.5 * np.square(missed).sum(axis=2) @ weight[rows]
    said = np.stack([every.level, every.sampled + above], axis=1)
    beyond = said - inputs @ ridge(inputs, said, weights).coefficients
    both, of_sample = (beyond.T * weights) @ beyond[:, 1]
    share = np.clip(both / max(of_sample, 1e-300), 0.0, 1.0)
    level = ridge(inputs, said @ [[1.0], [-share]], weights)
    learnt = share, level.coefficients[:, 0], guess, guess[:, rows], root
    return Guide(*jax.device_put(learnt))
