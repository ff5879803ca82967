"""Modes of a posterior: climbs by Newton steps on the arrowhead Hessian, and what lies around them.

Data sets that share their components have had one mode in every study seen; components of their own
may be matched to the data in several ways. Climbs from draws of the prior find the ways, and normal
approximations say how much of the posterior lies around each.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

import jax
import numpy as np
from jax.typing import ArrayLike

from bayesrep.inference.arrowhead import SecondOrder, Whitening, newton_direction, whitening
from bayesrep.inference.density import Density, Position
from bayesrep.inference.problem import Problem, Programs, prior_positions
from bayesrep.models.model import Data, Model
from bayesrep.types import Float

N_PRIOR_CLIMBS = 12
"""Climbs from draws of the prior, where there may be several modes."""
MIN_MODE_DISTANCE = 0.5
"""Standard deviations between the shared parameters of two modes."""
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
        for size in 0.5 ** np.arange(20):
            further = jax.device_put(
                {name: np.asarray(position[name]) + size * along[name] for name in along}
            )
            expansion = expand(further, data)
            enough = 1e-4 * size * decrement  # Armijo's rule
            lower = float(expansion.value) < float(there.value) - enough
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


def climb_from_annotations(
    problem: Problem, compiled: Programs, start: Position, data: Data
) -> Climb:
    """Climb from a position on the annotations alone, then on everything, by two ways.

    Of a hundred classifiers the product of likelihoods can have two modes, so far apart in height
    that one has all the mass. One way leads through the curves given the annotators' mixtures; the
    other lets curves that are still far from the answers drive the mixtures, now and then to where
    there is no way back: components so near 1 that their betas are not numbers. The better end
    counts.
    """
    mixtures = climb(compiled.expand, start, problem.model.annotations(data))
    held = mixture_size(compiled.density, problem.model)
    curves = climb(compiled.expand, mixtures.position, data, held=held)
    ends = [climb(compiled.expand, begin.position, data) for begin in (curves, mixtures)]
    return min(ends, key=lambda end: np.nan_to_num(float(end.there.value), nan=np.inf))


def mixture_size(density: Density, model: Model) -> int:
    """How many of the shared parameters are the mixtures', which come first."""
    sites = density.sites.items()
    return sum(math.prod(shape) for name, shape in sites if name in model.mixture_sites)


def around_mode(problem: Problem, compiled: Programs, data: Data) -> Whitening:
    """Coordinates in which the normal at the mode above the prior means is standard."""
    start = compiled.start(problem.start(data))
    mode = climb_from_annotations(problem, compiled, start, data)
    return whitening(mode.there.hessian, mode.position)


def mass_elsewhere(problem: Problem, tools: Programs, data: Data, seed: int) -> float:
    """Share of the posterior around other modes than the one that a fit starts from.

    0 where data sets share their components: nothing is searched.
    """
    if problem.options.shared_components:
        return 0.0
    key = jax.random.fold_in(jax.random.key(seed), 5)
    drawn = prior_positions(problem, tools, data, key, N_PRIOR_CLIMBS)["shared"][0]
    first = tools.start(problem.start(data))

    def mode_from(shared: Float[jax.Array, "shared"]) -> Climb:
        return climb_from_annotations(problem, tools, {**first, "shared": shared}, data)

    ours, *others = map(mode_from, [first["shared"], *drawn])
    masses, places = [log_mass(ours)], [np.asarray(ours.position["shared"])]
    root = np.asarray(whitening(ours.there.hessian, ours.position).to_shared)
    for other in others:
        place = np.asarray(other.position["shared"])
        distances = [np.linalg.norm(np.linalg.solve(root, place - known)) for known in places]
        if all(distance > MIN_MODE_DISTANCE for distance in distances):
            places.append(place)
            masses.append(log_mass(other))
    shares = np.exp(np.array(masses) - np.logaddexp.reduce(masses))
    return float(1 - shares[0])
