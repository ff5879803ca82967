"""Accuracy curves: cubic splines deconvolved from the annotators' noise.

Equation 8 of Engstrom et al. (2020), section 5.3. With g(s) = Σ_j ω_j B_j(s) the model's share of
images that are classified correctly *and* selected by k of n is linear in ω,

    ∫ g(s) P(k | n, s) p_rep(s) ds = Σ_j D[k, j] ω_j,
    D[k, j] = Σ_i w_i BetaBinomial(k; n, a_i, b_i) E[B_j(s) | s ~ Beta(a_i + k, b_i + n − k)],

so ω solves a small least-squares problem under bounds on g, and A = Σ_j ω_j E_ref[B_j].

g: accuracy curve; ω_j: coefficient of spline B_j; w_i, a_i, b_i: weight and shape parameters of
component i of the replication's mixture; A: adjusted accuracy.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import xlogy
from jax.typing import ArrayLike

from bayesrep.estimators.betas import Betas
from bayesrep.estimators.em import CellMatrices
from bayesrep.numerics.batches import in_batches
from bayesrep.numerics.beta_binomial import log_cells
from bayesrep.numerics.beta_splines import expected_bsplines, published_grid, published_sum
from bayesrep.numerics.constants import SMALLEST_POSITIVE
from bayesrep.numerics.least_squares import bounded_least_squares
from bayesrep.numerics.splines import N_COEFFICIENTS, bspline_basis
from bayesrep.types import Float, Floats, Int

LOWEST_ACCURACY, HIGHEST_ACCURACY = 2e-6, 1.0
"""Bounds of an accuracy curve in the published code."""

_ROUGHNESS_WEIGHT = 1e-6
"""Relative weight of the roughness penalty: it selects the smoothest curve where the counts do not
identify the coefficients, and is negligible elsewhere."""

_MIN_GAIN = 1e-5  # nats; the maximisation stops at a smaller gain
_STEP_FRACTIONS = (1.0, 0.5, 0.1, 0.01, 0.0)
_CURVES_PER_BATCH, _MAX_VERSIONS_PER_BATCH = 256, 32
"""Curves, and versions, solved in one batch: their values on the grid fit the cache."""


class SplineCells(NamedTuple):
    """Cells of a study as the curves need them."""

    selected: Float[Array, "cell"]
    shown: Float[Array, "cell"]
    same_shown: Float[Array, "cell cell"]  # 0/1: cells with the same n
    matrices: CellMatrices
    likelihood: Float[Array, "cell point"] | None  # P(k | n, s) on the published grid, or None

    @classmethod
    def from_cells(
        cls, selected: Int[np.ndarray, "cell"], n: Int[np.ndarray, "cell"], quadrature: str
    ) -> "SplineCells":
        """Prepare cells of k = `selected` of n for one kind of quadrature."""
        likelihood = None
        if quadrature == "published":
            from scipy.stats import binom  # takes long to import

            mass = binom.pmf(selected[:, None], n[:, None], published_grid()[None])
            likelihood = jnp.asarray(mass)
        return cls(
            jnp.asarray(selected, float),
            jnp.asarray(n, float),
            jnp.asarray(n[:, None] == n[None, :], float),
            CellMatrices.from_cells(selected, n),
            likelihood,
        )


def bounded_rows(bounds: str) -> Floats:
    """Build the rows G of lowest ≤ G ω ≤ highest: the curve on a grid, or its coefficients."""
    return bspline_basis(published_grid()) if bounds == "grid" else np.eye(N_COEFFICIENTS)


def equation_8(
    mixture: Betas, images: Float[ArrayLike, "cell"], cells: SplineCells
) -> Float[Array, "cell basis"]:
    """Compute the design D of equation 8, each cell times the share of images with its n."""
    a, b, weights = map(jnp.asarray, mixture)
    images = jnp.asarray(images)
    share = cells.same_shown @ images / images.sum()  # of images with the same n
    if cells.likelihood is not None:
        return share[:, None] * published_sum(a, b, weights, cells.likelihood)
    matrices = cells.matrices
    log_mass = log_cells(a, b, matrices.selected, matrices.rejected, matrices.shown)
    mass = weights[:, None] * jnp.exp(matrices.log_choices[None, :] + log_mass)  # [K, M]
    rejected = cells.shown - cells.selected
    # Given the count a component is Beta(a + k, b + n − k).
    inside = expected_bsplines(a[:, None] + cells.selected[None, :], b[:, None] + rejected[None, :])
    return share[:, None] * jnp.einsum("km,kmj->mj", mass, inside)


def fit_curves(
    design: Float[ArrayLike, "cell basis"],
    images: Float[ArrayLike, "cell"],
    correct: Float[ArrayLike, "cell classifier"],
    rows: Float[ArrayLike, "row basis"],
    loss: str,
) -> Float[Array, "classifier basis"]:
    """Fit ω of every classifier from D and the images, and correct images, of each cell."""
    design, images, correct, rows = map(jnp.asarray, (design, images, correct, rows))
    if loss == "binomial":
        return _binomial(design, images, correct.T, rows)
    weights = jnp.ones(design.shape[0])
    if loss == "weighted":
        # The variance of a count grows with its expectation, and rows of D sum to that.
        weights = 1 / jnp.sqrt(jnp.maximum(design.sum(axis=1), 1e-12))
    scaled = design * weights[:, None]
    targets = correct.T / images.sum() * weights[None, :]
    return _least_squares(scaled, targets, rows)


def _least_squares(
    design: Float[Array, "cell basis"],
    targets: Float[Array, "classifier cell"],
    rows: Float[Array, "row basis"],
) -> Float[Array, "classifier basis"]:
    size = design.shape[1]
    slope = jnp.diff(jnp.eye(size), axis=0)
    rough = jnp.concatenate([jnp.diff(slope, axis=0), 0.1 * slope])
    # The penalty enters as further rows of the design with targets of 0.
    design = jnp.concatenate([design, _ROUGHNESS_WEIGHT * jnp.linalg.norm(design) * rough])
    targets = jnp.pad(targets, ((0, 0), (0, rough.shape[0])))
    return bounded_least_squares(design, targets, rows, LOWEST_ACCURACY, HIGHEST_ACCURACY)


def _binomial(
    design: Float[Array, "cell basis"],
    images: Float[Array, "cell"],
    correct: Float[Array, "classifier cell"],
    rows: Float[Array, "row basis"],
) -> Float[Array, "classifier basis"]:
    """Maximise Σ y log q + (m − y) log(1 − q), q = D ω / D 1, by reweighted least squares."""
    total = design.sum(axis=1, keepdims=True)
    # P(basis function | count): the rows of D, normalised.
    conditional = design / jnp.maximum(total, SMALLEST_POSITIVE)
    observed = images > 0

    def likelihood(curve: Float[Array, "basis"], right: Float[Array, "cell"]) -> Float[Array, ""]:
        # Clipped: on the boundary of the bounds rounding may leave [0, 1].
        q = jnp.clip(conditional @ curve, 1e-12, 1.0)
        logs = xlogy(right, q) + xlogy(images - right, jnp.maximum(1 - q, 1e-12))
        return jnp.where(observed, logs, 0.0).sum()

    def step(state: tuple[Array, Array, Array], right: Array) -> tuple[Array, Array, Array]:
        curve, current, _ = state
        # One Newton step is a least-squares problem with weights m / (q (1 − q)).
        q = jnp.clip(conditional @ curve, 1e-5, 1 - 1e-5)
        weight = jnp.sqrt(images / (q * (1 - q)))
        rate = jnp.where(observed, right / jnp.maximum(images, SMALLEST_POSITIVE), 0.0)
        target = (weight * rate)[None, :]
        solution = _least_squares(conditional * weight[:, None], target, rows)[0]
        # Line search: the most likely of several fractions of the step.
        trial = curve[None, :] + jnp.asarray(_STEP_FRACTIONS)[:, None] * (solution - curve)[None, :]
        values = jax.vmap(likelihood, in_axes=(0, None))(trial, right)
        best = jnp.argmax(values)
        better = values[best] > current
        gain = jnp.where(better, values[best] - current, 0.0)
        return jnp.where(better, trial[best], curve), jnp.maximum(values[best], current), gain

    def fit(start: Float[Array, "basis"], right: Float[Array, "cell"]) -> Float[Array, "basis"]:
        begin = start, likelihood(start, right), jnp.asarray(jnp.inf)
        return jax.lax.while_loop(
            lambda state: state[2] > _MIN_GAIN, lambda state: step(state, right), begin
        )[0]

    # Each curve starts at the weighted least-squares fit of its shares of right answers.
    target = correct / jnp.sqrt(jnp.maximum(images, SMALLEST_POSITIVE))[None, :]
    starts = _least_squares(conditional * jnp.sqrt(images)[:, None], target, rows)
    return jax.vmap(fit)(starts, correct)


def adjusted_accuracies(
    reference: Betas,
    replication: Betas,
    images: Float[ArrayLike, "version cell"],
    correct: Float[ArrayLike, "version cell classifier"],
    cells: SplineCells,
    rows: Float[ArrayLike, "row basis"],
    *,
    loss: str,
) -> tuple[Float[np.ndarray, "version classifier"], Float[np.ndarray, "version classifier basis"]]:
    """Fit the curves of B versions of a study; return A_c and the B-spline coefficients."""
    data = reference, replication, images, correct
    size = int(np.clip(_CURVES_PER_BATCH // np.shape(correct)[2], 1, _MAX_VERSIONS_PER_BATCH))
    return in_batches(lambda *some: _adjusted_batch(*some, cells, rows, loss=loss), data, size)


@partial(jax.jit, static_argnames=("loss",))
def _adjusted_batch(
    reference: Betas,
    replication: Betas,
    images: Float[Array, "version cell"],
    correct: Float[Array, "version cell classifier"],
    cells: SplineCells,
    rows: Float[Array, "row basis"],
    *,
    loss: str,
) -> tuple[Float[Array, "version classifier"], Float[Array, "version classifier basis"]]:
    def adjust(target: Betas, source: Betas, images: Array, correct: Array) -> tuple[Array, Array]:
        curves = fit_curves(equation_8(source, images, cells), images, correct, rows, loss)
        inside = expected_bsplines(target.a, target.b)
        # A_c = Σ_j ω_j E_ref[B_j].
        return curves @ (target.weights @ inside), curves

    return jax.vmap(adjust)(reference, replication, images, correct)
