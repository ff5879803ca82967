"""A NumPyro model as a log density over two arrays, ready for linear algebra.

Models of many classifiers have an arrowhead: a few *shared* parameters, and for every *unit*
(classifier) its own few, which meet the other units only through the shared ones. The unconstrained
parameters are therefore kept as `{"shared": [P], "units": [C, Q]}`; everything in this room
works on that pair and knows no model.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpy.typing import NDArray
from numpyro import handlers
from numpyro.distributions import constraints
from numpyro.infer.util import constrain_fn

from bayesrep.models.model import TRACING, Data, take_rows
from bayesrep.types import Float, Ints

Position: TypeAlias = dict[str, Array]
Draws: TypeAlias = Mapping[str, Array] | Mapping[str, NDArray[np.float64]]
"""Positions [chain, draw, ...]; what samplers return is NumPy's."""
Program: TypeAlias = Callable[[Data], None]
Offsets: TypeAlias = Callable[[Mapping[str, Array]], Mapping[str, Array]]
"""Shifts of some sites computed from the others."""
Select: TypeAlias = Callable[[Data, Ints], Data]
"""The data of some of the units."""
Weight: TypeAlias = Callable[[Data], Float[Array, ""]]
"""What a unit's part of the density counts for what all share."""


class Potentials(NamedTuple):
    """Negative log density in parts: of what is shared, and of each unit given that."""

    shared: Float[Array, ""]
    units: Float[Array, "unit"]


@dataclass(frozen=True)
class _Site:
    """Where a site's values lie: `size` entries from `start` of its block."""

    shape: tuple[int, ...]
    unit_axis: int | None
    start: int
    size: int


@dataclass(frozen=True, eq=False)
class Density:
    """Potential energy of a model and the way back from arrays to its sites.

    Attributes
    ----------
    model
        NumPyro model of one argument, the data; all latent sites have real support.
    sites
        Layout by site name.
    offsets
        A site's value is its coordinate plus its offset; no offset depends on a site that has one,
        so the change of variables keeps volumes.
    plate
        Name of the plate over units.
    shared, units, per_unit
        P, C and Q of the pair of arrays; C = 0 when no site lies in the unit plate.
    select
        `select(data, rows)`: the data of some of the units, with which the potential takes these
        units' coordinates.
    weight
        `weight(data)`: w, at most 1. Shared parameters x have the density p(x) Π_c p(data_c | x)^w,
        and a unit's own, given these, that of all its data.
    identity
        All that the model closes over, as text (`bayesrep.inference.program`); empty if unknown.
    """

    model: Program
    offsets: Offsets
    sites: Mapping[str, _Site]
    plate: str
    shared: int
    units: int
    per_unit: int
    select: Select
    weight: Weight = lambda data: jnp.ones(())
    identity: str = ""

    def to_sites(self, position: Position) -> dict[str, Array]:
        """Values of the model's (unconstrained) sites at a position; works on one draw."""
        values = {name: _take(site, position) for name, site in self.sites.items()}
        return values | {name: values[name] + by for name, by in self.offsets(values).items()}

    def to_position(self, values: Mapping[str, ArrayLike]) -> Position:
        """Inverse of `to_sites`."""
        arrays = {name: jnp.asarray(value) for name, value in values.items()}
        arrays |= {name: arrays[name] - by for name, by in self.offsets(arrays).items()}
        shared = [jnp.ravel(arrays[n]) for n, s in self.sites.items() if s.unit_axis is None]
        units = [
            jnp.moveaxis(arrays[n], s.unit_axis, 0).reshape(self.units, -1)
            for n, s in self.sites.items()
            if s.unit_axis is not None
        ]
        return {
            "shared": jnp.concatenate(shared) if shared else jnp.zeros(0),
            "units": jnp.concatenate(units, axis=1) if units else jnp.zeros((self.units, 0)),
        }

    def origin(self) -> Position:
        """Zeros of a position's shape."""
        return {
            "shared": jnp.zeros(self.shared),
            "units": jnp.zeros((self.units, self.per_unit)),
        }

    def potential(self, position: Position, data: Data) -> Float[Array, ""]:
        """Negative log joint density of the unconstrained parameters and the data.

        The units' part counts with its weight. Given what is shared, units have their mode where
        they have it without.
        """
        parts = self.potentials(position, data)
        return parts.shared + self.weight(data) * parts.units.sum()

    @cached_property
    def potentials(self) -> Callable[[Position, Data], Potentials]:
        """The potential by parts; sites and factors outside the plate are shared."""
        return jax.jit(self._potentials)  # NumPyro's handlers run once, however often it is used

    def _potentials(self, position: Position, data: Data) -> Potentials:
        given = handlers.substitute(self.model, data=self.to_sites(position))
        with TRACING:
            trace = handlers.trace(given).get_trace(data)
        shared, units = jnp.zeros(()), jnp.zeros(len(position["units"]))
        for site in trace.values():
            if site["type"] != "sample":
                continue
            log_density = jnp.asarray(site["fn"].log_prob(site["value"]))
            axis = _plate_axis(site, self.plate)
            if axis is None:
                shared = shared - log_density.sum()
            else:
                axis += log_density.ndim
                others = tuple(i for i in range(log_density.ndim) if i != axis)
                units = units - log_density.sum(axis=others)
        return Potentials(shared, units)

    def quantities(self, position: Position, data: Data) -> dict[str, Array]:
        """All sites and deterministic quantities of the model at one position."""
        sites = self.to_sites(position)
        with TRACING:
            return dict(constrain_fn(self.model, (data,), {}, sites, return_deterministic=True))


