"""Nested Laplace approximation, corrected and certified by importance weights.

Classifiers meet only through the parameters that they share, ξ. Given ξ a classifier's own are
integrated by Laplace's method (`bayesrep.inference.marginal`; Tierney and Kadane 1986). What is
left is a density of some fifteen parameters, which adaptive multiple importance sampling draws from
(Cornuet et al. 2012): thousands of points from Student t distributions, each fitted to the points
before, all of them weighted by Laplace's marginal over their mixture. Points are resampled, and
weighted once more by an unbiased estimate of the marginal density over Laplace's, from a few
antithetic draws of every classifier's normal. So weights make means exact, and Pareto's k of both
weights and their effective numbers say whether they do so with the draws at hand.

Draws are made, by the thousand, until their weights hold, and returned as many as were asked for,
of equal weight: a stratified resample of all. Weights that do not hold would leave few of them,
many times over: then the approximation's own draws are.

References
----------
Tierney, Kadane (1986), "Accurate approximations for posterior moments and marginal densities",
JASA 81. Rue, Martino, Chopin (2009), "Approximate Bayesian inference for latent Gaussian models",
JRSS B 71. Rubin (1988), "Using the SIR algorithm to simulate posterior distributions", Bayesian
Statistics 3. Cornuet, Marin, Mira, Robert (2012), "Adaptive multiple importance sampling",
Scandinavian Journal of Statistics 39. Hesterberg (1995), "Weighted average importance sampling and
defensive mixture distributions", Technometrics 37. Kitagawa (1996), "Monte Carlo filter and
smoother", JCGS 5: stratified resampling.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bayesrep.inference.arrowhead import Whitening
from bayesrep.inference.density import Density, Position
from bayesrep.inference.marginal import (
    N_JOINT_STEPS,
    Marginal,
    Setting,
    UnitNormals,
    Visits,
    mirror,
)
from bayesrep.inference.problem import around_mode
from bayesrep.inference.run import Drawn, Run
from bayesrep.inference.settle import (
    PointProgram,
    compile_for_points,
    evaluate_points,
    find_marginal_mode,
    make_look,
)
from bayesrep.numerics.pareto import pareto_smooth, tail_length
from bayesrep.posterior.verdict import MAX_PARETO_K, MIN_ESS
from bayesrep.types import Float, Floats, Int

PAIRS = 4
POINTS, ROUNDS = 1024, 16
"""Points of a proposal, and how many proposals there are at most."""
FREEDOM = 10.0
"""Degrees of freedom of the proposals."""
DEFENSIVE = 0.1
"""Share of the proposals' mixture in what is resampled (Hesterberg 1995)."""
NOWHERE = -1e9
"""Log density where Laplace's marginal is not a number."""
BATCHES = 4
"""Batches of draws, at most, until the weights hold; more would repeat the same points."""
MAX_KEPT_CLASSIFIERS = 2048
"""Of no more the normals at all points are kept; of more, they would fill the memory."""
LEAST, EACH = 1000, 3
"""Draws made at a time, at least, and how many returned ones each is."""


class Weighted(NamedTuple):
    """Draws [draw, ...] with the logarithms of their importance weights, unnormalised.

    `places` are those of the points that they were resampled from.
    """

    places: Int[np.ndarray, "draw"]
    position: Position
    log_weight: Float[np.ndarray, "draw"]
    lp: Float[np.ndarray, "draw"]


class Certificate(NamedTuple):
    """Smoothed log weights that sum to 1, their Pareto shape, and their effective number."""

    log_weight: Float[np.ndarray, "draw"]
    pareto_k: float
    ess: float

    @property
    def holds(self) -> bool:
        """Whether they may stand for the posterior."""
        return self.pareto_k < MAX_PARETO_K and self.ess >= MIN_ESS

    @property
    def error(self) -> float:
        """Standard error of the shape, were it that of greatest likelihood: (1 + k) / √tail."""
        return (1 + self.pareto_k) / math.sqrt(tail_length(len(self.log_weight)))

    @property
    def hopeless(self) -> bool:
        """Whether more draws of the same proposal would hardly have a smaller shape."""
        return self.pareto_k >= MAX_PARETO_K + self.error


