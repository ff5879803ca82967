"""Hessians with an arrowhead: their blocks, factors and use as a change of variables.

With shared parameters x (P of them) and units y_c (Q each) the Hessian of a potential is

    H = [[A, Bᵀ], [B, D]],   D block diagonal over units.

P + Q Hessian-vector products give all of it, because units do not meet. They are compiled; the
linear algebra of small blocks is NumPy's. Units are eliminated first: with D⁻¹ = R Rᵀ and
half = Rᵀ B, S = A − halfᵀ half. With a weight w (`bayesrep.inference.density`) D is w times the
precision of a unit's own parameters.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpy.typing import NDArray

from bayesrep.inference.density import Position
from bayesrep.inference.program import storable
from bayesrep.models.model import take_rows
from bayesrep.types import Float, Floats, Ints

MIN_CURVATURE = 1e-2
"""Curvatures below this are raised to it: the priors of our models have precisions near 1."""


@storable
class Arrowhead(NamedTuple):
    """Blocks A, B and D of a symmetric arrowhead matrix, and the weight w that is in B and D."""

    shared: Float[Array, "shared shared"]
    cross: Float[Array, "unit own shared"]
    units: Float[Array, "unit own own"]
    weight: Float[Array, ""]


@storable
class SecondOrder(NamedTuple):
    """A potential, its gradient and its Hessian at a position."""

    value: Float[Array, ""]
    gradient: Position
    hessian: Arrowhead


def by_unit(
    matrix: Float[Any, "unit row column"], vector: Float[Any, "unit column"]
) -> Float[Any, "unit row"]:
    """Multiply each unit's matrix and vector, in JAX or NumPy."""
    # As sums: XLA is slow at batches of products of small matrices on CPUs.
    return (matrix * vector[:, None, :]).sum(axis=2)


class Whitening(NamedTuple):
    """Affine map from coordinates ξ to parameters, in which a normal approximation is standard.

    shared = center_s + to_shared ξ_s
    units  = center_u + to_units ξ_u − drag ξ_s

    `to_shared` is lower triangular: the first of the shared parameters depend on the first ξ alone.
    """

    center: Position
    to_shared: Float[Array, "shared shared"]
    to_units: Float[Array, "unit own own"]
    drag: Float[Array, "unit own shared"]

    def __call__(self, standard: Mapping[str, Any]) -> dict[str, Any]:
        """Compute the parameters at standard coordinates ξ; NumPy arrays from NumPy arrays."""
        return {
            "shared": self.center["shared"] + self.to_shared @ standard["shared"],
            "units": self.center["units"]
            + by_unit(self.to_units, standard["units"])
            - self.drag @ standard["shared"],
        }

    def of_units(self, rows: Ints) -> "Whitening":
        """Select the map of some of the units."""
        units, to_units, drag = take_rows((self.center["units"], self.to_units, self.drag), rows)
        return Whitening(self.center | {"units": units}, self.to_shared, to_units, drag)


def shift_map(center: Position) -> Whitening:
    """Build the map that only shifts."""
    size, (units, own) = len(center["shared"]), center["units"].shape
    to_units = jnp.broadcast_to(jnp.eye(own), (units, own, own))
    return Whitening(center, jnp.eye(size), to_units, jnp.zeros((units, own, size)))


def second_order(
    potential: Callable[[Position], Array], position: Position, weight: float | Array = 1.0
) -> SecondOrder:
    """Compute value, gradient and Hessian of a potential in which units have the weight w."""
    shared, (units, own) = len(position["shared"]), position["units"].shape
    size = shared + own
    # One linear map serves both kinds of directions, so that the gradient is traced once.
    (value, gradient), product = jax.linearize(jax.value_and_grad(potential), position)
    of_units = jnp.eye(size, own, -shared)[:, None, :]
    axes = {
        "shared": jnp.eye(size, shared),
        "units": jnp.broadcast_to(of_units, (size, units, own)),
    }
    # Units do not interact: one product with all units' axis q gives column q of every block.
    products = jax.vmap(lambda axis: product(axis)[1])(axes)
    blocks = jnp.moveaxis(products["units"], 0, 2)
    by_shared, by_units = products["shared"][:shared], blocks[:, :, shared:]
    hessian = Arrowhead(
        (by_shared + by_shared.T) / 2,
        blocks[:, :, :shared],
        (by_units + by_units.swapaxes(1, 2)) / 2,
        jnp.asarray(weight, dtype=float),
    )
    return SecondOrder(value, gradient, hessian)


