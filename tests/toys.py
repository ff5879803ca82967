"""Densities small enough to sample in a moment, for tests of the sampler itself."""

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from scipy import stats

from bayesrep.inference.arrowhead import Whitening, second_order, shift_map, whitening
from bayesrep.inference.chains import sample
from bayesrep.inference.density import build_density
from bayesrep.inference.laplace_marginal import Marginal
from bayesrep.inference.marginal_mode import evaluation_program, find_marginal_mode
from bayesrep.inference.methods import build_target
from bayesrep.inference.mode import find_mode
from bayesrep.inference.nested_laplace import N_POINTS, Proposal, sample_marginal
from bayesrep.inference.nuts import build_sampler, compile_sampler
from bayesrep.inference.schedule import BLOCK
from bayesrep.inference.surrogate import fit_surrogate

UNITS = 3
DATA = np.array([[0.3, -1.0], [2.0, 0.5], [1.0, 4.0]])
COUNTS = np.array([[0.0], [2.0], [9.0]])


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


@functools.cache
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
    plain = marginal.setting(jnp.asarray(counts), shift_map(density.origin()))
    return counts, marginal, plain._replace(whitening=stretched(UNITS, own, 1))


def around_mass(density, data, mode):
    """Points of Laplace's marginal."""
    setting = find_marginal_mode(density, mode, data, expanding(density))
    return sample_marginal(density, setting, np.random.default_rng(7))


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


@functools.cache
def weighted_density(model, units):
    """A density whose data are what was seen and the units' weight, so that programs serve all."""
    return build_density(
        lambda data: model(data[0]),
        (jnp.zeros(units), jnp.ones(())),
        select=lambda data, rows: (data[0][rows], data[1]),
        weight=lambda data: data[1],
    )


@functools.cache
def compile_toy(density, schedule, vectorized, held, *shapes):
    """A sampler for arguments of these shapes."""
    leaves, structure = shapes
    sampler = build_sampler(density, schedule, vectorized=vectorized, n_fixed=held)
    return compile_sampler(sampler, *jax.tree.unflatten(structure, leaves))


class Toy:
    """A density with the coordinates of the normal at its mode, units counting `weight`."""

    def __init__(self, model, data, weight=1.0):
        self.density = weighted_density(model, len(data))
        self.data = data, jnp.asarray(weight)
        self.mode = find_mode(expanding(self.density), self.density.origin(), self.data)
        self.white = whitening(self.mode.expansion.hessian, self.mode.position)
        self.target = functools.cache(self._target)

    def _target(self, *, moves):
        """What is sampled, in coordinates of its shape or in those of the mode."""
        if moves:
            return build_target(self.density, around_mass(self.density, self.data, self.white))
        setting = Marginal(self.density).setting(self.data, self.white)
        size = self.density.shared
        origin = Proposal(np.zeros(size), np.eye(size))
        points = origin.draw(np.random.default_rng(0), N_POINTS)
        there = evaluation_program(self.density)(setting, points)
        return setting, fit_surrogate(self.density, setting, points, *there)

    def draws(self, schedule, *, vectorized, workers, given=None):
        """Of chains; `given` [chain, draw, held] is held, in coordinates that stay."""
        chains, held = schedule.chains, 0 if given is None else given.shape[2]
        target = self.target(moves=given is None)

        if given is None:
            given = np.zeros((chains, schedule.warmup + schedule.draws + BLOCK, 0))
        keys, first = schedule.keys(jax.random.key(0)), given[:, :BLOCK]
        some = (keys, target, first) if vectorized else (keys[0], target, first[0])
        leaves, structure = jax.tree.flatten(some)
        shapes = tuple(jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x)) for x in leaves)
        ready = compile_toy(self.density, schedule, vectorized, held, shapes, structure)
        report = lambda *_: None  # noqa: E731
        return sample(ready, keys, target, given, schedule, report, workers=workers)
