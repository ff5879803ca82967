"""Choosing images of a replication from a pool, and the bias that each way of choosing leaves.

With densities p₁(s) of the reference and p(s) of the pool, mixtures of betas by EM (Engstrom et
al., 2020, algorithm 1), the images of the pool at k of n have the frequencies

    q_k(s)  ∝  p(s) s^k (1 − s)^(n − k),

and x_k of them chosen have the distribution Σ_k x_k q_k / Σ_k x_k, known before the set exists.

    published   as many from every of five bins of k / n as the reference has there, class by class
    fine        the same with a bin for every k / n that occurs
    posterior   x_k such that Σ_k x_k q_k / Σ_k x_k is as near to p₁ as can be: ∫ |F − F₁| ds is
                least, the means' difference counting ten times (a linear program)

Where a bin of a class runs empty, the nearest bins give what is missing, the higher of two first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bayesrep.choices import FEW_REPLICATES
from bayesrep.errors import OptionError, StudyError
from bayesrep.estimators.mixtures import (
    CellTable,
    MixtureFit,
    all_counts,
    fit_mixtures,
    refit_mixtures,
)
from bayesrep.numerics.noisy_matching import BetaMixture
from bayesrep.numerics.rounding import largest_remainders
from bayesrep.planning.discretise import S_NODES, chance_of_counts, given_counts, masses_of
from bayesrep.planning.matching_methods import (
    MATCHING_METHODS,
    MatchedCells,
    draw_images,
    list_cells,
    match_published_bins,
    round_numbers,
)
from bayesrep.types import Floats, Ints

MAX_POOL_ANSWERS = 1_000


@dataclass(frozen=True, eq=False)
class Chosen:
    """Images chosen by one method, with what is expected of them.

    Attributes
    ----------
    images : int [N]
        Rows of the pool, in increasing order.
    inclusion : float [M]
        Every image's probability to be chosen.
    gap
        Expected mean selection frequency of the reference minus that of what is chosen.
    lower, upper
        95 % interval of it over the images of both (bootstrap).
    distance
        ∫ |F − F₁| ds, of expected distribution functions.
    moved
        Images that come from another bin than the one that was short of them.
    """

    images: Ints
    inclusion: Floats
    gap: float
    lower: float
    upper: float
    distance: float
    moved: int


@dataclass(frozen=True, eq=False)
class Matching:
    """The ways to choose, by method.

    Attributes
    ----------
    chosen
        By name of `MATCHING_METHODS`.
    densities
        Masses of the true selection frequencies of the reference and of the pool, on a grid.
    """

    chosen: Mapping[str, Chosen]
    densities: tuple[Floats, Floats]

    @property
    def reference_mean(self) -> float:
        """Mean selection frequency of the reference, noise taken out."""
        return float(self.densities[0] @ S_NODES)

    @property
    def pool_mean(self) -> float:
        """The density of the pool."""
        return float(self.densities[1] @ S_NODES)


def match_images(
    reference: tuple[Ints, Ints],
    pool: tuple[Ints, Ints],
    *,
    size: int,
    classes: tuple[NDArray[np.str_], NDArray[np.str_]] | None = None,
    least: float = 0.0,
    components: int = 2,
    replicates: int = FEW_REPLICATES,
    seed: int = 0,
) -> Matching:
    """Choose images from a pool by every method.

    Parameters
    ----------
    reference, pool
        `selected` and `shown` of every image: int [N₁] each, int [M] each.
    size
        How many to choose: of every class of the reference, or in all where there are none.
    classes
        Class of every image of the reference and of the pool.
    least
        Candidates whose expected true frequency, given their count, is below this are left out.
    components
        Components of the mixtures of betas.
    replicates
        Replicates of the bootstrap.
    seed
        Seed of the choice, the bootstrap and EM's starts.

    Returns
    -------
    Matching

    Raises
    ------
    StudyError
        If counts are impossible, or a class has fewer images in the pool than are asked for.
    OptionError
        If size, least, components or replicates are out of range.

    Warns
    -----
    IdentificationWarning
        Where fewer distinct counts occur than the mixture has parameters.
    """
    if size < 1 or replicates < 2:
        raise OptionError("size-or-replicates-too-small")
    if not 0 <= least < 1:
        raise OptionError("least-frequency-out-of-range", least=least)
    for name, (k, n) in (("reference", reference), ("pool", pool)):
        if not len(k) or len(k) != len(n) or not ((n > 0) & (k >= 0) & (k <= n)).all():
            raise StudyError("matched-counts-impossible", role=name)
    random = np.random.default_rng(seed)
    cells, cell_of, class_of = list_cells(reference, pool, size, classes)
    table = _table(reference, pool)
    # Both selection-frequency distributions, and bootstrap replicates of them.
    fit = fit_mixtures(table, components=components, seed=seed)
    replicas = refit_mixtures(fit, _resample_images(table, replicates, random))
    every = [_densities(fit, 0)]
    every += [_densities(replicas, version) for version in range(replicates)]
    means = np.stack([given_counts(cells.k, cells.n, second) @ S_NODES for _, second in every])
    # Candidates that are too seldom selected, on average, are not to be chosen.
    left_out = means[0] < least
    cells = replace(cells, pool=np.where(left_out, 0, cells.pool))
    class_of = np.where(left_out[cell_of], -1, class_of)
    if (cells.pool.sum(axis=1) < cells.targets).any():
        raise StudyError("too-few-frequent-candidates", size=size, least=least)
    target_means = np.array([first @ S_NODES for first, _ in every])
    chosen: dict[str, Chosen] = {}
    # Each method says how many images of each cell to take; chance rounds and draws them.
    for name, method in MATCHING_METHODS.items():
        numbers, moved = method(cells, *every[0], given_counts(cells.k, cells.n, every[0][1]))
        whole = round_numbers(numbers, cells, random)
        rate = numbers / np.maximum(cells.pool, 1)
        # The gap left under the fit and under each replicate: estimate and interval.
        gaps = target_means - means @ whole.sum(axis=0) / whole.sum()
        lower, upper = np.quantile(gaps[1:], (0.025, 0.975))
        images = draw_images(whole, cell_of, class_of, random)
        taken, (first, second) = whole.sum(axis=0), every[0]
        expected = taken @ given_counts(cells.k, cells.n, second) / taken.sum()
        distance = float(np.abs(np.cumsum(expected - first))[:-1] @ np.diff(S_NODES))
        rates = rate[class_of, cell_of] * (class_of >= 0)
        chosen[name] = Chosen(images, rates, float(gaps[0]), lower, upper, distance, moved)
    return Matching(chosen, every[0])


def fitted_mixtures(
    reference: tuple[Ints, Ints], pool: tuple[Ints, Ints], *, components: int = 2, seed: int = 0
) -> tuple[BetaMixture, BetaMixture]:
    """Mixtures of both by EM, from `selected` and `shown` of every image."""
    fit = fit_mixtures(_table(reference, pool), components=components, seed=seed)
    return fit.mixture(0), fit.mixture(1)


def match_published(
    reference: tuple[Ints, Ints],
    pool: tuple[Ints, Ints],
    *,
    size: int,
    classes: tuple[NDArray[np.str_], NDArray[np.str_]] | None = None,
    seed: int = 0,
) -> Ints:
    """Choose rows of the pool the published way alone, which takes no densities."""
    random = np.random.default_rng(seed)
    cells, cell_of, class_of = list_cells(reference, pool, size, classes)
    numbers, _ = match_published_bins(cells)
    return draw_images(round_numbers(numbers, cells, random), cell_of, class_of, random)


def remaining_gap(matching: Matching, answers: int, *, size: int, pool: int) -> dict[str, float]:
    """Compute each method's remaining gap, were every image of both sets asked so often.

    Parameters
    ----------
    matching
        Whose densities are taken for true.
    answers
        n, about every image.
    size, pool
        Images to choose, and candidates, of one class.

    Returns
    -------
    dict
        Method to the reference's mean selection frequency minus that of what is chosen. Where
        both densities are single betas with concentration a + b of the pool's and means μ₁ and μ,
        matching every count leaves (μ₁ − μ) (a + b) / (a + b + n): the pull of the pool's mean.

    Raises
    ------
    OptionError
        If there are no answers, or fewer candidates than are to be chosen.
    """
    if not 1 <= answers <= MAX_POOL_ANSWERS or not 1 <= size <= pool:
        raise OptionError("answers-or-size-out-of-range", most_answers=MAX_POOL_ANSWERS)
    return remaining_gaps(*matching.densities, answers, size=size, pool=pool)


def remaining_gaps(
    reference: Floats,
    candidates: Floats,
    answers: int,
    *,
    size: int,
    pool: int,
    careless: float = 0,
) -> dict[str, float]:
    """Compute each method's remaining gap between two densities, as masses around `S_NODES`."""
    p_count = chance_of_counts(answers, careless)  # [cell, node]
    counts = largest_remainders(p_count @ candidates, pool)
    share = p_count @ reference
    k, n = np.arange(answers + 1), np.full(answers + 1, answers)
    cells = MatchedCells(k, n, counts[None], share[None] / share.sum(), np.array([size]))
    posterior = p_count * candidates
    posterior /= np.maximum(posterior.sum(axis=1, keepdims=True), 1e-300)
    means, target = posterior @ S_NODES, float(reference @ S_NODES)
    chosen = {
        name: method(cells, reference, candidates, posterior)[0]
        for name, method in MATCHING_METHODS.items()
    }
    return {
        name: target - float(numbers.sum(axis=0) @ means / numbers.sum())
        for name, numbers in chosen.items()
    }


