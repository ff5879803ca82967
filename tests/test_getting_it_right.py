"""Geweke's test: transitions that leave the posterior alone leave the prior alone too.

Parameters are drawn from the prior and data given them; then, in turn, a transition of the sampler
moves the parameters given the data, and new data are drawn given the parameters. Whatever the
sampler, if its transition leaves the posterior given any data invariant, parameters and data keep
their joint law: after any number of turns the parameters are draws of the prior. A mistake of the
sampler moves them away, turn by turn (Geweke 2004, "Getting it right", section 3).

A sampler is plugged in as a `transition(key, position, data)` that returns the next position and
that JAX can trace: a `jax.tree_util.Partial`, so that one compiled program serves it whatever
arrays are bound to it. What it adapts must be fixed or a function of the data alone.

Chains begin at the prior, so nothing has to be forgotten, and they are independent: the spread of
their means is an honest standard error, however slowly they mix.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial

import bayesrep
from bayesrep.inference.prior import prior_positions
from bayesrep.inference.problem import pose, programs

IMAGES, ANNOTATORS = 60, 4
TURNS, CHAINS = 80, 256
FROM_PRIOR = 10_000
STEP, LEAPS = 0.3, 6
LIMIT = 4.5
"""Standard errors. Of 72 comparisons, each a t of 255 degrees of freedom, one is beyond by chance
for fewer than 1 of 1,000 seeds; the seeds are fixed."""

pytestmark = pytest.mark.usefixtures("float64")


class Setting:
    """A small study's joint model: its density, its data's form, draws of its prior.

    Those where chains start are not among those that the chains are compared with.
    """

    def __init__(self):
        study = bayesrep.simulate_study(seed=0, images=IMAGES, annotators=ANNOTATORS, classifiers=3)
        self.problem = pose(study, model="joint", options={"degree": 8, "terms": 3})
        self.data = self.problem.data()
        self.tools = programs(self.problem, self.data)
        self.density = self.tools.density
        draws = FROM_PRIOR + CHAINS
        drawn = prior_positions(self.problem, self.tools, self.data, jax.random.key(1), draws)
        self.prior = jax.tree.map(lambda leaf: leaf[0, CHAINS:], drawn)
        self.starts = jax.tree.map(lambda leaf: leaf[0, :CHAINS], drawn)
        self.scale = jax.tree.map(lambda leaf: leaf.std(axis=0), self.prior)

    def simulate(self, key, values):
        """Data given parameters: every image gets a count, and answers given its count."""
        *to_count, to_answer = jax.random.split(key, len(self.data.datasets) + 1)
        datasets = []
        for index, (own, counts) in enumerate(zip(to_count, self.data.datasets, strict=True)):
            log_mass = values[f"log_mass_{index}"][0]
            cell = jax.random.categorical(own, log_mass, shape=(IMAGES,))
            one_hot = (cell[:, None] == jnp.arange(len(log_mass))[None, :]).astype(float)
            images = one_hot.sum(axis=0)[None]
            datasets.append(counts._replace(images=images))
            if index == 1:  # the replication
                chance = values["cell_accuracy"][:, 0] @ one_hot.T
                answer = jax.random.uniform(to_answer, chance.shape) < chance
                correct = (answer.astype(float) @ one_hot)[:, None]
                wrong = images[None] - correct
        return self.data._replace(datasets=tuple(datasets), correct=correct, wrong=wrong)

    def moments(self, values, data):
        """What is compared: first and second moments of parameters and data, and of both."""
        names = (*self.density.sites, "adjusted_accuracy", "mean_selection_frequency")
        selected = [c.images[0] @ jnp.arange(len(c.images[0])) for c in data.datasets]
        seen = {
            "selected": jnp.stack(selected) / (ANNOTATORS * IMAGES),
            "answered": data.correct.sum(axis=(1, 2)) / IMAGES,
        }
        parameters = {name: jnp.ravel(values[name]) for name in names}
        first = parameters | seen
        second = {f"{name} squared": value**2 for name, value in first.items()}
        crossed = {
            "frequency x selected": first["mean_selection_frequency"] * seen["selected"],
            "accuracy x answered": first["adjusted_accuracy"] * seen["answered"],
            "location x answered": first["first_location"] * seen["answered"],
        }
        return first | second | crossed


@pytest.fixture(scope="module")
def setting():
    with jax.enable_x64(True):
        yield Setting()


@pytest.fixture(scope="module")
def expected(setting):
    """Mean of every moment under the prior, and its standard error."""

    @jax.jit
    @jax.vmap
    def once(key, position):
        values = setting.density.quantities(position, setting.data)
        return setting.moments(values, setting.simulate(key, values))

    with jax.enable_x64(True):
        found = once(jax.random.split(jax.random.key(2), FROM_PRIOR), setting.prior)
    return mean_and_error(found)


def mean_and_error(independent):
    return {
        name: (np.mean(v, axis=0), np.std(v, axis=0, ddof=1) / np.sqrt(len(v)))
        for name, v in independent.items()
    }


@pytest.fixture(scope="module")
def in_turns(setting):
    """Means over each chain's turns of the moments, for a transition that is a `Partial`."""

    def chain(key, position, transition):
        def turn(carry, key):
            position, data = carry
            to_move, to_simulate = jax.random.split(key)
            position = transition(to_move, position, data)
            values = setting.density.quantities(position, setting.data)
            # Of the old data, to which the parameters have just been fitted.
            moments = setting.moments(values, data)
            return (position, setting.simulate(to_simulate, values)), moments

        begin, key = jax.random.split(key)
        values = setting.density.quantities(position, setting.data)
        first = position, setting.simulate(begin, values)
        _, moments = jax.lax.scan(turn, first, jax.random.split(key, TURNS))
        return jax.tree.map(lambda leaf: leaf.mean(axis=0), moments)

    return jax.jit(jax.vmap(chain, in_axes=(0, 0, None)))


