"""Nested Laplace approximation, corrected and diagnosed by importance weights.

The Laplace marginal of the shared parameters ξ (`bayesrep.inference.laplace_marginal`) is sampled
by adaptive multiple importance sampling (Cornuet et al. 2012): points from Student t distributions,
each fitted to the points before, all of them weighted by the marginal over the t's mixture. Points
are resampled, and weighted once more by an unbiased estimate of the marginal density over
Laplace's. So weights make means exact, and Pareto's k of both weights and their effective numbers
say whether they do so with the draws at hand.

References
----------
Rue, Martino, Chopin (2009), JRSS B 71. Rubin (1988), Bayesian Statistics 3. Cornuet, Marin, Mira,
Robert (2012), Scandinavian Journal of Statistics 39. Hesterberg (1995), Technometrics 37. Kitagawa
(1996), JCGS 5. Vehtari, Simpson, Gelman, Yao, Gabry (2024), JMLR 25.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax
import numpy as np
from jax import Array

from bayesrep.inference.density import Density
from bayesrep.inference.laplace_marginal import Marginal, MarginalDraw, Setting
from bayesrep.inference.marginal_mode import evaluation_program
from bayesrep.inference.points import PointProgram, compile_for_points
from bayesrep.numerics.pareto import pareto_smooth, tail_length
from bayesrep.posterior.verdict import MAX_PARETO_K, MIN_ESS
from bayesrep.types import Float, Floats, Int

N_POINTS = 256
"""Points of a proposal."""
DEGREES_OF_FREEDOM = 10.0
"""Degrees of freedom of the proposals' Student t."""
DEFENSIVE_SHARE = 0.1
"""Weight of the proposals' mixture in the resampled distribution (Hesterberg 1995)."""


class PSISResult(NamedTuple):
    """Pareto-smoothed log weights, normalised, their shape k̂ and effective sample size."""

    log_weight: Float[np.ndarray, "draw"]
    pareto_k: float
    ess: float

    @property
    def is_reliable(self) -> bool:
        """True if weighted draws may stand for the posterior."""
        return self.pareto_k < MAX_PARETO_K and self.ess >= MIN_ESS

    @property
    def is_hopeless(self) -> bool:
        """True if more draws of the same proposal would hardly have a smaller k̂."""
        # The standard error of k̂, were it the maximum-likelihood estimate.
        error = (1 + self.pareto_k) / math.sqrt(tail_length(len(self.log_weight)))
        return self.pareto_k >= MAX_PARETO_K + error


def smooth_weights(log_weight: Float[np.ndarray, "draw"]) -> PSISResult:
    """Smooth importance weights and diagnose them (Vehtari et al. 2024); k̂ = inf of broken ones."""
    if not np.isfinite(log_weight).all():
        return PSISResult(np.full(len(log_weight), -np.log(len(log_weight))), np.inf, 0.0)
    smooth, shape = pareto_smooth(log_weight[None, :])
    # Equal weights have no tail to fit: they are perfect.
    even = np.ptp(log_weight) < 1e-8
    k = 0.0 if even else float(shape[0]) if np.isfinite(shape[0]) else np.inf
    return PSISResult(smooth[0], k, float(1 / np.exp(2 * smooth[0]).sum()))


def resample(
    random: np.random.Generator, log_weight: Float[np.ndarray, "draw"], size: int
) -> Int[np.ndarray, "{size}"]:
    """Resample indices of draws, in random order: one from each of `size` strata."""
    ends = np.cumsum(np.exp(log_weight))
    heights = (np.arange(size) + random.random(size)) / size * ends[-1]
    return random.permutation(np.minimum(np.searchsorted(ends, heights), len(ends) - 1))


class Proposal(NamedTuple):
    """A Student t of the coordinates ξ, with `DEGREES_OF_FREEDOM`."""

    center: Float[np.ndarray, "shared"]
    root: Float[np.ndarray, "shared shared"]

    def draw(self, random: np.random.Generator, count: int) -> Float[np.ndarray, "draw shared"]:
        """Draw `count` points."""
        standard = random.standard_normal((count, len(self.center)))
        standard /= np.sqrt(random.chisquare(DEGREES_OF_FREEDOM, (count, 1)) / DEGREES_OF_FREEDOM)
        return self.center + standard @ self.root.T

    def log_density(self, points: Float[np.ndarray, "point shared"]) -> Float[np.ndarray, "point"]:
        """Compute the log density of points, but for a constant that all proposals share."""
        standard = np.linalg.solve(self.root, (points - self.center).T)
        squares = np.square(standard).sum(axis=0)
        log_volume = np.log(np.diag(self.root)).sum()
        power = 0.5 * (DEGREES_OF_FREEDOM + len(self.center))
        return -power * np.log1p(squares / DEGREES_OF_FREEDOM) - log_volume


def fit_proposal(points: Float[np.ndarray, "point shared"], psis: PSISResult) -> Proposal:
    """Fit a proposal to weighted points."""
    size, weight = points.shape[1], np.exp(psis.log_weight)
    center = weight @ points
    # Shrinkage to the identity, which coordinates around the mode make about right, as if that had
    # been seen in twice as many points as it has rows.
    around = points - center
    trust = psis.ess / (psis.ess + 2 * size)
    covariance = trust * (around.T * weight) @ around + (1 - trust) * np.eye(size)
    return Proposal(center, np.linalg.cholesky(covariance))


