"""Choosing images of a replication from a pool, and the bias that each way of choosing leaves.

Engstrom et al. (2020), section 3: images of the pool are chosen such that their *observed*
selection frequencies are distributed as the reference's. An image that is observed at k of n is, on
average, nearer to the pool's mean than k / n, so what is chosen is harder than the reference (or
easier, where the pool is). With densities p₁(s) of the reference and p(s) of the pool, mixtures of
betas by EM (algorithm 1 of the paper), the images of the pool at k of n have the frequencies

    q_k(s)  ∝  p(s) s^k (1 − s)^(n − k),

and x_k of them chosen have the distribution Σ_k x_k q_k / Σ_k x_k, known before the set exists.

    published   as many from every of five bins of k / n as the reference has there, class by class
    fine        the same with a bin for every k / n that occurs
    posterior   x_k such that Σ_k x_k q_k / Σ_k x_k is as near to p₁ as can be: the distance
                between the two distribution functions, ∫ |F − F₁| ds, is least, which the means'
                difference counts towards ten times (a linear program)

Where a bin of a class runs empty, the nearest bins give what is missing, the higher of two first.
"""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayesrep.choices import REPLICATES
from bayesrep.errors import EstimateWarning, OptionError, StudyError
from bayesrep.estimators.mixtures import (
    CellTable,
    MixtureFit,
    all_counts,
    fit_mixtures,
    refit_mixtures,
)
from bayesrep.numerics.noisy_matching import BetaMixture
from bayesrep.numerics.rounding import largest_remainders
from bayesrep.types import Float, Floats, Ints

