"""How annotators answer: their answers' correlation ρ and two crowds' leniency λ, integrated.

ρ: answers of annotators who saw an image in one grid, or under one description, share its effect:
counts scatter more than binomial ones, and the frequencies s less than they seem to. No count
tells the two apart for any density p(s); that of a few smooth betas does, in part. As nested
Laplace approximations integrate a hyperparameter (Rue, Martino and Chopin 2009, section 3),

    P(ρ_j | y)  ∝  P(ρ_j) p̂(y | ρ_j),        p̂ = exp(−U) (2π)^(d/2) |R_j|  at the mode given ρ_j,

U the potential and R_j a root of the inverse Hessian there.

λ: the log odds by which the replication's crowd selects an image, more than the reference's would.
Of W people, whose own leniencies have the standard deviation τ, a crowd's has about τ / √W′, W′
the larger of 0.3 W and of the answers about an image (`bayesrep.studies.leniency`). A stricter
crowd's counts are like those of a worse pool of images, so they do not weigh λ; its prior does:

    λ | τ  ~  Normal(0, τ² Σ_d 1 / W′_d),        log τ  ~  Normal(log 1.1, 0.35).

A draw x given ρ = 0 and λ = 0, as the sampler makes it, becomes one given a level's in the
coordinates in which the normals around both modes are standard: x_j = m_j + R_j R_0⁻¹ (x − m_0).
Classifiers move together, so that draws stay joint.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.interpolate import PchipInterpolator

from bayesrep.inference.arrowhead import Whitening, whitening
from bayesrep.inference.cells import Parts, evaluate
from bayesrep.inference.density import Draws, Position
from bayesrep.inference.mode import around_mode, find_mode, log_mass
from bayesrep.inference.problem import Problem, Programs, programs
from bayesrep.models.model import Data
from bayesrep.numerics.logit_quadrature import SMALLEST_DEPENDENCE
from bayesrep.studies.capabilities import MIN_ANSWERS
from bayesrep.studies.leniency import leniency_density
from bayesrep.types import Float, Ints

DEPENDENCE_GRID = (0.0, 0.003, 0.006, 0.01, 0.02, 0.035, 0.055, 0.08, 0.11, 0.15, 0.2, 0.3)
"""Correlations ρ_j."""
MAX_LOG_ODDS = 12.0
"""Nats below the best correlation at which the grid ends."""
N_PEOPLE = 100
"""People in each of two crowds, for illustration."""
LENIENCY_GRID = np.linspace(0, 4, 13)
"""Leniencies |λ_j|, in medians of their standard deviation."""


class AnnotatorLevel(NamedTuple):
    """Options with ρ and λ, their data, log P(y | ρ, λ), and the normal around the mode."""

    options: Any
    data: Data
    log_density: float
    normal: Whitening


class LevelGrid(NamedTuple):
    """Values of ρ or of λ, with their levels and probabilities; the first is 0."""

    name: str
    value: Float[np.ndarray, "level"]
    levels: Sequence[AnnotatorLevel]
    probability: Float[np.ndarray, "level"]


def find_level(
    problem: Problem, tools: Programs | None, position: Position, **settings: float
) -> tuple[Programs, Position, AnnotatorLevel]:
    """Find the mode at a correlation or leniency, from a position near it."""
    options = replace(problem.options, **settings)
    data = replace(problem, options=options).data()
    # Levels differ in their data alone: they share the programs of the first.
    tools = tools or programs(replace(problem, options=options), data)
    mode = find_mode(tools.expand, position, data)
    normal = whitening(mode.expansion.hessian, mode.position)
    return tools, mode.position, AnnotatorLevel(options, data, log_mass(mode), normal)


def learns_dependence(problem: Problem) -> bool:
    """Return whether ρ is integrated: not if it is given, the model's own, or workers' alone.

    Nor where every answer about an image is from another context.
    """
    contexts = [table.contexts for tables in problem.cells for table in tables.values()]
    if all(each is not None and each.shown.max() == 1 for each in contexts):
        return False
    return _is_free(problem, "dependence")


def _is_free(problem: Problem, name: str) -> bool:
    """Return whether a setting of annotators is neither given nor a site of the model."""
    model, options = problem.model, problem.options
    is_free = model.crowd is None and getattr(options, name, 0.0) is None
    return is_free and name not in model.dims(problem.data(), options)


def scan_dependence(problem: Problem, position: Position) -> tuple[Programs, LevelGrid]:
    """Find the mode at every ρ_j from a position near that at ρ = 0, and P(ρ_j | y)."""
    levels, heights = list[AnnotatorLevel](), list[float]()
    tools, weight = None, float(_tell_dependence(problem))
    for dependence in DEPENDENCE_GRID:
        tools, position, level = find_level(
            problem,
            tools,
            position,
            dependence=max(dependence, SMALLEST_DEPENDENCE),
            leniency=0.0,
        )
        log_prior = -0.5 * (dependence / problem.options.dependence_prior) ** 2
        heights.append(log_prior + weight * level.log_density)
        # Beyond a correlation that the counts reject, searches are long and fail.
        if not heights[-1] > max(heights[:-1], default=-np.inf) - MAX_LOG_ODDS:
            heights.pop()
            break
        levels.append(level)
    assert tools is not None
    value = np.array(DEPENDENCE_GRID[: len(levels)])
    probability = _integrate_height(value, np.array(heights))
    return tools, LevelGrid("dependence", value, levels, probability)


def _tell_dependence(problem: Problem) -> bool:
    """Return whether the counts of every data set, or its grids, tell ρ."""
    # Few answers have no more frequencies than the mixtures parameters, whose prior would speak.
    return all(
        table.contexts is not None or table.images @ table.shown >= MIN_ANSWERS * table.images.sum()
        for table in (problem.statistics.cells[role] for role in problem.roles)
    )


def _integrate_height(
    value: Float[np.ndarray, "level"], height: Float[np.ndarray, "level"]
) -> Float[np.ndarray, "level"]:
    """Integrate a log density, interpolated, to the probabilities of the levels."""
    if len(value) < 2:
        return np.ones(len(value))
    fine = np.linspace(value[0], value[-1], 2000)
    density = np.exp(PchipInterpolator(value, height)(fine) - height.max())
    # Between two levels the mass is divided so that the mean of ρ is kept.
    hats = np.stack([np.interp(fine, value, row) for row in np.eye(len(value))])
    mass = hats @ density
    return mass / mass.sum()


def scan_leniency(
    problem: Problem, tools: Programs | None, position: Position, scale: float
) -> tuple[Programs, LevelGrid]:
    """Find the mode at every λ_j, from λ = 0 outwards on both sides, and P(λ_j)."""
    levels = list[AnnotatorLevel]()
    dependence = _least_dependence(problem)
    for sign in (1, -1):
        place = position
        for size in LENIENCY_GRID[len(levels) and 1 :].tolist():
            settings = {"dependence": dependence, "leniency": sign * size * scale}
            tools, place, level = find_level(problem, tools, place, **settings)
            levels.append(level)
            position = position if size else place
    assert tools is not None
    value = np.r_[LENIENCY_GRID, -LENIENCY_GRID[1:]]
    density = leniency_density(value)
    return tools, LevelGrid("leniency", scale * value, levels, density / density.sum())


def _least_dependence(problem: Problem) -> float:
    """Return the correlation that is given, or that which stands for 0."""
    return max(problem.options.dependence or 0.0, SMALLEST_DEPENDENCE)


def leniency_prior(problem: Problem) -> float:
    """Find the scale of λ's prior: 0 if it is given, or it is known or not said who answered."""
    if not _is_free(problem, "leniency"):
        return 0.0
    stated = problem.options.leniency_prior
    return problem.statistics.leniency_scale if stated is None else stated