class ImportanceSample(NamedTuple):
    """Points ξ of the Laplace marginal in a setting's coordinates, and their weights."""

    setting: Setting
    shared: Float[np.ndarray, "point shared"]
    potential: Float[np.ndarray, "point"]  # the marginal's, and the subsample's centres there
    center: Float[np.ndarray, "point sampled own"]
    log_density: Float[np.ndarray, "point"]  # of draws resampled from the points
    psis: PSISResult


def diagnose_draws(
    log_weight: Float[np.ndarray, "draw"], places: Int[np.ndarray, "draw"], of_points: PSISResult
) -> PSISResult:
    """Diagnose weighted draws at indices of points: no better than the points."""
    psis = smooth_weights(log_weight)
    if psis.ess == 0 or of_points.ess == 0:
        return psis
    # The smaller k̂ of all draws and of one draw a point: repeated points make a tail look heavy,
    # and one draw a point gives points far out too much weight.
    once = smooth_weights(log_weight[np.unique(places, return_index=True)[1]])
    k = max(min(psis.pareto_k, once.pareto_k), of_points.pareto_k)
    return psis._replace(pareto_k=k, ess=1 / (1 / psis.ess + 1 / of_points.ess))


def adaptive_importance_sampling(
    log_density: Callable[[Float[np.ndarray, "point shared"]], Float[np.ndarray, "point"]],
    size: int,
    random: np.random.Generator,
    min_ess: float = 1000.0,
) -> tuple[Float[np.ndarray, "point shared"], Float[np.ndarray, "point"], PSISResult]:
    """Sample points of ever better proposals: these, the log density of draws, their weights."""
    proposals = [Proposal(np.zeros(size), np.eye(size))]
    shared, density = np.zeros((0, size)), np.zeros(0)
    # Log of the sum of all proposals' densities at every point. Weighted by the mixture, a proposal
    # of thin tails, or one that misses a region that another covers, gives no weight too large.
    mixture = np.zeros(0)
    while True:
        # The newest proposal adds points; the weights of all points change with the mixture.
        fresh = proposals[-1].draw(random, N_POINTS)
        shared, density = np.concatenate([shared, fresh]), np.append(density, log_density(fresh))
        # Each proposal is evaluated once a point: earlier ones at new points, the newest at all.
        before = np.full(N_POINTS, -np.inf)
        for each in proposals[:-1]:
            before = np.logaddexp(before, each.log_density(fresh))
        mixture = np.logaddexp(np.append(mixture, before), proposals[-1].log_density(shared))
        psis = smooth_weights(density - mixture)
        is_enough = psis.pareto_k < MAX_PARETO_K and psis.ess >= min_ess
        if is_enough or len(proposals) == 64 or psis.ess == 0:
            break
        proposals.append(fit_proposal(shared, psis))
    # Defensive mixture: points of hardly any weight may still be drawn, so that regions that the
    # density underrates are visited.
    weight = (1 - DEFENSIVE_SHARE) * np.exp(psis.log_weight) + DEFENSIVE_SHARE / len(shared)
    psis = psis._replace(log_weight=np.log(weight))
    return shared, psis.log_weight + mixture, psis


def sample_marginal(
    density: Density, setting: Setting, random: np.random.Generator
) -> ImportanceSample:
    """Sample the Laplace marginal in coordinates around its mode."""
    evaluations = []

    def evaluate(shared: Floats) -> Floats:
        evaluations.append(evaluation_program(density)(setting, shared))
        potential, _ = evaluations[-1]
        return np.where(np.isfinite(potential), -potential, -1e9)  # no weight, but a number

    shared, log_density, psis = adaptive_importance_sampling(evaluate, density.shared, random)
    potential, center = map(np.concatenate, zip(*evaluations, strict=True))
    return ImportanceSample(setting, shared, potential, center, log_density, psis)


def draw_weighted(
    density: Density, sample: ImportanceSample, random: np.random.Generator, count: int
) -> tuple[MarginalDraw, Float[np.ndarray, "draw"], PSISResult]:
    """Draw from the posterior, `count` draws at a time, with weights, until these are reliable."""
    batches = list[tuple[MarginalDraw, Floats]]()
    while True:
        places = resample(random, sample.psis.log_weight, count)
        keys = random.integers(2**32, size=(count, 2), dtype=np.uint32)
        batches.append((draw_program(density)(sample.setting, sample.shared[places], keys), places))
        draws, places = jax.tree.map(lambda *each: np.concatenate(each), *batches)
        log_weight = draws.log_marginal - sample.log_density[places]
        psis = diagnose_draws(log_weight, places, sample.psis)
        # More than four batches would repeat the same points.
        if psis.is_reliable or psis.is_hopeless or len(batches) == 4:
            return draws, log_weight, psis


@lru_cache(maxsize=16)
def draw_program(density: Density) -> PointProgram:
    """Compile `Marginal.draw`, its keys as pairs of words."""
    marginal = Marginal(density)

    def draw(setting: Setting, shared: Array, words: Array) -> MarginalDraw:
        return marginal.draw(setting, shared, jax.random.wrap_key_data(words, impl="threefry2x32"))

    return compile_for_points(draw, density, "draw", batch_size=4)
