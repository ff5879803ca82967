"""Weighted draws of normal approximations: nested Laplace, certified by its own weights.

Where units meet only through the shared parameters, each is integrated by its normal at every value
of those (`bayesrep.inference.marginal`; Tierney, Kadane 1986), and what is left is a density of
some fifteen parameters. A Student t is fitted to it: each round draws mirrored points from the
normal at hand, regresses the potential on a quadratic, and moves to that quadratic's centre and
curvature, which are then means over the normal as those of the normal nearest in KL(q ‖ p) are
(Opper, Archambeau 2009, equations 6 and 7). Draws from the t are weighted by an *unbiased* estimate
of the marginal density: `PAIRS` antithetic draws of every unit from its normal, one of which is
kept. So weights make means exact, and Pareto's k of the weights and their effective number say
whether they do so with the draws at hand.

Where units meet in the likelihood, the draws are those of the normal at the mode, with weights.

Draws are returned as many as were asked for, of equal weight: a stratified resample of all.

References
----------
Tierney, Kadane (1986), "Accurate approximations for posterior moments and marginal densities",
JASA 81. Rue, Martino, Chopin (2009), "Approximate Bayesian inference for latent Gaussian models",
JRSS B 71. Opper, Archambeau (2009), "The variational Gaussian approximation revisited", Neural
Computation 21. Kitagawa (1996), "Monte Carlo filter and smoother", JCGS 5: stratified resampling.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bayesrep.inference.dense import DenseWhitening
from bayesrep.inference.density import Density, Position
from bayesrep.inference.marginal import Marginal, Setting, feature_count, products
from bayesrep.inference.problem import find_mode
from bayesrep.inference.run import Drawn, Run, improve
from bayesrep.inference.tuning import Visits, importance, ridge
from bayesrep.numerics.pareto import pareto_smooth
from bayesrep.posterior.verdict import MAX_PARETO_K, MIN_ESS
from bayesrep.types import Float, Int

ROUNDS = 4
POINTS = 256
CHUNK = 32
PAIRS = 4
FREEDOM = 20.0
"""Degrees of freedom of the proposals' Student t."""
BATCHES = 8
"""At most so many times as many draws as asked for, until the weights' effective number is enough."""


class Looked(NamedTuple):
    """Points with the marginal's parts and one draw of the units at each; stacked over points."""

    visits: Visits
    log_density: Float[Array, "point"]
    position: Position
    lp: Float[Array, "point"]


class Weighted(NamedTuple):
    """Draws [draw, ...] with the logarithms of their importance weights, unnormalised."""

    position: Position
    log_weight: Float[np.ndarray, "draw"]
    lp: Float[np.ndarray, "draw"]


class Certificate(NamedTuple):
    """Smoothed log weights that sum to 1, their Pareto shape, and their effective number."""

    log_weight: Float[np.ndarray, "draw"]
    pareto_k: float
    ess: float

    @property
    def enough(self) -> bool:
        """Whether they may stand for the posterior."""
        return self.pareto_k < MAX_PARETO_K and self.ess >= MIN_ESS


def laplace(run: Run) -> Drawn:
    """Draws of the posterior by weighting those of its normal approximation."""
    run.bar.stage("finding the mode")
    whitening = find_mode(run.problem, run.tools, run.data)
    run.bar.stage("sampling")
    draw: Callable[[np.random.Generator, int], Weighted]
    if isinstance(whitening, DenseWhitening):
        draw = _whole(run, whitening)
    else:
        draw = _nested(run, Setting(run.data, whitening, Marginal(run.tools.density).untaught()))
    random = np.random.default_rng([run.seed, 2])
    wanted = run.schedule.chains * run.schedule.draws
    found = draw(random, wanted)
    judged = certify(found.log_weight)
    for _ in range(BATCHES - 1):
        if judged.enough or not judged.pareto_k < MAX_PARETO_K:
            break
        more = draw(random, wanted)
        found = jax.tree.map(lambda a, b: np.concatenate([a, b]), found, more)
        judged = certify(found.log_weight)
    run.bar.advance(1)
    kept = resample(random, judged.log_weight, wanted)
    chosen = jax.tree.map(lambda leaf: np.asarray(leaf)[kept], found)
    dealt = jax.tree.map(lambda leaf: leaf.reshape(run.schedule.chains, -1, *leaf.shape[1:]), chosen)
    stats = {"lp": dealt.lp, "log_weight": dealt.log_weight}
    return Drawn(dealt.position, stats, {"pareto_k": judged.pareto_k, "ess": judged.ess})


