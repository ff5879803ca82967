"""Cut feedback: mixtures from the annotators alone, then curves given each of their draws.

Plummer (2015), "Cuts in Bayesian graphical models", section 4: the curves' own chain goes through
the mixture's draws one by one, with a few transitions at each from where the last one ended. It
begins close to where it should be, because coordinates move with the mixture: they are measured
from where the mixture at hand puts the mode, to first order.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from numpyro import handlers

from bayesrep.inference.arrowhead import (
    Whitening,
    arrowhead_hessian,
    newton_direction,
    whitening,
)
from bayesrep.inference.density import Density, Position, build_density
from bayesrep.inference.mode import climb
from bayesrep.inference.nuts import BLOCK, Potential, unwhiten
from bayesrep.inference.run import Drawn, Run, around_mode, chains, of_chains
from bayesrep.models.model import Data, Model, Options
from bayesrep.types import Float, Floats


@lru_cache(maxsize=16)
def _given_mixtures(
    model: Model, options: Options, structure: Any, shapes: Any
) -> tuple[Density, Potential, Callable[..., tuple[Whitening, Position]]]:
    """Density of the curves given the mixture, the same measured from its mode, and the mode."""

    def conditioned(pair: Data) -> None:
        data, mixture = pair
        handlers.substitute(model.function, data=mixture)(data, options)

    example = jax.tree.unflatten(structure, [jnp.zeros(shape) for shape in shapes])
    density = build_density(conditioned, example)

    def prepare(start: Position, data: Data, center: Any) -> tuple[Whitening, Position]:
        """Whitening at the mode given `center`, and the mode's derivatives by the mixture."""
        mode = climb(density, start, (data, center)).position
        flat, back = ravel_pytree(center)
        hessian = arrowhead_hessian(lambda q: density.potential(q, (data, center)), mode)

        def gradient(mixture: Array) -> Position:
            return jax.grad(density.potential)(mode, (data, back(mixture)))

        def response(axis: Array) -> Position:
            return newton_direction(hessian, jax.jvp(gradient, (flat,), (axis,))[1])

        return whitening(hessian, mode), jax.lax.map(response, jnp.eye(len(flat)))

    def following(position: Position, data: Data) -> Float[Array, ""]:
        given, own = data
        moved = jax.tree.map(jnp.add, position, own["shift"])
        return density.potential(moved, (given, own["mixture"]))

    return density, following, jax.jit(prepare)


def cut(run: Run) -> Drawn:
    """Draws of the mixtures given the annotations, and of the curves given each of them."""
    model, options, data = run.problem.model, run.problem.options, run.data
    density = run.tools.density
    position, _ = around_mode(run, model.annotations(data), part="mixtures", stage=0)
    sites = jax.jit(jax.vmap(jax.vmap(density.to_sites)))(position)
    mixture = {name: sites[name] for name in model.mixture_sites if name in sites}
    center = {name: value.mean(axis=(0, 1)) for name, value in mixture.items()}

    leaves, structure = jax.tree.flatten((data, center))
    shapes = tuple(jnp.shape(leaf) for leaf in leaves)
    given, following, prepare = _given_mixtures(model, options, structure, shapes)
    start = given.to_position(model.start(data, options))
    transform, response = prepare(start, data, center)
    change = jax.vmap(jax.vmap(lambda one: ravel_pytree(one)[0]))(mixture)
    change = change - ravel_pytree(center)[0][None, None, :]
    shift = jax.tree.map(lambda leaf: jnp.tensordot(change, leaf, axes=1), response)

    def padded(value: Array, around: Array) -> Floats:
        """Draws with the centre before them, for warm-up, and after, to fill the last block."""
        chains, rest = value.shape[0], value.shape[2:]
        ends = [
            np.broadcast_to(np.asarray(around), (chains, size, *rest))
            for size in (run.schedule.warmup, BLOCK)
        ]
        return np.concatenate([ends[0], np.asarray(value), ends[1]], axis=1)

    still = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape[1:]), response)
    first = {"mixture": center, "shift": still}
    varying = jax.tree.map(padded, {"mixture": mixture, "shift": shift}, first)

    def feed(chain: int, begin: int) -> Data:
        block = (slice(None) if run.vectorized else chain, slice(begin, begin + BLOCK))
        return data, jax.tree.map(lambda leaf: jnp.asarray(leaf[block]), varying)

    result = chains(
        run, following, transform, feed, (data, first), part="curves", stage=1, varies=True
    )
    curves = jax.tree.map(jnp.add, unwhiten(transform, result.position), shift)
    curves = jax.jit(jax.vmap(jax.vmap(given.to_sites)))(curves)
    to_position = jax.jit(jax.vmap(jax.vmap(density.to_position)))
    return of_chains(to_position({**curves, **mixture}), result)