BINS = 5
GRID, COARSE = 400, 50
MEAN = 10.0
"""Weight of the difference of the means beside the distance of the distributions."""
MOST_ANSWERS = 1_000
TINY = 1e-9
"""Shares below this are zero to the linear program."""
EDGES = np.sin(0.5 * np.pi * np.linspace(0, 1, GRID + 1)) ** 2  # closer at the ends
NODES = (EDGES[1:] + EDGES[:-1]) / 2
"""Selection frequencies at which densities and curves are known."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """What one method chooses, and what is known of it beforehand.

    Attributes
    ----------
    images : int [N]
        Rows of the pool, in increasing order.
    inclusion : float [M]
        Every image's probability to be chosen.
    gap
        Expected mean selection frequency of the reference less that of what is chosen.
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
        By name of `METHODS`.
    densities
        Masses of the true selection frequencies of the reference and of the pool, on a grid.
    """

    chosen: Mapping[str, Chosen]
    densities: tuple[Floats, Floats]

    @property
    def reference_mean(self) -> float:
        """Mean selection frequency of the reference, noise taken out."""
        return float(self.densities[0] @ NODES)

    @property
    def pool_mean(self) -> float:
        """The density of the pool."""
        return float(self.densities[1] @ NODES)


@dataclass(frozen=True, eq=False)
class _Cells:
    """The pool and the reference by class and cell: kinds of (k, n)."""

    k: Ints
    n: Ints
    pool: Ints  # [class, cell]
    reference: Floats  # [class, cell], shares of the class
    wanted: Ints  # [class]


def match_images(
    reference: tuple[Ints, Ints],
    pool: tuple[Ints, Ints],
    *,
    size: int,
    classes: tuple[NDArray[np.str_], NDArray[np.str_]] | None = None,
    least: float = 0.0,
    components: int = 2,
    replicates: int = REPLICATES,
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
    cells, cell_of, class_of = _cells(reference, pool, size, classes)
    table = _table(reference, pool)
    # Both selection-frequency distributions, and bootstrap replicates of them.
    fit = fit_mixtures(table, components=components, seed=seed)
    replicas = refit_mixtures(fit, _resample_images(table, replicates, random))
    every = [_densities(fit, 0)]
    every += [_densities(replicas, version) for version in range(replicates)]
    means = np.stack([_pool_by_cell(cells, second) @ NODES for _, second in every])
    # Candidates that are too seldom selected, on average, are not to be chosen.
    left_out = means[0] < least
    cells = replace(cells, pool=np.where(left_out, 0, cells.pool))
    class_of = np.where(left_out[cell_of], -1, class_of)
    if (cells.pool.sum(axis=1) < cells.wanted).any():
        raise StudyError("too-few-frequent-candidates", size=size, least=least)
    wanted = np.array([first @ NODES for first, _ in every])
    chosen: dict[str, Chosen] = {}
    # Each method says how many images of each cell to take; chance rounds and draws them.
    for name, method in METHODS.items():
        numbers, moved = method(cells, *every[0], _pool_by_cell(cells, every[0][1]))
        whole = _round_numbers(numbers, cells, random)
        rate = numbers / np.maximum(cells.pool, 1)
        # The gap left under the fit and under each replicate: estimate and interval.
        gaps = wanted - means @ whole.sum(axis=0) / whole.sum()
        lower, upper = np.quantile(gaps[1:], (0.025, 0.975))
        images = _draw_images(whole, cell_of, class_of, random)
        distance = _distance(whole.sum(axis=0), cells, *every[0])
        rates = rate[class_of, cell_of] * (class_of >= 0)
        chosen[name] = Chosen(images, rates, float(gaps[0]), lower, upper, distance, moved)
    return Matching(chosen, every[0])


def fitted_mixtures(
    reference: tuple[Ints, Ints],
    pool: tuple[Ints, Ints],
    *,
    components: int = 2,
    seed: int = 0,
) -> tuple[BetaMixture, BetaMixture]:
    """Mixtures of both by EM, from `selected` and `shown` of every image."""
    fit = fit_mixtures(_table(reference, pool), components=components, seed=seed)
    return fit.mixture(0), fit.mixture(1)


def _chance_of_counts(
    counts: Ints, answers: int, heard: Float[np.ndarray, "node"]
) -> Float[np.ndarray, "count node"]:
    """P(k of n) at each frequency."""
    from scipy.stats import binom  # takes long to import

    return binom.pmf(counts[:, None], answers, heard)


def match_published(
    reference: tuple[Ints, Ints],
    pool: tuple[Ints, Ints],
    *,
    size: int,
    classes: tuple[NDArray[np.str_], NDArray[np.str_]] | None = None,
    seed: int = 0,
) -> Ints:
    """Choose images the published way alone, which takes no densities: rows of the pool.

    Parameters, and what is raised, are those of `match_images`.
    """
    random = np.random.default_rng(seed)
    cells, cell_of, class_of = _cells(reference, pool, size, classes)
    numbers, _ = _match_published_bins(cells)
    return _draw_images(_round_numbers(numbers, cells, random), cell_of, class_of, random)


def remaining_gap(matching: Matching, answers: int, *, size: int, pool: int) -> dict[str, float]:
    """What each method would leave of the gap, were every image of both asked so often.

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
        Method to the reference's mean selection frequency less that of what is chosen. Where
        both densities are single betas with concentration a + b of the pool's and means μ₁ and μ,
        matching every count leaves (μ₁ − μ) (a + b) / (a + b + n): the pull of the pool's mean.

    Raises
    ------
    OptionError
        If there are no answers, or fewer candidates than are to be chosen.
    """
    if not 1 <= answers <= MOST_ANSWERS or not 1 <= size <= pool:
        raise OptionError("answers-or-size-out-of-range", most_answers=MOST_ANSWERS)
    return gaps_left_between(*matching.densities, answers, size=size, pool=pool)


def gaps_left_between(
    reference: Floats,
    candidates: Floats,
    answers: int,
    *,
    size: int,
    pool: int,
    careless: float = 0,
) -> dict[str, float]:
    """What each method leaves of the gap between two densities: masses around `NODES`.

    Parameters
    ----------
    reference, candidates
        Masses of true selection frequencies.
    answers, size, pool
        As `remaining_gap` takes them.
    careless
        Share of the answers that are tosses of a coin.
    """
    k = np.arange(answers + 1)
    heard = (1 - careless) * NODES + careless / 2
    says = _chance_of_counts(k, answers, heard)  # [cell, node]
    held = largest_remainders(says @ candidates, pool)
    share = says @ reference
    n = np.full(answers + 1, answers)
    cells = _Cells(k, n, held[None], share[None] / share.sum(), np.array([size]))
    given = says * candidates
    given /= np.maximum(given.sum(axis=1, keepdims=True), 1e-300)
    means, wanted = given @ NODES, float(reference @ NODES)
    chosen = {
        name: method(cells, reference, candidates, given)[0] for name, method in METHODS.items()
    }
    return {
        name: wanted - float(numbers.sum(axis=0) @ means / numbers.sum())
        for name, numbers in chosen.items()
    }


def chosen_masses(
    reference: Floats, candidates: Floats, answers: int, *, bins: int | None = None, careless: float
) -> Floats:
    """What is chosen of candidates without end: masses around `NODES`, which sum to one.

    Parameters
    ----------
    reference, candidates
        Masses of true selection frequencies.
    answers
        n, about every image; with none the candidates are left as they are.
    bins
        Equal bins of the frequency that are matched; None matches every count.
    careless
        Share of the answers that are tosses of a coin.
    """
    k = np.arange(answers + 1)
    heard = (1 - careless) * NODES + careless / 2
    says = _chance_of_counts(k, answers, heard)  # [count, node]
    which = k if bins is None else np.minimum(bins * k // max(answers, 1), bins - 1)
    wanted, there = (np.bincount(which, says @ masses) for masses in (reference, candidates))
    rate = np.divide(wanted, there, out=np.zeros_like(wanted), where=there > 1e-300)
    return candidates * (rate[which] @ says)


def next_answers(
    matching: Matching, pool: tuple[Ints, Ints], *, count: int, most: int, seed: int = 0
) -> Ints:
    """Which images of the pool are worth another answer: those that would be chosen so far.

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


