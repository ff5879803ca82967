"""Maximum-likelihood mixtures of beta-binomials: algorithm 1 of Engstrom et al. (2020), appendix F.

    p(k of n) = Σ_j w_j BetaBinomial(k; n, a_j, b_j)

The images enter through their counts, so a round of EM costs the same for any number of them. The
M-step reduces further: Σ_m r_jm log (a)_{k_m} = Σ_i U_ji log(a + i), U_ji the members of component
j with k > i, so its Newton steps sum over n numbers. EM is slow where components overlap, as they
do here: after its rounds Newton's method climbs the likelihood itself to the optimum. All starts,
replicates and data sets climb in one compiled program.

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

from bayesrep.estimators.betas import CONCENTRATIONS, MEANS, LogBetas
from bayesrep.numerics.batches import in_batches
from bayesrep.numerics.beta_binomial import counts_below, log_binomial, log_cells, log_mixture
from bayesrep.types import Float, Int

_LOGITS = tuple(np.log(m / (1 - m)) for m in MEANS)
_LOGS = tuple(np.log(c) for c in CONCENTRATIONS)
_STEPS = (1.0, 0.5, 0.125, 0.0)  # shares of a Newton step that are tried; the best is taken
_SHARES = (1.0, 0.5, 0.2, 0.05, 0.01, 1e-3, 1e-4)  # the same, for all parameters together
_LONGEST_STEP = 2.0
_EDGE = 1e-9  # what rounding leaves between a parameter and its limit
_GAIN = 1e-9  # nats that a further Newton step must promise
_NEWTON_STEPS = 100
_BATCH = 32  # climbs side by side


class CellMatrices(NamedTuple):
    """What the likelihood needs of cells: 0/1 matrices, and log C(n, k)."""

    selected: Float[Array, "cell step"]
    rejected: Float[Array, "cell step"]
    shown: Float[Array, "cell step"]
    log_choices: Float[Array, "cell"]

    @classmethod
    def from_cells(
        cls, selected: Int[np.ndarray, "cell"], shown: Int[np.ndarray, "cell"]
    ) -> "CellMatrices":
        """The matrices for cells of `selected` of `shown`."""
        size = int(shown.max())
        ones = [jnp.asarray(counts_below(k, size)) for k in (selected, shown - selected, shown)]
        return cls(ones[0], ones[1], ones[2], jnp.asarray(log_binomial(shown, selected)))


class Ascent(NamedTuple):
    """Optima at which climbs from one or more starts ended."""

    mixture: LogBetas
    log_likelihood: Any
    drop: Any  # largest fall of the likelihood between rounds of EM, nats; rounding only
    gain: Any  # nats that a further Newton step would promise


def log_likelihood(
    mixture: LogBetas, images: Float[Array, "cell"], cells: CellMatrices
) -> Float[Array, ""]:
    """Σ_m images_m log p(k_m of n_m), nats."""
    log_mass = log_mixture(mixture.log_weights, _log_components(mixture, cells))
    return images @ (cells.log_choices + log_mass)


def _log_components(mixture: LogBetas, cells: CellMatrices) -> Float[Array, "component cell"]:
    a, b = jnp.exp(mixture.log_a), jnp.exp(mixture.log_b)
    return log_cells(a, b, cells.selected, cells.rejected, cells.shown)


def _em_round(
    mixture: LogBetas, images: Float[Array, "cell"], cells: CellMatrices
) -> tuple[LogBetas, Float[Array, ""]]:
    """One round of algorithm 1, and the log likelihood before it."""
    log_joint = mixture.log_weights[:, None] + _log_components(mixture, cells)
    log_total = logsumexp(log_joint, axis=0)
    members = images[None, :] * jnp.exp(log_joint - log_total[None, :])  # step 1
    share = members.sum(axis=1) / images.sum()
    log_a, log_b = _m_step(mixture, members, cells)  # step 2
    log_weights = jnp.log(jnp.maximum(share, 1e-300))
    return LogBetas(log_a, log_b, log_weights), images @ (cells.log_choices + log_total)


def _m_step(
    mixture: LogBetas, members: Float[Array, "component cell"], cells: CellMatrices
) -> tuple[Float[Array, "component"], Float[Array, "component"]]:
    """Two Newton steps on every component's weighted log likelihood; none that lowers it."""
    tails = tuple(members @ m for m in (cells.selected, cells.rejected, cells.shown))
    steps = jnp.arange(tails[0].shape[1], dtype=float)[None, :]

    def expected_log_likelihood(
        log_a: Float[Array, "component"], log_b: Float[Array, "component"]
    ) -> Float[Array, "component"]:
        a, b = jnp.exp(log_a)[:, None], jnp.exp(log_b)[:, None]
        selected, rejected, shown = tails
        logs = selected * jnp.log(a + steps) + rejected * jnp.log(b + steps)
        return (logs - shown * jnp.log(a + b + steps)).sum(axis=1)

    def newton(at: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        log_a, log_b = at
        step_a, step_b = _newton_step(jnp.exp(log_a), jnp.exp(log_b), tails, steps)
        shares = jnp.asarray(_STEPS)[:, None]
        tried_a, tried_b = _within_limits(
            log_a[None, :] + shares * step_a[None, :], log_b[None, :] + shares * step_b[None, :]
        )
        best = jnp.argmax(jax.vmap(expected_log_likelihood)(tried_a, tried_b), axis=0)
        chosen = best[None, :] == jnp.arange(len(_STEPS))[:, None]
        return (jnp.where(chosen, tried_a, 0).sum(0), jnp.where(chosen, tried_b, 0).sum(0)), None

    return jax.lax.scan(newton, (mixture.log_a, mixture.log_b), None, length=2)[0]


def _within_limits(
    log_a: Float[Array, "*tried component"], log_b: Float[Array, "*tried component"]
) -> tuple[Float[Array, "*tried component"], Float[Array, "*tried component"]]:
    """The nearest component within the limits of mean and concentration."""
    logit = jnp.clip(log_a - log_b, *_LOGITS)
    return _log_parameters(logit, jnp.clip(jnp.logaddexp(log_a, log_b), *_LOGS))


def _log_parameters(logit: Array, log_concentration: Array) -> tuple[Array, Array]:
    return log_concentration + log_sigmoid(logit), log_concentration + log_sigmoid(-logit)


def _newton_step(
    a: Float[Array, "component"],
    b: Float[Array, "component"],
    tails: tuple[Float[Array, "component step"], ...],
    steps: Float[Array, "1 step"],
) -> tuple[Float[Array, "component"], Float[Array, "component"]]:
    """Ascent step in (log a, log b) of every component, from the 2 × 2 Hessian."""
    selected, rejected, shown = tails
    over_a, over_b = 1 / (a[:, None] + steps), 1 / (b[:, None] + steps)
    over_sum = 1 / ((a + b)[:, None] + steps)
    lost = (shown * over_sum).sum(1)
    curved = (shown * over_sum**2).sum(1)
    slope_a = a * ((selected * over_a).sum(1) - lost)
    slope_b = b * ((rejected * over_b).sum(1) - lost)
    aa = slope_a - a**2 * ((selected * over_a**2).sum(1) - curved)
    bb = slope_b - b**2 * ((rejected * over_b**2).sum(1) - curved)
    ab = a * b * curved
    # |Hessian|^-1 gradient: Newton's step where the Hessian is negative, uphill where it is not.
    middle, half = (aa + bb) / 2, jnp.sqrt(((aa - bb) / 2) ** 2 + ab**2)
    smallest = 1e-9 * (1 + shown[:, 0])
    one, other = jnp.abs(middle + half) + smallest, jnp.abs(middle - half) + smallest
    # 1/|H| = α + β H for a symmetric 2 × 2 matrix with eigenvalues middle ± half
    beta = jnp.where(half > 0, (1 / one - 1 / other) / jnp.where(half > 0, 2 * half, 1.0), 0.0)
    alpha = 1 / one - beta * (middle + half)
    step_a = alpha * slope_a + beta * (aa * slope_a + ab * slope_b)
    step_b = alpha * slope_b + beta * (ab * slope_a + bb * slope_b)
    shrink = jnp.minimum(1.0, _LONGEST_STEP / jnp.maximum(jnp.hypot(step_a, step_b), 1e-300))
    return shrink * step_a, shrink * step_b


def _newton_climb(
    mixture: LogBetas, images: Float[Array, "cell"], cells: CellMatrices
) -> tuple[LogBetas, Float[Array, ""]]:
    """Newton's method on the log likelihood of all parameters, and the gain still promised.

    In the logit of the means and the log of the concentrations: where a component shrinks to a
    point only its concentration meets a limit, and its mean goes on to move freely.
    """
    size = mixture.log_a.shape[0]
    floors, limits = (
        jnp.repeat(jnp.asarray(ends), size)
        for ends in zip(_LOGITS, _LOGS, (-700.0, jnp.inf), strict=True)
    )

    # A position holds the logits of the means, the logs of the concentrations and of the weights.
    def at_position(position: Float[Array, "parameter"]) -> LogBetas:
        logit, log_concentration, logits = jnp.split(position, 3)
        return LogBetas(*_log_parameters(logit, log_concentration), logits - logsumexp(logits))

    def value(position: Float[Array, "parameter"]) -> Float[Array, ""]:
        return log_likelihood(at_position(position), images, cells)

    slope = jax.grad(value)

    def derivatives_at(position: Float[Array, "parameter"]) -> tuple[Array, Array]:
        gradient, along = jax.linearize(slope, position)
        return gradient, jax.vmap(along)(jnp.eye(3 * size))

    def step(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        position, height, _, left = state
        gradient, hessian = derivatives_at(position)
        # Parameters that press against a bound are held there.
        held = jnp.where(gradient > 0, position > limits - _EDGE, position < floors + _EDGE)
        gradient = jnp.where(held, 0.0, gradient)
        hessian = jnp.where(held[:, None] | held[None, :], 0.0, hessian)
        # |H| in place of H makes every step an ascent, also where H is indefinite.
        scale, axes = jnp.linalg.eigh(hessian)
        along = (gradient @ axes) / jnp.maximum(jnp.abs(scale), 1e-6)
        move = axes @ along
        move = move * jnp.minimum(1.0, _LONGEST_STEP / jnp.maximum(jnp.abs(move).max(), 1e-300))
        # Of several shares of the step the best one is taken, if it is better at all.
        tried = position[None, :] + jnp.asarray(_SHARES)[:, None] * move[None, :]
        tried = jnp.clip(tried, floors[None, :], limits[None, :])
        heights = jax.vmap(value)(tried)
        best = jnp.argmax(heights)
        better = heights[best] > height
        # The gain that a quadratic promises: the climb ends where it is small.
        gain = gradient @ move / 2
        left = jnp.where(better & (gain > _GAIN), left - 1, 0)
        position = jnp.where(better, tried[best], position)
        return position, jnp.maximum(heights[best], height), gain, left

    log_a, log_b, log_weights = mixture
    start = jnp.concatenate([log_a - log_b, jnp.logaddexp(log_a, log_b), log_weights])
    begin = (start, value(start), jnp.asarray(jnp.inf), jnp.asarray(_NEWTON_STEPS))
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
def _ascend_batch(
    starts: LogBetas,
    images: Float[Array, "climb cell"],
    cells: CellMatrices,
    rounds: Int[Array, ""],
    *,
    newton: bool,
) -> Ascent:
    one = partial(_ascend, newton=newton)
    return jax.vmap(one, in_axes=(0, 0, None, None))(starts, images, cells, rounds)


def ascend(
    starts: LogBetas,
    images: Float[np.ndarray, "dataset version cell"],
    cells: CellMatrices,
    *,
    rounds: int,
    newton: bool = True,
) -> Ascent:
    """Climb from every start on every version of every data set.

    Parameters
    ----------
    starts
        Fields [D, B, S, K].
    images
        In each cell.
    cells
        The cells.
    rounds
        Rounds of EM.
    newton
        Go on with Newton's method to the optimum.

    Returns
    -------
    Ascent
        Fields [D, B, S], those of its mixture [D, B, S, K].
    """
    shape = starts.log_a.shape[:-1]
    each = np.broadcast_to(np.asarray(images)[:, :, None], (*shape, images.shape[2]))
    flat = jax.tree.map(lambda leaf: np.reshape(leaf, (-1, leaf.shape[-1])), (starts, each))
    # None of a batch goes on for longer than the batch.
    optima = in_batches(
        lambda *some: _ascend_batch(*some, cells, rounds, newton=newton), flat, _BATCH
    )
    return jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), optima)
