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

from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import bayesrep
from bayesrep.inference import laplace_marginal, nuts
from bayesrep.inference.laplace_marginal import N_PAIRS, Marginal, MarginalDraw
from bayesrep.inference.laplace_marginal import Setting as Settings
from bayesrep.inference.methods import build_target, sample_around_mode
from bayesrep.inference.nuts import State, build_kernel
from bayesrep.inference.problem import pose, prior_positions, programs
from bayesrep.inference.schedule import Schedule

IMAGES, ANNOTATORS = 60, 4
TURNS, CHAINS = 60, 512
FROM_PRIOR = 10_000
STEP = 1.0
ROWS = np.array([0, 2])
"""Of the three classifiers, those that the surrogate looks at."""
LIMIT = 4.5
"""Standard errors. Of 72 comparisons, each a t of 511 degrees of freedom, one is beyond by chance
for fewer than 1 of 1,000 seeds; the seeds are fixed."""

pytestmark = pytest.mark.usefixtures("float64")


class Setting:
    """A small study's joint model: its density, its data's form, draws of its prior.

    Those where chains start are not among those that the chains are compared with.
    """

    def __init__(self):
        study = bayesrep.simulate_study(seed=0, images=IMAGES, annotators=ANNOTATORS, classifiers=3)
        self.problem = pose(study, model="joint", options={"degree": 8, "terms": 3})
        # Only a density that counts every answer fully is the posterior of data drawn like these.
        self.data = self.problem.data()._replace(weight=jnp.ones(()))
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


@dataclass(frozen=True, eq=False)
class Mistaken(Marginal):
    """Counts the volume of the units' coordinates so many times; once is right."""

    volume: Any

    def log_ratios(self, setting, shared, normals, standard):
        ratios, own = super().log_ratios(setting, shared, normals, standard)
        return ratios - (1 - self.volume) * normals.log_volume[None, :], own


def from_position(key, position, data, *, density, whitening, noise, surrogate, accept, volume):
    """What the sampler does between two draws, begun at a position.

    Wrong if asked to: without `accept` whatever NUTS proposes under the surrogate is taken, and
    with another `volume` than 1 the Jacobian of the units' coordinates is another.
    """
    marginal = Mistaken(density, volume)
    with mock.patch.object(nuts, "Marginal", return_value=marginal):
        start, evaluate, draw = build_kernel(
            density, Schedule(chains=1, warmup=0, draws=1, thinning=1)
        )
    surrogate = surrogate._replace(data=density.select(data, ROWS))
    setting = Settings(data, whitening, noise, ROWS)
    target = setting, surrogate

    center, drag = whitening.center, whitening.drag
    shared = jnp.linalg.solve(whitening.to_shared, position["shared"] - center["shared"])
    units = position["units"] - center["units"] + drag @ shared
    units = jnp.linalg.solve(whitening.to_units, units[..., None])[..., 0]
    normals, _ = marginal.conditional_normals(setting, shared)
    # Given the z of a position, which is in one of the pairs, the others are standard normal.
    key, other = jax.random.split(key)
    z = jnp.linalg.solve(normals.root, (units - normals.center)[..., None])[..., 0]
    half = jax.random.normal(other, (N_PAIRS, *z.shape)).at[0].set(z)
    both = jnp.concatenate([half, -half])
    ratios, own = marginal.log_ratios(setting, shared, normals, both)
    log_marginal = jnp.sum(jax.nn.logsumexp(ratios, axis=0) - jnp.log(2 * N_PAIRS)) - own
    # The sampler takes its first proposal because where it begins is infinitely unlikely.
    log_marginal = jnp.where(accept, log_marginal, -jnp.inf)

    state = start(jnp.stack([key, key]))
    steps = state.hmc.adapt_state._replace(step_size=jnp.asarray(STEP))
    hmc = state.hmc._replace(z=shared, adapt_state=steps)
    drawn = MarginalDraw(position, log_marginal, jnp.zeros(()))
    held = jnp.zeros(0)
    state = evaluate(State(hmc, drawn, state.key), target, held)
    return draw(state, target, held)[1].position


@pytest.fixture(scope="module")
def sampler(setting):
    """The transition above, right or wrong, in the coordinates of the study."""
    with jax.enable_x64(True), pytest.MonkeyPatch.context() as patch:
        patch.setattr(laplace_marginal, "choose_subsample", lambda _: ROWS)
        sample = sample_around_mode(setting.problem, setting.tools, setting.data, [0, 4])
        settings, surrogate = build_target(setting.density, sample)
    move = partial(from_position, density=setting.density)  # once: another one is compiled anew

    def bound(*, accept=True, volume=1.0):
        mistake = {"accept": jnp.asarray(accept), "volume": jnp.asarray(volume)}
        known = {name: getattr(settings, name) for name in ("whitening", "noise")}
        return Partial(move, surrogate=surrogate, **known, **mistake)

    return bound


def test_a_right_sampler_keeps_the_prior(setting, expected, in_turns, sampler):
    name, away = worst(setting, expected, in_turns, sampler())
    assert away < LIMIT, name


@pytest.mark.parametrize("mistake", [{"accept": False}, {"volume": -1.0}], ids=str)
def test_a_wrong_sampler_does_not(setting, expected, in_turns, sampler, mistake):
    """One that accepts every proposal, and one with the sign of a Jacobian wrong."""
    name, away = worst(setting, expected, in_turns, sampler(**mistake))
    assert away > LIMIT, name
