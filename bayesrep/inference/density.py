"""A NumPyro model as a log density over two arrays, ready for linear algebra.

A few *shared* (global) parameters, and for every *unit* (classifier) a few local ones, independent
of other units' given the shared: positions are `{"shared": [P], "units": [C, Q]}`, unconstrained.
"""

import math
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

from bayesrep.inference.program import storable
from bayesrep.models.model import TRACING_LOCK, Data, take_rows
from bayesrep.types import Float, Ints

Position: TypeAlias = dict[str, Array]
Draws: TypeAlias = Mapping[str, Array] | Mapping[str, NDArray[np.float64]]
"""Positions [chain, draw, ...]; samplers return NumPy arrays."""


@storable
class Potentials(NamedTuple):
    """Negative log density in parts: of the shared parameters, and of each unit given these."""

    shared: Float[Array, ""]
    units: Float[Array, "unit"]


@dataclass(frozen=True, eq=False)
class Density:
    """Potential energy of a model, and the map from arrays to its sites."""

    model: Callable[[Data], None]  # NumPyro's, of latent sites with real support
    # A site's value is its coordinate plus its offset. No offset depends on a site that has one, so
    # that the change of variables keeps volumes.
    offsets: Callable[[Mapping[str, Array]], Mapping[str, Array]]
    select: Callable[[Data, Ints], Data]  # the data of some of the units
    # w ≤ 1, the composite-likelihood weight. Shared parameters x have the density
    # p(x) Π_c p(data_c | x)^w, and a unit's own, given these, that of all its data.
    weight: Callable[[Data], Float[Array, ""]]
    identity: str  # all that the model closes over, as text; empty if unknown
    sites: Mapping[str, tuple[int, ...]]  # shapes of values, in the order of positions
    unit_axes: Mapping[str, int]  # axis of the units in a value, of sites in their plate
    shared: int  # P
    units: int  # C; 0 when no site lies in the unit plate
    per_unit: int  # Q

    def to_sites(self, position: Position) -> dict[str, Array]:
        """Compute the values of the model's (unconstrained) sites at the position of one draw."""
        values: dict[str, Array] = {}
        shared, units = position["shared"], position["units"]
        # Sites lie one after another in the order of `sites`, in one array of each kind.
        of_shared = of_units = 0
        for name, shape in self.sites.items():
            if (axis := self.unit_axes.get(name)) is None:
                begin, of_shared = of_shared, of_shared + math.prod(shape)
                values[name] = shared[begin:of_shared].reshape(shape)
            else:
                own = shape[:axis] + shape[axis + 1 :]
                begin, of_units = of_units, of_units + math.prod(own)
                block = units[:, begin:of_units].reshape(len(units), *own)
                values[name] = jnp.moveaxis(block, 0, axis)
        return values | {name: values[name] + by for name, by in self.offsets(values).items()}

    def to_position(self, values: Mapping[str, ArrayLike]) -> Position:
        """Invert `to_sites`."""
        arrays = {name: jnp.asarray(value) for name, value in values.items()}
        arrays |= {name: arrays[name] - by for name, by in self.offsets(arrays).items()}
        shared = [jnp.ravel(arrays[name]) for name in self.sites if name not in self.unit_axes]
        units = [
            jnp.moveaxis(arrays[name], axis, 0).reshape(self.units, -1)
            for name, axis in self.unit_axes.items()
        ]
        return {
            "shared": jnp.concatenate(shared) if shared else jnp.zeros(0),
            "units": jnp.concatenate(units, axis=1) if units else jnp.zeros((self.units, 0)),
        }

    def origin(self) -> Position:
        """Build zeros of a position's shape."""
        return {
            "shared": jnp.zeros(self.shared),
            "units": jnp.zeros((self.units, self.per_unit)),
        }

    def potential(self, position: Position, data: Data) -> Float[Array, ""]:
        """Compute −log p of the parameters and the data, the units' part with the weight w."""
        parts = self.potentials(position, data)
        return parts.shared + self.weight(data) * parts.units.sum()

    @cached_property
    def potentials(self) -> Callable[[Position, Data], Potentials]:
        """Compile the potential by parts; sites and factors outside the plate are shared."""

        @jax.jit  # NumPyro's handlers run once, however often it is used
        def potentials(position: Position, data: Data) -> Potentials:
            substituted = handlers.substitute(self.model, data=self.to_sites(position))
            with TRACING_LOCK:
                trace = handlers.trace(substituted).get_trace(data)
            shared, units = jnp.zeros(()), jnp.zeros(len(position["units"]))
            for site in trace.values():
                if site["type"] != "sample":
                    continue
                log_density = jnp.asarray(site["fn"].log_prob(site["value"]))
                # Summed over all axes but the units': one number for each classifier.
                axis = _unit_axis(site)
                if axis is None:
                    shared = shared - log_density.sum()
                else:
                    axis += log_density.ndim
                    others = tuple(i for i in range(log_density.ndim) if i != axis)
                    units = units - log_density.sum(axis=others)
            return Potentials(shared, units)

        return potentials

    def quantities(self, position: Position, data: Data) -> dict[str, Array]:
        """Compute all sites and deterministic quantities of the model at one position."""
        sites = self.to_sites(position)
        with TRACING_LOCK:
            return dict(constrain_fn(self.model, (data,), {}, sites, return_deterministic=True))


def _unit_axis(site: Mapping[str, Any]) -> int | None:
    """Find the units' axis of a log density, from the right; None outside the units' plate."""
    return next((f.dim for f in site["cond_indep_stack"] if f.name == "classifier"), None)


def build_density(
    model: Callable[[Data], None],
    data: Data,
    *,
    offsets: Callable[[Mapping[str, Array]], Mapping[str, Array]] = lambda _: {},
    select: Callable[[Data, Ints], Data] = take_rows,
    weight: Callable[[Data], Float[Array, ""]] = lambda data: jnp.ones(()),
    identity: str = "",
) -> Density:
    """Trace `model(data)`, whose units lie in the plate "classifier", and lay out latent sites."""
    trace: dict[str, Any] = {}

    def shapes_only(data: Data) -> None:
        with TRACING_LOCK, handlers.seed(rng_seed=0):
            trace.update(handlers.trace(model).get_trace(data))

    # Shapes suffice: evaluating the model operation by operation takes seconds.
    jax.eval_shape(shapes_only, data)
    sites: dict[str, tuple[int, ...]] = {}
    unit_axes: dict[str, int] = {}
    for name, site in trace.items():
        if site["type"] != "sample" or site["is_observed"]:
            continue
        support = site["fn"].support
        # Positions are unconstrained without transforms, so that priors need no Jacobian.
        if getattr(support, "base_constraint", support) is not constraints.real:
            raise ValueError(f"site {name!r} must have real support; got {support}")
        sites[name] = jnp.shape(site["value"])
        if (axis := _unit_axis(site)) is not None:
            unit_axes[name] = len(sites[name]) - site["fn"].event_dim + axis
    sizes = {name: math.prod(shape) for name, shape in sites.items()}
    units = max((sites[name][axis] for name, axis in unit_axes.items()), default=0)
    own = sum(sizes[name] for name in unit_axes)
    return Density(
        model,
        offsets,
        select,
        weight,
        identity,
        sites,
        unit_axes,
        shared=sum(sizes.values()) - own,
        units=units,
        per_unit=own // max(units, 1),
    )