def _inverse_root(matrix: Float[np.ndarray, "*batch n n"]) -> Float[np.ndarray, "*batch n n"]:
    """Compute M with M Mᵀ = |matrix|⁻¹, small eigenvalues raised to `MIN_CURVATURE`."""
    values, vectors = np.linalg.eigh(matrix)
    return vectors / np.sqrt(np.maximum(np.abs(values), MIN_CURVATURE))[..., None, :]


def lower_root(root: Float[np.ndarray, "n column"]) -> Float[np.ndarray, "n n"]:
    """Compute the lower triangular M with M Mᵀ = root rootᵀ."""
    triangle: Any = np.linalg.qr(root.T, mode="r")
    return triangle.T


def _eliminate(hessian: Arrowhead) -> tuple[Floats, Floats, Floats, float]:
    """Eliminate the units: R [C, Q, Q] of each at weight 1, Rᵀ B / √w [C, Q, P], S, and √w."""
    shared, cross, units, weight = map(np.asarray, hessian)
    root_weight = float(np.sqrt(weight))
    to_units = _inverse_root(units / weight)
    # S, the Schur complement of the units: the precision of the shared parameters' marginal.
    half = to_units.swapaxes(1, 2) @ cross / root_weight
    flat = half.reshape(-1, half.shape[2])
    return to_units, half, shared - flat.T @ flat, root_weight


def whitening(
    hessian: Arrowhead,
    center: Mapping[str, ArrayLike],
    *,
    # A lower root of the covariance of the first shared parameters, in place of the Hessian's.
    fixed_root: Float[np.ndarray, "fixed fixed"] | None = None,
) -> Whitening:
    """Build the change of variables in which a normal of this precision and mean is standard."""
    to_units, half, precision, root_weight = _eliminate(hessian)
    if fixed_root is None:
        to_shared = lower_root(_inverse_root(precision))
    else:
        size = len(fixed_root)
        # Covariance of the fixed part as given; conditional precision and mean of the rest.
        free = _inverse_root(precision[size:, size:])
        to_shared = np.zeros_like(precision)
        to_shared[:size, :size] = fixed_root
        to_shared[size:, size:] = lower_root(free)
        to_shared[size:, :size] = -free @ free.T @ precision[size:, :size] @ fixed_root
    drag = to_units @ half @ to_shared / root_weight
    # NumPy arrays throughout: arrays of another kind or device would be compiled for again.
    position = {name: np.asarray(value) for name, value in center.items()}
    return Whitening(*jax.device_put((position, to_shared, to_units, drag)))


def newton_direction(
    hessian: Arrowhead, gradient: Position, *, n_fixed: int = 0
) -> dict[str, NDArray[Any]]:
    """Compute −|H|⁻¹ gradient, guarded as in `whitening`; `n_fixed` shared ones do not move."""
    to_units, half, precision, root_weight = _eliminate(hessian)
    by_shared, by_units = (np.asarray(gradient[name]) for name in ("shared", "units"))
    # Block elimination: solve for the shared parameters first, then back-substitute the units.
    inner = np.einsum("cqr,cq->cr", to_units, by_units) / root_weight
    reduced = by_shared - np.einsum("crp,cr->p", half, inner)
    root = _inverse_root(precision[n_fixed:, n_fixed:])
    shared = np.zeros_like(by_shared)
    shared[n_fixed:] = -root @ (root.T @ reduced[n_fixed:])
    return {
        "shared": shared,
        "units": -np.einsum("cqr,cr->cq", to_units, inner + half @ shared) / root_weight,
    }