def next_answers(
    matching: Matching, pool: tuple[Ints, Ints], *, count: int, most: int, seed: int = 0
) -> Ints:
    """Select the images of the pool worth another answer: those that would be chosen so far.

    An answer about an image that could not be chosen anyway changes nothing. Asked round by
    round, a few answers each, half as many answers leave as little as all do that are asked of
    every image alike.

    Parameters
    ----------
    matching
        By the answers that are there.
    pool
        `selected` and `shown` of every image, as it was matched.
    count
        How many images to ask about, once each.
    most
        Answers that an image has at most.
    seed
        Seed of the order of images with the same answers.

    Returns
    -------
    int [N]
        Rows of the pool, `count` at most: by falling probability to be chosen, of those alike by
        falling frequency, of those alike at random.

    Raises
    ------
    OptionError
        If count or most is below one.
    """
    if count < 1 or most < 1:
        raise OptionError("next-answers-below-one")
    k, n = pool
    chance = np.random.default_rng(seed).random(len(k))
    order = np.lexsort((chance, -k / n, -matching.chosen["posterior"].inclusion))
    return order[n[order] < most][:count]


def _table(reference: tuple[Ints, Ints], pool: tuple[Ints, Ints]) -> CellTable:
    selected, n_shown = all_counts(np.concatenate([reference[1], pool[1]]))
    images = np.zeros((2, 1, len(n_shown)))
    for role, (k, n) in enumerate((reference, pool)):
        np.add.at(images[role, 0], np.searchsorted(n_shown, n) + k, 1)
    return CellTable(selected, n_shown, images, np.zeros((1, len(n_shown), 0)))


def _resample_images(table: CellTable, replicates: int, random: np.random.Generator) -> CellTable:
    samples = [
        random.multinomial(int(images.sum()), images / images.sum(), size=replicates)
        for images in table.images[:, 0]
    ]
    images = np.stack(samples).astype(np.float64)
    empty = np.zeros((replicates, len(table.selected), 0))
    return CellTable(table.selected, table.shown, images, empty)


def _densities(fit: MixtureFit, version: int) -> tuple[Floats, Floats]:
    """Masses of the reference and of the pool between the edges."""
    return masses_of(fit.mixture(0, version)), masses_of(fit.mixture(1, version))