def _take(site: _Site, position: Position) -> Array:
    stop = site.start + site.size
    if site.unit_axis is None:
        return position["shared"][site.start : stop].reshape(site.shape)
    block = position["units"][:, site.start : stop]
    rest = site.shape[: site.unit_axis] + site.shape[site.unit_axis + 1 :]
    return jnp.moveaxis(block.reshape(block.shape[0], *rest), 0, site.unit_axis)


def _plate_axis(site: Mapping[str, Any], plate: str) -> int | None:
    """Of the log density, counted from the right."""
    return next((f.dim for f in site["cond_indep_stack"] if f.name == plate), None)


def _unit_axis(site: Mapping[str, Any], plate: str) -> int | None:
    """Of the value, counted from the left."""
    axis = _plate_axis(site, plate)
    return None if axis is None else len(jnp.shape(site["value"])) - site["fn"].event_dim + axis


def build_density(
    model: Program,
    data: Data,
    *,
    offsets: Offsets = lambda _: {},
    unit_plate: str = "classifier",
    select: Select = take_rows,
    weight: Weight = lambda data: jnp.ones(()),
    identity: str = "",
) -> Density:
    """Trace `model(data)` once and lay out its latent sites.

    Parameters
    ----------
    model
        NumPyro model of one argument.
    data
        Anything the model takes; only its shapes matter here.
    offsets, select, weight, identity
        As in `Density`.
    unit_plate
        Name of the plate over units.

    Raises
    ------
    ValueError
        If a latent site's support is not the real line.
    """
    trace: dict[str, Any] = {}

    def shapes_only(data: Data) -> None:
        with TRACING, handlers.seed(rng_seed=0):
            trace.update(handlers.trace(model).get_trace(data))

    jax.eval_shape(shapes_only, data)  # evaluating operation by operation takes seconds
    latent = {n: s for n, s in trace.items() if s["type"] == "sample" and not s["is_observed"]}
    sites: dict[str, _Site] = {}
    shared = units = per_unit = 0
    for name, site in latent.items():
        support = site["fn"].support
        if getattr(support, "base_constraint", support) is not constraints.real:
            raise ValueError(f"site {name!r} must have real support; got {support}")
        shape, axis = jnp.shape(site["value"]), _unit_axis(site, unit_plate)
        size = int(np.prod(shape, dtype=int))
        if axis is None:
            sites[name] = _Site(shape, None, shared, size)
            shared += size
        else:
            units = shape[axis]
            sites[name] = _Site(shape, axis, per_unit, size // units)
            per_unit += size // units
    return Density(
        model, offsets, sites, unit_plate, shared, units, per_unit, select, weight, identity
    )
