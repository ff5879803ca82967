"""Where a marginal posterior has its mass: a walk there, and rounds of points for its shape.

A mode does not know of the units' volumes, which move ξ by many standard deviations where units are
many. So coordinates first walk down the marginal potential, by Newton's steps from differences: of
the joint density the curvature may even have another sign. Then each round draws mirrored points
from the normal at hand, regresses the marginal potential on a quadratic, and moves to that
quadratic's centre and curvature: means over the normal, as those of the normal nearest in KL(q ‖ p)
are. What the units looked like at the points is what the guide learns.

References
----------
Opper, Archambeau (2009), "The variational Gaussian approximation revisited", Neural Computation 21,
equations 6 and 7.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np

from bayesrep.inference.arrowhead import Whitening, lower_root, whitening
from bayesrep.inference.density import Density
from bayesrep.inference.device import default_platform
from bayesrep.inference.marginal import Marginal, Setting, feature_count, sampled_rows
from bayesrep.inference.mode import Expand
from bayesrep.inference.program import Program, kept_jit
from bayesrep.inference.tuning import Visits, importance, learn, products, ridge
from bayesrep.machine import cores
from bayesrep.models.model import Data
from bayesrep.numerics.batches import in_batches
from bayesrep.types import Float

STEPS = 20
"""At most, of a walk."""
HALVES = 0.5 ** np.arange(8)
"""Shares of a step that are looked at."""
ROUNDS = 4
"""At most, of points."""
STEADY = 0.5, 1.0
"""Lengths of steps, in standard deviations, after which a walk and the rounds have arrived."""
POINTS = 1024
"""Of a round, at least; or 8 a feature."""
CURVATURES = 0.2, 25.0
"""Least and most of a quadratic's in coordinates where it should be 1."""
AT_ONCE = 256
"""Points that one call of a program takes elsewhere than on a CPU."""
NUMBERS = 2**20
"""Units of all points at once, at most, elsewhere than on a CPU."""
CROWD = 2048
"""Units of which a sample leads near the mass: a walk past all would take minutes."""


class PointProgram(NamedTuple):
    """A compiled program of some points at once, and on how many cores calls of it may run."""

    call: Program
    size: int
    workers: int


class Settled(NamedTuple):
    """Coordinates in which a marginal is about standard normal, and what was learnt there.

    `visits` are what was learnt from.
    """

    setting: Setting
    visits: Visits


Look: TypeAlias = Callable[[Setting, Float[np.ndarray, "point shared"]], Visits]
"""What is at points ξ; NumPy arrays."""