def _cells(
    reference: tuple[Ints, Ints],
    pool: tuple[Ints, Ints],
    size: int,
    classes: tuple[NDArray[np.str_], NDArray[np.str_]] | None,
) -> tuple[_Cells, Ints, Ints]:
    """The cells; of every image of the pool its cell and its class (-1: none that is wanted)."""
    if classes is None:
        names, own = np.array(["all"]), np.zeros(len(reference[0]), dtype=np.int64)
        class_of = np.zeros(len(pool[0]), dtype=np.int64)
    else:
        names, own = np.unique(classes[0], return_inverse=True)
        place = np.minimum(np.searchsorted(names, classes[1]), len(names) - 1)
        class_of = np.where(names[place] == classes[1], place, -1)
    kinds = np.unique(
        np.concatenate([np.stack(each, axis=1) for each in (reference, pool)]), axis=0
    )
    key = {(int(k), int(n)): place for place, (k, n) in enumerate(kinds)}
    cell_of, own_cell = (
        np.array([key[int(k), int(n)] for k, n in zip(*each, strict=True)])
        for each in (pool, reference)
    )
    counted = np.zeros((len(names), len(kinds)))
    np.add.at(counted, (own, own_cell), 1)
    held = np.zeros(counted.shape, dtype=np.int64)
    known = class_of >= 0
    np.add.at(held, (class_of[known], cell_of[known]), 1)
    wanted = np.full(len(names), size)
    few = names[held.sum(axis=1) < wanted].tolist()
    if few:
        of = "" if classes is None else f" of {'; '.join(few[:5])} ({len(few)} in all)"
        raise StudyError("too-few-pool-images", size=size, classes=of)
    share = counted / counted.sum(axis=1, keepdims=True)
    return _Cells(kinds[:, 0], kinds[:, 1], held, share, wanted), cell_of, class_of


