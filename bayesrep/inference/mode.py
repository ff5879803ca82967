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

N_PRIOR_STARTS = 12
"""Climbs from draws of the prior, where there may be several modes."""
MIN_MODE_DISTANCE = 0.5
"""Standard deviations between the shared parameters of two modes."""
Expand: TypeAlias = Callable[[Position, Data], SecondOrder]
"""Value, gradient and Hessian of a potential."""


class ModeSearch(NamedTuple):
    """Where a search for the mode ended, with the potential's expansion there.

    `decrement` is the drop in potential that a full Newton step still promises, times two.
    """

    position: Position
    expansion: SecondOrder
    decrement: float
    steps: int


def find_mode(
    expand: Expand,
    start: Mapping[str, ArrayLike],
    data: Data,
    *,
    n_fixed: int = 0,
    tolerance: float = 1e-6,
    limit: int = 200,
) -> ModeSearch:
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
    expansion, decrement = expand(position, data), np.inf
    for step in range(limit):
        direction = newton_direction(expansion.hessian, expansion.gradient, n_fixed=n_fixed)
        decrement = -sum(
            float(np.vdot(expansion.gradient[name], direction[name])) for name in direction
        )
        if decrement <= tolerance:
            return ModeSearch(position, expansion, decrement, step)
        for size in 0.5 ** np.arange(20):
            proposal = jax.device_put(
                {name: np.asarray(position[name]) + size * direction[name] for name in direction}
            )
            candidate = expand(proposal, data)
            enough = 1e-4 * size * decrement  # Armijo's rule
            lower = float(candidate.value) < float(expansion.value) - enough
            if lower and np.isfinite(candidate.hessian.shared).all():
                break
        else:
            return ModeSearch(position, expansion, 0.0, step)
        position, expansion = proposal, candidate
    return ModeSearch(position, expansion, decrement, limit)


def log_mass(mode: ModeSearch) -> float:
    """Logarithm of the mass at a mode, by the normal approximation there.

    The integral of exp(−potential), each unit's being raised to the weight of units.
    """
    normal = whitening(mode.expansion.hessian, mode.position)
    shared, units = (np.asarray(root) for root in (normal.to_shared, normal.to_units))
    turn = float(np.log(2 * np.pi)) / 2
    volume = np.log(np.abs(np.diag(shared))).sum() + turn * len(shared)
    of_units = np.linalg.slogdet(units)[1].sum() + turn * mode.position["units"].size
    of_units *= float(mode.expansion.hessian.weight)
    return float(volume + of_units) - float(mode.expansion.value)


def find_mode_from_annotations(
    problem: Problem, compiled: Programs, start: Position, data: Data
) -> ModeSearch:
    """Climb from a position on the annotations alone, then on everything, by two ways.

    Of a hundred classifiers the product of likelihoods can have two modes, so far apart in height
    that one has all the mass. One way leads through the curves given the annotators' mixtures; the
    other lets curves that are still far from the answers drive the mixtures, now and then to where
    there is no way back: components so near 1 that their betas are not numbers. The better end
    counts.
    """
    mixtures = find_mode(compiled.expand, start, problem.model.annotations(data))
    n_fixed = mixture_size(compiled.density, problem.model)
    curves = find_mode(compiled.expand, mixtures.position, data, n_fixed=n_fixed)
    ends = [find_mode(compiled.expand, begin.position, data) for begin in (curves, mixtures)]
    return min(ends, key=lambda end: np.nan_to_num(float(end.expansion.value), nan=np.inf))


def mixture_size(density: Density, model: Model) -> int:
    """How many of the shared parameters are the mixtures', which come first."""
    sites = density.sites.items()
    return sum(math.prod(shape) for name, shape in sites if name in model.mixture_sites)


def around_mode(problem: Problem, compiled: Programs, data: Data) -> Whitening:
    """Coordinates in which the normal at the mode above the prior means is standard."""
    start = compiled.start(problem.start(data))
    mode = find_mode_from_annotations(problem, compiled, start, data)
    return whitening(mode.expansion.hessian, mode.position)


def other_mode_mass(problem: Problem, tools: Programs, data: Data, seed: int) -> float:
    """Share of the posterior around other modes than the one that a fit starts from.

    0 where data sets share their components: nothing is searched.
    """
    if problem.options.shared_components:
        return 0.0
    key = jax.random.fold_in(jax.random.key(seed), 5)
    prior_draws = prior_positions(problem, tools, data, key, N_PRIOR_STARTS)["shared"][0]
    first = tools.start(problem.start(data))

    def mode_from(shared: Float[jax.Array, "shared"]) -> ModeSearch:
        return find_mode_from_annotations(problem, tools, {**first, "shared": shared}, data)

    ours, *others = map(mode_from, [first["shared"], *prior_draws])
    masses, places = [log_mass(ours)], [np.asarray(ours.position["shared"])]
    root = np.asarray(whitening(ours.expansion.hessian, ours.position).to_shared)
    for other in others:
        place = np.asarray(other.position["shared"])
        distances = [np.linalg.norm(np.linalg.solve(root, place - previous)) for previous in places]
        if all(distance > MIN_MODE_DISTANCE for distance in distances):
            places.append(place)
            masses.append(log_mass(other))
    shares = np.exp(np.array(masses) - np.logaddexp.reduce(masses))
    return float(1 - shares[0])
