"""Climb to a mode by Newton steps on the arrowhead Hessian, one compiled program in a host loop."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

import jax
import numpy as np
from jax.typing import ArrayLike

from bayesrep.inference.arrowhead import SecondOrder, newton_direction, whitening
from bayesrep.inference.density import Position
from bayesrep.models.model import Data

HALVINGS = 20
SUFFICIENT = 1e-4

Expand: TypeAlias = Callable[[Position, Data], SecondOrder]
"""Value, gradient and Hessian of a potential."""


class Climb(NamedTuple):
    """Where a search for the mode ended, with the potential's expansion there.

    `decrement` is the drop in potential that a full Newton step still promises, times two.
    """

    position: Position
    there: SecondOrder
    decrement: float
    steps: int


def climb(
    expand: Expand,
    start: Mapping[str, ArrayLike],
    data: Data,
    *,
    held: int = 0,
    tolerance: float = 1e-6,
    limit: int = 200,
) -> Climb:
    """Minimise a potential from `start`.

    Newton directions use |H|, so they descend where H is not positive definite; the step is the
    first of 1, 1/2, 1/4, … of it that goes down enough. The search ends when the Newton decrement
    is below `tolerance` nats, where no step goes down, or after `limit` steps.

    Parameters
    ----------
    expand, data
        The potential, and its second argument.
    start
        Position to begin at.
    held
        How many of the shared parameters stay as they are, the first ones.
    tolerance, limit
        When to end.
    """
    # Arrays of one kind at every step: of others programs would be lowered again.
    position = jax.device_put({name: np.asarray(value) for name, value in start.items()})
    there, decrement = expand(position, data), np.inf
    for step in range(limit):
        along = newton_direction(there.hessian, there.gradient, held=held)
        decrement = -sum(float(np.vdot(there.gradient[name], along[name])) for name in along)
        if decrement <= tolerance:
            return Climb(position, there, decrement, step)
        for halving in range(HALVINGS):
            size = 0.5**halving
            further = jax.device_put(
                {name: np.asarray(position[name]) + size * along[name] for name in along}
            )
            expansion = expand(further, data)
            lower = float(expansion.value) < float(there.value) - SUFFICIENT * size * decrement
            if lower and np.isfinite(expansion.hessian.shared).all():
                break
        else:
            return Climb(position, there, 0.0, step)
        position, there = further, expansion
    return Climb(position, there, decrement, limit)


def log_mass(mode: Climb) -> float:
    """Logarithm of the mass at a mode, by the normal approximation there.

    The integral of exp(−potential), each unit's being raised to the weight of units.
    """
    normal = whitening(mode.there.hessian, mode.position)
    shared, units = (np.asarray(root) for root in (normal.to_shared, normal.to_units))
    turn = float(np.log(2 * np.pi)) / 2
    volume = np.log(np.abs(np.diag(shared))).sum() + turn * len(shared)
    of_units = np.linalg.slogdet(units)[1].sum() + turn * mode.position["units"].size
    of_units *= float(mode.there.hessian.weight)
    return float(volume + of_units) - float(mode.there.value)
