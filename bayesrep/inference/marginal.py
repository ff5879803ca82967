"""The shared parameters' marginal posterior, up to what units add exactly.

Everything is in the coordinates ξ (shared) and ζ_c (units) of a `Whitening`. Given ξ the units are
independent, and each is close to a normal with a centre m_c(ξ) and a root R_c(ξ) of its covariance:
one Newton step from a guess. Its own coordinates z_c, standard normal but for what the normal
misses, are measured from there,

    ζ_c = m_c(ξ) + R_c(ξ) z_c,

and the *ratio*  w_c(ξ, z_c) = p(y_c = ζ_c, data_c | ξ) |R_c| / N(z_c)  has the mean p(data_c | ξ)
over standard normal z_c, whatever the step's quality. The mean of a few ratios, of mirrored z_c, is
an unbiased *estimate* of it; taking the normal for what it is near (Laplace) gives the unit's
*level* V_c(ξ).

Units tell of the same images, and what they say of ξ counts with the density's weight w: its
marginal is p(ξ) Π_c p(data_c | ξ)^w. The power of an unbiased estimate is not unbiased, by
w (w − 1) / 2 times its relative variance, which hardly depends on ξ: the units' normals are close.

The *surrogate* of the marginal potential costs the same however many units there are: the shared
parameters' own potential (prior and annotations), the potentials of a few units that stand for all,
at guessed centres, and a quadratic in ξ for what these leave. Without the few it would be wrong far
out, and a chain that came there would stay. Guesses and quadratic are fitted to visited points
(`bayesrep.inference.tuning`), and so are roots for those who cannot wait for a Hessian.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bayesrep.inference.arrowhead import Whitening, by_unit, shift_map
from bayesrep.inference.density import Density, Position
from bayesrep.models.model import Data, take_rows
from bayesrep.types import Float, Floats, Ints

FLOOR = 0.1
"""Of a pivot of a unit's precision, which is near the identity."""
LONGEST = 3.0
"""Of a Newton step, in a unit's standard deviations."""
SAMPLE = 16
"""Units that stand for all in the surrogate, at least; or one of so many."""
FURTHEST = 11.0
"""Length of ξ beyond which polynomials of it stay what they are; at least, 4 sd of its own."""
LARGEST = 2**23, 2**19
"""Most entries of `Guide.guess` and `Guide.root`; above, they are linear in ξ."""


class Guide(NamedTuple):
    """What the surrogate has learnt; features are those of `features`.

    Attributes
    ----------
    share
        How much of what the sample says is believed, 0 to 1.
    level
        Coefficients of what that leaves of w Σ_c V_c.
    guess, of_sample
        Coefficients of the units' centres: of all, and of those in the sample.
    root
        Coefficients of the entries of R_c on and above its diagonal, row by row.
    """

    share: Float[Array, ""]
    level: Float[Array, "feature"]
    guess: Float[Array, "some unit own"]
    of_sample: Float[Array, "some sampled own"]
    root: Float[Array, "few unit entry"]


class Sample(NamedTuple):
    """Units that stand for all in the surrogate.

    Attributes
    ----------
    data, whitening
        Data and whitening of these units alone.
    weight
        How many units each of all stands for; 0 for those not in the sample.
    """

    data: Data
    whitening: Whitening
    weight: Float[Array, "unit"]


N_JOINT_STEPS = 4
"""Metropolis steps of a kept draw: nearly every unit ends at one of the last proposals."""
N_FACTORS = 64
"""Directions in which classifiers' noise hangs together, at most."""


