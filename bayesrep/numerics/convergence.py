"""R-hat and effective sample sizes of many quantities at once.

Vehtari, Gelman, Simpson, Carpenter, Bürkner (2021), "Rank-normalization, folding, and localization:
an improved R̂ for assessing convergence of MCMC", Bayesian Analysis 16; Geyer's initial monotone
sequence. Chains that began at one point are a *superchain*: nested R-hat is √(1 + B / W), B the
variance of the superchains' means, W the mean over superchains of the variance of their chains'
means and of the draws in a chain (Margossian and others (2024), "Nested R̂", Bayesian Analysis).
Then τ is the variance of a chain's mean relative to that of independent draws.

ArviZ has the same numbers (a test; 1.x with `prob=TAIL_QUANTILES`), a millisecond each.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from bayesrep.machine import cores
from bayesrep.types import Float, Floats, Ints

TAIL_QUANTILES = (0.05, 0.95)
MIN_DRAWS = 4
QUANTITIES_PER_BLOCK = 64  # quantities at a time, whose draws the processor's cache holds


class Convergence(NamedTuple):
    """Diagnostics of some quantities; NaN where undefined, as R-hat of one chain or a constant."""

    rhat: Float[np.ndarray, "quantity"]
    ess_bulk: Float[np.ndarray, "quantity"]
    ess_tail: Float[np.ndarray, "quantity"]


def convergence(
    draws: Float[np.ndarray, "chain draw quantity"], superchains: int = 0
) -> Convergence:
    """Compute R-hat, bulk and tail ESS; with 0 superchains every chain had a start of its own."""
    chains, length, count = draws.shape
    if length < (1 if superchains else MIN_DRAWS):
        return Convergence(*np.full((3, count), np.nan))

    def of_block(start: int) -> Floats:
        block = np.moveaxis(draws[:, :, start : start + QUANTITIES_PER_BLOCK], 2, 0)
        return _diagnose_rows(np.ascontiguousarray(block, dtype=float), superchains)

    with ThreadPoolExecutor(cores()) as pool:  # sorts and transforms run in parallel
        parts = [*pool.map(of_block, range(0, count, QUANTITIES_PER_BLOCK))]
    rhat, bulk, tail = np.concatenate(parts, axis=1) if parts else np.empty((3, 0))
    return Convergence(rhat if chains > 1 else np.full(count, np.nan), bulk, tail)


def divide_chains(chains: int, superchains: int) -> list[Ints]:
    """Divide chain numbers into superchains: consecutive, and as even as possible."""
    return np.array_split(np.arange(chains), superchains)


def mean_ess(draws: Float[np.ndarray, "chain draw quantity"]) -> Float[np.ndarray, "quantity"]:
    """Compute the effective sample size of every quantity's mean."""
    if draws.shape[1] < MIN_DRAWS:
        return np.full(draws.shape[2], np.nan)
    return _effective_size(_halves(np.moveaxis(draws, 2, 0)))


def _diagnose_rows(
    draws: Float[np.ndarray, "quantity chain draw"], superchains: int
) -> Float[np.ndarray, "3 quantity"]:
    rhat_of = partial(_nested_rhat, superchains=superchains) if superchains else _rhat
    size_of = _independent_chains_size if superchains else _effective_size
    split = draws if superchains else _halves(draws)
    values = split.reshape(len(split), -1)
    with np.errstate(invalid="ignore", divide="ignore"):  # of constants, and what is not a number
        order = np.argsort(values, axis=1)
        scores = _normal_scores(values, order).reshape(split.shape)
        folded = np.abs(values - np.median(values, axis=1, keepdims=True))
        distances = _normal_scores(folded, np.argsort(folded, axis=1)).reshape(split.shape)
        bulk, tail = rhat_of(scores), rhat_of(distances)
        # Where all draws are equally far from the median, the folded R-hat is undefined.
        rhat = np.where(np.isnan(tail), bulk, np.maximum(bulk, tail))
        ends = np.quantile(draws.reshape(len(draws), -1), TAIL_QUANTILES, axis=1)
        sizes = [size_of((split <= end[:, None, None]).astype(float)) for end in ends]
        diagnostics = np.stack([rhat, size_of(scores), np.minimum(*sizes)])
    diagnostics[:, np.isnan(values).any(axis=1)] = np.nan
    return diagnostics


def _halves(
    draws: Float[np.ndarray, "quantity chain draw"],
) -> Float[np.ndarray, "quantity half n"]:
    """Split all chains into halves, without the middle draw of an odd number."""
    half = draws.shape[2] // 2
    return np.concatenate([draws[:, :, :half], draws[:, :, -half:]], axis=1)


