"""Mixtures of the solve rate s over items: betas, with masses at 0 and at 1.

    p(s) = π_0 δ_0 + π_1 δ_1 + Σ_j w_j Beta(s; a_j, b_j),    j = 1..3,    π_0 + π_1 + Σ_j w_j = 1

Of n attempts c are right with probability C(n, c) f(c, n):

    f(c, n) = π_0 [c = 0] + π_1 [c = n] + Σ_j w_j (a_j)_c (b_j)_{n−c} / (a_j + b_j)_n

    pass@k = 1 − E(1 − s)^k = 1 − f(0, k),

exact for any k. The prior is a transform of standard normal z. Each mass is zero with probability
0.6, else a Beta(1, 2) share; the betas' weights are broken off a stick in uniform shares. Of a
beta, log(a/b) is normal(0, 2.5) and log min(a, b) normal(0, 1.2), so one near an end may be as
narrow or as wide as one in the middle. With n attempts a mass at 0 is not identified against rates
far below 1/n: this prior supports both.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from bayesrep.numerics.constants import SMALLEST_POSITIVE
from bayesrep.numerics.rising import log_ratio, log_rising
from bayesrep.types import Float, Floats, Int

N_COMPONENTS = 3
N_PARAMETERS = 1 + 3 * N_COMPONENTS  # of z: two masses, K − 1 weights, K log(a/b), K log min(a, b)

MASS_PRESENT, MASS_SHAPE = 0.4, 2.0  # probability and Beta(1, ·) shape of a mass
ODDS_SD = 2.5
SMALLER_SD = 1.2


class SolveRates(NamedTuple):
    """Draws of mixtures of the solve rate: K betas and the masses π_0 and π_1."""

    a: Float[np.ndarray, "draw component"]
    b: Float[np.ndarray, "draw component"]
    weights: Float[np.ndarray, "draw component"]
    at_zero: Float[np.ndarray, "draw"]
    at_one: Float[np.ndarray, "draw"]


def rates_from_normal(z: Float[np.ndarray, "draw parameter"]) -> SolveRates:
    """Transform standard normal z into mixtures: the prior."""
    at_zero = _mass(z[:, 0])
    at_one = (1 - at_zero) * _mass(z[:, 1])
    remaining = 1 - at_zero - at_one
    weights = np.empty((len(z), N_COMPONENTS))
    # Stick breaking in uniform shares.
    for j in range(1, N_COMPONENTS):
        share = ndtr(z[:, 1 + j])
        weights[:, j], remaining = remaining * share, remaining * (1 - share)
    weights[:, 0] = remaining
    # log(a/b) and the smaller shape determine both shapes.
    odds, smaller = np.split(z[:, 1 + N_COMPONENTS :], 2, axis=1)
    odds, smaller_shape = ODDS_SD * odds, np.exp(SMALLER_SD * smaller)
    a, b = smaller_shape * np.exp(np.maximum(odds, 0)), smaller_shape * np.exp(np.maximum(-odds, 0))
    return SolveRates(a, b, weights, at_zero, at_one)


def _mass(z: Floats) -> Floats:
    """Transform z into a mass: zero, or Beta(1, `MASS_SHAPE`) with probability `MASS_PRESENT`."""
    above = np.minimum(ndtr(-z) / MASS_PRESENT, 1)
    return 1 - above ** (1 / MASS_SHAPE)


def log_counts(
    rates: SolveRates, solved: Int[np.ndarray, "cell"], attempts: Int[np.ndarray, "cell"]
) -> Float[np.ndarray, "draw cell"]:
    """Compute log f(c, n), the mixture's log mass without log C(n, c)."""
    mass = np.einsum("sj,sjc->sc", rates.weights, np.exp(log_parts(rates, solved, attempts)))
    mass += rates.at_zero[:, None] * (solved == 0) + rates.at_one[:, None] * (solved == attempts)
    return np.log(np.maximum(mass, SMALLEST_POSITIVE))


def log_parts(
    rates: SolveRates, solved: Int[np.ndarray, "cell"], attempts: Int[np.ndarray, "cell"]
) -> Float[np.ndarray, "draw component cell"]:
    """Compute log (a_j)_c (b_j)_{n−c} / (a_j + b_j)_n of every beta component."""
    counts = np.stack([solved, attempts - solved, attempts])
    distinct, place = np.unique(counts, return_inverse=True)
    logs = log_rising(np.stack([rates.a, rates.b, rates.a + rates.b]), distinct)
    right, wrong, all_of = (
        each[..., where] for each, where in zip(logs, place.reshape(counts.shape), strict=True)
    )
    return right + wrong - all_of


def pass_rate(rates: SolveRates, k: Int[np.ndarray, "k"]) -> Float[np.ndarray, "draw k"]:
    """Compute pass@k of the population of items."""
    failed = np.exp(log_ratio(rates.b, rates.a, k))
    return 1 - rates.at_zero[:, None] - np.einsum("sj,sjk->sk", rates.weights, failed)


def passed_items(
    rates: SolveRates,
    solved: Int[np.ndarray, "cell"],
    attempts: Int[np.ndarray, "cell"],
    items: Int[np.ndarray, "cell"],
    k: Int[np.ndarray, "k"],
    rng: np.random.Generator,
) -> Float[np.ndarray, "draw k"]:
    """Simulate pass@k of `items` with each count: for each mixture, rates given the counts."""
    failed = np.zeros((len(rates.at_zero), len(k)))
    for c, n, count in zip(solved, attempts, items, strict=True):
        logs = log_parts(rates, np.array([c]), np.array([n]))[..., 0]
        parts = np.column_stack(
            [rates.weights * np.exp(logs), rates.at_zero * (c == 0), rates.at_one * (c == n)]
        )
        # Each item's component given its counts, by inversion, then its rate from that component.
        edges = np.cumsum(parts, axis=1)
        for _ in range(count):
            place = (rng.random(len(edges))[:, None] * edges[:, -1:] > edges).sum(axis=1)
            beta = np.minimum(place, N_COMPONENTS - 1)[:, None]
            a, b = (np.take_along_axis(x, beta, axis=1)[:, 0] for x in (rates.a, rates.b))
            s = np.where(place < N_COMPONENTS, rng.beta(a + c, b + n - c), place > N_COMPONENTS)
            failed += np.power(1 - s[:, None], k)
    return 1 - failed / items.sum()
