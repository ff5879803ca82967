"""Weighted draws of normal approximations: nested Laplace, certified by its own weights.

Where units meet only through the shared parameters, each is integrated by its normal at every value
of those (`bayesrep.inference.marginal`; Tierney, Kadane 1986), and what is left is a density of
some fifteen parameters, to which a normal is fitted (`bayesrep.inference.settle`). Draws from the
Student t of its shape are weighted by an estimate of the marginal density, from a few antithetic
draws of every unit from its normal. These are renewed as in a chain, and one of them is kept: so
weights make means exact, and Pareto's k of the weights and their effective number say whether they
do so with the draws at hand. Where they do not, these draws were a pilot: others come from the t of
their weighted mean and covariance, with heavier tails; once more so where those do not soon hold
either.

Where units meet in the likelihood, the draws are those of the normal at the mode, with weights.

Draws are made, by the thousand, until their weights hold, and returned as many as were asked for,
of equal weight: a stratified resample of all. Weights that do not hold would leave few of them,
many times over: then the approximation's own draws are.

References
----------
Tierney, Kadane (1986), "Accurate approximations for posterior moments and marginal densities",
JASA 81. Rue, Martino, Chopin (2009), "Approximate Bayesian inference for latent Gaussian models",
JRSS B 71. Kitagawa (1996), "Monte Carlo filter and smoother", JCGS 5: stratified resampling.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bayesrep.inference.arrowhead import Whitening
from bayesrep.inference.dense import DenseWhitening
from bayesrep.inference.density import Density, Position
from bayesrep.inference.marginal import Marginal, Setting, Visits
from bayesrep.inference.problem import around_mode
from bayesrep.inference.program import kept_jit
from bayesrep.inference.run import Drawn, Run
from bayesrep.inference.settle import (
    PointProgram,
    compile_for_points,
    evaluate_points,
    looking,
    settle,
)
from bayesrep.numerics.pareto import pareto_smooth, tail_length
from bayesrep.posterior.verdict import MAX_PARETO_K, MIN_ESS
from bayesrep.types import Float, Int

PAIRS = 4
RENEWALS = 2
"""How often a unit's draws are renewed: where units count less, no weight mends their normal."""
FREEDOM = 20.0, 5.0
"""Degrees of freedom of the proposals' Student t: of the normal's shape, and of a pilot's."""
PILOTS = 0, 2
"""Batches after which draws that do not hold are given up, for what they taught."""
BATCHES = 8
"""How many times as many draws as asked for are made, at most, until the weights hold."""
LEAST, EACH = 1000, 2
"""Draws made at a time where units are integrated, at least, and how many returned ones each is."""


class Weighted(NamedTuple):
    """Draws [draw, ...] with the logarithms of their importance weights, unnormalised.

    `shared` are the coordinates ξ; none of them where units meet in the likelihood.
    """

    shared: Float[np.ndarray, "draw shared"]
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

    @property
    def error(self) -> float:
        """Standard error of the shape, were it that of greatest likelihood: (1 + k) / √tail."""
        return (1 + self.pareto_k) / math.sqrt(tail_length(len(self.log_weight)))

    @property
    def hopeless(self) -> bool:
        """Whether more draws of the same proposal would hardly have a smaller shape."""
        return self.pareto_k >= MAX_PARETO_K + self.error