def worst(setting, expected, in_turns, transition, seed=3):
    """The moment farthest from the prior's, and by how many standard errors; NaN is far."""
    keys = jax.random.split(jax.random.key(seed), CHAINS)
    means = in_turns(keys, setting.starts, transition)
    away = {}
    for name, (mean, error) in mean_and_error(means).items():
        z = np.abs(mean - expected[name][0]) / np.hypot(error, expected[name][1])
        away[name] = float(np.nan_to_num(z, nan=np.inf).max())
    name = max(away, key=away.__getitem__)
    return name, away[name]


def hamiltonian(key, position, data, *, density, scale, accept, width):
    """A transition of Hamiltonian Monte Carlo in units of the prior's sd.

    Wrong if asked to: without `accept` every proposal is taken that is a number, and with another
    `width` than 1 the posterior's log density is divided by width².
    """
    flat, unravel = ravel_pytree(jax.tree.map(jnp.divide, position, scale))

    def energy(q):
        at = jax.tree.map(jnp.multiply, unravel(q), scale)
        return density.potential(at, data) / width**2

    to_push, to_step, to_accept = jax.random.split(key, 3)
    push = jax.random.normal(to_push, flat.shape)
    step = jax.random.uniform(to_step, minval=0.5, maxval=1.0) * STEP
    slope = jax.grad(energy)

    def leap(carry, _):
        q, p, force = carry
        p = p - step / 2 * force
        q = q + step * p
        force = slope(q)
        return (q, p - step / 2 * force, force), None

    (q, p, _), _ = jax.lax.scan(leap, (flat, push, slope(flat)), length=LEAPS)
    gain = energy(flat) - energy(q) + (push @ push - p @ p) / 2
    taken = (jnp.log(jax.random.uniform(to_accept)) < gain) | (~accept & jnp.isfinite(gain))
    return jax.tree.map(jnp.multiply, unravel(jnp.where(taken, q, flat)), scale)


@pytest.fixture(scope="module")
def sampler(setting):
    """The transition above, right or wrong."""
    move = partial(hamiltonian, density=setting.density)  # once: another one is compiled anew

    def bound(*, accept=True, width=1.0):
        mistake = {"accept": jnp.asarray(accept), "width": jnp.asarray(width)}
        return Partial(move, scale=setting.scale, **mistake)

    return bound


def test_a_right_sampler_keeps_the_prior(setting, expected, in_turns, sampler):
    name, away = worst(setting, expected, in_turns, sampler())
    assert away < LIMIT, name


@pytest.mark.parametrize("mistake", [{"accept": False}, {"width": 1.1}], ids=str)
def test_a_wrong_sampler_does_not(setting, expected, in_turns, sampler, mistake):
    """One that accepts every proposal, and one of posteriors that are a tenth too wide."""
    name, away = worst(setting, expected, in_turns, sampler(**mistake))
    assert away > LIMIT, name