class FactorNoise(NamedTuple):
    """A factor model of all units' standard normals: z = common g + own e, each z_c of variance I.

    Attributes
    ----------
    common
        Loadings of what units have in common (`bayesrep.inference.image_weights`).
    own
        Root of what these leave of each unit's identity.
    """

    common: Float[Array, "unit own factor"]
    own: Float[Array, "unit own own"]

    @classmethod
    def independent(cls, units: int, size: int) -> "FactorNoise":
        """The factor model of units that have nothing in common."""
        own = np.tile(np.eye(size), (units, 1, 1))
        return cls(*jax.device_put((np.zeros((units, size, N_FACTORS)), own)))

    def draw(self, key: Array, count: int) -> Float[Array, "{count} unit own"]:
        """So many draws of all units' z."""
        of_common, of_own = jax.random.split(key)
        common = jax.random.normal(of_common, (count, self.common.shape[2]))
        own = jax.random.normal(of_own, (count, *self.common.shape[:2]))
        return jnp.tensordot(common, self.common, axes=(1, 2)) + jax.vmap(
            lambda each: by_unit(self.own, each)
        )(own)


class Setting(NamedTuple):
    """What a marginal is computed from: data, coordinates, what was learnt, and units' noise."""

    data: Data
    whitening: Whitening
    sample: Sample
    guide: Guide
    noise: FactorNoise


class Units(NamedTuple):
    """The units' normals given ξ: centres m, and upper triangular roots R of their covariances."""

    center: Float[Array, "unit own"]
    root: Float[Array, "unit own own"]

    @property
    def log_volume(self) -> Float[Array, "unit"]:
        """log |R|."""
        return jnp.sum(jnp.log(jnp.diagonal(self.root, axis1=1, axis2=2)), axis=1)

    def place_units(self, standard: Float[Array, "unit own"]) -> Float[Array, "unit own"]:
        """ζ = m + R z."""
        return self.center + by_unit(self.root, standard)


class MarginalTerms(NamedTuple):
    """What is known at ξ of the marginal density.

    Attributes
    ----------
    shared
        The shared parameters' own potential.
    log_ratio
        log w_c of every z_c.
    weight
        What units count for what is shared.
    """

    shared: Float[Array, ""]
    log_ratio: Float[Array, "mirrored unit"]
    weight: Float[Array, ""]

    @property
    def of_units(self) -> Float[Array, "unit"]:
        """Logarithms of the units' estimates."""
        return jax.nn.logsumexp(self.log_ratio, axis=0) - jnp.log(len(self.log_ratio))

    @property
    def potential(self) -> Float[Array, ""]:
        """−log of the estimate of the marginal density."""
        return self.shared - self.weight * self.of_units.sum()


class UnitNormals(NamedTuple):
    """What is known at ξ: the units' normals, half of their z (`mirrored` has all), estimates."""

    units: Units
    half: Float[Array, "pair unit own"]
    estimates: MarginalTerms

    def renew_units(self, key: Array, fresh: "UnitNormals") -> "UnitNormals":
        """The same with each unit's z or its fresh ones, by the ratio of their estimates."""
        old, new = self.estimates, fresh.estimates
        gains = new.of_units - old.of_units
        taken = jnp.log(jax.random.uniform(key, gains.shape)) < gains
        ratios = jnp.where(taken[None, :], new.log_ratio, old.log_ratio)
        half = jnp.where(taken[None, :, None], fresh.half, self.half)
        return self._replace(half=half, estimates=old._replace(log_ratio=ratios))


def mirror(half: Float[Array, "pair unit own"]) -> Float[Array, "mirrored unit own"]:
    """z and −z: what is odd in z, most of what a normal misses, cancels in an estimate."""
    return jnp.concatenate([half, -half])