def _normal_scores(values: Floats, order: Ints) -> Floats:
    """Compute Φ⁻¹((rank − 3/8) / (N + 1/4)) along rows; ties share their mean rank."""
    rows, size = values.shape
    sorted_values = np.take_along_axis(values, order, axis=1)
    starts = np.ones((rows, size + 1), dtype=bool)  # of ties, and the end
    np.not_equal(sorted_values[:, 1:], sorted_values[:, :-1], out=starts[:, 1:-1])
    place = np.arange(size)
    first = np.maximum.accumulate(np.where(starts[:, :-1], place, 0), axis=1)
    last = np.where(starts[:, 1:], place, size)[:, ::-1]
    last = np.minimum.accumulate(last, axis=1)[:, ::-1]
    # A rank, counted from 1, is a multiple of 1/2.
    of_ranks = ndtri((np.arange(2 * size - 1) / 2 + 1 - 3 / 8) / (size + 1 / 4))
    scores = np.empty_like(values)
    np.put_along_axis(scores, order, of_ranks[first + last], axis=1)
    return scores


def _rhat(split: Float[np.ndarray, "quantity half n"]) -> Float[np.ndarray, "quantity"]:
    length = split.shape[2]
    between = split.mean(axis=2).var(axis=1, ddof=1)
    within = split.var(axis=2, ddof=1).mean(axis=1)
    return np.sqrt(between / within + (length - 1) / length)


def _nested_rhat(
    draws: Float[np.ndarray, "quantity chain draw"], superchains: int
) -> Float[np.ndarray, "quantity"]:
    groups = [draws[:, chains] for chains in divide_chains(draws.shape[1], superchains)]
    between = np.stack([group.mean(axis=(1, 2)) for group in groups]).var(axis=0, ddof=1)
    # A superchain's variance: of its chains' means, plus of the draws around these.
    within = np.zeros(len(draws))
    for group in groups:
        if group.shape[1] > 1:
            within += group.mean(axis=2).var(axis=1, ddof=1)
        if group.shape[2] > 1:
            within += group.var(axis=2, ddof=1).mean(axis=1)
    return np.sqrt(1 + between / (within / len(groups)))


def _independent_chains_size(
    draws: Float[np.ndarray, "quantity chain draw"],
) -> Float[np.ndarray, "quantity"]:
    count, _, length = draws.shape
    flat = draws.reshape(count, -1)
    size = flat.shape[1]
    # Chains are independent: τ is the variance of chain means relative to independent draws'.
    tau = length * draws.mean(axis=2).var(axis=1, ddof=1) / flat.var(axis=1, ddof=1)
    constant = np.ptp(flat, axis=1) < np.finfo(float).resolution
    return np.where(constant, float(size), size / np.maximum(tau, 1 / np.log10(size)))


def _effective_size(split: Float[np.ndarray, "quantity half n"]) -> Float[np.ndarray, "quantity"]:
    count, halves, length = split.shape
    size = halves * length
    means = split.mean(axis=2)
    covariance = _autocovariance(split - means[:, :, None])
    within = covariance[:, 0] * length / (length - 1)
    total = covariance[:, 0] + means.var(axis=1, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = 1 - (within[:, None] - covariance) / total[:, None]
    rho[:, 0] = 1
    # Geyer: sums of neighbouring lags are positive and decreasing for a reversible chain.
    pairs = rho[:, : length - length % 2].reshape(count, -1, 2).sum(axis=2)
    limit = max(0, (length - 3) // 2)
    ends = pairs[:, : limit + 1] <= 0
    ends[:, -1] = True
    last = ends.argmax(axis=1)  # the pair that ends the sequence, whose first half may still count
    summed = np.cumsum(np.minimum.accumulate(pairs[:, : limit + 1], axis=1), axis=1)
    rows = np.arange(count)
    pair_sum = np.where(last > 0, summed[rows, np.maximum(last - 1, 0)], 0.0)
    # The first half of the pair that ends the sequence still counts where it is positive.
    half = rho[rows, 2 * last]
    half = np.where((pairs[rows, last] >= 0) | (half > 0), half, 0.0)
    tau = np.maximum(2 * pair_sum + half - 1, 1 / np.log10(size))
    flat = split.reshape(count, -1)
    constant = np.ptp(flat, axis=1) < np.finfo(float).resolution
    return np.where(constant, float(size), size / tau)


def _autocovariance(
    centered: Float[np.ndarray, "quantity half n"],
) -> Float[np.ndarray, "quantity n"]:
    """Compute the autocovariance by lag, averaged over halves."""
    length = centered.shape[2]
    # Zero padding to twice the length makes the circular convolution a linear one.
    # The smallest length of a fast transform: 1, 3, 5, 9, 15 or 25 times a power of two.
    odds = (1, 3, 5, 9, 15, 25)
    padded = min(odd << (-(-2 * length // odd) - 1).bit_length() for odd in odds)
    transform = np.fft.rfft(centered, padded, axis=2)
    power = (np.square(transform.real) + np.square(transform.imag)).mean(axis=1)
    return np.fft.irfft(power, padded, axis=1)[:, :length] / length
