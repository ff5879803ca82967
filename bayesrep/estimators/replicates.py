"""Versions of a study that differ only in the number of images of each cell; row 0 is the study.

Images are resampled, not cells or classifiers, and all classifiers see the same resample.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bayesrep.errors import EstimateWarning
from bayesrep.estimators.crowds import WorkerBootstrap, shift_counts, with_adjacent_cells
from bayesrep.studies.statistics import Cells, SufficientStatistics
from bayesrep.studies.study import AnnotatedSet, Study
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words
from bayesrep.types import Float, Int

_MAX_BATCH_REPLICATES = 64  # replicates resampled by one matrix product
_MAX_BATCH_NUMBERS = 2**24  # array elements of a batch, which bound its memory


@dataclass(frozen=True, eq=False)
class CellCounts:
    """One data set's cells in B versions.

    Attributes
    ----------
    selected, shown
        The M cells, the same in all versions; some may hold no images.
    images
        Images in each cell.
    correct
        Images of each cell that each classifier gets right.
    """

    selected: Int[np.ndarray, "cell"]
    shown: Int[np.ndarray, "cell"]
    images: Float[np.ndarray, "version cell"]
    correct: Float[np.ndarray, "version cell classifier"]

    @classmethod
    def from_cells(cls, cells: Cells) -> "CellCounts":
        """Build the single observed version."""
        return cls(
            cells.selected,
            cells.shown,
            cells.images[None].astype(np.float64),
            cells.correct[None].astype(np.float64),
        )

    def accuracy(self) -> Float[np.ndarray, "version classifier"]:
        """Compute the plain accuracy of each classifier in each version."""
        return self.correct.sum(axis=1) / self.images.sum(axis=1)[:, None]

    def with_at_least(self, annotators: int) -> "CellCounts":
        """Select the cells with at least so many annotators."""
        mask = self.shown >= annotators
        cells = self.selected[mask], self.shown[mask]
        return CellCounts(*cells, self.images[:, mask], self.correct[:, mask])

    def with_rows(
        self,
        images: Float[np.ndarray, "more cell"],
        correct: Float[np.ndarray, "more cell classifier"],
    ) -> "CellCounts":
        """Append further versions of the same cells."""
        pairs = ((self.images, images), (self.correct, correct))
        return CellCounts(self.selected, self.shown, *map(np.concatenate, pairs))


@dataclass(frozen=True, eq=False)
class Replicates:
    """B versions of a study, the first of them the study itself.

    Attributes
    ----------
    reference, replication : CellCounts
        Cells of the two data sets, of the same number of versions.
    words
        The study's nouns, for warnings.
    """

    reference: CellCounts
    replication: CellCounts
    words: Words = IMAGE_WORDS

    @classmethod
    def from_study(cls, study: Study | SufficientStatistics) -> "Replicates":
        """Build the single version of a study; warn where a rule selected images by counts."""
        statistics = SufficientStatistics.of(study)
        for role in REQUIRED_ROLES:
            if (rule := statistics.cells[role].selection) is not None:
                text = (
                    f"the {role}'s {statistics.words.images} were selected by the counts at hand "
                    f"({rule.rule}): point estimates take them for a fresh measurement and are "
                    "biased; the joint model allows for it (bayesrep.fit)"
                )
                warnings.warn(EstimateWarning(text), stacklevel=2)
        both = statistics.reference, statistics.replication
        reference, replication = map(CellCounts.from_cells, both)
        return cls(reference, replication, statistics.words)

    @property
    def datasets(self) -> tuple[CellCounts, CellCounts]:
        """Return the reference and the replication."""
        return self.reference, self.replication

    def __len__(self) -> int:
        return len(self.reference.images)


def bootstrap(
    study: Study, statistics: SufficientStatistics, *, size: int, seed: int
) -> Iterator[Replicates]:
    """Yield the study and `size` bootstrap replicates of its images, in blocks of bounded memory.

    Replicates depend on the seed alone, not on the blocks; all have the study's cells, some empty.
    """
    generators = [np.random.default_rng([seed, stream]) for stream in (0, 1, 2)]
    # Workers are a sample too: their perturbed weights shift the counts of all their images.
    workers = WorkerBootstrap.from_study(study)
    cells = {
        role: with_adjacent_cells(statistics.cells[role])
        if role in workers.shifts
        else statistics.cells[role]
        for role in REQUIRED_ROLES
    }
    largest = max(each.correct.size for each in cells.values())
    # Blocks bound the memory of a replicate's arrays.
    blocks = -(-size * largest // _MAX_BATCH_NUMBERS) if size else 1
    # Streams of random numbers belong to the data sets, not to the blocks.
    for rows in np.array_split(np.arange(size), blocks):
        perturbations = generators[2].standard_normal((len(rows), workers.workers))
        both: list[CellCounts] = []
        for role, rng in zip(REQUIRED_ROLES, generators, strict=False):
            moved = (perturbations, workers.shifts[role]) if role in workers.shifts else None
            drawn = _resample_images(study.datasets[role], cells[role], len(rows), rng, moved)
            both.append(CellCounts.from_cells(cells[role]).with_rows(*drawn))
        yield Replicates(both[0], both[1], statistics.words)


def _resample_images(
    data: AnnotatedSet,
    cells: Cells,
    size: int,
    rng: np.random.Generator,
    workers: tuple[Float[np.ndarray, "replicate worker"], sparse.csr_array] | None,
) -> tuple[Float[np.ndarray, "replicate cell"], Float[np.ndarray, "replicate cell classifier"]]:
    """Resample one data set: images, and correct images, of each cell in each replicate."""
    order = np.lexsort((data.selected, data.shown))  # the order of the cells
    correct = data.correct[order]
    # Sorted by cell, sums over a cell are sums over a range of images.
    occupied = np.flatnonzero(cells.images)
    starts = np.concatenate([[0], np.cumsum(cells.images[occupied])])
    total = len(order)
    batch = int(np.clip(_MAX_BATCH_NUMBERS // total, 1, _MAX_BATCH_REPLICATES))
    images = np.zeros((size, len(cells.images)))
    right = np.zeros((size, *cells.correct.shape))

    def sum_by_cell(
        weights: Float[np.ndarray, "some image"],
    ) -> tuple[Float[np.ndarray, "some cell"], Float[np.ndarray, "some cell classifier"]]:
        counts, hits = np.zeros_like(images[: len(weights)]), np.zeros_like(right[: len(weights)])
        counts[:, occupied] = np.add.reduceat(weights, starts[:-1], axis=1)
        for cell, start, stop in zip(occupied, starts, starts[1:], strict=False):
            hits[:, cell] = weights[:, start:stop] @ correct[start:stop].astype(weights.dtype)
        return counts, hits

    # Whole numbers below 2^24 are exact in float32, and matrix products of floats are fast.
    dtype = np.float32 if total < 2**24 else np.float64
    for done in range(0, size, batch):
        block = slice(done, min(done + batch, size))
        # Multinomial counts of each image in each replicate.
        draws = [
            np.bincount(rng.integers(total, size=total), minlength=total)
            for _ in range(done, block.stop)
        ]
        images[block], right[block] = sum_by_cell(np.stack(draws).astype(dtype))
        if workers is None:
            continue
        # The workers' perturbations move images to adjacent cells, within what is possible.
        perturbations, shift = workers
        extra, extra_correct = sum_by_cell((shift @ perturbations[block].T).T[:, order])
        images[block] += shift_counts(cells.selected, cells.shown, extra)
        right[block] += shift_counts(cells.selected, cells.shown, extra_correct)
        images[block] = np.maximum(images[block], 0)
        right[block] = np.clip(right[block], 0, images[block][:, :, None])
        # Clipping adds images; rescaling restores their number.
        scale = total / images[block].sum(axis=1, keepdims=True)
        images[block] *= scale
        right[block] *= scale[:, :, None]
    return images, right


def without_each_image(statistics: SufficientStatistics) -> Iterator[Replicates]:
    """Yield the study without one image, for every kind of image, in blocks of bounded memory.

    M₁ versions without a reference image of each cell, M₂ without a replication image that is
    classified correctly (by every classifier that has one) and M₂ without one that is not.
    """
    reference, replication = (
        CellCounts.from_cells(statistics.cells[role]) for role in REQUIRED_ROLES
    )
    m1, m2 = len(reference.selected), len(replication.selected)
    size = m1 + 2 * m2
    largest = max(reference.correct.size, replication.correct.size)
    for versions in np.array_split(np.arange(size), -(-size * largest // _MAX_BATCH_NUMBERS)):
        # One image less in one cell: of the reference, or of the replication, right or wrong.
        from_reference = versions[:, None] == np.arange(m1)
        right = versions[:, None] == m1 + np.arange(m2)
        wrong = versions[:, None] == m1 + m2 + np.arange(m2)
        images = replication.images - (right | wrong)
        correct = np.maximum(replication.correct - right[:, :, None], 0)
        same = np.broadcast_to(reference.correct, (len(versions), *reference.correct.shape[1:]))
        yield Replicates(
            reference.with_rows(reference.images - from_reference, same),
            replication.with_rows(images, np.minimum(correct, images[:, :, None])),
            statistics.words,
        )
