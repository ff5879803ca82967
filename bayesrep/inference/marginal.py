"""The shared parameters' marginal posterior, up to what units add exactly.

Everything is in the coordinates ξ (shared) and ζ_c (units) of a `Whitening`. Given ξ the units are
independent, and each is close to a normal: one Newton step from a guess gives its centre m_c(ξ) and
the Cholesky factor L_c(ξ) of its precision. Its own coordinates z_c, standard normal but for what
the normal misses, are measured from there,

    ζ_c = m_c(ξ) + L_c(ξ)⁻ᵀ z_c,

and a unit adds  −log p(y_c, data_c | ξ) + log |L_c|  to the potential of (ξ, z): exact whatever the
step's quality. Integrated by the normal (Laplace) it is the unit's *level* V_c(ξ).

The *surrogate* of Σ_c V_c(ξ) is cheap: a quadratic in ξ and, where that is too crude, the units'
potentials at guessed centres. The shared parameters' own potential (prior and annotations) is exact
in it. Guesses and quadratic are fitted to visited points (`bayesrep.inference.tuning`).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bayesrep.inference.arrowhead import Whitening
from bayesrep.inference.density import Density, Position
from bayesrep.models.model import Data
from bayesrep.types import Bool, Float

FLOOR = 0.1
"""Of a pivot of a unit's precision, which is near the identity."""
LONGEST = 3.0
"""Of a Newton step, in a unit's standard deviations."""
LARGEST_GUESS = 2**23
"""Most entries of `Guide.guess`; above, guesses are linear."""


class Guide(NamedTuple):
    """What the surrogate has learnt; features are those of `features`.

    Attributes
    ----------
    level
        Coefficients of Σ_c V_c or, where `whole`, of what the units' potentials at their guessed
        centres leave of it; the constant's is 0.
    guess
        Coefficients of the units' centres.
    whole
        Whether the surrogate looks at the units.
    """

    level: Float[Array, "feature"]
    guess: Float[Array, "some unit own"]
    whole: Bool[Array, ""]


class Setting(NamedTuple):
    """What a marginal is computed from: the data, the coordinates, and what was learnt."""

    data: Data
    whitening: Whitening
    guide: Guide


class Units(NamedTuple):
    """The units given ξ: centres m, factors L of their precisions, and levels V."""

    center: Float[Array, "unit own"]
    factor: Float[Array, "unit own own"]
    level: Float[Array, "unit"]

    @property
    def log_factor(self) -> Float[Array, "unit"]:
        """log |L|."""
        return jnp.sum(jnp.log(jnp.diagonal(self.factor, axis1=1, axis2=2)), axis=1)

    def at(self, standard: Float[Array, "unit own"]) -> Float[Array, "unit own"]:
        """ζ = m + L⁻ᵀ z."""
        return self.center + _solve_transposed(self.factor, standard)


def features(shared: Any, count: int) -> Any:
    """`products` of ξ, drawn in far out, so that no polynomial runs away and S stays proper."""
    xp: Any = np if isinstance(shared, np.ndarray) else jnp
    squares = xp.sum(xp.square(shared), axis=-1, keepdims=True)
    return products(shared / xp.sqrt(1 + squares / (4.0 * (shared.shape[-1] + 10.0))), count)


def products(shared: Any, count: int) -> Any:
    """The first of 1, ξ and all ξ_i ξ_j, of points [..., shared] of NumPy or JAX."""
    xp: Any = np if isinstance(shared, np.ndarray) else jnp
    size = shared.shape[-1]
    parts = [xp.ones_like(shared[..., :1]), shared]
    if count > 1 + size:
        # Row i of the upper triangle; static slices, whose gradients are no scatter.
        parts += [shared[..., i : i + 1] * shared[..., i:] for i in range(size)]
    return xp.concatenate(parts, axis=-1)


def feature_count(size: int) -> int:
    """Length of all `features` of so many shared parameters."""
    return 1 + size + size * (size + 1) // 2


