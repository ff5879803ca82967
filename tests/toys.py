"""Densities small enough to sample in a moment, for tests of the sampler itself."""

import functools
from dataclasses import dataclass
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from scipy import stats

from bayesrep.inference import laplace
from bayesrep.inference.arrowhead import Whitening, second_order, whitening
from bayesrep.inference.density import build_density
from bayesrep.inference.marginal import Marginal
from bayesrep.inference.mode import climb
from bayesrep.inference.nuts import build_sampler, compile_sampler, of_density, of_marginal
from bayesrep.inference.sampling import sample
from bayesrep.inference.schedule import BLOCK
from bayesrep.inference.settle import make_look, settle

UNITS = 3
DATA = np.array([[0.3, -1.0], [2.0, 0.5], [1.0, 4.0]])
COUNTS = np.array([[0.0], [2.0], [9.0]])
ROOT = 0.4
"""That is guessed for all units, times the identity."""


def some(data, rows):
    return data[rows]


def gaussian(data):
    """Normal everywhere: a mean, and units around it that are observed with noise."""
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0).expand([2]).to_event(1))
    with numpyro.plate("classifier", UNITS):
        center = jnp.broadcast_to(mean, (UNITS, 2))
        own = numpyro.sample("own", dist.Normal(center, 0.7).to_event(1))
        numpyro.sample("seen", dist.Normal(own, 0.5).to_event(1), obs=data)


def skewed(data):
    """Counts of events at rates exp(x), exp(x + y), …: posteriors have longer left tails."""
    level = numpyro.sample("level", dist.Normal(0.0, 3.0).expand([1]).to_event(1))
    own = data.shape[1]
    with numpyro.plate("classifier", UNITS):
        center = jnp.broadcast_to(level, (UNITS, own))
        steps = numpyro.sample("own", dist.Normal(center, 1.0).to_event(1))
        rates = jnp.cumsum(steps, axis=-1)
        numpyro.factor("counts", jnp.sum(data * rates - jnp.exp(rates), axis=-1))


def log_own(level, counts, *own):
    """Log density of one unit's own parameters and its counts, for given shared ones; no JAX."""
    prior = sum(stats.norm.logpdf(each, level, 1.0) for each in own)
    rates = np.cumsum(np.broadcast_arrays(*own), axis=0)
    return prior + sum(
        y * rate - np.exp(np.minimum(rate, 50)) for y, rate in zip(counts, rates, strict=True)
    )


@dataclass
class Normal:
    """The toy normal density: its covariance and its mean, by linear algebra alone."""

    def __post_init__(self):
        self.density = build_density(gaussian, jnp.asarray(DATA), select=some)
        self.data = jnp.asarray(DATA)
        precision = np.zeros((8, 8))
        precision[:2, :2] = (1 / 4 + UNITS / 0.49) * np.eye(2)
        precision[2:, 2:] = (1 / 0.49 + 1 / 0.25) * np.eye(6)
        precision[:2, 2:] = np.tile(-np.eye(2) / 0.49, UNITS)
        precision[2:, :2] = precision[:2, 2:].T
        self.covariance = np.linalg.inv(precision)
        self.mean = self.covariance @ np.concatenate([np.zeros(2), DATA.ravel() / 0.25])

    def at(self, flat):
        return {"shared": jnp.asarray(flat[:2]), "units": jnp.asarray(flat[2:].reshape(UNITS, 2))}


def expanding(density):
    def expand(at, data):
        return second_order(lambda q: density.potential(q, data), at, density.weight(data))

    return jax.jit(expand)


def whitened(density, data, position):
    """Coordinates about a position by the Hessian there, as at a mode."""
    there = expanding(density)(position, data)
    return whitening(there.hessian, position)


