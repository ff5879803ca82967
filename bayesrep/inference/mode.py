"""Climb to a mode by Newton steps on the arrowhead Hessian."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bayesrep.inference.arrowhead import arrowhead_hessian, newton_direction
from bayesrep.inference.density import Density, Position
from bayesrep.models.model import Data
from bayesrep.types import Float, Int

STEP_SIZES = 0.5 ** np.arange(14)


class Climb(NamedTuple):
    """Where a search for the mode ended.

    `decrement` is the drop in potential that a full Newton step still promises, times two.
    """

    position: Position
    potential: Float[Array, ""]
    decrement: Float[Array, ""]
    steps: Int[Array, ""]


def _newton_step(
    density: Density, position: Position, data: Data
) -> tuple[Position, Float[Array, ""], Float[Array, ""]]:
    @jax.jit  # traced once for its four uses
    def potential(at: Position) -> Array:
        return density.potential(at, data)

    gradient = jax.grad(potential)(position)
    direction = newton_direction(arrowhead_hessian(potential, position), gradient)
    decrement = -sum(jax.tree.leaves(jax.tree.map(jnp.vdot, gradient, direction)))

    def after(size: Array) -> Position:
        return jax.tree.map(lambda at, along: at + size * along, position, direction)

    sizes = STEP_SIZES.astype(position["shared"].dtype)
    values = jax.lax.map(lambda size: potential(after(size)), sizes)
    best = jnp.nanmin(values)
    size = jnp.max(jnp.where(values == best, sizes, 0.0))
    return after(size), best, jnp.asarray(decrement)


def climb(
    density: Density, start: Position, data: Data, *, tolerance: float = 1e-6, limit: int = 200
) -> Climb:
    """Minimise the potential from `start`; traceable, so jit it.

    Newton directions use |H|, so they descend where H is not positive definite; the step is the
    best of 1, 1/2, 1/4, … of it. The search ends when the Newton decrement is below `tolerance`
    nats or after `limit` steps.
    """

    def unfinished(state: Climb) -> Array:
        return (state.decrement > tolerance) & (state.steps < limit)

    def step(state: Climb) -> Climb:
        position, potential, decrement = _newton_step(density, state.position, data)
        better = potential < state.potential
        moved = jax.tree.map(lambda new, old: jnp.where(better, new, old), position, state.position)
        return Climb(
            moved,
            jnp.where(better, potential, state.potential),
            jnp.where(better, decrement, 0.0),
            state.steps + 1,
        )

    first = density.potential(start, data)
    return jax.lax.while_loop(
        unfinished, step, Climb(start, first, jnp.full_like(first, jnp.inf), jnp.asarray(0))
    )