def _differ(grid: LevelGrid) -> bool:
    """Return whether the arrays of a model depend on what the grid varies."""
    first, last = (jax.tree.leaves(grid.levels[end].data) for end in (0, -1))
    return not all(map(np.array_equal, first, last))


def _assign(
    random: np.random.Generator,
    draws: Float[np.ndarray, "draw parameter"],
    probability: Float[np.ndarray, "level"],
) -> Ints:
    """Give every draw a level, in shares as close to the probabilities as can be."""
    # Equal draws, as a resample of weighted ones has them, get one level: so they stay few.
    _, same, copies = np.unique(draws, axis=0, return_inverse=True, return_counts=True)
    order = random.permutation(len(copies))
    middle = (np.cumsum(copies[order]) - copies[order] * random.random(len(copies))) / copies.sum()
    level = np.empty(len(copies), dtype=int)
    level[order] = np.searchsorted(np.cumsum(probability)[:-1], middle)
    return level[same.ravel()]


def spread_of_crowds(
    problem: Problem, tools: Programs, data: Data, varied: Programs | None, position: Position
) -> float:
    """Compute the sd of the mean adjusted accuracy, were there two crowds of a hundred people."""
    hundred = replace(problem.statistics, people=N_PEOPLE).leniency_scale
    modes = list[Position]()
    for value in (hundred, -hundred):
        settings = {"dependence": _least_dependence(problem), "leniency": value}
        varied, mode, _ = find_level(problem, varied, position, **settings)
        modes.append(mode)
    both = {name: np.stack([mode[name] for mode in modes])[None] for name in modes[0]}
    # Adjusted accuracies depend on the parameters alone, so that any data do.
    accuracy = evaluate(both, [(tools, data, np.arange(2))])["adjusted_accuracy"]
    return float(abs(np.diff(accuracy.mean(axis=2))).item()) / 2


