"""Modes of a posterior, by Newton steps on the arrowhead Hessian, and the mass around each."""

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

N_PRIOR_STARTS = 12
"""Searches from draws of the prior, if there may be several modes."""
MIN_MODE_DISTANCE = 0.5
"""Smallest distance of the shared parameters of two modes, in standard deviations."""
Expand: TypeAlias = Callable[[Position, Data], SecondOrder]
"""Value, gradient and Hessian of a potential."""


class ModeSearch(NamedTuple):
    """Last position of a search for the mode, with the potential's second-order expansion there."""

    position: Position
    expansion: SecondOrder
    decrement: float  # twice the drop in potential predicted for one more full Newton step


def find_mode(
    expand: Expand, start: Mapping[str, ArrayLike], data: Data, *, n_fixed: int = 0
) -> ModeSearch:
    """Minimise a potential from `start`; the first `n_fixed` shared parameters do not move."""
    # Arrays of one kind at every step: arrays of another kind would be compiled for again.
    position = jax.device_put({name: np.asarray(value) for name, value in start.items()})
    expansion, decrement = expand(position, data), np.inf
    for _ in range(200):
        # Newton's direction on |H| descends where H is not positive definite, too; its decrement
        # predicts twice the drop. The step is the first of 1, 1/2, 1/4, … that goes down enough.
        direction = newton_direction(expansion.hessian, expansion.gradient, n_fixed=n_fixed)
        slopes = (np.vdot(expansion.gradient[name], direction[name]) for name in direction)
        decrement = -sum(map(float, slopes))
        if decrement <= 1e-6:  # nats
            break
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
            decrement = 0.0  # nowhere down
            break
        position, expansion = proposal, candidate
    return ModeSearch(position, expansion, decrement)


def log_mass(mode: ModeSearch) -> float:
    """Compute the log of ∫ exp(−potential) around a mode, units to the power w, by Laplace."""
    # exp(−potential) (2π)^(d/2) |root|, the roots' determinants taken block by block.
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
    """Find the mode given the annotations, then given all data, from there in two ways."""
    # The product of a hundred classifiers' likelihoods can have two modes, one of which has all the
    # mass. One search first fits the curves given the annotators' mixtures; the other lets curves
    # that are still far from the answers drive the mixtures, now and then beyond recovery: to
    # components so close to 1 that their betas overflow.
    mixtures = find_mode(compiled.expand, start, problem.model.annotations(data))
    n_fixed = mixture_size(compiled.density, problem.model)
    curves = find_mode(compiled.expand, mixtures.position, data, n_fixed=n_fixed)
    ends = [find_mode(compiled.expand, begin.position, data) for begin in (curves, mixtures)]
    return min(ends, key=lambda end: np.nan_to_num(float(end.expansion.value), nan=np.inf))


def mixture_size(density: Density, model: Model) -> int:
    """Count the mixtures' parameters, the first of the shared ones."""
    sites = density.sites.items()
    return sum(math.prod(shape) for name, shape in sites if name in model.mixture_sites)


def around_mode(problem: Problem, compiled: Programs, data: Data) -> Whitening:
    """Build coordinates in which the normal at the mode next to the prior means is standard."""
    start = compiled.start(problem.start(data))
    mode = find_mode_from_annotations(problem, compiled, start, data)
    return whitening(mode.expansion.hessian, mode.position)


def other_mode_mass(problem: Problem, tools: Programs, data: Data, seed: int) -> float:
    """Estimate the share of the posterior around other modes than the one a fit starts from."""
    # Data sets that share their components have had one mode in every study so far; components of
    # their own may be matched to the data in several ways.
    if problem.options.shared_components:
        return 0.0
    key = jax.random.fold_in(jax.random.key(seed), 5)
    prior_draws = prior_positions(problem, tools, data, key, N_PRIOR_STARTS)["shared"][0]
    first = tools.start(problem.start(data))
    ours, *others = (
        find_mode_from_annotations(problem, tools, {**first, "shared": shared}, data)
        for shared in (first["shared"], *prior_draws)
    )
    # Modes are told apart in coordinates that are standard at the first one.
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
