"""Draws from a posterior under a standard normal prior, by tempering.

Particles start as draws of the prior. The likelihood is raised to powers from 0 to 1, each chosen
such that half of the particles would still count; after each, particles are drawn again by their
weights and moved by steps of random-walk Metropolis whose covariance is the particles' own (Del
Moral, Doucet and Jasra, 2006, "Sequential Monte Carlo samplers", JRSS B 68). It needs no gradient,
so the likelihood may jump, and keeps modes that a chain would have to cross between.
"""

from collections.abc import Callable

import numpy as np

from bayesrep.types import Float, Floats

LogLikelihood = Callable[[Floats], Floats]

MOVES, LAST_MOVES = 10, 30  # after each power, and after the last
_KEPT_SHARE = 0.5  # share of the particles that a step of the power leaves, as an effective size
_ACCEPTANCE = 0.25  # share of proposals that the steps' length aims at
_BISECTIONS = 40


def tempered_draws(
    log_likelihood: LogLikelihood, dimension: int, particles: int, rng: np.random.Generator
) -> Float[np.ndarray, "particle parameter"]:
    """As many draws as particles, of equal weight.

    Parameters
    ----------
    log_likelihood
        Log-likelihood of rows of parameters [particle, dimension]: finite numbers [particle].
    dimension
        Number of parameters, each N(0, 1) beforehand.
    particles
        Some hundreds at least.
    rng
        Random numbers for everything.
    """
    places = rng.standard_normal((particles, dimension))
    heights = log_likelihood(places)
    power, scale = 0.0, 1.0
    while power < 1:
        weights, power = _next_power(heights, power)
        edges = np.cumsum(weights)
        even = (rng.random() + np.arange(particles)) / particles * edges[-1]
        chosen = np.searchsorted(edges[:-1], even)
        places, heights = places[chosen], heights[chosen]
        for _ in range(MOVES if power < 1 else LAST_MOVES):
            places, heights, accepted = _move_particles(
                places, heights, power, scale, log_likelihood, rng
            )
            scale *= np.exp((accepted - _ACCEPTANCE) / 2)
    return places


def _next_power(heights: Floats, power: float) -> tuple[Floats, float]:
    """Weights of the particles for the next power, and the power: at most 1."""

    def weights(to: float) -> Floats:
        logs = (to - power) * heights
        return np.exp(logs - logs.max())

    def keeps_enough(each: Floats) -> bool:
        return bool(each.sum() ** 2 > _KEPT_SHARE * len(each) * np.square(each).sum())

    low, high = power, 1.0
    if keeps_enough(weights(high)):
        return weights(high), high
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps_enough(weights(middle)) else (low, middle)
    return weights(high), high


def _move_particles(
    places: Floats,
    heights: Floats,
    power: float,
    scale: float,
    log_likelihood: LogLikelihood,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, float]:
    """One step of every particle, and the share that was accepted."""
    count, dimension = places.shape
    spread = np.cov(places, rowvar=False).reshape(dimension, dimension)
    factor = np.linalg.cholesky(spread + 1e-9 * np.eye(dimension))
    # Steps of several lengths: what suits the middle of the posterior is too long for its corners.
    length = scale * 2.38 / np.sqrt(dimension) * np.exp(rng.normal(0, 0.5, (count, 1)))
    tried = places + length * (rng.standard_normal(places.shape) @ factor.T)
    reached = log_likelihood(tried)
    prior = (np.square(places) - np.square(tried)).sum(axis=1) / 2
    better = np.log(rng.random(count)) < power * (reached - heights) + prior
    return (
        np.where(better[:, None], tried, places),
        np.where(better, reached, heights),
        float(better.mean()),
    )