def _table(reference: tuple[Ints, Ints], pool: tuple[Ints, Ints]) -> CellTable:
    """All counts of both, for EM."""
    selected, shown = all_counts(np.concatenate([reference[1], pool[1]]))
    images = np.zeros((2, 1, len(shown)))
    for role, (k, n) in enumerate((reference, pool)):
        np.add.at(images[role, 0], np.searchsorted(shown, n) + k, 1)
    return CellTable(selected, shown, images, np.zeros((1, len(shown), 0)))


def _resample_images(table: CellTable, replicates: int, random: np.random.Generator) -> CellTable:
    """Bootstrap replicates of the images of both."""
    drawn = [
        random.multinomial(int(images.sum()), images / images.sum(), size=replicates)
        for images in table.images[:, 0]
    ]
    images = np.stack(drawn).astype(np.float64)
    empty = np.zeros((replicates, len(table.selected), 0))
    return CellTable(table.selected, table.shown, images, empty)


def _densities(fit: MixtureFit, version: int) -> tuple[Floats, Floats]:
    """Masses of the reference and of the pool between the edges."""
    return masses_of(fit.mixture(0, version)), masses_of(fit.mixture(1, version))


def masses_of(mixture: BetaMixture) -> Floats:
    """Masses of a mixture between the edges."""
    from scipy.stats import beta  # takes long to import

    below = beta.cdf(EDGES[:, None], mixture.a, mixture.b) @ mixture.weights
    mass = np.maximum(np.diff(below), 0)
    return mass / mass.sum()


def given_counts(k: Ints, n: Ints, masses: Floats) -> Floats:
    """q_k(s): masses around `NODES` of images of which k of n are known, [cell, node]."""
    logs = k[:, None] * np.log(NODES) + (n - k)[:, None] * np.log1p(-NODES)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True)) * masses
    return weights / weights.sum(axis=1, keepdims=True)


def _pool_by_cell(cells: _Cells, pool: Floats) -> Floats:
    """The pool's of every cell."""
    return given_counts(cells.k, cells.n, pool)


def _distance(numbers: Floats, cells: _Cells, reference: Floats, pool: Floats) -> float:
    mean = numbers @ _pool_by_cell(cells, pool) / numbers.sum()
    return float(np.abs(np.cumsum(mean - reference))[:-1] @ np.diff(NODES))


