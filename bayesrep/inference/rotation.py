"""Hamiltonian trajectories that follow the normal approximation exactly.

In coordinates ξ in which the normal approximation is standard, the potential is
φ(ξ) = ½ |ξ|² + r(ξ) with a small r. Under ½ |ξ|² alone position and momentum turn about each other,

    (ξ, p)  →  (ξ cos ε + p sin ε,  p cos ε − ξ sin ε),

whatever ε, and a quarter turn forgets where it began. So a step is half a kick by −ε ∇r, a turn by
ε, and half a kick: an integrator that keeps volumes and can be reversed, and whose error comes from
r only. Where a leapfrog step has to be small against the number of parameters these may be large,
and a quarter turn in three of them takes three gradients. The end is accepted as in any Hamiltonian
Monte Carlo, so the draws are the posterior's whatever r is.

References
----------
Shahbaba, Lan, Johnson, Neal (2014), "Split Hamiltonian Monte Carlo", Statistics and Computing 24.
Beskos, Pinski, Sanz-Serna, Stuart (2011), "Hybrid Monte Carlo on Hilbert spaces", SPA 121.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree
from numpyro.infer.hmc_util import dual_averaging

from bayesrep.types import Float, Int

QUARTER = jnp.pi / 2
JITTER = 0.3
"""Turns are a quarter give or take this share, so that no parameter comes back each time."""
MOST = 256
FAR = 1_000.0
"""Nats of energy gained or lost that make a divergence, as in NumPyro."""


class Adapting(NamedTuple):
    """Largest step, in radians, and the state of its dual averaging."""

    step_size: Float[Array, ""]
    averaging: Any


class Turning(NamedTuple):
    """A chain; fields are called as in NumPyro's `HMCState`."""

    i: Int[Array, ""]
    z: Any
    z_grad: Any
    potential_energy: Float[Array, ""]
    energy: Float[Array, ""]
    num_steps: Int[Array, ""]
    accept_prob: Float[Array, ""]
    diverging: Array
    adapt_state: Adapting
    rng_key: Array


class _Phase(NamedTuple):
    at: Float[Array, "parameter"]
    momentum: Float[Array, "parameter"]
    potential: Float[Array, ""]
    gradient: Float[Array, "parameter"]

    @property
    def energy(self) -> Float[Array, ""]:
        return self.potential + 0.5 * jnp.vdot(self.momentum, self.momentum)


def turning(
    potential_fn_gen: Callable[..., Callable[[Any], Array]],
) -> tuple[Callable[..., Turning], Callable[..., Turning]]:
    """A pair (initialize, transition) that takes the place of NumPyro's `hmc`.

    Parameters
    ----------
    potential_fn_gen
        From `model_args` to the potential of coordinates in which a normal approximation of the
        density is standard.
    """
    first, update = dual_averaging()

    settings: dict[str, Any] = {}

    def initialize(
        position: Any,
        num_warmup: int,
        *,
        step_size: float = 0.5,
        target_accept_prob: float = 0.9,
        rng_key: Array,
    ) -> Turning:
        """So unlikely a point that the first end is accepted: nothing is evaluated here."""
        settings.update(warmup=num_warmup, target=target_accept_prob)
        log_size = jnp.log(jnp.asarray(step_size, float))
        averaging = first(log_size)  # type: ignore[arg-type]  # an array does as well
        adapting = Adapting(jnp.exp(log_size), averaging)
        nowhere, nothing, none = jnp.asarray(jnp.inf), jnp.zeros(()), jnp.asarray(0)
        return Turning(
            none, position, position, nowhere, nowhere, none, nothing, none > 0, adapting, rng_key
        )

    def transition(
        state: Turning, model_args: tuple[Any, ...], model_kwargs: Any = None
    ) -> Turning:
        del model_kwargs
        flat, back = ravel_pytree(state.z)
        keys = jax.random.split(state.rng_key, 4)
        slope = jax.value_and_grad(lambda at: potential_fn_gen(*model_args)(back(at)))
        begin = _Phase(
            flat,
            jax.random.normal(keys[1], flat.shape),
            state.potential_energy,
            ravel_pytree(state.z_grad)[0],
        )
        angle = QUARTER * jax.random.uniform(keys[2], minval=1 - JITTER, maxval=1 + JITTER)
        steps = jnp.clip(jnp.ceil(angle / state.adapt_state.step_size), 1, MOST).astype(int)
        end = jax.lax.fori_loop(0, steps, lambda _, at: _step(at, angle / steps, slope), begin)
        change = jnp.nan_to_num(end.energy - begin.energy, nan=jnp.inf)
        acceptance = jnp.exp(jnp.minimum(-change, 0.0))
        accepted = jax.random.uniform(keys[3]) < acceptance
        kept = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), end, begin)
        return Turning(
            state.i + 1,
            back(kept.at),
            back(kept.gradient),
            kept.potential,
            kept.energy,
            steps,
            acceptance,
            change > FAR,
            _adapted(state, acceptance),
            keys[0],
        )

    def _adapted(state: Turning, acceptance: Array) -> Adapting:
        """Towards the accepted share; the average of the warm-up's later steps after it."""
        averaging = update(settings["target"] - acceptance, state.adapt_state.averaging)
        last = state.i == settings["warmup"] - 1
        tried = jnp.exp(jnp.minimum(jnp.where(last, averaging[1], averaging[0]), jnp.log(QUARTER)))
        new = Adapting(tried, averaging)
        warming = state.i < settings["warmup"]
        return jax.tree.map(lambda a, b: jnp.where(warming, a, b), new, state.adapt_state)

    return initialize, transition


def _step(phase: _Phase, size: Array, slope: Callable[[Array], tuple[Array, Array]]) -> _Phase:
    """Half a kick by what is not normal, a turn, half a kick."""
    momentum = phase.momentum - size / 2 * (phase.gradient - phase.at)
    at = jnp.cos(size) * phase.at + jnp.sin(size) * momentum
    momentum = jnp.cos(size) * momentum - jnp.sin(size) * phase.at
    potential, gradient = slope(at)
    return _Phase(at, momentum - size / 2 * (gradient - at), potential, gradient)
