"""Sequential Monte Carlo by likelihood tempering, under a standard normal prior.

Del Moral, Doucet and Jasra (2006), "Sequential Monte Carlo samplers", JRSS B 68: each power of the
likelihood halves the effective size; particles are resampled, and moved by random-walk Metropolis.
"""

from collections.abc import Callable

import numpy as np

from bayesrep.types import Float, Floats, Int

LogLikelihood = Callable[[Floats], Floats]

N_MOVES, N_LAST_MOVES = 10, 30  # Metropolis steps after each power, and after the last
_MIN_ESS_SHARE = 0.5  # effective sample size after a step of the power, as a share of particles
_TARGET_ACCEPTANCE = 0.25  # acceptance rate to which the step length adapts
_N_BISECTIONS = 40


def tempered_draws(
    log_likelihood: LogLikelihood, dimension: int, particles: int, rng: np.random.Generator
) -> Float[np.ndarray, "particle parameter"]:
    """Draw from the posterior of N(0, 1) parameters, as many draws as particles (hundreds)."""
    positions = rng.standard_normal((particles, dimension))
    log_likelihoods = log_likelihood(positions)
    power, scale = 0.0, 1.0
    while power < 1:
        weights, power = _next_power(log_likelihoods, power)
        # Systematic resampling: equally spaced fractions, all shifted by one random number.
        chosen = resample(weights, (rng.random() + np.arange(particles)) / particles)
        positions, log_likelihoods = positions[chosen], log_likelihoods[chosen]
        for _ in range(N_MOVES if power < 1 else N_LAST_MOVES):
            positions, log_likelihoods, accepted = _move_particles(
                positions, log_likelihoods, power, scale, log_likelihood, rng
            )
            scale *= np.exp((accepted - _TARGET_ACCEPTANCE) / 2)
    return positions


def resample(
    weights: Float[np.ndarray, "particle"], fractions: Float[np.ndarray, "draw"]
) -> Int[np.ndarray, "draw"]:
    """Draw places in proportion to weights: those at fractions of the cumulative weights."""
    edges = np.cumsum(weights)
    return np.searchsorted(edges[:-1], fractions * edges[-1])


def _next_power(log_likelihoods: Floats, power: float) -> tuple[Floats, float]:
    """Find the next power, at most 1, and the particles' weights for it."""

    def weights(to: float) -> Floats:
        logs = (to - power) * log_likelihoods
        return np.exp(logs - logs.max())

    def keeps_enough(each: Floats) -> bool:
        return bool(each.sum() ** 2 > _MIN_ESS_SHARE * len(each) * np.square(each).sum())

    # The effective sample size falls with the power: bisection.
    low, high = power, 1.0
    if keeps_enough(weights(high)):
        return weights(high), high
    for _ in range(_N_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps_enough(weights(middle)) else (low, middle)
    return weights(high), high


def _move_particles(
    positions: Floats,
    log_likelihoods: Floats,
    power: float,
    scale: float,
    log_likelihood: LogLikelihood,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, float]:
    """Move every particle by one Metropolis step; also return the acceptance rate."""
    count, dimension = positions.shape
    spread = np.cov(positions, rowvar=False).reshape(dimension, dimension)
    factor = np.linalg.cholesky(spread + 1e-9 * np.eye(dimension))
    # Random step lengths: what suits the centre of the posterior is too long for its corners.
    length = scale * 2.38 / np.sqrt(dimension) * np.exp(rng.normal(0, 0.5, (count, 1)))
    proposals = positions + length * (rng.standard_normal(positions.shape) @ factor.T)
    proposed = log_likelihood(proposals)
    # Metropolis ratio: the tempered likelihood and the standard normal prior.
    prior = (np.square(positions) - np.square(proposals)).sum(axis=1) / 2
    accepted = np.log(rng.random(count)) < power * (proposed - log_likelihoods) + prior
    return (
        np.where(accepted[:, None], proposals, positions),
        np.where(accepted, proposed, log_likelihoods),
        float(accepted.mean()),
    )
