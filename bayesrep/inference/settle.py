"""Where a marginal posterior has its mass: rounds of points that a normal moves towards.

Each round draws mirrored points from the normal at hand, regresses the marginal potential on a
quadratic, and moves to that quadratic's centre and curvature. These are then means over the normal,
as those of the normal nearest in KL(q ‖ p) are. What the units looked like at the points is the
first that the guide learns.

References
----------
Opper, Archambeau (2009), "The variational Gaussian approximation revisited", Neural Computation 21,
equations 6 and 7.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bayesrep.inference.arrowhead import Whitening, lower_root
from bayesrep.inference.compiling import compiler_options
from bayesrep.inference.density import Density
from bayesrep.inference.marginal import Marginal, Setting, sampled_rows
from bayesrep.inference.problem import Mode
from bayesrep.inference.tuning import Visits, importance, learn, products, ridge, squared
from bayesrep.models.model import Data
from bayesrep.types import Float, Shaped

ROUNDS = 10
"""At most: the units' volumes, which a mode does not know of, move a thousand units' ξ far."""
STEADY = 1.0
"""Length of a step, in standard deviations, after which the normal has about arrived."""
POINTS = 256
LAST = 1024
"""Points of a round on the way, and of the last, which gives the shape."""
CHUNK = 32


class Settled(NamedTuple):
    """Coordinates in which a marginal is about standard normal, and what was learnt at what points.

    `potential` is that of the centre.
    """

    setting: Setting
    potential: float
    visits: Sequence[Visits]


Look: TypeAlias = Callable[[Setting, Float[np.ndarray, "point shared"]], Visits]
"""What is at points ξ; NumPy arrays."""


def settle(
    density: Density,
    mode: Mode,
    data: Data,
    look: Look,
    seed: int | Sequence[int],
    *,
    stay: bool = False,
) -> Settled:
    """Move from a mode to where the mass is.

    Parameters
    ----------
    density, mode, data, look
        What to look at, from where, and how.
    seed
        Of the points.
    stay
        Learn, but leave the coordinates as they are.
    """
    whitening, size = mode.whitening, density.shared
    assert isinstance(whitening, Whitening)
    random = np.random.default_rng(seed)
    marginal = Marginal(density)
    rows = sampled_rows(np.asarray(whitening.center["units"])[:, 0])
    setting = marginal.setting(data, whitening, rows)
    weight = np.asarray(setting.sample.weight)
    potential = float(mode.potential)
    visited: list[Visits] = []
    arrived = False
    for number in range(1, ROUNDS + 1):
        half = random.standard_normal(((LAST if arrived else POINTS) // 2, size))
        standard = np.concatenate([half, -half])
        visited.append(look(setting, standard))
        last = arrived or number == ROUNDS
        arrived = stay
        if not stay:
            near = _nearer(standard, visited[-1].potential)
            setting = _moved(setting, near)
            # In coordinates about where the points are: the guide is a polynomial.
            visited = [
                each._replace(shared=np.linalg.solve(near.root, (each.shared - near.step).T).T)
                for each in visited
            ]
            potential = near.potential
            arrived = bool(np.linalg.norm(near.step) < STEADY)
        setting = setting._replace(guide=learn(setting.guide, weight, visited))
        if last:
            break
    return Settled(setting, potential, visited)


class _Nearer(NamedTuple):
    """Where a quadratic is lowest, the lower root of its inverse curvature, and the least of it."""

    step: Float[np.ndarray, "shared"]
    root: Float[np.ndarray, "shared shared"]
    potential: float


def _moved(setting: Setting, near: _Nearer) -> Setting:
    """The same setting, in coordinates measured from a step in units of a root."""
    white = setting.whitening
    drag, to_shared = np.asarray(white.drag), np.asarray(white.to_shared)
    center = {
        "shared": np.asarray(white.center["shared"]) + to_shared @ near.step,
        "units": np.asarray(white.center["units"]) - drag @ near.step,
    }
    new = white._replace(center=center, to_shared=to_shared @ near.root, drag=drag @ near.root)
    new = jax.tree.map(jnp.asarray, new)
    sampled = new.of_units(np.flatnonzero(setting.sample.weight))
    return setting._replace(whitening=new, sample=setting.sample._replace(whitening=sampled))


def _nearer(
    standard: Float[np.ndarray, "point shared"], potential: Float[np.ndarray, "point"]
) -> _Nearer:
    """The quadratic through the potentials at points of a standard normal."""
    usable = np.isfinite(potential)
    standard, potential = standard[usable], potential[usable]
    size = standard.shape[1]
    left = potential - 0.5 * np.square(standard).sum(axis=1)
    fitted = ridge(products(standard), left[:, None], importance(potential, size)).coefficients
    constant, slope, bend = np.split(squared(fitted, size)[:, 0], [1, 1 + size])
    values, vectors = np.linalg.eigh(np.eye(size) + 2 * bend.reshape(size, size))
    values = np.clip(values, 0.2, 25.0)
    step = -(vectors / values) @ vectors.T @ slope
    step *= min(1.0, 2 * np.sqrt(size) / max(float(np.linalg.norm(step)), 1e-300))
    lowest = float(constant[0] + 0.5 * slope @ step)
    return _Nearer(step, lower_root(vectors / np.sqrt(values)), lowest)


def looking(density: Density) -> Look:
    """The plain way to look."""
    return lambda setting, points: side_by_side(_looking(density), setting, points)


@lru_cache(maxsize=16)
def _looking(density: Density) -> Callable[[Setting, tuple[Array]], Visits]:
    marginal = Marginal(density)

    def one(setting: Setting, shared: Array) -> Visits:
        return marginal.visit(setting, shared)[0]

    def chunk(setting: Setting, points: tuple[Array]) -> Visits:
        return jax.lax.map(lambda shared: one(setting, shared), points[0])

    return jax.jit(chunk, compiler_options=compiler_options())


def side_by_side(
    program: Callable[[Setting, Any], Any], setting: Setting, *points: Shaped[Any, "point ..."]
) -> Any:
    """Results of a program for points, a chunk at a time on every core; NumPy arrays."""
    count = len(points[0])
    size = -(-count // CHUNK) * CHUNK
    filled = [leaf[np.arange(size) % count] for leaf in points]

    def chunk(begin: int) -> Any:
        with jax.enable_x64(new_val=True):  # JAX keeps this setting per thread
            part = tuple(leaf[begin : begin + CHUNK] for leaf in filled)
            return jax.tree.map(np.asarray, program(setting, part))

    first = chunk(0)  # compiled once, not by every thread
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        parts = [first, *pool.map(chunk, range(CHUNK, size, CHUNK))]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:count], *parts)
