"""Hessians with an arrowhead: their products, factors and use as a change of variables.

With shared parameters x (P of them) and units y_c (Q each) the Hessian of a potential is

    H = [[A, Bᵀ], [B, D]],   D block diagonal over units.

Probing all units at once with the same unit vector gives the whole of D, because units do not
meet, so P + Q Hessian-vector products suffice whatever the number of units. Eliminating the units
first (D_c = L_c L_cᵀ, W_c = L_c⁻¹ B_c, S = A − Σ W_cᵀ W_c = L L ᵀ) keeps every factor small.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array

from bayesrep.inference.density import Position
from bayesrep.types import Float

Potential: TypeAlias = Callable[[Position], Array]


class Arrowhead(NamedTuple):
    """Blocks A, B and D of a symmetric arrowhead matrix."""

    shared: Float[Array, "shared shared"]
    cross: Float[Array, "unit own shared"]
    units: Float[Array, "unit own own"]


class Whitening(NamedTuple):
    """An affine map ξ → parameters under which a normal approximation is standard.

    shared = center_s + to_shared ξ_s
    units  = center_u + to_units ξ_u − drag ξ_s
    """

    center: Position
    to_shared: Float[Array, "shared shared"]
    to_units: Float[Array, "unit own own"]
    drag: Float[Array, "unit own shared"]

    def __call__(self, standard: Position) -> Position:
        """Parameters at standard coordinates ξ."""
        return {
            "shared": self.center["shared"] + self.to_shared @ standard["shared"],
            "units": self.center["units"]
            + jnp.einsum("cqr,cr->cq", self.to_units, standard["units"])
            - self.drag @ standard["shared"],
        }

    def log_volume(self) -> Float[Array, ""]:
        """Log of the volume that one unit of volume in standard coordinates becomes."""
        return jnp.linalg.slogdet(self.to_shared)[1] + jnp.linalg.slogdet(self.to_units)[1].sum()


def arrowhead_hessian(potential: Potential, position: Position) -> Arrowhead:
    """The Hessian of a potential whose units meet only through the shared parameters."""
    gradient = jax.grad(potential)
    shared, (units, per_unit) = position["shared"].shape[0], position["units"].shape

    def product(direction: Position) -> Position:
        return jax.jvp(gradient, (position,), (direction,))[1]

    def along_shared(axis: Float[Array, "shared"]) -> Position:
        return product({"shared": axis, "units": jnp.zeros((units, per_unit))})

    def along_units(axis: Float[Array, "own"]) -> Float[Array, "unit own"]:
        direction = {"shared": jnp.zeros(shared), "units": jnp.tile(axis, (units, 1))}
        return product(direction)["units"]

    columns = jax.lax.map(along_shared, jnp.eye(shared))
    blocks = jax.lax.map(along_units, jnp.eye(per_unit))
    return Arrowhead(
        shared=(columns["shared"] + columns["shared"].T) / 2,
        cross=jnp.moveaxis(columns["units"], 0, 2),
        units=(jnp.moveaxis(blocks, 0, 2) + jnp.moveaxis(blocks, 0, 1)) / 2,
    )


def inverse_root(
    matrix: Float[Array, "*batch n n"], floor: float = 1e-2
) -> Float[Array, "*batch n n"]:
    """M with M Mᵀ = |matrix|⁻¹, eigenvalues below `floor` raised to it."""
    values, vectors = jnp.linalg.eigh(matrix)
    return vectors / jnp.sqrt(jnp.maximum(jnp.abs(values), floor))[..., None, :]


def whitening(hessian: Arrowhead, center: Position, *, floor: float = 1e-2) -> Whitening:
    """The change of variables that makes a normal with this precision standard.

    Negative curvature is replaced by its absolute value and curvature below `floor` by the floor
    (the priors of our models have precisions near 1), so the result is usable away from a mode.
    """
    to_units = inverse_root(hessian.units, floor)
    half = jnp.einsum("cqr,cqp->crp", to_units, hessian.cross)
    to_shared = inverse_root(hessian.shared - jnp.einsum("crp,crs->ps", half, half), floor)
    drag = jnp.einsum("cqr,crp->cqp", to_units, half) @ to_shared
    return Whitening(center, to_shared, to_units, drag)


def newton_direction(hessian: Arrowhead, gradient: Position) -> Position:
    """−|H|⁻¹ gradient, with the whitening's guards."""
    zero = jax.tree.map(jnp.zeros_like, gradient)
    white = whitening(hessian, zero)
    standard = {
        "shared": white.to_shared.T @ gradient["shared"]
        - jnp.einsum("cqp,cq->p", white.drag, gradient["units"]),
        "units": jnp.einsum("cqr,cq->cr", white.to_units, gradient["units"]),
    }
    return jax.tree.map(jnp.negative, white(standard))