def settle(
    density: Density,
    normal: Whitening,
    data: Data,
    look: Look,
    seed: int | Sequence[int],
    *,
    expand: Expand | None,
) -> Settled:
    """Move from a mode to where the mass is.

    Parameters
    ----------
    density, normal, data, look
        What to look at, from the coordinates of which normal, and how.
    seed
        Seed of the points.
    expand
        The potential's second order, to walk by; None to learn, but leave the coordinates as they
        are.
    """
    size = density.shared
    random = np.random.default_rng(seed)
    setting = find_marginal_mode(density, normal, data, look, expand)
    weight = _weights(density, setting)

    def round_of_points(setting: Setting) -> _Round:
        half = random.standard_normal((_points(size) // 2, size))
        visits = look(setting, np.concatenate([half, -half]))
        left = visits.potential - 0.5 * np.square(visits.shared).sum(axis=1)
        return _Round(
            visits, _fit_quadratic(visits.shared, left, visits.potential), float(np.std(left))
        )

    found = round_of_points(setting)
    if expand is not None:
        for _ in range(ROUNDS - 1):
            near = found.near
            if np.linalg.norm(near.step) < STEADY[1]:
                break
            other = _expand_around(setting, near, look, expand)
            again = round_of_points(other)
            if not again.spread < 2 * found.spread:
                break  # no normal is near there
            setting, found = other, again
        near = found.near
        setting = _move_setting(setting, near)
        # In coordinates about where the points are: the guide is a polynomial.
        shared = np.linalg.solve(near.root, (found.visits.shared - near.step).T).T
        found = found._replace(visits=found.visits._replace(shared=shared))
    visits = found.visits
    setting = setting._replace(guide=learn(setting.guide, weight, visits))
    return Settled(setting, visits)


def find_marginal_mode(
    density: Density, normal: Whitening, data: Data, look: Look, expand: Expand | None
) -> Setting:
    """Coordinates around the highest Laplace marginal; without `expand` those of the normal."""
    marginal = Marginal(density)
    rows = sampled_rows(np.asarray(normal.center["units"])[:, 0])
    setting = marginal.setting(data, normal, rows)
    if expand is None:
        return setting
    if density.units > CROWD:
        setting = _walk_to_lowest(marginal, setting, look, expand, sampled=True)
    return _walk_to_lowest(marginal, setting, look, expand)


def learn_more(density: Density, settled: Settled, seen: Visits) -> Settled:
    """The same, having learnt from what was seen at further points as well."""
    setting = settled.setting
    most = _points(seen.shared.shape[1])
    visits = Visits(
        *(np.concatenate(pair)[-most:] for pair in zip(settled.visits, seen, strict=True))
    )
    guide = learn(setting.guide, _weights(density, setting), visits)
    return Settled(setting._replace(guide=guide), visits)


def look_at_draws(setting: Setting, look: Look, shared: Float[np.ndarray, "draw shared"]) -> Visits:
    """What is at values of the shared parameters that chains came to."""
    center, root = setting.whitening.center["shared"], setting.whitening.to_shared
    return look(setting, np.linalg.solve(np.asarray(root), (shared - np.asarray(center)).T).T)


def _weights(density: Density, setting: Setting) -> Float[np.ndarray, "unit"]:
    """What each unit of the sample counts in the surrogate."""
    return float(density.weight(setting.data)) * np.asarray(setting.sample.weight)


def _points(size: int) -> int:
    """How many tell a quadratic of so many shared parameters well."""
    return max(POINTS, 8 * feature_count(size))


def _walk_to_lowest(
    marginal: Marginal, setting: Setting, look: Look, expand: Expand, *, sampled: bool = False
) -> Setting:
    """Coordinates around the lowest marginal potential, or the lowest that a sample tells of."""

    def seen(points: Float[np.ndarray, "point shared"]) -> Float[np.ndarray, "point"]:
        return look(marginal.of_sample(setting) if sampled else setting, points).potential

    size = marginal.density.shared
    axes, (first, second) = np.eye(size), np.triu_indices(size, 1)
    points = np.concatenate([np.zeros((1, size)), axes, -axes, axes[first] + axes[second]])
    for _ in range(STEPS):
        potential = seen(points)
        (here,), up, down, both = np.split(potential, [1, 1 + size, 1 + 2 * size])
        bend = np.diag(up + down - 2 * here)
        bend[first, second] = bend[second, first] = both - up[first] - up[second] + here
        if not np.isfinite(bend).all():
            break
        near = _minimize_quadratic((up - down) / 2, bend)
        if np.linalg.norm(near.step) < STEADY[0]:
            break
        line = seen(HALVES[:, None] * near.step)
        lowest = np.where(np.isfinite(line), line, np.inf)
        best = int(np.argmin(lowest))
        if not lowest[best] < here:
            break
        near = near._replace(step=HALVES[best] * near.step)
        setting = _expand_around(setting, near, look, expand)
    return setting


def _expand_around(
    setting: Setting,
    near: "_Nearer",
    look: Look,
    expand: Expand,
) -> Setting:
    """Coordinates in which a quadratic is standard, from where it is lowest and units are centred.

    The same as before where the density cannot be expanded there.
    """
    there = look(setting, near.step[None, :])
    white = jax.tree.map(np.asarray, setting.whitening)
    center = white({"shared": near.step, "units": there.center[0]})
    hessian = expand(jax.device_put(center), setting.data).hessian
    if not all(np.isfinite(leaf).all() for leaf in hessian):
        return setting
    root = white.to_shared @ near.root
    return _change_coordinates(setting, whitening(hessian, center, held=root))


class _Nearer(NamedTuple):
    """Where a quadratic is lowest, and the lower root of its inverse curvature."""

    step: Float[np.ndarray, "shared"]
    root: Float[np.ndarray, "shared shared"]


class _Round(NamedTuple):
    """What points of a standard normal showed, and how far from it the potential is."""

    visits: Visits
    near: _Nearer
    spread: float


def _move_setting(setting: Setting, near: _Nearer) -> Setting:
    """The same setting, in coordinates measured from a step in units of a root."""
    white = jax.tree.map(np.asarray, setting.whitening)
    center = white({"shared": near.step, "units": np.zeros_like(white.center["units"])})
    to_shared, drag = white.to_shared @ near.root, white.drag @ near.root
    return _change_coordinates(
        setting, white._replace(center=center, to_shared=to_shared, drag=drag)
    )


def _change_coordinates(setting: Setting, whitening: Whitening) -> Setting:
    """The same setting, in other coordinates."""
    new = jax.device_put(whitening)
    sampled = new.of_units(np.flatnonzero(setting.sample.weight))
    return setting._replace(whitening=new, sample=setting.sample._replace(whitening=sampled))


def _fit_quadratic(
    standard: Float[np.ndarray, "point shared"],
    left: Float[np.ndarray, "point"],
    potential: Float[np.ndarray, "point"],
) -> _Nearer:
    """The quadratic through the potentials at points of a standard normal, which leaves `left`."""
    usable = np.isfinite(potential)
    standard, left, potential = standard[usable], left[usable], potential[usable]
    size = standard.shape[1]
    if len(potential) < 2 * (1 + size):
        return _Nearer(np.zeros(size), np.eye(size))
    fitted = ridge(products(standard), left[:, None], importance(potential, size)).coefficients
    _, slope, rest = np.split(fitted[:, 0], [1, 1 + size])
    bend = np.zeros((size, size))
    bend[np.triu_indices(size)] = rest
    near = _minimize_quadratic(slope, np.eye(size) + bend + bend.T)
    # Beyond the points nothing is known.
    shrink = min(1.0, 2 * np.sqrt(size) / max(float(np.linalg.norm(near.step)), 1e-300))
    return near._replace(step=shrink * near.step)


def _minimize_quadratic(
    slope: Float[np.ndarray, "shared"], bend: Float[np.ndarray, "shared shared"]
) -> _Nearer:
    """Of a quadratic, its curvatures within bounds and up where they are down."""
    values, vectors = np.linalg.eigh(bend)
    values = np.clip(np.abs(values), *CURVATURES)
    step = -(vectors / values) @ vectors.T @ slope
    return _Nearer(step, lower_root(vectors / np.sqrt(values)))


def make_look(density: Density) -> Look:
    """The plain way to look."""
    return lambda setting, points: evaluate_points(look_program(density), setting, points)


@lru_cache(maxsize=16)
def look_program(density: Density) -> PointProgram:
    """The program that looks at points ξ: `Marginal.visit`."""
    return compile_for_points(Marginal(density).visit, density, "look", size=16, abreast=4)


def compile_for_points(
    function: Callable[..., Any],
    density: Density,
    name: str,
    *,
    size: int = 8,
    abreast: int | None = None,
) -> PointProgram:
    """Compile a function of a setting and what belongs to one point, for the default device.

    `name` tells it from others of the density.

    On a CPU every core takes `size` points a call, `abreast` of them as one array: a guide's
    coefficients are then read once for these, but what is large no longer fits the cache. Other
    devices take a batch at a time.
    """
    on_cpu = default_platform() == "cpu"

    def some(setting: Setting, points: Any) -> Any:
        if on_cpu:
            return jax.lax.map(lambda point: function(setting, *point), points, batch_size=abreast)
        return jax.vmap(lambda point: function(setting, *point))(points)

    size = size if on_cpu else max(size, min(AT_ONCE, NUMBERS // density.units))
    workers = cores() if on_cpu else 1
    return PointProgram(kept_jit(some, name, density.identity), size, workers)


def evaluate_points(program: PointProgram, setting: Setting, *points: Any) -> Any:
    """Results of a program for points [point, ...]: trees of arrays go in, of NumPy's come out."""
    return in_batches(
        lambda *some: program.call(setting, some), points, program.size, workers=program.workers
    )
