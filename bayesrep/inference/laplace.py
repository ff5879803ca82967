"""Normal approximations from exact Hessians: Laplace's, moved to where the posterior's mass is.

*Laplace's* approximation is the normal at the mode whose precision is the exact Hessian there. On
136 classifiers and 10,000 + 10,000 images its adjusted accuracies lie up to 0.4 posterior standard
deviations from those of NUTS: the mixture's posterior is skewed, and its mode is not its mean.

*Refined*, it is the normal nearest to the posterior in Kullback–Leibler divergence KL(q ‖ p). For
U = −log p such a q = N(m, S) has

    E_q[∇U] = 0,      S⁻¹ = E_q[∇²U],

and is found by Newton steps m ← m − S E_q[∇U], S⁻¹ ← E_q[∇²U]. Expectations are means over a few
antithetic draws, the same in every step, so steps converge to a point that is exact but for their
sampling error. A q without any width has no error: the first step, from the mode alone, gives
Laplace's approximation, and the second step moves its mean by −½ S ∇ log det ∇²U, the posterior
mean's known correction of first order in 1/n. After four
steps the largest difference of an adjusted accuracy's mean from that of NUTS was 0.03 to 0.07
standard deviations (three seeds).

Neither can say more than means, covariances and what a normal has of the rest: not the skewness of
the mixture's parameters (adjusted accuracies, averages over many, have little), and not a second
mode. Where Pareto's k is above 0.7 the posterior is far from normal; use NUTS.

References
----------
Tierney, Kadane (1986), "Accurate approximations for posterior moments and marginal densities",
JASA 81. Opper, Archambeau (2009), "The variational Gaussian approximation revisited", Neural
Computation 21, equations 6 and 7.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bayesrep.inference.approximate import (
    Approximation,
    approximation,
    log_densities,
    log_standard_normal,
    mirrored,
    standard_normal,
)
from bayesrep.inference.arrowhead import (
    Arrowhead,
    Whitening,
    arrowhead_hessian,
    newton_direction,
    whitening,
)
from bayesrep.inference.dense import Transform
from bayesrep.inference.density import Density, Position
from bayesrep.inference.problem import Problem, Programs, find_mode
from bayesrep.models.model import Data
from bayesrep.types import Float

REFINEMENTS = 4
PAIRS = 32
BATCH = 16
# Compiling takes longer than the few steps: fewer passes of LLVM save more than they cost.
QUICK: dict[str, str | bool] = {"xla_backend_optimization_level": "0"}
# The whitening's own floor serves points away from a mode; here only rounding needs a guard.
FLOOR = 1e-10


def laplace(
    problem: Problem,
    tools: Programs,
    data: Data,
    key: Array,
    chains: int,
    draws: int,
    *,
    refinements: int = REFINEMENTS,
) -> Approximation:
    """Draws of the normal approximation of a posterior.

    Parameters
    ----------
    problem, tools, data
        What to infer, its programs and its arrays.
    key
        Of the draws and of the expectations.
    chains, draws
        Independent draws of each chain.
    refinements
        Newton steps from Laplace's approximation to the nearest normal; 0 for the former.
    """
    mode = find_mode(problem, tools, data)
    keys = jax.random.split(key)
    normal = normal_at(tools, mode.position, data, keys[0], refinements)
    return draw_normal(tools.density, normal, data, keys[1], chains, draws)


def normal_at(
    tools: Programs, mode: Position, data: Data, key: Array, refinements: int = REFINEMENTS
) -> Transform:
    """The normal nearest to the posterior or, where units meet in the likelihood, Laplace's."""
    if tools.whiten_whole is not None:
        return tools.whiten_whole(mode, data)
    return nearest_normal(tools.density, mode, data, key, refinements)


class _Search(NamedTuple):
    """A normal, and the best one before it with its KL divergence up to a constant."""

    current: Whitening
    best: Whitening
    loss: Float[Array, ""]


def nearest_normal(
    density: Density, mode: Position, data: Data, key: Array, refinements: int = REFINEMENTS
) -> Whitening:
    """The normal found from the mode, as the image of a standard normal.

    Of the normals on the way, the one of lowest divergence: far from a normal posterior the steps
    need not go down.
    """
    pairs = mirrored(standard_normal(key, density, PAIRS))
    return _search(density, refinements)(mode, data, pairs)


@lru_cache(maxsize=16)
def _search(density: Density, refinements: int) -> Callable[[Position, Data, Position], Whitening]:
    def search(mode: Position, data: Data, pairs: Position) -> Whitening:
        def step(state: _Search, _: None) -> tuple[_Search, None]:
            normal = state.current
            energy, gradient, hessian = _expectations(density, normal, pairs, data)
            loss = energy - normal.log_volume()
            better = loss < state.loss
            best = jax.tree.map(lambda a, b: jnp.where(better, a, b), normal, state.best)
            along = newton_direction(hessian, gradient)
            center = jax.tree.map(jnp.add, normal.center, along)
            after = whitening(hessian, center, floor=FLOOR)
            return _Search(after, best, jnp.where(better, loss, state.loss)), None

        point = _without_width(density, mode)
        start = _Search(point, point, jnp.asarray(jnp.inf))
        # One step from the point to Laplace, one more to take in the last normal's divergence.
        return jax.lax.scan(step, start, length=refinements + 2)[0].best

    return jax.jit(search, compiler_options=QUICK)


def _without_width(density: Density, center: Position) -> Whitening:
    shared, units, per_unit = density.shared, density.units, density.per_unit
    return Whitening(
        center,
        jnp.zeros((shared, shared)),
        jnp.zeros((units, per_unit, per_unit)),
        jnp.zeros((units, per_unit, shared)),
    )


def _expectations(
    density: Density, normal: Whitening, standard: Position, data: Any
) -> tuple[Array, Position, Arrowhead]:
    """Mean potential, gradient and Hessian over a normal's draws at standard [draw, ...].

    Opper, Archambeau (2009), equations 6 and 7.
    """

    @jax.jit  # traced once for its three uses
    def potential(position: Position) -> Array:
        return density.potential(position, data)

    def one(standard: Position) -> tuple[Array, Position, Arrowhead]:
        position = normal(standard)
        energy, gradient = jax.value_and_grad(potential)(position)
        return energy, gradient, arrowhead_hessian(potential, position)

    values = jax.lax.map(one, standard, batch_size=BATCH)
    return jax.tree.map(lambda leaf: leaf.mean(axis=0), values)


def draw_normal(
    density: Density, normal: Transform, data: Data, key: Array, chains: int, draws: int
) -> Approximation:
    """Draws of a normal, with its density and the model's.

    The second half mirrors the first at the mean: within a chain draws are independent, and over
    all chains means have hardly any Monte Carlo error.
    """
    standard = mirrored(standard_normal(key, density, -(-chains * draws // 2)))
    standard = jax.tree.map(lambda leaf: leaf[: chains * draws], standard)
    return approximation(*_drawing(density)(normal, data, standard), chains=chains)


@lru_cache(maxsize=16)
def _drawing(density: Density) -> Callable[[Transform, Data, Position], Any]:
    def drawing(
        normal: Transform, data: Data, standard: Position
    ) -> tuple[Position, Float[Array, "draw"], Float[Array, "draw"]]:
        positions = jax.vmap(normal.__call__)(standard)
        log_normal = jax.vmap(log_standard_normal)(standard) - normal.log_volume()
        return positions, log_densities(density, positions, data), log_normal

    return jax.jit(drawing)
