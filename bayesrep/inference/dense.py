"""Models whose units meet in the likelihood: their mode, their Hessian and its whitening.

The arrowhead of `bayesrep.inference.arrowhead` does not hold where classifiers share what is
not observed of an image. Their *independent* counterpart has it, its mode is near and its whitening
straightens most; from there L-BFGS climbs to the mode, and the whole Hessian there, one product
with it for each parameter, makes the change of variables. That costs about as much as one gradient
for each parameter, once.
"""

from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from bayesrep.inference.arrowhead import Whitening, inverse_root
from bayesrep.inference.density import Density, Position
from bayesrep.models.model import Data
from bayesrep.types import Float

MEMORY = 30
BATCH = 8


class DenseWhitening(NamedTuple):
    """An affine map ξ → parameters under which a normal approximation is standard."""

    center: Position
    root: Float[Array, "parameter parameter"]  # shared ones first

    def __call__(self, standard: Position) -> Position:
        """Parameters at standard coordinates ξ."""
        flat, back = ravel_pytree(standard)
        return jax.tree.map(jnp.add, self.center, back(self.root @ flat))


Transform: TypeAlias = Whitening | DenseWhitening
"""A change of variables that makes a normal approximation standard."""


def climb_from(
    density: Density,
    near: Whitening,
    data: Data,
    *,
    tolerance: float = 1e-6,
    limit: int = 500,
) -> tuple[Position, Float[Array, ""]]:
    """Minimise the potential by L-BFGS from the centre of `near`, in its coordinates; traceable.

    Ends when the squared gradient in those coordinates is below `tolerance` or after `limit`
    steps.
    """
    import optax  # takes long to import, and few models have units that meet

    def potential(standard: Position) -> Float[Array, ""]:
        return density.potential(near(standard), data)

    solver = optax.lbfgs(memory_size=MEMORY)
    evaluate = optax.value_and_grad_from_state(potential)

    def step(state: Any) -> Any:
        standard, inner, _, count = state
        value, gradient = evaluate(standard, state=inner)
        updates, inner = solver.update(
            gradient, inner, standard, value=value, grad=gradient, value_fn=potential
        )
        left = optax.tree.norm(gradient, squared=True)
        return optax.apply_updates(standard, updates), inner, left, count + 1

    def unfinished(state: Any) -> Array:
        return (state[2] > tolerance) & (state[3] < limit)

    first = jax.tree.map(jnp.zeros_like, near.center)
    begin = (first, solver.init(first), jnp.asarray(jnp.inf), jnp.asarray(0))
    standard = jax.lax.while_loop(unfinished, step, begin)[0]
    return near(standard), potential(standard)


def dense_hessian(
    density: Density, position: Position, data: Data
) -> Float[Array, "parameter parameter"]:
    """The Hessian of the potential; traceable."""
    flat, back = ravel_pytree(position)
    gradient = jax.grad(lambda at: density.potential(back(at), data))

    def column(axis: Array) -> Array:
        return jax.jvp(gradient, (flat,), (axis,))[1]

    columns = jax.lax.map(column, jnp.eye(len(flat)), batch_size=BATCH)
    return (columns + columns.T) / 2


def dense_whitening(
    center: Position, hessian: Float[Array, "parameter parameter"]
) -> DenseWhitening:
    """The change of variables that makes the normal approximation at a mode standard."""
    root = inverse_root(np.asarray(hessian))
    # The symmetric root, of which there is one only: the signs of eigenvectors are rounding's, and
    # devices that sum in another order would part at the first draw.
    symmetric = root @ (root / np.linalg.norm(root, axis=0)).T
    return DenseWhitening(center, jnp.asarray(symmetric))
