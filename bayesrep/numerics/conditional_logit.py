"""The logit given an image's difficulty that leaves a curve the marginal probability."""

from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array

from bayesrep.types import Float, Int

Logits: TypeAlias = Float[Array, "classifier point"]
Spread: TypeAlias = Float[Array, "classifier node"]

STEPS = 40
TOLERANCE = 1e-10
FAR = 300.0


@jax.custom_jvp
def conditional_logit(eta: Logits, spread: Spread, weight: Float[Array, "node"]) -> Logits:
    """The logit m given u = 0 for which Σ_q w_q σ(m + λ u_q) = σ(η): η stays the marginal.

    A classifier's curve then means the same in every model, whatever its loading, and what one
    classifier's data say about it does not depend on the difficulty at all.

    Parameters
    ----------
    eta
        η, the marginal logit.
    spread
        λ_c · u_q.
    weight
        w.

    Notes
    -----
    Newton's method on logit Σ_q w_q σ(m + λ u_q) = η, whose left side is nearly linear in m, kept
    inside the bracket that λ u gives.
    """
    low = eta - spread.max(axis=1, keepdims=True)
    high = eta - spread.min(axis=1, keepdims=True)
    # E σ(m + N(0, v)) is about σ(m / √(1 + (16 √3 / 15 π)² v)).
    start = jnp.clip(eta * jnp.sqrt(1 + 0.346 * jnp.square(spread) @ weight)[:, None], low, high)

    def step(state: _Solving) -> _Solving:
        right, wrong = _two_sigmoids(state.m, spread)
        up, down, slope = right @ weight, wrong @ weight, (right * wrong) @ weight
        excess = jnp.log(up) - jnp.log(down) - eta
        low = jnp.where(excess < 0, state.m, state.low)
        high = jnp.where(excess > 0, state.m, state.high)
        newton = state.m - excess * up * down / slope
        inside = (newton >= low) & (newton <= high)
        m = jnp.where(inside, newton, (low + high) / 2)
        return _Solving(m, low, high, jnp.abs(m - state.m).max(), state.steps + 1)

    def goes_on(state: _Solving) -> Array:
        return (state.moved > TOLERANCE) & (state.steps < STEPS)

    begin = _Solving(start, low, high, jnp.asarray(jnp.inf, eta.dtype), jnp.asarray(0))
    return jax.lax.while_loop(goes_on, step, begin).m


class _Solving(NamedTuple):
    m: Logits
    low: Logits
    high: Logits
    moved: Float[Array, ""]
    steps: Int[Array, ""]


def _two_sigmoids(
    m: Logits, spread: Spread
) -> tuple[Float[Array, "classifier point node"], Float[Array, "classifier point node"]]:
    """σ(m + λ u) and σ(−m − λ u), with exponentials of m and of λ u only."""
    factors = (jnp.exp(-jnp.clip(part, -FAR, FAR)) for part in (m, spread))
    odds = next(factors)[:, :, None] * next(factors)[:, None, :]
    right = 1 / (1 + odds)
    return right, right * odds


@conditional_logit.defjvp
def _conditional_logit_jvp(
    primals: tuple[Array, Array, Array], tangents: tuple[Array, Array, Array]
) -> tuple[Logits, Logits]:
    """Implicit differentiation; the weights are constant."""
    eta, spread, weight = primals
    by_eta, by_spread, _ = tangents
    m = conditional_logit(eta, spread, weight)
    right, wrong = _two_sigmoids(m, spread)
    slopes = weight[None, None, :] * right * wrong
    marginal = jax.nn.sigmoid(eta) * jax.nn.sigmoid(-eta)
    moved = marginal * by_eta - jnp.einsum("cxq,cq->cx", slopes, by_spread)
    return m, moved / slopes.sum(axis=-1)