class DrawSource(NamedTuple):
    """Where weighted draws come from.

    Attributes
    ----------
    draw
        So many more of them.
    judge
        What all of them are worth.
    """

    draw: Callable[[np.random.Generator, int], Weighted]
    judge: Callable[[Weighted], Certificate]


def laplace(run: Run) -> Drawn:
    """Draws of the posterior by weighting those of its normal approximation."""
    run.bar.stage("finding the mode")
    normal = around_mode(run.problem, run.tools, run.data)
    run.bar.stage("sampling")
    random = np.random.default_rng([run.seed, 2])
    wanted = run.schedule.chains * run.schedule.draws
    count, source = max(wanted // EACH, LEAST), _nested_source(run, normal, random)
    found = source.draw(random, count)
    judged = source.judge(found)
    for _ in range(BATCHES - 1):
        if judged.holds or judged.hopeless:
            break
        more = source.draw(random, count)
        found = jax.tree.map(lambda *of: np.concatenate(of), found, more)
        judged = source.judge(found)
    run.bar.advance(1)
    holds = judged.pareto_k < MAX_PARETO_K
    # Draws that are no numbers are of no use to whom a verdict does not stop.
    usable = np.flatnonzero(np.isfinite(found.log_weight) & np.isfinite(found.lp))
    others = np.resize(usable if len(usable) else np.arange(len(found.lp)), wanted)
    kept = resample(random, judged.log_weight, wanted) if holds else others
    chosen = jax.tree.map(lambda leaf: np.asarray(leaf)[kept], found)
    dealt = jax.tree.map(lambda leaf: leaf[None], chosen)  # no chains
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


class Proposal(NamedTuple):
    """A Student t of the coordinates ξ, with `FREEDOM`."""

    center: Float[np.ndarray, "shared"]
    root: Float[np.ndarray, "shared shared"]

    def draw(self, random: np.random.Generator, count: int) -> Float[np.ndarray, "draw shared"]:
        """So many points."""
        standard = random.standard_normal((count, len(self.center)))
        standard /= np.sqrt(random.chisquare(FREEDOM, (count, 1)) / FREEDOM)
        return self.center + standard @ self.root.T

    def log_density(self, points: Float[np.ndarray, "point shared"]) -> Float[np.ndarray, "point"]:
        """Of points, but for a constant that all proposals share."""
        standard = np.linalg.solve(self.root, (points - self.center).T)
        squares = np.square(standard).sum(axis=0)
        log_volume = np.log(np.diag(self.root)).sum()
        return -0.5 * (FREEDOM + len(self.center)) * np.log1p(squares / FREEDOM) - log_volume


def _propose(points: Float[np.ndarray, "point shared"], judged: Certificate) -> Proposal:
    """Of the shape of weighted points.

    The covariance is drawn to the coordinates' own as if it had been seen in twice as many points
    as it has rows.
    """
    size, weight = points.shape[1], np.exp(judged.log_weight)
    center = weight @ points
    around = points - center
    seen = judged.ess / (judged.ess + 2 * size)
    covariance = seen * (around.T * weight) @ around + (1 - seen) * np.eye(size)
    return Proposal(center, np.linalg.cholesky(covariance))


class ImportanceSample(NamedTuple):
    """Points ξ, the log density of draws resampled from them, and what these are worth."""

    shared: Float[np.ndarray, "point shared"]
    log_density: Float[np.ndarray, "point"]
    judged: Certificate

    def judge(
        self, log_weight: Float[np.ndarray, "draw"], places: Int[np.ndarray, "draw"]
    ) -> Certificate:
        """What weighted draws of points are worth: not more than the points.

        Of two shapes the smaller: a point that is there several times makes a tail look heavy, and
        one draw a point counts those far out too much.
        """
        judged = certify(log_weight)
        if judged.ess == 0 or self.judged.ess == 0:
            return judged
        once = certify(log_weight[np.unique(places, return_index=True)[1]])
        k = max(min(judged.pareto_k, once.pareto_k), self.judged.pareto_k)
        return judged._replace(pareto_k=k, ess=1 / (1 / judged.ess + 1 / self.judged.ess))


def adaptive_importance_sampling(
    evaluate: Callable[[Float[np.ndarray, "point shared"]], Float[np.ndarray, "point"]],
    size: int,
    random: np.random.Generator,
    wanted: int,
) -> ImportanceSample:
    """Points of ever better proposals, until they are worth so many draws of a log density.

    All of them count for what the mixture of all proposals gives: where one has thin tails or
    missed what another finds, no weight is out of proportion. The mixture itself is a tenth of what
    is resampled (Hesterberg 1995), so that what the density misses is met.
    """
    proposals = [Proposal(np.zeros(size), np.eye(size))]
    shared, density = np.zeros((0, size)), np.zeros(0)
    mixture = np.zeros(0)  # log of the sum of all proposals' densities, at every point
    while True:
        fresh = proposals[-1].draw(random, POINTS)
        shared, density = np.concatenate([shared, fresh]), np.append(density, evaluate(fresh))
        # No density is evaluated twice at a point: those before meet new points, the new one all.
        before = np.full(POINTS, -np.inf)
        for each in proposals[:-1]:
            before = np.logaddexp(before, each.log_density(fresh))
        mixture = np.logaddexp(np.append(mixture, before), proposals[-1].log_density(shared))
        judged = certify(density - mixture)
        holds = judged.pareto_k < MAX_PARETO_K and judged.ess >= wanted
        if holds or len(proposals) == ROUNDS or judged.ess == 0:
            break
        proposals.append(_propose(shared, judged))
    weight = (1 - DEFENSIVE) * np.exp(judged.log_weight) + DEFENSIVE / len(shared)
    judged = judged._replace(log_weight=np.log(weight))
    return ImportanceSample(shared, judged.log_weight + mixture, judged)


def _nested_source(run: Run, normal: Whitening, random: np.random.Generator) -> DrawSource:
    """Draws of Laplace's marginal, weighted by the marginal density."""
    density, look = run.tools.density, make_look(run.tools.density)
    setting = find_marginal_mode(density, normal, run.data, look, run.tools.expand)
    setting = run.share_images(setting)

    keeps_normals = density.units <= MAX_KEPT_CLASSIFIERS
    visits: list[Visits] = []

    def evaluate(shared: Floats) -> Floats:
        visit = look(setting, shared)
        if keeps_normals:
            visits.append(visit)
        return np.where(np.isfinite(visit.potential), -visit.potential, NOWHERE)

    points = adaptive_importance_sampling(evaluate, density.shared, random, LEAST)
    joined = jax.tree.map(lambda *parts: np.concatenate(parts), *visits) if keeps_normals else None

    def draw(random: np.random.Generator, count: int) -> Weighted:
        places = resample(random, points.judged.log_weight, count)
        if joined is None:
            visit = look(setting, points.shared[places])
        else:
            visit = jax.tree.map(lambda leaf: leaf[places], joined)
        keys = random.integers(2**32, size=(count, 2), dtype=np.uint32)
        position, log_density, lp = evaluate_points(draw_program(density), setting, visit, keys)
        return Weighted(places, position, log_density - points.log_density[places], lp)

    return DrawSource(draw, lambda found: points.judge(found.log_weight, found.places))


@lru_cache(maxsize=16)
def draw_program(density: Density) -> PointProgram:
    """The program that draws units at points ξ, given their normals there.

    Parameters, an unbiased estimate of the marginal density at ξ (its logarithm, on a scale of its
    own), and the log density of all parameters.
    """
    marginal = Marginal(density)

    def draw(setting: Setting, seen: Visits, words: Array) -> tuple[Position, Array, Array]:
        key = jax.random.wrap_key_data(words, impl="threefry2x32")
        pick, normal, noise = jax.random.split(key, 3)
        shared, units = seen.shared, seen.units
        half = jax.random.normal(normal, (PAIRS, *units.center.shape))
        proposals = setting.noise.draw(noise, N_JOINT_STEPS)
        # All in one array: an estimate after the other compiles twice as long and runs no faster.
        standard = jnp.concatenate([mirror(half), proposals])
        terms = marginal.estimates(setting, shared, units, standard)
        ratios, fresh = jnp.split(terms.log_ratio, [2 * PAIRS])
        known = UnitNormals(units, half, terms._replace(log_ratio=ratios))
        position, lp = marginal.draw_units(pick, setting, shared, known, proposals, fresh)
        return position, -known.estimates.potential, lp

    return compile_for_points(draw, density, "draw")
