"""The mode of the Laplace marginal, and coordinates around it.

Volumes of many classifiers move it by many standard deviations from the mode of the joint density,
whose curvature there may have another sign. So Newton's steps come from differences.
"""

from functools import lru_cache

import jax
import numpy as np

from bayesrep.inference.arrowhead import Whitening, lower_root, whitening
from bayesrep.inference.density import Density
from bayesrep.inference.laplace_marginal import Marginal, Setting
from bayesrep.inference.mode import Expand, find_mode
from bayesrep.inference.points import PointProgram, compile_for_points
from bayesrep.models.model import Data
from bayesrep.types import Float


@lru_cache(maxsize=16)
def evaluation_program(density: Density) -> PointProgram:
    """Compile −log p̂(ξ | y) and the subsample's centres m at points ξ."""
    evaluate = Marginal(density).evaluate
    return compile_for_points(evaluate, density, "evaluate", size=16, batch_size=4)


def find_marginal_mode(density: Density, normal: Whitening, data: Data, expand: Expand) -> Setting:
    """Find coordinates around the mode of the Laplace marginal, from those of a joint mode."""
    setting = Marginal(density).setting(data, normal)
    if density.units > 2048:  # the first steps of all of them would take minutes
        setting = _descend(density, setting, expand, by_subsample=True)
    return _descend(density, setting, expand)


def _descend(
    density: Density, setting: Setting, expand: Expand, *, by_subsample: bool = False
) -> Setting:
    """Move coordinates down the marginal potential, or down what a subsample says of it."""
    marginal, size = Marginal(density), density.shared

    def potential_at(points: Float[np.ndarray, "point shared"]) -> Float[np.ndarray, "point"]:
        of_some = marginal.subsample(setting) if by_subsample else setting
        return evaluation_program(density)(of_some, points)[0]

    # Central differences with steps of 1 sd for the diagonal, one-sided for mixed derivatives.
    axes, (first, second) = np.eye(size), np.triu_indices(size, 1)
    points = np.concatenate([np.zeros((1, size)), axes, -axes, axes[first] + axes[second]])
    for _ in range(20):
        (value,), up, down, both = np.split(potential_at(points), [1, 1 + size, 1 + 2 * size])
        curvature = np.diag(up + down - 2 * value)
        mixed = both - up[first] - up[second] + value
        curvature[first, second] = curvature[second, first] = mixed
        if not np.isfinite(curvature).all():
            break
        step, root = _minimize_quadratic((up - down) / 2, curvature)
        if np.linalg.norm(step) < 0.5:  # standard deviations
            return move_coordinates(setting, step, root)
        # All steps of the line search are evaluated at once: points are cheap in batches.
        halvings = 0.5 ** np.arange(8)
        line = potential_at(halvings[:, None] * step)
        line = np.where(np.isfinite(line), line, np.inf)
        best = int(np.argmin(line))
        if not line[best] < value:
            break
        setting = _rewhiten_at(setting, halvings[best] * step, root, expand)
    return setting


def _minimize_quadratic(
    gradient: Float[np.ndarray, "shared"], curvature: Float[np.ndarray, "shared shared"]
) -> tuple[Float[np.ndarray, "shared"], Float[np.ndarray, "shared shared"]]:
    """Minimise a quadratic: the step to where it is lowest, and a root of its inverse curvature."""
    values, vectors = np.linalg.eigh(curvature)
    values = np.clip(np.abs(values), 0.2, 25.0)  # in these coordinates they should be 1
    step = -(vectors / values) @ vectors.T @ gradient
    return step, lower_root(vectors / np.sqrt(values))


def _rewhiten_at(
    setting: Setting,
    step: Float[np.ndarray, "shared"],
    root: Float[np.ndarray, "shared shared"],
    expand: Expand,
) -> Setting:
    """Build coordinates around a step, of that root, in which classifiers are at their modes."""
    moved = move_coordinates(setting, step, root)
    # Shared parameters stay: only the classifiers move to their conditional modes.
    mode = find_mode(expand, moved.whitening.center, setting.data, n_fixed=len(step))
    if not all(np.isfinite(leaf).all() for leaf in mode.expansion.hessian):
        return setting  # the density cannot be expanded there
    fixed_root = np.asarray(moved.whitening.to_shared)
    normal = whitening(mode.expansion.hessian, mode.position, fixed_root=fixed_root)
    return setting._replace(whitening=normal)


def move_coordinates(
    setting: Setting,
    step: Float[np.ndarray, "shared"],
    root: Float[np.ndarray, "shared shared"],
) -> Setting:
    """Build the same setting in coordinates (ξ − step) / root, of which the root is triangular."""
    white = jax.tree.map(np.asarray, setting.whitening)
    center = white({"shared": step, "units": np.zeros_like(white.center["units"])})
    to_shared, drag = white.to_shared @ root, white.drag @ root
    moved = white._replace(center=center, to_shared=to_shared, drag=drag)
    return setting._replace(whitening=jax.device_put(moved))
