"""The shared parameters' marginal posterior, up to what units add exactly.

Everything is in the coordinates ξ (shared) and ζ_c (units) of a `Whitening`. Given ξ the units are
independent, and each is close to a normal: one Newton step from a guess gives its centre m_c(ξ) and
a root R_c(ξ) of its covariance. Its own coordinates z_c, standard normal but for what the normal
misses, are measured from there,

    ζ_c = m_c(ξ) + R_c(ξ) z_c,

and a unit adds  −log p(y_c, data_c | ξ) − log |R_c|  to the potential of (ξ, z): exact whatever the
step's quality. Integrated by the normal (Laplace) it is the unit's *level* V_c(ξ).

The *surrogate* of the marginal potential costs the same however many units there are: the shared
parameters' own potential (prior and annotations), the potentials of a few units that stand for all,
at guessed centres, and a quadratic in ξ for what these leave. Without the few it would be wrong far
out, and a chain that came there would stay. Guesses and quadratic are fitted to visited points
(`bayesrep.inference.tuning`).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bayesrep.inference.arrowhead import Whitening, unscaled
from bayesrep.inference.density import Density, Position
from bayesrep.models.model import Data
from bayesrep.types import Float, Ints

FLOOR = 0.1
"""Of a pivot of a unit's precision, which is near the identity."""
LONGEST = 3.0
"""Of a Newton step, in a unit's standard deviations."""
SAMPLE = 16
"""Units that stand for all in the surrogate."""
LARGEST_GUESS = 2**23
"""Most entries of `Guide.guess`; above, guesses are linear."""


class Guide(NamedTuple):
    """What the surrogate has learnt; features are those of `features`.

    Attributes
    ----------
    level
        Coefficients of what the sample leaves of Σ_c V_c.
    guess, of_sample
        Coefficients of the units' centres: of all, and of those in the sample.
    """

    level: Float[Array, "feature"]
    guess: Float[Array, "some unit own"]
    of_sample: Float[Array, "some sampled own"]


class Sample(NamedTuple):
    """Units that stand for all in the surrogate.

    Attributes
    ----------
    data, whitening
        Of them alone.
    weight
        How many units each of all stands for; 0 for those not in the sample.
    """

    data: Data
    whitening: Whitening
    weight: Float[Array, "unit"]


class Setting(NamedTuple):
    """What a marginal is computed from: the data, the coordinates, and what was learnt."""

    data: Data
    whitening: Whitening
    sample: Sample
    guide: Guide


class Units(NamedTuple):
    """The units given ξ: centres m, roots R of their covariances, and levels V."""

    center: Float[Array, "unit own"]
    root: Float[Array, "unit own own"]
    level: Float[Array, "unit"]

    @property
    def log_volume(self) -> Float[Array, "unit"]:
        """log |R|."""
        return jnp.sum(jnp.log(jnp.diagonal(self.root, axis1=1, axis2=2)), axis=1)

    def at(self, standard: Float[Array, "unit own"]) -> Float[Array, "unit own"]:
        """ζ = m + R z."""
        return self.center + jnp.einsum("cqr,cr->cq", self.root, standard)


def sampled_rows(first: Float[np.ndarray, "unit"]) -> Ints:
    """Units evenly among all, by the first of their own parameters."""
    size = min(SAMPLE, len(first))
    middles = ((np.arange(size) + 0.5) * len(first) / max(size, 1)).astype(np.int64)
    return np.sort(np.argsort(first, kind="stable")[middles])


def drawn_in(shared: Any) -> Any:
    """ξ [..., shared] of NumPy or JAX, less far out: no polynomial of it runs away."""
    xp: Any = np if isinstance(shared, np.ndarray) else jnp
    squares = xp.sum(xp.square(shared), axis=-1, keepdims=True)
    return shared / xp.sqrt(1 + squares / (4.0 * (shared.shape[-1] + 10.0)))


def features(shared: Float[Array, "shared"], count: int) -> Float[Array, "{count}"]:
    """The first of 1, ξ and all ξ_i ξ_j, of ξ drawn in."""
    drawn = drawn_in(shared)
    parts = [jnp.ones(1, shared.dtype), drawn]
    if count > 1 + len(shared):
        parts.append(jnp.ravel(drawn[:, None] * drawn[None, :]))
    return jnp.concatenate(parts)


def feature_count(size: int) -> int:
    """Length of all `features` of so many shared parameters."""
    return 1 + size + size * size


