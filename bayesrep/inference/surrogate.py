"""A surrogate of the marginal potential, whose cost hardly grows with the number of classifiers.

It sums the shared parameters' own potential, those of a subsample of classifiers at centres that a
regression on ξ predicts (without which it would be wrong far out, and a chain there stuck), and a
quadratic in ξ for the residual of the Laplace marginal. Ridge regressions on points at which the
marginal was evaluated fit it, their penalties by generalised cross-validation.

References
----------
Golub, Heath, Wahba (1979), Technometrics 21.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bayesrep.inference.arrowhead import Whitening
from bayesrep.inference.density import Density, Potentials
from bayesrep.inference.laplace_marginal import Marginal, Setting
from bayesrep.inference.points import PointProgram, compile_for_points
from bayesrep.models.model import Data
from bayesrep.types import Float, Floats

CLIP_NORM = 11.0
"""Smallest norm at which ξ is clipped; √dimensions + 4 if that is larger."""
RIDGE_PENALTIES = 10.0 ** np.arange(-4, 5)


class Surrogate(NamedTuple):
    """Arrays of a surrogate; coefficients are of `features`."""

    data: Data  # of the subsample alone, as the coordinates
    whitening: Whitening
    scale: Float[Array, ""]  # factor of the subsample's potentials
    center: Float[Array, "feature sampled own"]  # coefficients of the subsample's centres
    quadratic: Float[Array, "feature"]  # of the residual of the marginal potential


def soft_clip_norm(shared: Any) -> Any:
    """Clip the norm of ξ [..., shared] softly, in NumPy or JAX, which bounds polynomials."""
    xp: Any = np if isinstance(shared, np.ndarray) else jnp
    squares = xp.sum(xp.square(shared), axis=-1, keepdims=True)
    longest = max(CLIP_NORM, np.sqrt(shared.shape[-1]) + 4.0)
    return shared / (1 + (squares / longest**2) ** 4) ** (1 / 8)


def features(shared: Any) -> Any:
    """Compute 1, ξ and ξ_i ξ_j for i ≤ j of clipped ξ [..., shared], in NumPy or JAX."""
    xp: Any = np if isinstance(shared, np.ndarray) else jnp
    clipped, size = soft_clip_norm(shared), shared.shape[-1]
    first, second = np.triu_indices(size)
    # Products with matrices, whose gradients need no scattering.
    products = (clipped @ np.eye(size)[:, first]) * (clipped @ np.eye(size)[:, second])
    return xp.concatenate([xp.ones_like(clipped[..., :1]), clipped, products], axis=-1)


def surrogate_potential(
    density: Density, surrogate: Surrogate, shared: Float[Array, "shared"]
) -> Float[Array, ""]:
    """Compute the surrogate of the marginal potential at ξ; traceable."""
    inputs = features(shared)
    parts = _subsample_potentials(density, surrogate, shared, inputs)
    return parts.shared + surrogate.scale * parts.units.sum() + inputs @ surrogate.quadratic


def _subsample_potentials(
    density: Density, surrogate: Surrogate, shared: Array, inputs: Array
) -> Potentials:
    """Compute the potentials of the subsample at its predicted centres."""
    center = jnp.tensordot(inputs, surrogate.center, axes=1)
    position = surrogate.whitening({"shared": shared, "units": center})
    return density.potentials(position, surrogate.data)


@lru_cache(maxsize=16)
def _subsample_program(density: Density) -> PointProgram:
    """Compile the potentials of the subsample at points ξ."""

    def potentials(surrogate: Surrogate, point: Array) -> Potentials:
        return _subsample_potentials(density, surrogate, point, features(point))

    return compile_for_points(potentials, density, "potentials of the subsample")


def blank_surrogate(density: Density, setting: Setting) -> Surrogate:
    """Build the surrogate before any regression: centres follow the coordinates."""
    some, count = Marginal(density).subsample(setting), len(features(np.zeros(density.shared)))
    size = len(setting.subsample)
    scale = float(density.weight(setting.data)) * density.units / max(size, 1)
    arrays = (np.asarray(scale), np.zeros((count, size, density.per_unit)), np.zeros(count))
    return Surrogate(some.data, some.whitening, *jax.device_put(arrays))


def fit_surrogate(
    density: Density,
    setting: Setting,
    shared: Float[np.ndarray, "point shared"],
    potential: Float[np.ndarray, "point"],
    center: Float[np.ndarray, "point sampled own"],
) -> Surrogate:
    """Fit a surrogate to the values of `Marginal.evaluate` at points ξ of a setting."""
    surrogate, size = blank_surrogate(density, setting), density.shared
    usable = np.isfinite(potential) & np.isfinite(center).all(axis=(1, 2))
    shared, potential, center = shared[usable], potential[usable], center[usable]
    if len(potential) < 2 * (1 + size):
        return surrogate
    inputs = features(shared)
    # Points count 1 around the typical potential and less above, outside the posterior's mass.
    above = np.maximum(potential - np.median(potential) - size, 0.0)
    weight = 1 / np.square(1 + above / size)
    # With few points the regression of centres is linear in ξ.
    some = inputs if len(inputs) > 3 * inputs.shape[1] else inputs[:, : 1 + size]
    coefficients = np.zeros((inputs.shape[1], center[0].size))
    coefficients[: some.shape[1]] = ridge(some, center.reshape(len(center), -1), weight)
    of_center = coefficients.reshape(-1, *center.shape[1:])
    surrogate = surrogate._replace(center=jax.device_put(of_center))

    # The subsample at its predicted centres, as the surrogate itself evaluates it.
    parts = _subsample_program(density)(surrogate, shared)
    of_all = potential - np.asarray(parts.shared)
    of_subsample = float(surrogate.scale) * np.asarray(parts.units).sum(axis=1)
    # A control variate: all classifiers' residual from a quadratic, regressed on the subsample's.
    levels = np.stack([of_all, of_subsample], axis=1)
    residuals = levels - inputs @ ridge(inputs, levels, weight)
    covariance, variance = (residuals.T * weight) @ residuals[:, 1]
    share = float(np.clip(covariance / max(variance, 1e-300), 0.0, 1.0))
    quadratic = ridge(inputs, levels @ [[1.0], [-share]], weight)[:, 0]
    scale, quadratic = jax.device_put((np.asarray(share * float(surrogate.scale)), quadratic))
    return surrogate._replace(scale=scale, quadratic=quadratic)


def ridge(
    inputs: Float[np.ndarray, "point feature"],
    outputs: Float[np.ndarray, "point output"],
    weights: Float[np.ndarray, "point"],
) -> Float[np.ndarray, "feature output"]:
    """Regress outputs on features, the first of which is constant and free of the penalty."""
    weights = weights / weights.sum()
    center, means = weights @ inputs[:, 1:], weights @ outputs
    scale = np.sqrt(weights * len(weights))[:, None]
    design, response = scale * (inputs[:, 1:] - center), scale * (outputs - means)
    # By eigenvalues of the Gram matrix, not singular values: a fifth of the time, and the rounding
    # error of the smallest is far below the least penalty.
    squared, axes = np.linalg.eigh(design.T @ design)
    squared = np.where(squared > 1e-13 * squared[-1], squared, 0.0)
    projected = axes.T @ (design.T @ response)
    inverse = np.divide(1.0, squared, out=np.zeros_like(squared), where=squared > 0)
    explained = inverse * np.square(projected).sum(axis=1)
    unexplained = max(float(np.square(response).sum() - explained.sum()), 0.0)

    def generalised_error(penalty: float) -> float:
        shrunk: Floats = penalty / (squared + penalty)
        free = max(len(design) - len(squared) + shrunk.sum() - 1, 1e-2 * len(design))
        return float(len(design) * (unexplained + shrunk**2 @ explained) / free**2)

    penalty = min(RIDGE_PENALTIES, key=generalised_error)
    slopes = axes @ (projected / (squared + penalty)[:, None])
    return np.concatenate([(means - center @ slopes)[None], slopes])