def certify(log_weight: Float[np.ndarray, "draw"]) -> Certificate:
    """Smooth importance weights and say what they are worth.

    A weight that is not finite, or draws too few for a tail, have k = inf.
    """
    if not np.isfinite(log_weight).all():
        return Certificate(np.full(len(log_weight), -np.log(len(log_weight))), np.inf, 0.0)
    smooth, shape = pareto_smooth(log_weight[None, :])
    even = np.ptp(log_weight) < 1e-8
    k = 0.0 if even else float(shape[0]) if np.isfinite(shape[0]) else np.inf
    return Certificate(smooth[0], k, float(1 / np.exp(2 * smooth[0]).sum()))


def resample(
    random: np.random.Generator, log_weight: Float[np.ndarray, "draw"], size: int
) -> Int[np.ndarray, "{size}"]:
    """Places of draws of equal weight, in random order: one from each of `size` strata."""
    ends = np.cumsum(np.exp(log_weight))
    at = (np.arange(size) + random.random(size)) / size * ends[-1]
    return random.permutation(np.minimum(np.searchsorted(ends, at), len(ends) - 1))


def _nested(run: Run, setting: Setting) -> Callable[[np.random.Generator, int], Weighted]:
    """A way to draw more and more, after the search for the normal."""
    size = run.tools.density.shared
    look = _looking(run.tools.density)
    random = np.random.default_rng([run.seed, 3])
    center, root = np.zeros(size), np.eye(size)
    visited: list[Visits] = []
    for _ in range(ROUNDS):
        half = random.standard_normal((POINTS // 2, size))
        standard = np.concatenate([half, -half])
        at = center + standard @ root.T
        visits = _in_chunks(look, setting, at, random).visits
        visited.append(jax.tree.map(np.asarray, visits))
        setting = improve(setting, visited)
        center, root = _nearer(center, root, standard, np.asarray(visits.potential))

    def draw(random: np.random.Generator, count: int) -> Weighted:
        standard = random.standard_normal((count, size))
        standard /= np.sqrt(random.chisquare(FREEDOM, (count, 1)) / FREEDOM)
        found = _in_chunks(look, setting, center + standard @ root.T, random)
        squares = np.square(standard).sum(axis=1)
        log_t = -0.5 * (FREEDOM + size) * np.log1p(squares / FREEDOM)
        return Weighted(found.position, found.log_density - log_t, found.lp)

    return draw


def _nearer(
    center: Float[np.ndarray, "shared"],
    root: Float[np.ndarray, "shared shared"],
    standard: Float[np.ndarray, "point shared"],
    potential: Float[np.ndarray, "point"],
) -> tuple[Float[np.ndarray, "shared"], Float[np.ndarray, "shared shared"]]:
    """Centre and root of the normal that a quadratic through a normal's points tells of."""
    usable = np.isfinite(potential)
    standard, potential = standard[usable], potential[usable]
    size = standard.shape[1]
    left = potential - 0.5 * np.square(standard).sum(axis=1)
    inputs = products(standard, feature_count(size))
    fitted = ridge(inputs, left[:, None], importance(potential, size)).coefficients[:, 0]
    upper = np.zeros((size, size))
    upper[np.triu_indices(size)] = fitted[1 + size :]
    values, vectors = np.linalg.eigh(np.eye(size) + upper + upper.T)
    values = np.clip(values, 0.2, 25.0)
    step = -(vectors / values) @ vectors.T @ fitted[1 : 1 + size]
    step *= min(1.0, 2 * np.sqrt(size) / max(float(np.linalg.norm(step)), 1e-300))
    return center + root @ step, root @ (vectors / np.sqrt(values)) @ vectors.T


@lru_cache(maxsize=16)
def _looking(density: Density) -> Callable[[Setting, Array, Array], Looked]:
    marginal = Marginal(density)

    def one(setting: Setting, shared: Array, key: Array) -> Looked:
        normal, pick = jax.random.split(key)
        units = marginal.units(setting, shared)
        own = marginal.shared_potential(setting, shared)
        half = jax.random.normal(normal, (PAIRS, *units.center.shape))
        standard = jnp.concatenate([half, -half])
        exact = jax.vmap(lambda z: marginal.exact(setting, shared, units, z))(standard)
        # A draw's weight: the unit's density over the normal's, both of z.
        ratios = 0.5 * jnp.square(standard).sum(axis=2) - exact
        estimate = jax.nn.logsumexp(ratios, axis=0) - jnp.log(len(standard))
        chosen = jnp.argmax(ratios + jax.random.gumbel(pick, ratios.shape), axis=0)
        mask = jax.nn.one_hot(chosen, len(standard), axis=0, dtype=standard.dtype)
        kept = jnp.einsum("jcq,jc->cq", standard, mask)
        level, log_factor = units.level.sum(), units.log_factor.sum()
        visits = Visits(shared, own + level, level, log_factor, units.center)
        position = marginal.position(setting, shared, units.at(kept))
        lp = log_factor - own - jnp.sum(exact * mask)
        return Looked(visits, estimate.sum() - own, position, lp)

    def chunk(setting: Setting, shared: Array, keys: Array) -> Looked:
        return jax.lax.map(lambda each: one(setting, *each), (shared, keys))

    return jax.jit(chunk)


def _in_chunks(
    look: Callable[[Setting, Array, Array], Looked],
    setting: Setting,
    points: Float[np.ndarray, "point shared"],
    random: np.random.Generator,
) -> Looked:
    """Look at points, as many at a time as there are cores; the last chunk is filled up."""
    size = -(-len(points) // CHUNK) * CHUNK
    filled = np.resize(points, (size, points.shape[1]))
    keys = jax.random.split(jax.random.key(int(random.integers(2**31))), size)

    def one(begin: int) -> Looked:
        with jax.enable_x64(new_val=True):  # JAX keeps this setting per thread
            part = slice(begin, begin + CHUNK)
            return jax.tree.map(np.asarray, look(setting, jnp.asarray(filled[part]), keys[part]))

    one_first = one(0)  # compiled once, not by every thread
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        parts = [one_first, *pool.map(one, range(CHUNK, size, CHUNK))]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[: len(points)], *parts)


def _whole(run: Run, normal: DenseWhitening) -> Callable[[np.random.Generator, int], Weighted]:
    """Draws of the normal at the mode, with the density of all parameters."""
    look = _evaluating(run.tools.density)

    def draw(random: np.random.Generator, count: int) -> Weighted:
        shapes = jax.tree.map(jnp.shape, normal.center)
        standard = {n: jnp.asarray(random.standard_normal((count, *s))) for n, s in shapes.items()}
        position, log_density = look(normal, run.data, standard)
        squares = sum(np.square(leaf).reshape(count, -1).sum(axis=1) for leaf in standard.values())
        lp = np.asarray(log_density)
        return Weighted(jax.tree.map(np.asarray, position), lp + 0.5 * np.asarray(squares), lp)

    return draw


@lru_cache(maxsize=16)
def _evaluating(density: Density) -> Callable[..., Any]:
    def one(normal: DenseWhitening, data: Any, standard: Position) -> tuple[Position, Array]:
        position = normal(standard)
        return position, -density.potential(position, data)

    return jax.jit(lambda normal, data, all_: jax.lax.map(lambda s: one(normal, data, s), all_))