class Visits(NamedTuple):
    """Points ξ at which the units were looked at.

    `potential` is that of the marginal, `level` is Σ_c V_c, and `sampled` is what the sample says
    of Σ_c (V_c + log |R_c|). JAX's arrays or NumPy's.
    """

    shared: Float[Any, "*point shared"]
    potential: Float[Any, "*point"]
    level: Float[Any, "*point"]
    sampled: Float[Any, "*point"]
    center: Float[Any, "*point unit own"]


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
        return Guide(jnp.zeros(count), guess, guess[:, : min(SAMPLE, density.units)])

    def setting(self, data: Data, whitening: Whitening, rows: Ints) -> Setting:
        """Coordinates, the sample of these units, and an untaught guide."""
        assert self.density.select is not None
        weight = np.zeros(self.density.units)
        weight[rows] = self.density.units / max(len(rows), 1)
        some = self.density.select(data, rows)
        sample = Sample(some, whitening.of_units(rows), jnp.asarray(weight))
        return Setting(data, whitening, sample, self.untaught())

    def first_setting(self, data: Data, center: Position) -> Setting:
        """Coordinates of no scale around a centre, and an untaught guide."""
        rows = np.arange(min(SAMPLE, self.density.units))
        return self.setting(data, unscaled(center), rows)

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
        axes = jnp.broadcast_to(jnp.eye(guess.shape[1])[:, None, :], (guess.shape[1], *guess.shape))
        hessian = jnp.moveaxis(jax.vmap(lambda axis: product(axis)[0])(axes), 0, 2)
        root = _inverse_root((hessian + hessian.swapaxes(1, 2)) / 2)
        half = jnp.einsum("cqr,cq->cr", root, gradient)
        squared = jnp.sum(jnp.square(half), axis=1)
        shrink = jnp.minimum(1.0, LONGEST / jnp.sqrt(jnp.maximum(squared, 1e-300)))
        center = guess - shrink[:, None] * jnp.einsum("cqr,cr->cq", root, half)
        units = Units(center, root, values)
        return units._replace(level=values - 0.5 * squared - units.log_volume)

    def visit(self, setting: Setting, shared: Float[Array, "shared"]) -> tuple[Visits, Units]:
        """Look at ξ; and the units there."""
        units = self.units(setting, shared)
        level = units.level.sum()
        sampled = setting.sample.weight @ (units.level + units.log_volume)
        potential = self.shared_potential(setting, shared) + level
        return Visits(shared, potential, level, sampled, units.center), units

    def exact(
        self,
        setting: Setting,
        shared: Float[Array, "shared"],
        given: Units,
        standard: Float[Array, "unit own"],
    ) -> Float[Array, "unit"]:
        """What each unit adds to the potential of (ξ, z)."""
        return self.unit_potentials(setting, shared, given.at(standard)) - given.log_volume

    def surrogate(self, setting: Setting, shared: Float[Array, "shared"]) -> Float[Array, ""]:
        """Of the marginal potential."""
        guide, sample = setting.guide, setting.sample
        some, size = guide.of_sample.shape[:2]
        guess = jnp.tensordot(features(shared, some), guide.of_sample, axes=1)
        at = sample.whitening({"shared": shared, "units": guess})
        parts = self.density.potentials(at, sample.data)
        left = features(shared, len(guide.level)) @ guide.level
        return parts.shared + (self.density.units / max(size, 1)) * parts.units.sum() + left


def _inverse_root(matrix: Float[Array, "unit own own"]) -> Float[Array, "unit own own"]:
    """Upper triangular R with R Rᵀ the inverse, all units at once; small pivots are raised.

    By elimination, as L⁻¹ [A, I] = [Lᵀ, L⁻¹]. LAPACK's batches would wait for each other for ever
    where several threads compute.
    """
    size = matrix.shape[1]
    left = jnp.concatenate(
        [matrix, jnp.broadcast_to(jnp.eye(size, dtype=matrix.dtype), matrix.shape)], axis=2
    )
    rows: list[Array] = []
    for i in range(size):
        row = left[:, 0] / jnp.sqrt(jnp.maximum(left[:, :1, 0], FLOOR))
        rows.append(row[:, -size:])
        left = left[:, 1:, 1:] - row[:, 1 : size - i, None] * row[:, None, 1:]
    return jnp.stack(rows, axis=2)
