"""Number of images of every count that each method takes, and their random selection."""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayesrep.errors import EstimateWarning, StudyError
from bayesrep.numerics.rounding import largest_remainders
from bayesrep.planning.discretise import N_MASSES, S_NODES
from bayesrep.types import Floats, Ints

N_BINS = 5
N_COARSE = 50  # places at which the linear program compares distributions
MEAN_WEIGHT = 10.0  # weight of the difference of the means beside the distance of the distributions
MIN_SHARE = 1e-9  # shares below this are zero to the linear program


@dataclass(frozen=True, eq=False)
class MatchedCells:
    """The pool and the reference by class and cell: kinds of (k, n)."""

    k: Ints  # [cell], selections
    n: Ints  # [cell], answers
    pool: Ints  # [class, cell], images of the pool
    reference: Floats  # [class, cell], shares of the class's images of the reference
    targets: Ints  # [class], images to choose


def list_cells(
    reference: tuple[Ints, Ints],
    pool: tuple[Ints, Ints],
    size: int,
    classes: tuple[NDArray[np.str_], NDArray[np.str_]] | None,
) -> tuple[MatchedCells, Ints, Ints]:
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
    counts = np.zeros(counted.shape, dtype=np.int64)
    has_class = class_of >= 0
    np.add.at(counts, (class_of[has_class], cell_of[has_class]), 1)
    targets = np.full(len(names), size)
    candidates = counts.sum(axis=1)
    scarce = candidates < targets
    if few := names[scarce].tolist():
        class_text = "" if classes is None else f" of {'; '.join(few[:5])} ({len(few)} in all)"
        has = ", ".join(f"{number:,}" for number in candidates[scarce][:5])
        raise StudyError("too-few-pool-images", size=size, classes=class_text, held=has)
    share = counted / counted.sum(axis=1, keepdims=True)
    return MatchedCells(kinds[:, 0], kinds[:, 1], counts, share, targets), cell_of, class_of


def match_published_bins(cells: MatchedCells, *_: Floats) -> tuple[Floats, int]:
    """Choose as many from each of five bins of k / n as the reference has there."""
    return _match_bins(cells, np.minimum((N_BINS * cells.k) // cells.n, N_BINS - 1))


def _match_every_frequency(cells: MatchedCells, *_: Floats) -> tuple[Floats, int]:
    return _match_bins(cells, np.unique(cells.k / cells.n, return_inverse=True)[1])


def _match_bins(cells: MatchedCells, bins: Ints) -> tuple[Floats, int]:
    """Choose as many of every bin and class as the reference has; also count those moved."""
    count = int(bins.max()) + 1
    inside = np.eye(count)[bins]  # [cell, bin]
    numbers, moved = np.zeros(cells.pool.shape), 0
    for place, (counts, share) in enumerate(zip(cells.pool, cells.reference, strict=True)):
        available = (counts @ inside).astype(np.int64)
        required = largest_remainders(share @ inside, int(cells.targets[place]))
        matched = np.minimum(required, available)
        for short in np.flatnonzero(required > available):
            missing = int(required[short] - available[short])
            moved += missing
            # The other bins, the nearest first, of two the higher.
            others = [b for step in range(1, count) for b in (short + step, short - step)]
            for other in (each for each in others if 0 <= each < count):
                more = min(missing, int(available[other] - matched[other]))
                matched[other] += more
                missing -= more
        numbers[place] = counts * (matched / np.maximum(available, 1))[bins]
    return numbers, moved


def _posterior(
    cells: MatchedCells, reference: Floats, _: Floats, posterior: Floats
) -> tuple[Floats, int]:
    """The numbers whose expected distribution is nearest to the reference's."""
    total = float(cells.targets.sum())
    edges = np.linspace(0, N_MASSES - 1, N_COARSE + 1).astype(np.int64)[1:-1]
    widths = np.diff(np.concatenate([[0], (S_NODES[edges][1:] + S_NODES[edges][:-1]) / 2, [1]]))
    # Rows of |A x − b|: the distribution functions, and last the means.
    rows = np.vstack([np.cumsum(posterior, axis=1)[:, edges].T, posterior @ S_NODES])
    rows[rows < MIN_SHARE] = 0
    target = np.append(np.cumsum(reference)[edges], reference @ S_NODES)
    cost = np.append(widths, MEAN_WEIGHT)
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
        "b_eq": cells.targets / total,
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


MATCHING_METHODS = {
    "published": match_published_bins,
    "fine": _match_every_frequency,
    "posterior": _posterior,
}
"""Numbers [class, cell] to choose, of the cells, the densities of reference and pool, and the
pool's given each cell."""


def round_numbers(numbers: Floats, cells: MatchedCells, random: np.random.Generator) -> Ints:
    """Whole numbers with the same sums by class, each in expectation what it was."""
    whole = np.zeros(numbers.shape, dtype=np.int64)
    for place, (row, counts) in enumerate(zip(numbers, cells.pool, strict=True)):
        total = int(cells.targets[place])
        ends = np.concatenate([[0], np.cumsum(row)])
        ends *= total / ends[-1]
        # Systematic sampling: a comb of whole steps at a random place.
        whole[place] = np.diff(np.floor(ends + random.random()).astype(np.int64))
        over = whole[place] - counts
        while (over > 0).any():  # by rounding, where all of a cell are taken
            most = int(np.argmax(over))
            other = int(np.argmin(over))
            whole[place, most] -= 1
            whole[place, other] += 1
            over = whole[place] - counts
    return whole


def draw_images(whole: Ints, cell_of: Ints, class_of: Ints, random: np.random.Generator) -> Ints:
    """Images at random, so many of each class and cell."""
    order = random.permutation(len(cell_of))
    key = class_of[order] * whole.shape[1] + cell_of[order]
    by_key = np.argsort(key, kind="stable")
    ordered = key[by_key]
    rank = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    required = np.where(ordered >= 0, whole.ravel()[np.maximum(ordered, 0)], 0)
    return np.sort(order[by_key[rank < required]])