def laplace(run: Run) -> Drawn:
    """Draws of the posterior by weighting those of its normal approximation."""
    run.bar.stage("finding the mode")
    normal = around_mode(run.problem, run.tools, run.data)
    run.bar.stage("sampling")
    dense = isinstance(normal, DenseWhitening)
    draw = _whole(run, normal) if dense else _nested(run, normal)
    random = np.random.default_rng([run.seed, 2])
    wanted = run.schedule.chains * run.schedule.draws
    count = wanted if dense else max(wanted // EACH, LEAST)
    proposal = _normal(run.tools.density.shared)
    found = draw(random, count, proposal)
    judged = certify(found.log_weight)
    for batch in range(BATCHES if dense else BATCHES * EACH):
        if judged.enough or (dense and judged.hopeless):
            break
        pilot = batch in PILOTS and not dense
        if pilot:
            proposal = _taught(found)
        more = draw(random, count, proposal)
        found = more if pilot else jax.tree.map(lambda *of: np.concatenate(of), found, more)
        judged = certify(found.log_weight)
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
    """A Student t of the coordinates ξ."""

    center: Float[np.ndarray, "shared"]
    root: Float[np.ndarray, "shared shared"]
    freedom: float

    def draw(
        self, random: np.random.Generator, count: int
    ) -> tuple[Float[np.ndarray, "draw shared"], Float[np.ndarray, "draw"]]:
        """Points and the logarithms of their density, but for a constant."""
        size, freedom = len(self.center), self.freedom
        standard = random.standard_normal((count, size))
        standard /= np.sqrt(random.chisquare(freedom, (count, 1)) / freedom)
        squares = np.square(standard).sum(axis=1)
        return self.center + standard @ self.root.T, (
            -0.5 * (freedom + size) * np.log1p(squares / freedom)
        )


Draw: TypeAlias = Callable[[np.random.Generator, int, Proposal], Weighted]
"""So many more draws of a proposal; where units meet in the likelihood, of the normal."""


def _normal(size: int) -> Proposal:
    """Of the shape of the settled normal, which is standard."""
    return Proposal(np.zeros(size), np.eye(size), FREEDOM[0])


def _taught(pilot: Weighted) -> Proposal:
    """Of the shape of a pilot's weighted draws.

    The covariance is drawn to the normal's as if it had been seen in twice as many draws as it has
    rows.
    """
    shared, judged = pilot.shared, certify(pilot.log_weight)
    size, weight = shared.shape[1], np.exp(judged.log_weight)
    center = weight @ shared
    around = shared - center
    seen = judged.ess / (judged.ess + 2 * size)
    covariance = seen * (around.T * weight) @ around + (1 - seen) * np.eye(size)
    return Proposal(center, np.linalg.cholesky(covariance), FREEDOM[1])


def _nested(run: Run, normal: Whitening) -> Draw:
    density, look = run.tools.density, looking(run.tools.density)
    program = draw_program(density)
    setting = settle(density, normal, run.data, look, run.seed, expand=run.tools.expand).setting

    def draw(random: np.random.Generator, count: int, proposal: Proposal) -> Weighted:
        shared, log_t = proposal.draw(random, count)
        seen = look(setting, shared)
        keys = random.integers(2**32, size=(count, 2), dtype=np.uint32)
        position, log_density, lp = evaluate_points(program, setting, seen, keys)
        return Weighted(shared, position, log_density - log_t, lp)

    return draw


@lru_cache(maxsize=16)
def draw_program(density: Density) -> PointProgram:
    """The program that draws units at points ξ, given their normals there.

    Parameters, an unbiased estimate of the marginal density at ξ (its logarithm, on a scale of its
    own), and the log density of all parameters.
    """
    marginal = Marginal(density)

    def one(setting: Setting, point: tuple[Visits, Array]) -> tuple[Position, Array, Array]:
        seen, words = point
        key = jax.random.wrap_key_data(words, impl="threefry2x32")
        pick, *renewals, first = jax.random.split(key, 2 + 2 * RENEWALS)
        shared, units = seen.shared, seen.units
        shape = (PAIRS, *units.center.shape)
        known = marginal.estimate(setting, shared, units, jax.random.normal(first, shape))
        log_density = -known.estimates.potential
        for take, normal in zip(renewals[::2], renewals[1::2], strict=True):
            fresh = jax.random.normal(normal, shape)
            known = marginal.renew_units(take, setting, shared, known, fresh)
        position, lp = marginal.drawn(pick, setting, shared, known)
        return position, log_density, lp

    return compile_for_points(one, density, "draw")


def _whole(run: Run, normal: DenseWhitening) -> Draw:
    """Draws of the normal at the mode, with the density of all parameters."""
    look = _evaluating(run.tools.density)

    def draw(random: np.random.Generator, count: int, _: Proposal) -> Weighted:
        shapes = jax.tree.map(jnp.shape, normal.center)
        standard = {n: jnp.asarray(random.standard_normal((count, *s))) for n, s in shapes.items()}
        position, log_density = look(normal, run.data, standard)
        squares = sum(np.square(leaf).reshape(count, -1).sum(axis=1) for leaf in standard.values())
        lp = np.asarray(log_density)
        weight = lp + 0.5 * np.asarray(squares)
        none = np.zeros((count, 0))
        return Weighted(none, jax.tree.map(np.asarray, position), weight, lp)

    return draw


@lru_cache(maxsize=16)
def _evaluating(density: Density) -> Callable[..., Any]:
    def one(normal: DenseWhitening, data: Any, standard: Position) -> tuple[Position, Array]:
        position = normal(standard)
        return position, -density.potential(position, data)

    return kept_jit(
        lambda normal, data, every: jax.lax.map(lambda each: one(normal, data, each), every),
        "evaluate",
        density.identity,
    )