@dataclass(frozen=True, eq=False)
class Marginal:
    """A density's parts in a setting's coordinates."""

    density: Density

    def untaught(self) -> Guide:
        """The guide before anything is learnt: centres follow ξ to first order, as at the mode."""
        density, count = self.density, feature_count(self.density.shared)
        entries = density.units * density.per_unit
        some = count if count * entries <= LARGEST_GUESS else 1 + density.shared
        guess = jnp.zeros((some, density.units, density.per_unit))
        return Guide(jnp.zeros(count), guess, jnp.asarray(density.units > 0))

    def position(
        self, setting: Setting, shared: Float[Array, "shared"], units: Float[Array, "unit own"]
    ) -> Position:
        """Parameters at coordinates ξ and ζ."""
        return setting.whitening({"shared": shared, "units": units})

    def shared_potential(
        self, setting: Setting, shared: Float[Array, "shared"]
    ) -> Float[Array, ""]:
        """Of what is no unit's."""
        units = jnp.zeros((self.density.units, self.density.per_unit), shared.dtype)
        at = self.position(setting, shared, units)
        return self.density.potentials(at, setting.data).shared

    def unit_potentials(
        self, setting: Setting, shared: Float[Array, "shared"], units: Float[Array, "unit own"]
    ) -> Float[Array, "unit"]:
        """Of each unit at ζ, given ξ."""
        at = self.position(setting, shared, units)
        return self.density.potentials(at, setting.data).units

    def guess(self, setting: Setting, shared: Float[Array, "shared"]) -> Float[Array, "unit own"]:
        """Where the units' centres should be."""
        guess = setting.guide.guess
        return jnp.tensordot(features(shared, len(guess)), guess, axes=1)

    def units(self, setting: Setting, shared: Float[Array, "shared"]) -> Units:
        """The normal of every unit given ξ, by a Newton step from its guess."""
        guess = self.guess(setting, shared)

        def total(units: Array) -> tuple[Array, Array]:
            each = self.unit_potentials(setting, shared, units)
            return each.sum(), each

        (gradient, values), product = jax.linearize(jax.grad(total, has_aux=True), guess)
        axes = jnp.broadcast_to(
            jnp.eye(guess.shape[1])[:, None, :], (guess.shape[1], *guess.shape)
        )
        hessian = jnp.moveaxis(jax.vmap(lambda axis: product(axis)[0])(axes), 0, 2)
        factor = _cholesky((hessian + hessian.swapaxes(1, 2)) / 2)
        half = _solve(factor, gradient)
        squared = jnp.sum(jnp.square(half), axis=1)
        shrink = jnp.minimum(1.0, LONGEST / jnp.sqrt(jnp.maximum(squared, 1e-300)))
        center = guess - shrink[:, None] * _solve_transposed(factor, half)
        found = Units(center, factor, values)
        return found._replace(level=values - 0.5 * squared + found.log_factor)

    def exact(
        self,
        setting: Setting,
        shared: Float[Array, "shared"],
        given: Units,
        standard: Float[Array, "unit own"],
    ) -> Float[Array, "unit"]:
        """What each unit adds to the potential of (ξ, z)."""
        return self.unit_potentials(setting, shared, given.at(standard)) + given.log_factor

    def surrogate(self, setting: Setting, shared: Float[Array, "shared"]) -> Float[Array, ""]:
        """Of Σ_c V_c(ξ), up to a constant."""
        guide = setting.guide
        level = features(shared, len(guide.level)) @ guide.level

        def at_guess(shared: Array) -> Array:
            return self.unit_potentials(setting, shared, self.guess(setting, shared)).sum()

        return level + jax.lax.cond(
            guide.whole, at_guess, lambda shared: jnp.zeros((), shared.dtype), shared
        )


def _cholesky(matrix: Float[Array, "unit own own"]) -> Float[Array, "unit own own"]:
    """Lower factors, all units at once; pivots below the floor are raised to it."""
    left, columns = matrix, list[Array]()
    for i in range(matrix.shape[1]):
        pivot = jnp.sqrt(jnp.maximum(left[:, i, i], FLOOR))
        below = left[:, i + 1 :, i] / pivot[:, None]
        zeros = jnp.zeros((len(matrix), i), matrix.dtype)
        column = jnp.concatenate([zeros, pivot[:, None], below], axis=1)
        columns.append(column)
        left = left - column[:, :, None] * column[:, None, :]
    return jnp.stack(columns, axis=2)


def _solve(
    factor: Float[Array, "unit own own"], right: Float[Array, "unit own"]
) -> Float[Array, "unit own"]:
    """L⁻¹ b."""
    solved: list[Array] = []
    for i in range(right.shape[1]):
        known = sum((factor[:, i, j] * solved[j] for j in range(i)), jnp.zeros(()))
        solved.append((right[:, i] - known) / factor[:, i, i])
    return jnp.stack(solved, axis=1)


def _solve_transposed(
    factor: Float[Array, "unit own own"], right: Float[Array, "unit own"]
) -> Float[Array, "unit own"]:
    """L⁻ᵀ b."""
    size = right.shape[1]
    solved: list[Array] = [jnp.zeros(())] * size
    for i in reversed(range(size)):
        known = sum((factor[:, j, i] * solved[j] for j in range(i + 1, size)), jnp.zeros(()))
        solved[i] = (right[:, i] - known) / factor[:, i, i]
    return jnp.stack(solved, axis=1)
