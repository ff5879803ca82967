"""The bootstrap over images: how far an estimate moves when other images had been drawn.

Images are resampled, not cells or classifiers, and all classifiers see the same replicate: so the
errors that classifiers share through the images stay shared. The counts of annotators are resampled
only along with their images.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from bayesrep.estimators.naive import InterpolationWarning
from bayesrep.statistics import Cells, SufficientStatistics
from bayesrep.study import AnnotatedSet, Study

__all__ = ["bootstrap", "replicates"]

_LARGEST_BATCH = 64  # replicates resampled by one matrix product
_BATCH_NUMBERS = 2**24  # bounds the memory of a batch


def bootstrap(
    study: Study,
    estimators: Mapping[str, Callable[[SufficientStatistics], NDArray[np.float64]]],
    *,
    size: int,
    seed: int,
) -> dict[str, NDArray[np.float64]]:
    """Apply estimators to bootstrap replicates of a study, the same replicates for each.

    Parameters
    ----------
    study
        What to resample: its reference and its replication, independently.
    estimators
        By name.
    size
        B, the number of replicates.
    seed
        The same seed gives the same replicates.

    Returns
    -------
    mapping of name to float64 [B, C]
    """
    rows: dict[str, list[NDArray[np.float64]]] = {name: [] for name in estimators}
    with warnings.catch_warnings():
        # A replicate may lack a cell that the study has; the study's own estimate warns already.
        warnings.simplefilter("ignore", InterpolationWarning)
        for statistics in replicates(study, size=size, seed=seed):
            for name, estimator in estimators.items():
                rows[name].append(estimator(statistics))
    return {name: np.stack(values) for name, values in rows.items()}


def replicates(study: Study, *, size: int, seed: int) -> Iterator[SufficientStatistics]:
    """Yield the sufficient statistics of ``size`` bootstrap replicates of a study.

    Every replicate has all cells of the study, some with no images: an estimator whose definition
    depends on the cells (such as the fewest annotators) is the same for every replicate.

    Parameters
    ----------
    study, size, seed
        As for `bootstrap`.
    """
    cells = SufficientStatistics.from_study(study).cells
    reference, replication = (
        _resampled(study.datasets[role], cells[role], size, np.random.default_rng([seed, stream]))
        for stream, role in enumerate(("reference", "replication"))
    )
    for one, other in zip(reference, replication, strict=True):
        yield SufficientStatistics(study.classifiers, {"reference": one, "replication": other})


def _resampled(
    data: AnnotatedSet, cells: Cells, size: int, rng: np.random.Generator
) -> Iterator[Cells]:
    """Yield the cells of replicates of one data set."""
    order = np.lexsort((data.selected, data.shown))  # the order of the cells
    correct = data.correct[order]
    starts = np.concatenate([[0], np.cumsum(cells.images)])
    total = len(order)
    largest = max(total, cells.correct.size)
    batch = int(np.clip(_BATCH_NUMBERS // largest, 1, _LARGEST_BATCH))
    for done in range(0, size, batch):
        weights = _weights(total, min(batch, size - done), rng)
        images = np.add.reduceat(weights, starts[:-1], axis=1)
        right = np.empty((len(weights), *cells.correct.shape), dtype=np.int64)
        for cell, (start, stop) in enumerate(zip(starts, starts[1:], strict=False)):
            right[:, cell] = weights[:, start:stop] @ correct[start:stop].astype(weights.dtype)
        for row in range(len(weights)):
            yield Cells(cells.selected, cells.shown, images[row].astype(np.int64), right[row])


def _weights(total: int, rows: int, rng: np.random.Generator) -> NDArray[np.floating]:
    """Draw how often each image occurs in each replicate, [rows, total]: multinomial."""
    draws = (np.bincount(rng.integers(total, size=total), minlength=total) for _ in range(rows))
    # Whole numbers below 2^24 are exact in float32, and matrix products of floats are fast.
    return np.stack(list(draws)).astype(np.float32 if total < 2**24 else np.float64)
