"""Maximum-likelihood mixtures of beta-binomials: algorithm 1 of Engstrom et al. (2020), appendix F.

    p(k of n) = Σ_j w_j BetaBinomial(k; n, a_j, b_j)

The M-step reduces: Σ_m r_jm log (a)_{k_m} = Σ_i U_ji log(a + i), U_ji the members of component
j with k > i, so its Newton steps sum over n numbers. EM is slow where components overlap: after its
rounds Newton's method maximises the likelihood itself.

w_j: weight of component j; a_j, b_j: its shape parameters; r_jm: share of cell m that belongs to
component j; (a)_k: rising factorial.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.nn import log_sigmoid
from jax.scipy.special import logsumexp

from bayesrep.estimators.betas import CONCENTRATION_LIMITS, MEAN_LIMITS, LogBetas
from bayesrep.numerics.batches import in_batches
from bayesrep.numerics.beta_binomial import counts_below, log_binomial, log_cells, log_mixture
from bayesrep.numerics.constants import SMALLEST_POSITIVE
from bayesrep.types import Float, Int

_LOGIT_LIMITS = tuple(np.log(m / (1 - m)) for m in MEAN_LIMITS)
_LOG_LIMITS = tuple(np.log(c) for c in CONCENTRATION_LIMITS)
_M_STEP_FRACTIONS = (1.0, 0.5, 0.125, 0.0)  # of a Newton step; the best is taken
_NEWTON_FRACTIONS = (1.0, 0.5, 0.2, 0.05, 0.01, 1e-3, 1e-4)  # for all parameters together
_MAX_STEP = 2.0
_AT_LIMIT = 1e-9  # rounding error of a parameter at its limit
_NEWTON_TOLERANCE = 1e-9  # nats; Newton's method stops below
_MAX_NEWTON_STEPS = 100
_STARTS_PER_BATCH = 32  # maximised in one batch


class CellMatrices(NamedTuple):
    """Cells as the likelihood needs them: 0/1 matrices of `counts_below`, and log C(n, k)."""

    selected: Float[Array, "cell step"]
    rejected: Float[Array, "cell step"]
    shown: Float[Array, "cell step"]
    log_choices: Float[Array, "cell"]

    @classmethod
    def from_cells(
        cls, selected: Int[np.ndarray, "cell"], n: Int[np.ndarray, "cell"]
    ) -> "CellMatrices":
        """Build the matrices for cells of k = `selected` of n."""
        size = int(n.max())
        ones = [jnp.asarray(counts_below(k, size)) for k in (selected, n - selected, n)]
        return cls(ones[0], ones[1], ones[2], jnp.asarray(log_binomial(n, selected)))


class Ascent(NamedTuple):
    """Optima reached from one or more starts, with diagnostics."""

    mixture: LogBetas
    log_likelihood: Any
    drop: Any  # largest decrease of the likelihood in a round of EM, nats; rounding only
    gain: Any  # predicted increase of a further Newton step, nats


def log_likelihood(
    mixture: LogBetas, images: Float[Array, "cell"], cells: CellMatrices
) -> Float[Array, ""]:
    """Compute the log likelihood Σ_m images_m log p(k_m of n_m), nats."""
    log_mass = log_mixture(mixture.log_weights, _log_components(mixture, cells))
    return images @ (cells.log_choices + log_mass)


def _log_components(mixture: LogBetas, cells: CellMatrices) -> Float[Array, "component cell"]:
    a, b = jnp.exp(mixture.log_a), jnp.exp(mixture.log_b)
    return log_cells(a, b, cells.selected, cells.rejected, cells.shown)


def _em_round(
    mixture: LogBetas, images: Float[Array, "cell"], cells: CellMatrices
) -> tuple[LogBetas, Float[Array, ""]]:
    """Run one round of algorithm 1; also return the log likelihood before it."""
    log_joint = mixture.log_weights[:, None] + _log_components(mixture, cells)
    log_total = logsumexp(log_joint, axis=0)
    members = images[None, :] * jnp.exp(log_joint - log_total[None, :])  # step 1
    weights = members.sum(axis=1) / images.sum()
    log_a, log_b = _m_step(mixture, members, cells)  # step 2
    # A component that lost its images keeps a finite log weight.
    log_weights = jnp.log(jnp.maximum(weights, SMALLEST_POSITIVE))
    return LogBetas(log_a, log_b, log_weights), images @ (cells.log_choices + log_total)


def _m_step(
    mixture: LogBetas, members: Float[Array, "component cell"], cells: CellMatrices
) -> tuple[Float[Array, "component"], Float[Array, "component"]]:
    """Take two Newton steps on every component's weighted log likelihood, never downhill."""
    # U_ji of the module's docstring, for k, n − k and n: sufficient for the M-step.
    tails = tuple(members @ m for m in (cells.selected, cells.rejected, cells.shown))
    steps = jnp.arange(tails[0].shape[1], dtype=float)[None, :]

    def expected_log_likelihood(
        log_a: Float[Array, "component"], log_b: Float[Array, "component"]
    ) -> Float[Array, "component"]:
        a, b = jnp.exp(log_a)[:, None], jnp.exp(log_b)[:, None]
        selected, rejected, total = tails
        logs = selected * jnp.log(a + steps) + rejected * jnp.log(b + steps)
        return (logs - total * jnp.log(a + b + steps)).sum(axis=1)

    def newton(parameters: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        log_a, log_b = parameters
        step_a, step_b = _newton_step(jnp.exp(log_a), jnp.exp(log_b), tails, steps)
        # A fraction of 0 is among the candidates, so that no step lowers the likelihood.
        shares = jnp.asarray(_M_STEP_FRACTIONS)[:, None]
        trial_a = log_a[None, :] + shares * step_a[None, :]
        trial_b = log_b[None, :] + shares * step_b[None, :]
        # Means and concentrations stay within their limits.
        logit = jnp.clip(trial_a - trial_b, *_LOGIT_LIMITS)
        size = jnp.clip(jnp.logaddexp(trial_a, trial_b), *_LOG_LIMITS)
        trial_a, trial_b = _log_parameters(logit, size)
        best = jnp.argmax(jax.vmap(expected_log_likelihood)(trial_a, trial_b), axis=0)
        chosen = best[None, :] == jnp.arange(len(_M_STEP_FRACTIONS))[:, None]
        return (jnp.where(chosen, trial_a, 0).sum(0), jnp.where(chosen, trial_b, 0).sum(0)), None

    return jax.lax.scan(newton, (mixture.log_a, mixture.log_b), None, length=2)[0]


def _log_parameters(logit: Array, log_concentration: Array) -> tuple[Array, Array]:
    return log_concentration + log_sigmoid(logit), log_concentration + log_sigmoid(-logit)


def _newton_step(
    a: Float[Array, "component"],
    b: Float[Array, "component"],
    tails: tuple[Float[Array, "component step"], ...],
    steps: Float[Array, "1 step"],
) -> tuple[Float[Array, "component"], Float[Array, "component"]]:
    """Compute the ascent step in (log a, log b) of every component from its 2 × 2 Hessian."""
    selected, rejected, total = tails
    over_a, over_b = 1 / (a[:, None] + steps), 1 / (b[:, None] + steps)
    over_sum = 1 / ((a + b)[:, None] + steps)
    # Derivatives with respect to log a and log b, by the chain rule.
    slope_sum = (total * over_sum).sum(1)
    curvature_sum = (total * over_sum**2).sum(1)
    slope_a = a * ((selected * over_a).sum(1) - slope_sum)
    slope_b = b * ((rejected * over_b).sum(1) - slope_sum)
    aa = slope_a - a**2 * ((selected * over_a**2).sum(1) - curvature_sum)
    bb = slope_b - b**2 * ((rejected * over_b**2).sum(1) - curvature_sum)
    ab = a * b * curvature_sum
    # |Hessian|^-1 gradient: Newton's step where the Hessian is negative, uphill where it is not.
    middle, half = (aa + bb) / 2, jnp.sqrt(((aa - bb) / 2) ** 2 + ab**2)
    smallest = 1e-9 * (1 + total[:, 0])
    plus, minus = jnp.abs(middle + half) + smallest, jnp.abs(middle - half) + smallest
    # 1/|H| = α + β H for a symmetric 2 × 2 matrix with eigenvalues middle ± half
    beta = jnp.where(half > 0, (1 / plus - 1 / minus) / jnp.where(half > 0, 2 * half, 1.0), 0.0)
    alpha = 1 / plus - beta * (middle + half)
    step_a = alpha * slope_a + beta * (aa * slope_a + ab * slope_b)
    step_b = alpha * slope_b + beta * (ab * slope_a + bb * slope_b)
    # Trust region: no step multiplies a or b by more than exp(2).
    shrink = jnp.minimum(1.0, _MAX_STEP / jnp.maximum(jnp.hypot(step_a, step_b), SMALLEST_POSITIVE))
    return shrink * step_a, shrink * step_b


def _newton_climb(
    mixture: LogBetas, images: Float[Array, "cell"], cells: CellMatrices
) -> tuple[LogBetas, Float[Array, ""]]:
    """Maximise the log likelihood over all parameters by Newton's method; also return the gain."""
    size = mixture.log_a.shape[0]
    lower, upper = (
        jnp.repeat(jnp.asarray(ends), size)
        for ends in zip(_LOGIT_LIMITS, _LOG_LIMITS, (-700.0, jnp.inf), strict=True)
    )

    # A position holds the logits of the means, the logs of the concentrations and of the weights.
    def at_position(position: Float[Array, "parameter"]) -> LogBetas:
        logit, log_concentration, logits = jnp.split(position, 3)
        return LogBetas(*_log_parameters(logit, log_concentration), logits - logsumexp(logits))

    def value(position: Float[Array, "parameter"]) -> Float[Array, ""]:
        return log_likelihood(at_position(position), images, cells)

    def step(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        position, current, _, steps_left = state
        gradient, along = jax.linearize(jax.grad(value), position)
        hessian = jax.vmap(along)(jnp.eye(3 * size))
        # Active bounds: parameters at a limit whose gradient points outwards stay fixed.
        fixed = jnp.where(gradient > 0, position > upper - _AT_LIMIT, position < lower + _AT_LIMIT)
        gradient = jnp.where(fixed, 0.0, gradient)
        hessian = jnp.where(fixed[:, None] | fixed[None, :], 0.0, hessian)
        # |H| in place of H makes every step an ascent, also where H is indefinite.
        scale, axes = jnp.linalg.eigh(hessian)
        move = axes @ ((gradient @ axes) / jnp.maximum(jnp.abs(scale), 1e-6))
        longest = jnp.maximum(jnp.abs(move).max(), SMALLEST_POSITIVE)
        move = move * jnp.minimum(1.0, _MAX_STEP / longest)
        # Line search: the best of several fractions of the step, if it is an improvement.
        trial = position[None, :] + jnp.asarray(_NEWTON_FRACTIONS)[:, None] * move[None, :]
        trial = jnp.clip(trial, lower[None, :], upper[None, :])
        values = jax.vmap(value)(trial)
        best = jnp.argmax(values)
        better = values[best] > current
        # The increase that the quadratic model predicts; convergence where it is small.
        gain = gradient @ move / 2
        steps_left = jnp.where(better & (gain > _NEWTON_TOLERANCE), steps_left - 1, 0)
        position = jnp.where(better, trial[best], position)
        return position, jnp.maximum(values[best], current), gain, steps_left

    log_a, log_b, log_weights = mixture
    start = jnp.concatenate([log_a - log_b, jnp.logaddexp(log_a, log_b), log_weights])
    begin = (start, value(start), jnp.asarray(jnp.inf), jnp.asarray(_MAX_NEWTON_STEPS))
    position, _, gain, _ = jax.lax.while_loop(lambda state: state[3] > 0, step, begin)
    return at_position(position), gain


def _ascend(
    start: LogBetas,
    images: Float[Array, "cell"],
    cells: CellMatrices,
    rounds: Int[Array, ""],
    *,
    newton: bool,
) -> Ascent:
    def em(_: Array, state: tuple[LogBetas, Array, Array]) -> tuple[LogBetas, Array, Array]:
        mixture, before, drop = state
        mixture, height = _em_round(mixture, images, cells)
        return mixture, height, jnp.maximum(drop, before - height)

    begin = (start, jnp.asarray(-jnp.inf), jnp.zeros(()))
    mixture, before, drop = jax.lax.fori_loop(0, rounds, em, begin)
    height = log_likelihood(mixture, images, cells)
    drop = jnp.maximum(drop, jnp.where(jnp.isfinite(before), before - height, 0.0))
    gain = jnp.asarray(jnp.nan)
    if newton:
        mixture, gain = _newton_climb(mixture, images, cells)
        height = log_likelihood(mixture, images, cells)
    return Ascent(mixture, height, drop, gain)


@partial(jax.jit, static_argnames="newton")
def _ascend_batch(*climbs: Any, newton: bool) -> Ascent:
    """Ascend from starts [climb] with images [climb, cell], of the same cells and rounds."""
    return jax.vmap(partial(_ascend, newton=newton), in_axes=(0, 0, None, None))(*climbs)


def ascend(
    starts: LogBetas,
    images: Float[np.ndarray, "dataset version cell"],
    cells: CellMatrices,
    *,
    rounds: int,
    newton: bool = True,
) -> Ascent:
    """Maximise the likelihood from starts [D, B, S, K] of every version of every data set."""
    shape = starts.log_a.shape[:-1]
    each = np.broadcast_to(np.asarray(images)[:, :, None], (*shape, images.shape[2]))
    flat = jax.tree.map(lambda leaf: np.reshape(leaf, (-1, leaf.shape[-1])), (starts, each))
    # A batch iterates until its slowest member has converged: small batches waste little.
    optima = in_batches(
        lambda *some: _ascend_batch(*some, cells, rounds, newton=newton), flat, _STARTS_PER_BATCH
    )
    return jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), optima)
