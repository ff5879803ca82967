"""Sufficient statistics: a study of any size as counts on cells, the distinct (selected, shown).

For one classifier an image enters only through (selected, shown, correct).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import StudyError, Violation, listing
from bayesrep.files.digests import digest_parts
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.leniency import Annotators, lacks_workers, leniency_scale
from bayesrep.studies.representation import Compared, brief, number
from bayesrep.studies.selection import Selection, truncating
from bayesrep.studies.study import Study, need_study
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words, words_of
from bayesrep.studies.worker_answers import WorkerAnswers
from bayesrep.types import Floats, Ints

_CHUNK_IMAGES = 16_384  # images reduced at a time, for memory and to stay inside the cache


class Contexts(NamedTuple):
    """Images by pattern: the pairs (k_g, n_g) of the contexts g in which an image was seen."""

    selected: Ints  # [pattern, context], 0 beyond the contexts of an image
    shown: Ints  # [pattern, context], decreasing
    images: Ints  # [pattern]

    @classmethod
    def of_answers(cls, answers: WorkerAnswers, rows: NDArray[np.intp] | None = None) -> Self:
        """Count the patterns of all images, or of some."""
        assert answers.context is not None
        pairs = np.stack([answers.image, answers.context], axis=1)
        seen, place = np.unique(pairs, axis=0, return_inverse=True)
        shown = np.bincount(place.ravel())
        selected = np.bincount(place.ravel()[answers.selected], minlength=len(shown))
        # Contexts have no order: largest first, images with equal counts have equal patterns.
        order = np.lexsort((-selected, -shown, seen[:, 0]))
        image, first = np.unique(seen[:, 0], return_index=True)
        column = np.arange(len(order)) - np.repeat(first, np.diff([*first, len(order)]))
        table = np.zeros((2, image.max() + 1, column.max() + 1), dtype=np.int64)
        table[:, seen[order, 0], column] = selected[order], shown[order]
        some = table if rows is None else table[:, rows]
        patterns, images = np.unique(some, axis=1, return_counts=True)
        return cls(patterns[0], patterns[1], images)

    def merge(self, other: "Contexts") -> "Contexts":
        """Put patterns of other images beside these."""
        width = max(self.shown.shape[1], other.shown.shape[1])
        parts = (
            [np.pad(counts, ((0, 0), (0, width - counts.shape[1]))) for counts in each[:2]]
            for each in (self, other)
        )
        patterns = np.concatenate(list(parts), axis=1)
        patterns, place = np.unique(patterns, axis=1, return_inverse=True)
        images = np.bincount(place.ravel(), np.r_[self.images, other.images])
        return Contexts(patterns[0], patterns[1], images.astype(np.int64))


@dataclass(frozen=True, eq=False)
class Cells(Compared):
    """One data set's cells, sorted by (shown, selected).

    Attributes
    ----------
    selected, shown : int64 [M]
        The M distinct pairs.
    images : int64 [M]
        Images in each cell: at least 1 in the cells of a study. Bootstrap replicates keep its
        cells, some of them with 0 images.
    correct : int64 [M, C]
        Number of them that each classifier gets right.
    selection
        The rule on these counts by which the images were kept; None where all were, or where other
        answers selected them.
    squares : int64 [M]
        Sums over each cell's images of the squared number of classifiers that are right: how often
        they are right together. None where that is not known.
    contexts
        The images again by how their counts divide into contexts, such as grids; None where that
        is not known.

    Raises
    ------
    StudyError
        Where shapes disagree, pairs are unsorted or repeated, or counts are impossible.
    """

    selected: Ints
    shown: Ints
    images: Ints
    correct: Ints
    selection: Selection | None = None
    squares: Ints | None = None
    contexts: Contexts | None = None

    def __post_init__(self) -> None:
        for violation in self._violations():
            raise StudyError(violation.add_place("cells"))

    def __repr__(self) -> str:
        cells, images = number(len(self.shown), "cell"), number(int(self.images.sum()), "image")
        return brief(self, f"{cells} of {images}", number(self.correct.shape[1], "classifier"))

    def _violations(self) -> Iterator[Violation]:
        size = self.shown.shape
        if len(size) != 1 or size[0] == 0:
            yield Violation("cells-shown-shape-wrong", shape=list(size))
        if self.selected.shape != size or self.images.shape != size:
            yield Violation("cells-shapes-differ", shape=list(size))
        if self.correct.ndim != 2 or self.correct.shape[0] != size[0]:
            yield Violation("cells-correct-shape-wrong", shape=list(self.correct.shape))
        possible = (self.selected >= 0) & (self.selected <= self.shown) & (self.shown >= 1)
        if not possible.all():
            yield Violation("cells-counts-out-of-range")
        if (self.correct < 0).any() or (self.correct > self.images[:, None]).any():
            yield Violation("cells-correct-out-of-range")
        if self.squares is not None:
            right = self.correct.sum(axis=1)
            if self.squares.shape != size or (self.squares * self.images < right**2).any():
                yield Violation("cells-squares-too-small")
        steps, rise = np.diff(self.shown), np.diff(self.selected)
        if not ((steps > 0) | ((steps == 0) & (rise > 0))).all():
            yield Violation("cells-not-sorted")

    def find(self, selected: Ints, shown: Ints) -> NDArray[np.intp]:
        """Find the cell of each pair, such as those of a data set's images.

        Parameters
        ----------
        selected, shown : int64 [N]
            The pairs, in any order.

        Returns
        -------
        intp [N]
            Their places among the cells.

        Raises
        ------
        StudyError
            Where a pair has no cell.
        """
        base = int(self.shown.max()) + 1  # above every count selected, too
        key = self.shown * base + self.selected
        cell = np.minimum(np.searchsorted(key, shown * base + selected), len(key) - 1)
        strange = (self.selected[cell] != selected) | (self.shown[cell] != shown)
        if strange.any():
            pairs = zip(selected[strange].tolist(), shown[strange].tolist(), strict=True)
            names = listing(dict.fromkeys(f"{k}/{n}" for k, n in pairs), "pair")
            raise StudyError("pair-without-cell", pairs=names)
        return cell

    def on(self, selected: Ints, shown: Ints) -> "Cells":
        """Extend the counts to more cells; the further ones have no images.

        Parameters
        ----------
        selected, shown : int64 [M]
            The cells, sorted by (shown, selected), with all that are here among them.
        """
        images = np.zeros(len(shown), dtype=np.int64)
        correct = np.zeros((len(shown), self.correct.shape[1]), dtype=np.int64)
        cell = Cells(selected, shown, images, correct).find(self.selected, self.shown)
        images[cell], correct[cell] = self.images, self.correct
        squares = None
        if self.squares is not None:
            squares = np.zeros(len(shown), dtype=np.int64)
            squares[cell] = self.squares
        return Cells(selected, shown, images, correct, self.selection, squares, self.contexts)

    def completed(self, shown: Ints) -> "Cells":
        """Extend the counts to the cells of every number selected, from 0 to n.

        Parameters
        ----------
        shown : int64 [D]
            Each n, increasing, with all that are here among them.
        """
        selected = np.concatenate([np.arange(size + 1) for size in shown])
        return self.on(selected, np.repeat(shown, shown + 1))


@dataclass(frozen=True, eq=False)
class SufficientStatistics(Compared):
    """Sufficient statistics of a study for estimators and models of single classifiers.

    Attributes
    ----------
    classifiers : tuple of C str
        Names of the columns of every cell table's `correct`.
    cells : mapping of role to Cells
        One table for each data set.
    words
        Vocabulary of printed sentences.
    people
        `bayesrep.Study.people`, None where answers by worker say more.

    Raises
    ------
    StudyError
        Where a required role is missing or a table has a different number of classifiers.
    """

    classifiers: tuple[str, ...]
    cells: Mapping[str, Cells]
    words: Words = IMAGE_WORDS
    people: Annotators = None

    def __post_init__(self) -> None:
        for role in REQUIRED_ROLES:
            if role not in self.cells:
                raise StudyError("role-without-cells", role=role)
            columns, classifiers = self.cells[role].correct.shape[1], len(self.classifiers)
            if columns != classifiers:
                counts = {"column_count": columns, "classifier_count": classifiers}
                raise StudyError("cells-columns-not-classifiers", role=role, **counts)

    def __repr__(self) -> str:
        cells = (f"{role} {number(len(c.shown), 'cell')}" for role, c in self.cells.items())
        return brief(self, number(len(self.classifiers), "classifier"), *cells)

    @classmethod
    def of(cls, study: "Study | SufficientStatistics") -> "SufficientStatistics":
        """Compute the statistics of a study; statistics are returned as they are.

        Raises
        ------
        StudyError
            If it is neither.
        """
        return study if isinstance(study, SufficientStatistics) else cls.from_study(study)

    @classmethod
    def from_study(cls, study: Study) -> Self:
        """Count a study's images into cells, using little memory beyond the study itself.

        Parameters
        ----------
        study
            The study to reduce. Data sets without correctness (candidates) have cells with no
            columns in `correct`.
        """
        cells = {role: count_cells(data) for role, data in need_study(study).datasets.items()}
        people = study.people if lacks_workers(study.datasets) else None
        return cls(study.classifiers, cells, words_of(study), people)

    def __add__(self, other: Self) -> "SufficientStatistics":
        """Merge the statistics of two shards: disjoint images, the same classifiers and roles."""
        if self.classifiers != other.classifiers:
            raise StudyError("shards-classifiers-differ")
        if (mine := sorted(self.cells)) != (theirs := sorted(other.cells)):
            raise StudyError("shards-roles-differ", roles=mine, other_roles=theirs)
        if self.people != other.people:
            facts = {"people": self.people, "other_people": other.people}
            raise StudyError("shards-people-differ", **facts)
        cells = {role: _merge(mine, other.cells[role]) for role, mine in self.cells.items()}
        return SufficientStatistics(self.classifiers, cells, self.words, self.people)

    @property
    def reference(self) -> Cells:
        """The cells of the data set whose selection frequencies are the target."""
        return self.cells["reference"]

    @property
    def replication(self) -> Cells:
        """The cells of the data set whose accuracies are adjusted."""
        return self.cells["replication"]

    def digest(self) -> str:
        """The SHA-256, in hexadecimal, of all cells and the classifiers' names.

        The reference's come first, then the replication's, then others by role. Equal for a
        study and for any division of it into shards, and for studies that differ only in which
        images of a cell all classifiers get right: `bayesrep.Study.fingerprint` tells these apart.
        """
        return digest_parts(self._contents())

    def _contents(self) -> Iterator[bytes]:
        yield "\0".join(self.classifiers).encode()
        others = sorted(set(self.cells) - set(REQUIRED_ROLES))
        for cells in (self.cells[role] for role in (*REQUIRED_ROLES, *others)):
            counted = (cells.selected, cells.shown, cells.images, cells.correct, cells.squares)
            for counts in (*counted, *(cells.contexts or ())):
                if counts is None:
                    continue
                yield f"{counts.shape}".encode()
                yield np.ascontiguousarray(counts, dtype="<i8").tobytes()
            if cells.selection is not None:
                yield json.dumps(cells.selection.content()).encode()

    def accuracy(self, role: str) -> Floats:
        """The plain accuracy of each classifier on one data set, [C]."""
        cells = self.cells[role]
        return cells.correct.sum(axis=0) / cells.images.sum()

    @property
    def leniency_scale(self) -> float:
        """Scale of the leniency between two crowds, in logits; 0 where one answered, or unknown."""
        both = (self.reference, self.replication)
        shown = [float(cells.images @ cells.shown / cells.images.sum()) for cells in both]
        return leniency_scale(self.people, shown)

    def mean_selection_frequency(self, role: str) -> float:
        """The mean over images of selected / shown on one data set."""
        cells = self.cells[role]
        return float(cells.images @ (cells.selected / cells.shown) / cells.images.sum())


def count_cells(data: AnnotatedSet, rows: NDArray[np.intp] | None = None) -> Cells:
    """The cells of a data set, or of some of its images."""
    size = len(data.images) if rows is None else len(rows)
    chunks = (slice(start, start + _CHUNK_IMAGES) for start in range(0, size, _CHUNK_IMAGES))
    cells = reduce(_merge, (_cells(data, c if rows is None else rows[c]) for c in chunks))
    if data.answers is None or data.answers.context is None or not size:
        return cells
    return replace(cells, contexts=Contexts.of_answers(data.answers, rows))


def _cells(data: AnnotatedSet, rows: slice | NDArray[np.intp]) -> Cells:
    total, correct = data.shown[rows], data.correct[rows]
    once, rule = np.ones_like(total), truncating(data.selection)
    squares = np.square(np.count_nonzero(correct, axis=1))
    return _collect(data.selected[rows], total, once, correct, squares, rule)


def _merge(one: Cells, other: Cells) -> Cells:
    if one.selection != other.selection:
        raise StudyError("shards-selected-differently")
    names = ("selected", "shown", "images", "correct")
    selected, total, images, correct = (
        np.concatenate([getattr(cells, name) for cells in (one, other)]) for name in names
    )
    squares = None
    if one.squares is not None and other.squares is not None:
        squares = np.concatenate([one.squares, other.squares])
    cells = _collect(selected, total, images, correct, squares, one.selection)
    if one.contexts is None or other.contexts is None:
        return cells
    return replace(cells, contexts=one.contexts.merge(other.contexts))


def _collect(
    selected: Ints,
    total: Ints,
    images: Ints,
    correct: NDArray[np.integer | np.bool_],
    squares: Ints | None,
    selection: Selection | None,
) -> Cells:
    """Add up the rows that share a (selected, shown) pair; rows are images or other cells."""
    order = np.lexsort((selected, total))
    selected, total = selected[order], total[order]
    fresh = (np.diff(selected, prepend=-1) != 0) | (np.diff(total, prepend=-1) != 0)
    starts = np.flatnonzero(fresh)
    return Cells(
        selected=selected[starts],
        shown=total[starts],
        images=np.add.reduceat(images[order], starts),
        correct=np.add.reduceat(correct[order], starts, axis=0, dtype=np.int64),
        selection=selection,
        squares=None if squares is None else np.add.reduceat(squares[order], starts),
    )