def _match_published_bins(cells: _Cells, *_: Floats) -> tuple[Floats, int]:
    return _match_bins(cells, np.minimum((BINS * cells.k) // cells.n, BINS - 1))


def _match_every_frequency(cells: _Cells, *_: Floats) -> tuple[Floats, int]:
    bins = np.unique(cells.k / cells.n, return_inverse=True)[1]
    return _match_bins(cells, bins)


def _match_bins(cells: _Cells, bins: Ints) -> tuple[Floats, int]:
    """As many of every bin and class as the reference has there, and how many had to be moved."""
    count = int(bins.max()) + 1
    inside = np.eye(count)[bins]  # [cell, bin]
    numbers, moved = np.zeros(cells.pool.shape), 0
    for place, (held, share) in enumerate(zip(cells.pool, cells.reference, strict=True)):
        there = (held @ inside).astype(np.int64)
        wanted = largest_remainders(share @ inside, int(cells.wanted[place]))
        taken = np.minimum(wanted, there)
        for short in np.flatnonzero(wanted > there):
            missing = int(wanted[short] - there[short])
            moved += missing
            for other in _neighbouring_bins(int(short), count):
                more = min(missing, int(there[other] - taken[other]))
                taken[other] += more
                missing -= more
        rate = taken / np.maximum(there, 1)
        numbers[place] = held * rate[bins]
    return numbers, moved


def _neighbouring_bins(place: int, count: int) -> Iterator[int]:
    """Other bins, the nearest first, of two the higher."""
    for step in range(1, count):
        yield from (each for each in (place + step, place - step) if 0 <= each < count)


def _posterior(cells: _Cells, reference: Floats, _: Floats, given: Floats) -> tuple[Floats, int]:
    """The numbers whose expected distribution is nearest to the reference's."""
    total = float(cells.wanted.sum())
    at = np.linspace(0, GRID - 1, COARSE + 1).astype(np.int64)[1:-1]
    widths = np.diff(np.concatenate([[0], (NODES[at][1:] + NODES[at][:-1]) / 2, [1]]))
    # Rows of |A x − b|: the distribution functions, and last the means.
    rows = np.vstack([np.cumsum(given, axis=1)[:, at].T, given @ NODES])
    rows[rows < TINY] = 0
    target = np.append(np.cumsum(reference)[at], reference @ NODES)
    cost = np.append(widths, MEAN)
    groups, kinds = cells.pool.shape
    sides = len(target)
    places = sparse.csr_array(np.tile(rows, groups))
    slack = sparse.identity(sides)
    above = sparse.hstack([sparse.vstack([places, -places]), sparse.vstack([-slack, -slack])])
    of_class = sparse.kron(sparse.identity(groups), np.ones((1, kinds)))
    equal = sparse.hstack([of_class, sparse.csr_array((groups, sides))])
    program = {
        "c": np.concatenate([np.zeros(groups * kinds), cost]),
        "A_ub": above,
        "b_ub": np.concatenate([target, -target]),
        "A_eq": equal,
        "b_eq": cells.wanted / total,
        "bounds": [(0, most / total) for most in cells.pool.ravel().tolist()] + [(0, None)] * sides,
    }
    # Every class has enough images, so that there is a solution; a solver may give up all the same.
    from scipy.optimize import linprog  # takes long to import

    tries = (linprog(**program, method=each) for each in ("highs-ds", "highs-ipm"))
    solution = next((each for each in tries if each.success), None)
    if solution is None:
        warnings.warn(
            EstimateWarning("matching: no solver found the best numbers; every count is matched"),
            stacklevel=3,
        )
        return _match_every_frequency(cells)
    numbers = total * np.clip(solution.x[: groups * kinds], 0, None)
    return np.minimum(numbers.reshape(groups, kinds), cells.pool), 0


METHODS = {
    "published": _match_published_bins,
    "fine": _match_every_frequency,
    "posterior": _posterior,
}
"""Numbers [class, cell] to choose, of the cells, the densities of reference and pool, and the
pool's given each cell."""


def _round_numbers(numbers: Floats, cells: _Cells, random: np.random.Generator) -> Ints:
    """Whole numbers with the same sums by class, each in expectation what it was."""
    whole = np.zeros(numbers.shape, dtype=np.int64)
    for place, (row, held) in enumerate(zip(numbers, cells.pool, strict=True)):
        total = int(cells.wanted[place])
        ends = np.concatenate([[0], np.cumsum(row)])
        ends *= total / ends[-1]
        # Systematic sampling: a comb of whole steps at a random place.
        counted = np.floor(ends + random.random()).astype(np.int64)
        whole[place] = np.diff(counted)
        over = whole[place] - held
        while (over > 0).any():  # by rounding, where all of a cell are taken
            most = int(np.argmax(over))
            other = int(np.argmin(over))
            whole[place, most] -= 1
            whole[place, other] += 1
            over = whole[place] - held
    return whole


def _draw_images(whole: Ints, cell_of: Ints, class_of: Ints, random: np.random.Generator) -> Ints:
    """Images at random, so many of each class and cell."""
    order = random.permutation(len(cell_of))
    key = class_of[order] * whole.shape[1] + cell_of[order]
    by_key = np.argsort(key, kind="stable")
    ordered = key[by_key]
    rank = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    wanted = np.where(ordered >= 0, whole.ravel()[np.maximum(ordered, 0)], 0)
    return np.sort(order[by_key[rank < wanted]])
