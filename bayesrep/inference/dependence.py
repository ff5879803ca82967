"""The intraclass correlation ρ of annotators' answers about an image, integrated on a grid.

Answers of annotators who saw an image in one grid, or under one description, share its effect:
counts scatter more than binomial ones, and the frequencies s less than they seem to. No count
tells the two apart for any density p(s); that of a few smooth betas does, in part. As nested
Laplace approximations integrate a hyperparameter (Rue, Martino and Chopin 2009, section 3),

    P(ρ_j | y)  ∝  P(ρ_j) p̂(y | ρ_j),        p̂ = exp(−U) (2π)^(d/2) |R_j|  at the mode given ρ_j,

U the potential and R_j a root of the inverse Hessian there. A draw x given ρ = 0, as the sampler
makes it, becomes one given ρ_j in the coordinates in which the normals around both modes are
standard: x_j = m_j + R_j R_0⁻¹ (x − m_0). Classifiers move together, so that draws stay joint.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
from scipy.interpolate import PchipInterpolator

from bayesrep.inference.arrowhead import Whitening, whitening
from bayesrep.inference.cells import Parts
from bayesrep.inference.density import Draws, Position
from bayesrep.inference.mode import find_mode, log_mass
from bayesrep.inference.problem import Problem, Programs, programs
from bayesrep.models.model import Data
from bayesrep.types import Float, Ints

DEPENDENCE_GRID = (1e-6, 0.003, 0.006, 0.01, 0.02, 0.035, 0.055, 0.08, 0.11, 0.15, 0.2, 0.3)
"""Correlations ρ_j. The first stands for 0 in the program of correlated answers."""
MAX_LOG_ODDS = 12.0
"""Nats below the best correlation at which the grid ends."""


class DependenceLevel(NamedTuple):
    """Arrays given a correlation, its log posterior density, and the normal around the mode."""

    dependence: float
    data: Data
    log_density: float
    normal: Whitening


def learns_dependence(problem: Problem) -> bool:
    """Return whether ρ is integrated: not if it is given, the model's own, or workers' alone."""
    model, options = problem.model, problem.options
    is_free = model.crowd is None and getattr(options, "dependence", 0.0) is None
    return is_free and "dependence" not in model.dims(problem.data(), options)


def scan_dependence(
    problem: Problem, position: Position
) -> tuple[Programs, list[DependenceLevel], Float[np.ndarray, "level"]]:
    """Find the mode at every ρ_j from a position near that at ρ = 0, and P(ρ_j | y)."""
    levels = list[DependenceLevel]()
    tools, best = None, -np.inf
    for dependence in DEPENDENCE_GRID:
        options = replace(problem.options, dependence=dependence)
        data = replace(problem, options=options).data()
        # Levels differ in their data alone: they share the programs of the first.
        tools = tools or programs(replace(problem, options=options), data)
        mode = find_mode(tools.expand, position, data)
        log_prior = -0.5 * (dependence / problem.options.dependence_prior) ** 2
        log_density = log_prior + log_mass(mode)
        # Beyond a correlation that the counts reject, searches are long and fail.
        if not log_density > best - MAX_LOG_ODDS:
            break
        best, position = max(best, log_density), mode.position
        normal = whitening(mode.expansion.hessian, mode.position)
        levels.append(DependenceLevel(dependence, data, log_density, normal))
    assert tools is not None
    return tools, levels, _probabilities(levels)


def _probabilities(levels: Sequence[DependenceLevel]) -> Float[np.ndarray, "level"]:
    """Integrate the density over ρ, interpolated, to the probabilities of the levels."""
    if len(levels) < 2:
        return np.ones(len(levels))
    grid = np.array([level.dependence for level in levels])
    height = np.array([level.log_density for level in levels])
    fine = np.linspace(grid[0], grid[-1], 2000)
    density = np.exp(PchipInterpolator(grid, height)(fine) - height.max())
    # Between two levels the mass is divided so that the mean of ρ is kept.
    hats = np.stack([np.interp(fine, grid, row) for row in np.eye(len(grid))])
    mass = hats @ density
    return mass / mass.sum()


class DependentDraws(NamedTuple):
    """Positions of draws, their correlations ρ if these vary, and programs and data by rows."""

    position: Draws
    parts: Parts
    dependence: Float[np.ndarray, "chain draw"] | None = None


def given_dependence(tools: Programs, data: Data, draws: Draws) -> DependentDraws:
    """Leave draws as they are, of the correlation in their data."""
    every = np.arange(math.prod(draws["shared"].shape[:2]))
    return DependentDraws(draws, [(tools, data, every)])


def integrate_dependence(
    problem: Problem, tools: Programs, data: Data, draws: Draws, mode: Position, seed: int
) -> DependentDraws:
    """Turn draws given ρ = 0, and their mode, into draws from the posterior over ρ as well."""
    random = np.random.default_rng([seed, 6])
    dependent, levels, probability = scan_dependence(problem, mode)
    first, last = (jax.tree.leaves(levels[end].data) for end in (0, -1))
    if len(levels) > 1 and all(map(np.array_equal, first, last)):
        return given_dependence(tools, data, draws)  # no array of this model depends on ρ
    shape = draws["shared"].shape[:2]
    flat = {name: np.array(leaf).reshape(-1, *leaf.shape[2:]) for name, leaf in draws.items()}
    # Equal draws, as a resample of weighted ones has them, get one level: so they stay few.
    _, same, copies = np.unique(flat["shared"], axis=0, return_inverse=True, return_counts=True)
    order = random.permutation(len(copies))
    middle = (np.cumsum(copies[order]) - copies[order] * random.random(len(copies))) / copies.sum()
    level_of_distinct = np.empty(len(copies), dtype=int)
    level_of_distinct[order] = np.searchsorted(np.cumsum(probability)[:-1], middle)
    level = level_of_distinct[same.ravel()]
    parts = list[tuple[Programs, Data, Ints]]()
    for number, each in enumerate(levels):
        rows = np.flatnonzero(level == number)
        if not len(rows):
            continue
        if number == 0:  # draws as they are, by the exact program of independent answers
            parts.append((tools, data, rows))
            continue
        positions = _transport({name: leaf[rows] for name, leaf in flat.items()}, levels[0], each)
        for name, leaf in positions.items():
            flat[name][rows] = leaf
        parts.append((dependent, each.data, rows))
    grid = np.array([0.0, *(each.dependence for each in levels[1:])])
    position = {name: leaf.reshape(*shape, *leaf.shape[1:]) for name, leaf in flat.items()}
    return DependentDraws(position, parts, grid[level].reshape(shape))


def _transport(
    draws: Draws, level: DependenceLevel, other: DependenceLevel
) -> dict[str, Float[np.ndarray, "draw ..."]]:
    """Move draws [draw, ...] from the normal of one level to that of another."""
    one, two = (jax.tree.map(np.asarray, each.normal) for each in (level, other))
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
