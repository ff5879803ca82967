"""Random matching of the answers on two data sets by what the classifier said of them.

Algorithms 1 and 2 of "A principled evaluation protocol for comparative investigation of the
effectiveness of DNN classification models on similar-but-non-identical datasets" (Anzaku et al.,
2022). One after the other, every target draws at random a free source of the same predicted class
(algorithm 1 only) and with a predicted probability that differs by epsilon at most.

Here the sources are sorted once; a target draws among its neighbours, and again where it hit one
that is taken. Where that goes on for long, a Fenwick tree over the free sources finds one or knows
that there is none: O((S + T) log S) in all, with the published algorithm's distribution.
"""

import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.types import Floats

UNMATCHED_NUMBER = -1
_FEW_NEIGHBOURS = 24  # so few neighbours are looked at one by one
_MAX_TRIES = 12  # draws that may hit a taken one before the tree is asked

Integers = NDArray[np.integer[Any]]


def neighbours(
    source: Floats,
    target: Floats,
    epsilon: float,
    classes: tuple[Integers, Integers] | None = None,
) -> tuple[Integers, Integers, Integers]:
    """Sort the sources so that those which a target may take are a range."""
    if classes is None:
        classes = np.zeros(len(source), dtype=np.int8), np.zeros(len(target), dtype=np.int8)
    order = np.lexsort((source, classes[0]))
    sorted_classes = classes[0][order]
    low, high = np.zeros((2, len(target)), dtype=np.int64)
    by_class = np.argsort(classes[1], kind="stable")
    kinds, starts = np.unique(classes[1][by_class], return_index=True)
    begins = np.searchsorted(sorted_classes, kinds, side="left")
    ends = np.searchsorted(sorted_classes, kinds, side="right")
    for begin, end, mine in zip(begins, ends, np.split(by_class, starts[1:]), strict=True):
        values, targets = source[order[begin:end]], target[mine]
        # Both sums grow with the source, so that a search for them decides ties as published.
        low[mine] = begin + np.searchsorted(values + epsilon, targets, side="left")
        high[mine] = begin + np.searchsorted(values - epsilon, targets, side="right")
    return order, low, high


def match_at_random(order: Integers, low: Integers, high: Integers, seed: int) -> Integers:
    """Give every target [T], in order, a random free neighbour, or `UNMATCHED_NUMBER`."""
    draw = random.Random(seed).random
    used = bytearray(len(order))
    free = _FreePlaces(len(order))
    places = []
    for begin, end in zip(low.tolist(), high.tolist(), strict=True):
        width = end - begin
        place = UNMATCHED_NUMBER
        if width > _FEW_NEIGHBOURS:
            for _ in range(_MAX_TRIES):
                place = begin + int(draw() * width)
                if not used[place]:
                    break
            else:
                place = free.random(begin, end, places, draw())
        elif width:
            free_places = [i for i in range(begin, end) if not used[i]]
            if free_places:
                place = free_places[int(draw() * len(free_places))]
        if place >= 0:
            used[place] = 1
        places.append(place)
    numbers = np.asarray(places, dtype=np.int64)
    return np.where(numbers >= 0, order[numbers], UNMATCHED_NUMBER)


class _FreePlaces:
    """A Fenwick tree that counts the sources not taken; told of them only when it is asked."""

    def __init__(self, size: int) -> None:
        self._size, self._known, self._counts = size, 0, [0]
        self._top = (1 << size.bit_length()) >> 1

    def random(self, begin: int, end: int, places: list[int], uniform: float) -> int:
        """A random free place in [begin, end), or `UNMATCHED_NUMBER`; `places` are taken."""
        if not self._known:
            self._counts = [place & -place for place in range(self._size + 1)]
        for place in places[self._known :]:
            if place >= 0:
                self._take(place)
        self._known = len(places)
        before = self._count_before(begin)
        n_free = self._count_before(end) - before
        return self._find(before + int(uniform * n_free)) if n_free else UNMATCHED_NUMBER

    def _take(self, place: int) -> None:
        node = place + 1
        while node <= self._size:
            self._counts[node] -= 1
            node += node & -node

    def _count_before(self, place: int) -> int:
        total = 0
        while place:
            total += self._counts[place]
            place &= place - 1
        return total

    def _find(self, rank: int) -> int:
        """The place with `rank` free ones before it."""
        node, step = 0, self._top
        while step:
            if node + step <= self._size and self._counts[node + step] <= rank:
                node += step
                rank -= self._counts[node]
            step >>= 1
        return node