class AnnotatorDraws(NamedTuple):
    """Positions of draws, their ρ and λ where these vary, and programs and data by rows.

    `crowd_sd` is that of the mean adjusted accuracy between two crowds of a hundred people, where
    nothing is known of people.
    """

    position: Draws
    parts: Parts
    varied: Mapping[str, Float[np.ndarray, "chain draw"]] = {}
    crowd_sd: float | None = None


def integrate_annotators(
    problem: Problem, tools: Programs, data: Data, draws: Draws, mode: Position | None, seed: int
) -> AnnotatorDraws:
    """Turn draws given ρ = 0 and λ = 0, and their mode, into draws over ρ and λ as well.

    Without a mode, as with cut feedback, no likelihood of all data weighs correlations.
    """
    shape = draws["shared"].shape[:2]
    flat = {name: np.array(leaf).reshape(-1, *leaf.shape[2:]) for name, leaf in draws.items()}
    grids = list[LevelGrid]()
    varied_tools = None
    if mode is not None and learns_dependence(problem):
        varied_tools, grid = scan_dependence(problem, mode)
        grids.append(grid)
    if scale := leniency_prior(problem):
        start = around_mode(problem, tools, data).center if mode is None else mode
        varied_tools, grid = scan_leniency(problem, varied_tools, start, scale)
        grids.append(grid)
    crowd_sd = None
    # It is neither said who answered nor how lenient the replication's crowd is.
    is_said = problem.statistics.people is not None or not _is_free(problem, "leniency")
    if mode is not None and not is_said and problem.options.leniency_prior is None:
        crowd_sd = spread_of_crowds(problem, tools, data, varied_tools, mode)
    grids = [grid for grid in grids if len(grid.levels) == 1 or _differ(grid)]
    random = np.random.default_rng([seed, 6])
    chosen = [_assign(random, flat["shared"], grid.probability) for grid in grids]
    for grid, level in zip(grids, chosen, strict=True):
        for number in np.unique(level[level > 0]).tolist():
            rows = level == number
            some = {name: leaf[rows] for name, leaf in flat.items()}
            moved = _transport(some, grid.levels[0].normal, grid.levels[number].normal)
            for name, leaf in moved.items():
                flat[name][rows] = leaf
    parts = list[tuple[Programs, Data, Ints]]()
    every = np.stack([np.zeros(math.prod(shape), dtype=int), *chosen], axis=1)
    for levels in np.unique(every, axis=0):
        rows = np.flatnonzero((every == levels).all(axis=1))
        if not levels.any():  # by the exact program of independent answers
            parts.append((tools, data, rows))
            continue
        assert varied_tools is not None
        changed = {
            grid.name: getattr(grid.levels[level].options, grid.name)
            for grid, level in zip(grids, levels[1:].tolist(), strict=True)
        }
        first = grids[0].levels[0].options
        options = replace(first, **changed)
        parts.append((varied_tools, replace(problem, options=options).data(), rows))
    position = {name: leaf.reshape(*shape, *leaf.shape[1:]) for name, leaf in flat.items()}
    varied = {
        grid.name: grid.value[level].reshape(shape)
        for grid, level in zip(grids, chosen, strict=True)
    }
    return AnnotatorDraws(position, parts, varied, crowd_sd)


def _transport(
    draws: Draws, normal: Whitening, other: Whitening
) -> dict[str, Float[np.ndarray, "draw ..."]]:
    """Move draws [draw, ...] from one normal to another."""
    one, two = (jax.tree.map(np.asarray, each) for each in (normal, other))
    # Cholesky factors change little from level to level, where eigenvectors may turn and roots
    # change sign.
    first, second = (
        np.linalg.cholesky(each.to_units @ each.to_units.swapaxes(1, 2)) for each in (one, two)
    )
    sign = np.sign(np.diag(one.to_shared) * np.diag(two.to_shared))
    standard = np.linalg.solve(one.to_shared, (draws["shared"] - one.center["shared"]).T).T
    around = draws["units"] - one.center["units"]
    around = around + np.einsum("cqp,dp->dcq", one.drag, standard, optimize=True)
    around = np.einsum("cqr,dcr->dcq", second @ np.linalg.inv(first), around, optimize=True)
    return {
        "shared": two.center["shared"] + (standard * sign) @ two.to_shared.T,
        "units": two.center["units"]
        + around
        - np.einsum("cqp,dp->dcq", two.drag, standard * sign, optimize=True),
    }
