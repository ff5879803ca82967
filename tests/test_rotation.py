"""Trajectories that follow a normal exactly: a normal is never refused, the rest is met."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesrep.inference.rotation import turning

pytestmark = pytest.mark.usefixtures("float64")

WARMUP, DRAWS = 200, 20_000


def skewed(z):
    """Of three independent parameters, none of them normal, in coordinates where nearly."""
    return jnp.sum(jnp.exp(0.8 * z) / 0.64 - z / 0.8 + 0.02 * z**4)


@jax.jit
def visited(bend):
    """States after every transition from 0: at `bend` 0 the density is the standard normal."""

    def potential(bend):
        return lambda z: (1 - bend) * 0.5 * jnp.vdot(z, z) + bend * skewed(z)

    initialize, transition = turning(potential)
    first = initialize(jnp.zeros(3), WARMUP, rng_key=jax.random.key(0))

    def step(state, _):
        state = transition(state, (bend,))
        return state, state

    return jax.lax.scan(step, first, length=WARMUP + DRAWS)[1]


def test_a_normal_is_sampled_without_refusal():
    states = visited(0.0)
    np.testing.assert_allclose(states.accept_prob, 1.0, atol=1e-12)
    assert not states.diverging.any()
    assert states.num_steps[WARMUP:].max() <= 2
    draws = np.asarray(states.z)[WARMUP:]
    assert np.abs(draws.mean(axis=0)).max() < 0.05
    assert np.abs((draws**2).mean(axis=0) - 1).max() < 0.08
    # A quarter turn forgets where it began.
    assert np.abs((draws[1:] * draws[:-1]).mean(axis=0)).max() < 0.1


def test_what_is_not_normal_has_its_own_moments():
    """Against sums over a fine grid; five standard errors of 20,000 draws worth 5,000."""
    line = np.linspace(-12, 8, 20_001)
    mass = np.exp(-(np.exp(0.8 * line) / 0.64 - line / 0.8 + 0.02 * line**4))
    mass /= mass.sum()
    states = visited(1.0)
    draws = np.asarray(states.z)[WARMUP:]
    mean = mass @ line
    assert abs(mean) > 0.1
    for power in (1, 2, 3):
        wanted, spread = (mass @ (line - mean) ** (power * k) for k in (1, 2))
        error = np.sqrt((spread - wanted**2) / 5_000)
        assert np.abs(((draws - mean) ** power).mean(axis=0) - wanted).max() < 5 * error
    # Adapted to the share that it was asked for.
    assert 0.8 < float(states.accept_prob[WARMUP:].mean()) < 0.99
