"""The Laplace marginal p̂(ξ | y): the posterior of the shared parameters, local ones integrated out.

In coordinates ξ (shared) and ζ_c (of classifier c) of a `Whitening`, a classifier given ξ is close
to a normal, with a centre m_c(ξ) and a root R_c(ξ) of its covariance, by two Newton steps. Its
integral is Laplace's approximation V_c(ξ) of −log p(y_c | ξ) (Tierney and Kadane 1986).

With ζ_c = m_c(ξ) + R_c(ξ) z_c the *ratio*

    r_c(ξ, z_c)  =  p(y_c, ζ_c | ξ) |R_c| / N(z_c)

has the mean p(y_c | ξ) over standard normal z_c, whatever the steps' quality. So the mean of a few
ratios, of antithetic z_c, is an unbiased *estimate* of it, and one z_c picked by their ratios is a
draw of the classifier's posterior (Andrieu and Roberts 2009).

With the density's weight w the marginal is p(ξ) Π_c p(y_c | ξ)^w. The power of an unbiased estimate
is biased by w (w − 1) / 2 times its relative variance, which hardly depends on ξ.

References
----------
Tierney, Kadane (1986), JASA 81. Andrieu, Roberts (2009), Annals of Statistics 37.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bayesrep.inference.arrowhead import Whitening, by_unit
from bayesrep.inference.density import Density, Position, Potentials
from bayesrep.inference.program import storable
from bayesrep.models.model import Data, take_rows
from bayesrep.types import Float, Ints

MIN_PIVOT = 0.1
"""Smallest Cholesky pivot: whitened Hessians are near the identity."""
N_PAIRS = 4
"""Antithetic pairs of z of every classifier in an estimate."""
N_JOINT_STEPS = 4
"""Metropolis steps of a draw: nearly every classifier ends at one of the last proposals."""
N_FACTORS = 64
"""Largest number of factors of classifiers' noise."""
MIN_SUBSAMPLE = 16
"""Smallest subsample of classifiers that stands for all."""


class FactorNoise(NamedTuple):
    """A factor model of all classifiers' noise: z = common g + own e, each z_c of variance I."""

    common: Float[Array, "unit own factor"]  # loadings (`bayesrep.inference.image_weights`)
    own: Float[Array, "unit own own"]  # root of what these leave of each classifier's identity

    def draw(self, key: Array, count: int) -> Float[Array, "{count} unit own"]:
        """Draw z of all classifiers so many times."""
        of_common, of_own = jax.random.split(key)
        common = jax.random.normal(of_common, (count, self.common.shape[2]))
        own = jax.random.normal(of_own, (count, *self.common.shape[:2]))
        return jnp.tensordot(common, self.common, axes=(1, 2)) + jax.vmap(
            lambda each: by_unit(self.own, each)
        )(own)


class Setting(NamedTuple):
    """Arrays that a marginal is computed from."""

    data: Data
    whitening: Whitening
    noise: FactorNoise
    subsample: Ints  # rows of the classifiers that stand for all in a surrogate


class ConditionalNormals(NamedTuple):
    """The classifiers' normals given ξ: centres m, and upper triangular roots R of covariances."""

    center: Float[Array, "unit own"]
    root: Float[Array, "unit own own"]

    @property
    def log_volume(self) -> Float[Array, "unit"]:
        """log |R|, the log volume of each classifier's normal."""
        return jnp.sum(jnp.log(jnp.diagonal(self.root, axis1=1, axis2=2)), axis=1)

    def place(self, standard: Float[Array, "unit own"]) -> Float[Array, "unit own"]:
        """Compute ζ = m + R z."""
        return self.center + by_unit(self.root, standard)


@storable
class MarginalDraw(NamedTuple):
    """A draw of the classifiers' own parameters at ξ."""

    position: Position  # all parameters
    log_marginal: Float[Array, ""]  # log of the unbiased estimate of the marginal density at ξ