def stretched(units, own, shared):
    """Coordinates that no Hessian suggests."""
    random = np.random.default_rng(3)
    return Whitening(
        {"shared": jnp.full(shared, 0.4), "units": jnp.asarray(random.normal(size=(units, own)))},
        jnp.asarray(np.tril(random.uniform(0.5, 1.5, (shared, shared)))),
        jnp.asarray(random.uniform(0.5, 1.5, (units, own, own)) + np.eye(own)),
        jnp.asarray(random.normal(size=(units, own, shared))),
    )


def settings(own):
    counts = np.tile(COUNTS, (1, own))
    density = build_density(skewed, jnp.asarray(counts), select=some)
    marginal = Marginal(density)
    plain = marginal.first_setting(jnp.asarray(counts), density.origin())
    guide = plain.guide._replace(root=ROOT * plain.guide.root)
    return counts, marginal, plain._replace(whitening=stretched(UNITS, own, 1), guide=guide)


def drawn(source, count):
    found = source.draw(np.random.default_rng(4), count)
    return found, source.judge(found)


def around_mass(density, data, mode):
    """Weighted draws of Laplace's marginal."""
    return laplace._nested_source(of(density, data), mode, np.random.default_rng(7))


def of(density, data):
    """What the ways to draw look at in a run."""
    tools = SimpleNamespace(density=density, expand=expanding(density))
    return SimpleNamespace(tools=tools, data=data, seed=0, share_images=lambda setting: setting)


def counts(data):
    """Counts of events at rates exp(own): units with longer left tails around a shared level."""
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    with numpyro.plate("classifier", len(data)):
        own = numpyro.sample("own", dist.Normal(level, 0.5))
        numpyro.factor("counts", data * own - jnp.exp(own))


def following(data):
    """A site z that bends after the site m, and units around it that are observed."""
    m = numpyro.sample("m", dist.Normal(0.0, 1.0))
    z = numpyro.sample("z", dist.Normal(m + 0.3 * m**2, 1.0))
    with numpyro.plate("classifier", len(data)):
        own = numpyro.sample("own", dist.Normal(z, 1.0))
        numpyro.sample("seen", dist.Normal(own, 2.0), obs=data)


class Toy:
    """A density with the coordinates of the normal at its mode, units counting `weight`."""

    def __init__(self, model, data, weight=1.0):
        self.density = build_density(
            model,
            data,
            select=lambda data, rows: data[rows],
            weight=lambda data: jnp.asarray(weight),
        )
        self.data = data

        @jax.jit
        def expand(at, data):
            return second_order(
                lambda q: self.density.potential(q, data), at, self.density.weight(data)
            )

        self.mode = climb(expand, self.density.origin(), data)
        self.white = whitening(self.mode.there.hessian, self.mode.position)
        self.target = functools.cache(self._target)
        self.compiled = {}

    def _target(self, kind):
        """What is sampled, and its setting."""
        if kind == "density":
            return of_density(self.density), (self.data, self.white)
        look = make_look(self.density)
        settled = settle(self.density, self.white, self.data, look, 0, expand=None)
        return of_marginal(Marginal(self.density)), settled.setting

    def draws(self, schedule, kind, *, vectorized, workers, given=None):
        """Of chains in coordinates that stay; `given` [chain, draw, held] is held."""
        chains, held = schedule.chains, 0 if given is None else given.shape[2]
        target, setting = self.target(kind)

        def feed(chain, begin):
            if given is None:
                return jnp.zeros((chains, BLOCK, 0) if vectorized else (BLOCK, 0))
            block = given[:, begin : begin + BLOCK]
            return jnp.asarray(block if vectorized else block[chain])

        def stay(setting, _):
            return setting

        keys = schedule.keys(jax.random.key(0))
        program = (kind, schedule, vectorized, held)
        if program not in self.compiled:
            sampler = build_sampler(target, schedule, vectorized=vectorized, held=held)
            key = keys if vectorized else keys[0]
            self.compiled[program] = compile_sampler(sampler, key, setting, feed(0, 0))
        ready = self.compiled[program]
        states = ready.states(keys)
        report = lambda *_: None  # noqa: E731
        return sample(ready, states, setting, feed, schedule, report, tune=stay, workers=workers)