def sample_size(units: int) -> int:
    """How many units stand for so many."""
    return min(max(SAMPLE, units // SAMPLE), units)


def sampled_rows(first: Float[np.ndarray, "unit"]) -> Ints:
    """Units evenly among all, by the first of their own parameters."""
    size = sample_size(len(first))
    middles = ((np.arange(size) + 0.5) * len(first) / max(size, 1)).astype(np.int64)
    return np.sort(np.argsort(first, kind="stable")[middles])


def draw_in(shared: Any) -> Any:
    """ξ [..., shared] of NumPy or JAX, no further out than a normal's: no polynomial runs away."""
    xp: Any = np if isinstance(shared, np.ndarray) else jnp
    squares = xp.sum(xp.square(shared), axis=-1, keepdims=True)
    furthest = max(FURTHEST, np.sqrt(shared.shape[-1]) + 4.0)
    return shared / (1 + (squares / furthest**2) ** 4) ** (1 / 8)


def features(shared: Float[Array, "shared"], count: int) -> Float[Array, "{count}"]:
    """The first of 1, ξ and ξ_i ξ_j for i ≤ j, of ξ drawn in."""
    drawn = draw_in(shared)
    parts = [jnp.ones(1, shared.dtype), drawn]
    if count > 1 + len(shared):
        # Products with matrices, whose gradients need no scattering.
        rows = np.eye(len(shared))
        first, second = np.triu_indices(len(shared))
        parts.append((drawn @ rows[:, first]) * (drawn @ rows[:, second]))
    return jnp.concatenate(parts)


def feature_count(size: int) -> int:
    """Length of all `features` of so many shared parameters."""
    return 1 + size + size * (size + 1) // 2


class Visits(NamedTuple):
    """Points ξ at which the units were looked at.

    `potential` is that of the marginal, `level` is w Σ_c V_c, `sampled` is what the sample says of
    w Σ_c (V_c + log |R_c|), and `root` has the entries of `Guide.root`. JAX's arrays or NumPy's.
    Centres and roots are in 32 bits: of thousands of units they fill the memory, and any normal
    near a unit serves.
    """

    shared: Float[Any, "*point shared"]
    potential: Float[Any, "*point"]
    level: Float[Any, "*point"]
    sampled: Float[Any, "*point"]
    center: Float[Any, "*point unit own"]
    root: Float[Any, "*point unit entry"]

    @property
    def units(self) -> Units:
        """The units' normals at one point."""
        center, root = self.center.astype(float), self.root.astype(float)
        return Units(center, _fill_upper(root, center.shape[1]))


@dataclass(frozen=True, eq=False)
class Marginal:
    """A density's parts in a setting's coordinates."""

    density: Density

    def make_guide(self) -> Guide:
        """The guide before anything is learnt: centres follow ξ to first order, as at the mode."""
        density, count = self.density, feature_count(self.density.shared)
        row, column = np.triu_indices(density.per_unit)

        # In NumPy: JAX would compile a program for each operation.
        def zeros(each: int, largest: int) -> Floats:
            small = count * density.units * each <= largest
            return np.zeros((count if small else 1 + density.shared, density.units, each))

        guess, root = zeros(density.per_unit, LARGEST[0]), zeros(len(row), LARGEST[1])
        root[0] = row == column
        of_sample = guess[:, : sample_size(density.units)]
        return Guide(*jax.device_put((np.ones(()), np.zeros(count), guess, of_sample, root)))

    def setting(self, data: Data, whitening: Whitening, rows: Ints) -> Setting:
        """Coordinates, the sample of these units, and an untaught guide."""
        weight = np.zeros(self.density.units)
        weight[rows] = self.density.units / max(len(rows), 1)
        some = self.density.select(data, rows)
        sample = Sample(some, whitening.of_units(rows), jax.device_put(weight))
        noise = FactorNoise.independent(self.density.units, self.density.per_unit)
        return Setting(data, whitening, sample, self.make_guide(), noise)

    def of_sample(self, setting: Setting) -> Setting:
        """Of the sample alone, which then stands for all; a visit costs as much less."""
        sample, guide = setting.sample, setting.guide
        rows = np.flatnonzero(sample.weight)
        root = jax.device_put(np.asarray(guide.root)[:, rows])
        return Setting(
            sample.data,
            sample.whitening,
            sample._replace(weight=take_rows(sample.weight, rows)),
            guide._replace(guess=guide.of_sample, root=root),
            FactorNoise(*take_rows(tuple(setting.noise), rows)),
        )

    def first_setting(self, data: Data, center: Position) -> Setting:
        """Coordinates of no scale around a centre, and an untaught guide."""
        rows = np.arange(sample_size(self.density.units))
        return self.setting(data, shift_map(center), rows)

    def position(
        self, setting: Setting, shared: Float[Array, "shared"], units: Float[Array, "unit own"]
    ) -> Position:
        """Parameters at coordinates ξ and ζ."""
        return setting.whitening({"shared": shared, "units": units})

    def shared_potential(
        self, setting: Setting, shared: Float[Array, "shared"]
    ) -> Float[Array, ""]:
        """Potential of what belongs to none of the units."""
        units = jnp.zeros_like(setting.whitening.center["units"])
        at = self.position(setting, shared, units)
        return self.density.potentials(at, setting.data).shared

    def unit_potentials(
        self, setting: Setting, shared: Float[Array, "shared"], units: Float[Array, "unit own"]
    ) -> Float[Array, "unit"]:
        """Of each unit at ζ, given ξ."""
        at = self.position(setting, shared, units)
        return self.density.potentials(at, setting.data).units

    def units(
        self, setting: Setting, shared: Float[Array, "shared"]
    ) -> tuple[Units, Float[Array, "unit"]]:
        """The normal of every unit given ξ, by a Newton step from a guided one; and its level V.

        A level is wrong by what its root changes on the way: little of each, much of thousands.
        Where being guided leads up, the step begins at the guess.
        """

        def each(units: Array) -> Array:
            return self.unit_potentials(setting, shared, units)

        before, guided = (
            _evaluate_guide(setting.guide.guess, shared),
            self.guess_units(setting, shared).center,
        )
        there, further = each(before), each(guided)
        guess = jnp.where((further < there)[:, None], guided, before)
        values = jnp.where(further < there, further, there)

        gradient, product = jax.linearize(jax.grad(lambda units: each(units).sum()), guess)
        axes = jnp.broadcast_to(jnp.eye(guess.shape[1])[:, None, :], (guess.shape[1], *guess.shape))
        hessian = jnp.moveaxis(jax.vmap(product)(axes), 0, 2)
        root = _inverse_root((hessian + hessian.swapaxes(1, 2)) / 2)
        units, promised = _newton_step(guess, root, gradient)
        return units, values - promised - units.log_volume

    def guess_units(self, setting: Setting, shared: Float[Array, "shared"]) -> Units:
        """The same, but with the root that the guide tells: a gradient is enough."""
        guess = _evaluate_guide(setting.guide.guess, shared)
        entries = _evaluate_guide(setting.guide.root, shared)
        row, column = np.triu_indices(guess.shape[1])
        floor = np.where(row == column, FLOOR, -np.inf)
        root = _fill_upper(jnp.maximum(entries, floor[None, :]), guess.shape[1])
        gradient = jax.grad(lambda units: self.unit_potentials(setting, shared, units).sum())
        return _newton_step(guess, root, gradient(guess))[0]

    def visit(self, setting: Setting, shared: Float[Array, "shared"]) -> Visits:
        """Look at ξ."""
        units, levels = self.units(setting, shared)
        weight = self.density.weight(setting.data)
        level = weight * (self.density.units / len(levels)) * levels.sum()
        sampled = weight * (setting.sample.weight @ (levels + units.log_volume))
        potential = self.shared_potential(setting, shared) + level
        row, column = np.triu_indices(units.root.shape[1])
        roots = units.root[:, row, column]
        center, roots = units.center.astype(jnp.float32), roots.astype(jnp.float32)
        return Visits(shared, potential, level, sampled, center, roots)

    def estimates(
        self,
        setting: Setting,
        shared: Float[Array, "shared"],
        given: Units,
        standard: Float[Array, "mirrored unit own"],
    ) -> MarginalTerms:
        """What coordinates z of the units say of the marginal density at ξ."""

        def of(standard: Array) -> tuple[Array, Array]:
            at = self.position(setting, shared, given.place_units(standard))
            parts = self.density.potentials(at, setting.data)
            return parts.shared, parts.units

        own, units = jax.vmap(of, out_axes=(None, 0))(standard)
        normal = 0.5 * jnp.square(standard).sum(axis=2)
        ratios = normal + given.log_volume[None, :] - units
        return MarginalTerms(own, ratios, self.density.weight(setting.data))

    def estimate(
        self,
        setting: Setting,
        shared: Float[Array, "shared"],
        units: Units,
        half: Float[Array, "pair unit own"],
    ) -> UnitNormals:
        """What these z of the units, mirrored, say at ξ."""
        return UnitNormals(units, half, self.estimates(setting, shared, units, mirror(half)))

    def draw_units(
        self,
        key: Array,
        setting: Setting,
        shared: Float[Array, "shared"],
        known: UnitNormals,
        proposals: Float[Array, "step unit own"],
        fresh: Float[Array, "step unit"],
    ) -> tuple[Position, Float[Array, ""]]:
        """Parameters with a z for every unit, and their log density.

        One of a unit's z by their ratios is a draw of its posterior, and so it is after steps of
        independence Metropolis-Hastings. Their `proposals`, with log ratios `fresh`, are of the
        noise that units have in common, and they are accepted by one uniform number for all, so
        that units move together.
        """
        pick, accept = jax.random.split(key)
        given, standard = known.units, mirror(known.half)
        ratios = known.estimates.log_ratio
        chosen = jnp.argmax(ratios + jax.random.gumbel(pick, ratios.shape), axis=0)
        mask = jax.nn.one_hot(chosen, len(ratios), axis=0, dtype=ratios.dtype)
        kept, ratio = jnp.sum(standard * mask[:, :, None], axis=0), jnp.sum(ratios * mask, axis=0)
        bounds = jnp.log(jax.random.uniform(accept, (len(proposals),)))
        for bound, proposal, new in zip(bounds, proposals, fresh, strict=True):
            taken = bound < new - ratio
            kept, ratio = jnp.where(taken[:, None], proposal, kept), jnp.where(taken, new, ratio)
        density = ratio.sum() - 0.5 * jnp.square(kept).sum() - given.log_volume.sum()
        return self.position(
            setting, shared, given.place_units(kept)
        ), density - known.estimates.shared

    def surrogate(self, setting: Setting, shared: Float[Array, "shared"]) -> Float[Array, ""]:
        """Of the marginal potential."""
        guide, sample = setting.guide, setting.sample
        size = guide.of_sample.shape[1]
        guess = _evaluate_guide(guide.of_sample, shared)
        at = sample.whitening({"shared": shared, "units": guess})
        parts = self.density.potentials(at, sample.data)
        left = features(shared, len(guide.level)) @ guide.level
        weight = guide.share * self.density.weight(setting.data) * self.density.units / max(size, 1)
        return parts.shared + weight * parts.units.sum() + left


def _evaluate_guide(
    coefficients: Float[Array, "some unit entry"], shared: Float[Array, "shared"]
) -> Float[Array, "unit entry"]:
    """What a guide says at ξ."""
    return jnp.tensordot(features(shared, len(coefficients)), coefficients, axes=1)


def _fill_upper(
    entries: Float[Array, "unit entry"], size: int
) -> Float[Array, "unit {size} {size}"]:
    """Upper triangular matrices of their entries, row by row."""
    row, column = np.triu_indices(size)
    place = np.zeros((len(row), size, size))
    place[np.arange(len(row)), row, column] = 1
    return jnp.tensordot(entries, place, axes=1)


def _newton_step(
    guess: Float[Array, "unit own"],
    root: Float[Array, "unit own own"],
    gradient: Float[Array, "unit own"],
) -> tuple[Units, Float[Array, "unit"]]:
    """Units a Newton step from their guesses, and how far down they promise to be."""
    half = by_unit(root.swapaxes(1, 2), gradient)
    squared = jnp.sum(jnp.square(half), axis=1)
    shrink = jnp.minimum(1.0, LONGEST / jnp.sqrt(jnp.maximum(squared, 1e-300)))
    center = guess - shrink[:, None] * by_unit(root, half)
    return Units(center, root), shrink * (1 - shrink / 2) * squared


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