def choose_subsample(values: Float[np.ndarray, "unit"]) -> Ints:
    """Choose rows of classifiers evenly spaced in the order of a value of each."""
    size = min(max(MIN_SUBSAMPLE, len(values) // 16), len(values))
    middles = ((np.arange(size) + 0.5) * len(values) / max(size, 1)).astype(np.int64)
    return np.sort(np.argsort(values, kind="stable")[middles])


@dataclass(frozen=True, eq=False)
class Marginal:
    """The marginal of a density's shared parameters; every method is traceable."""

    density: Density

    def setting(self, data: Data, whitening: Whitening) -> Setting:
        """Build the setting of classifiers that have no noise in common; not traceable."""
        units, own = self.density.units, self.density.per_unit
        noise = np.zeros((units, own, N_FACTORS)), np.tile(np.eye(own), (units, 1, 1))
        rows = choose_subsample(np.asarray(whitening.center["units"])[:, :1].sum(axis=1))
        return Setting(data, whitening, FactorNoise(*jax.device_put(noise)), rows)

    def subsample(self, setting: Setting) -> Setting:
        """Build the setting in which the subsample stands for all; not traceable."""
        rows = setting.subsample
        return Setting(
            self.density.select(setting.data, rows),
            setting.whitening.of_units(rows),
            take_rows(setting.noise, rows),
            np.arange(len(rows)),
        )

    def potentials(
        self, setting: Setting, shared: Float[Array, "shared"], units: Float[Array, "unit own"]
    ) -> Potentials:
        """Compute −log p(ξ) and each classifier's −log p(y_c, ζ_c | ξ)."""
        position = setting.whitening({"shared": shared, "units": units})
        return self.density.potentials(position, setting.data)

    def conditional_normals(
        self, setting: Setting, shared: Float[Array, "shared"]
    ) -> tuple[ConditionalNormals, Float[Array, "unit"]]:
        """Compute every classifier's normal given ξ, and Laplace's V_c, by two Newton steps."""

        def each(units: Array) -> Array:
            return self.potentials(setting, shared, units).units

        def descend(point: Array, value: Array, step: Array) -> tuple[Array, Array]:
            # Far out a Hessian need not be one of a minimum: a step that leads up is not taken.
            further = each(point + step)
            down = further < value
            return jnp.where(down[:, None], point + step, point), jnp.where(down, further, value)

        # Classifiers are independent: one gradient, and one product an axis, serve all of them.
        zero = jnp.zeros_like(setting.whitening.center["units"])
        size, units = zero.shape[1], len(zero)
        identity = jnp.broadcast_to(jnp.eye(size), (units, size, size))
        value, back = jax.vjp(each, zero)
        gradient = back(jnp.ones_like(value))[0]
        # The first step takes the Hessian for the identity that coordinates make of it.
        start, value = descend(zero, value, _newton_step(identity, gradient))
        gradient, product = jax.linearize(jax.grad(lambda units: each(units).sum()), start)
        axes = identity.swapaxes(0, 1)
        hessian = jnp.moveaxis(jax.vmap(product)(axes), 0, 2)
        root = _inverse_root((hessian + hessian.swapaxes(1, 2)) / 2)
        center, value = descend(start, value, _newton_step(root, gradient))
        normals = ConditionalNormals(center, root)
        return normals, value - normals.log_volume

    def evaluate(
        self, setting: Setting, shared: Float[Array, "shared"]
    ) -> tuple[Float[Array, ""], Float[Array, "sampled own"]]:
        """Evaluate the Laplace marginal at ξ: −log p̂(ξ | y), and the subsample's centres m."""
        normals, levels = self.conditional_normals(setting, shared)
        own = self.potentials(setting, shared, normals.center).shared
        # A subsample's sum stands for that of all classifiers.
        scale = self.density.weight(setting.data) * (self.density.units / len(levels))
        return own + scale * levels.sum(), normals.center[setting.subsample]

    def log_ratios(
        self,
        setting: Setting,
        shared: Float[Array, "shared"],
        normals: ConditionalNormals,
        standard: Float[Array, "z unit own"],
    ) -> tuple[Float[Array, "z unit"], Float[Array, ""]]:
        """Compute log r_c of every z_c, and −log p(ξ) with the annotations' likelihood."""
        # All in one array: an estimate after the other compiles twice as long and runs no faster.
        own, units = jax.vmap(
            lambda z: tuple(self.potentials(setting, shared, normals.place(z))), out_axes=(None, 0)
        )(standard)
        normal = 0.5 * jnp.square(standard).sum(axis=2)
        return normal + normals.log_volume[None, :] - units, own

    def draw(self, setting: Setting, shared: Float[Array, "shared"], key: Array) -> MarginalDraw:
        """Draw all classifiers' own parameters at ξ, and estimate the marginal density there."""
        pair, noise, pick, accept = jax.random.split(key, 4)
        normals, _ = self.conditional_normals(setting, shared)
        # Antithetic pairs for the estimate, and correlated proposals for the joint steps.
        half = jax.random.normal(pair, (N_PAIRS, *normals.center.shape))
        proposals = setting.noise.draw(noise, N_JOINT_STEPS)
        standard = jnp.concatenate([half, -half, proposals])
        ratios, own = self.log_ratios(setting, shared, normals, standard)
        ratios, of_proposals = jnp.split(ratios, [2 * N_PAIRS])
        log_evidence = jax.nn.logsumexp(ratios, axis=0) - jnp.log(2 * N_PAIRS)

        # Gumbel's trick picks one z of each classifier with probability ∝ its ratio: a draw of its
        # posterior, and so it is after the steps below.
        chosen = jnp.argmax(ratios + jax.random.gumbel(pick, ratios.shape), axis=0)
        mask = jax.nn.one_hot(chosen, len(ratios), axis=0, dtype=ratios.dtype)
        z = jnp.sum(standard[: 2 * N_PAIRS] * mask[:, :, None], axis=0)
        ratio = jnp.sum(ratios * mask, axis=0)
        # Independence Metropolis-Hastings: proposals are of the noise that classifiers have in
        # common and one uniform number accepts for all, so that classifiers move together.
        bounds = jnp.log(jax.random.uniform(accept, (N_JOINT_STEPS,)))
        for bound, proposal, new in zip(bounds, proposals, of_proposals, strict=True):
            accepted = bound < new - ratio
            z = jnp.where(accepted[:, None], proposal, z)
            ratio = jnp.where(accepted, new, ratio)
        position = setting.whitening({"shared": shared, "units": normals.place(z)})
        weight = self.density.weight(setting.data)
        return MarginalDraw(position, weight * log_evidence.sum() - own)


def _newton_step(
    root: Float[Array, "unit own own"], gradient: Float[Array, "unit own"]
) -> Float[Array, "unit own"]:
    """Compute steps −R Rᵀ gradient of all classifiers, of 3 conditional sd at most."""
    half = by_unit(root.swapaxes(1, 2), gradient)
    length = jnp.sqrt(jnp.maximum(jnp.sum(jnp.square(half), axis=1), 1e-300))
    return -by_unit(root, half) * jnp.minimum(1.0, 3.0 / length)[:, None]


def _inverse_root(matrix: Float[Array, "unit own own"]) -> Float[Array, "unit own own"]:
    """Compute upper triangular R with R Rᵀ the inverse, of all classifiers at once."""
    # Gauss elimination: L⁻¹ [A, I] = [Lᵀ, L⁻¹]. LAPACK's batches deadlock in several threads.
    size = matrix.shape[1]
    identity = jnp.broadcast_to(jnp.eye(size, dtype=matrix.dtype), matrix.shape)
    augmented = jnp.concatenate([matrix, identity], axis=2)
    rows: list[Array] = []
    for i in range(size):
        row = augmented[:, 0] / jnp.sqrt(jnp.maximum(augmented[:, :1, 0], MIN_PIVOT))
        rows.append(row[:, -size:])
        augmented = augmented[:, 1:, 1:] - row[:, 1 : size - i, None] * row[:, None, 1:]
    return jnp.stack(rows, axis=2)
