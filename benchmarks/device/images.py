"""Whole fits by the number of images, of which likelihoods see cells alone."""

import statistics
import time
from functools import reduce
from operator import add
from typing import Any

import numpy as np

import bayesrep
from bayesrep.studies.statistics import Cells, SufficientStatistics
from benchmarks._requirements import say
from benchmarks.device.cases import Sizes

CLASSIFIERS, TURNS, SHARD_IMAGES = 20, 4, 100_000


def fit_images(sizes: Sizes) -> dict[str, Any]:
    """Median seconds of fits as by default, alternating, after a first of each that compiles."""
    studies = {size: on_all_cells(sum_shards(size)) for size in (10_000, sizes.large)}
    times: dict[int, list[float]] = {size: [] for size in studies}
    for turn in range(TURNS):
        for size, study in studies.items():
            say(f"fit {turn + 1} of {TURNS}, {size} images")
            begin = time.perf_counter()
            bayesrep.fit(study, progress=False)
            if turn:
                times[size].append(time.perf_counter() - begin)
    rows = [{"images": size, "seconds": statistics.median(took)} for size, took in times.items()]
    return {"classifiers": CLASSIFIERS, "rows": rows}


def sum_shards(images: int) -> SufficientStatistics:
    """Statistics of a simulated study of any size, summed from shards."""
    each = min(images, SHARD_IMAGES)
    studies = (
        bayesrep.simulate_study(seed=seed, images=each, classifiers=CLASSIFIERS)
        for seed in range(images // each)
    )
    return reduce(add, map(SufficientStatistics.from_study, studies))


def on_all_cells(study: SufficientStatistics) -> SufficientStatistics:
    """The same statistics with every count 0..36 present, so that both sizes share a program."""
    cells = {}
    for role, given in study.cells.items():
        images = np.zeros(37, dtype=np.int64)
        correct = np.zeros((37, given.correct.shape[1]), dtype=np.int64)
        images[given.selected], correct[given.selected] = given.images, given.correct
        cells[role] = Cells(np.arange(37), np.full(37, 36), images, correct)
    return SufficientStatistics(study.classifiers, cells)
