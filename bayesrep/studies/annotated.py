"""One data set of a study: its images, their counts, and the classifiers' correctness."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import Violation, listing
from bayesrep.studies import validation
from bayesrep.studies.input_arrays import own_array
from bayesrep.studies.representation import Compared, brief, number, spread
from bayesrep.studies.selection import Selection
from bayesrep.studies.worker_answers import WorkerAnswers
from bayesrep.types import Bools, Ints


@dataclass(frozen=True, eq=False)
class AnnotatedSet(Compared):
    """One annotated data set: its images, their counts, and the classifiers' correctness.

    Arrays are read-only, and copied if a caller could still write to them.

    Attributes
    ----------
    name
        The data set's name, for example "imagenet-v1".
    images : str [N]
        Unique image names.
    selected, shown : int64 [N]
        k of n: numbers of annotators who selected the image and who saw it.
    correct : bool [N, C]
        Whether each classifier is right on each image.
    labels : str [N] or None
        The label each image is meant to show.
    groups : mapping of str to str [N]
        Optional further partitions of the images, such as superclasses.
    left_out : mapping of image to reason
        Images that are excluded since they could not be decoded.
    answers : WorkerAnswers or None
        The single answers behind the counts, if their workers are known.
    selection : Selection or None
        The rule on these very counts (or on others) by which the images were kept.

    Raises
    ------
    StudyError
        Naming the first rule broken (see `bayesrep.studies.validation`).
    """

    name: str
    images: NDArray[np.str_]
    selected: Ints
    shown: Ints
    correct: Bools
    labels: NDArray[np.str_] | None = None
    groups: Mapping[str, NDArray[np.str_]] = field(default_factory=dict[str, NDArray[np.str_]])
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    answers: WorkerAnswers | None = None
    selection: Selection | None = None

    def __post_init__(self) -> None:
        validation.raise_first(self._violations(f"data set {self.name!r}"))
        types = {"images": np.str_, "selected": np.int64, "shown": np.int64, "correct": np.bool_}
        if self.labels is not None:
            types["labels"] = np.str_
        for name, dtype in types.items():
            object.__setattr__(self, name, own_array(getattr(self, name), dtype))
        groups = {name: own_array(values, np.str_) for name, values in self.groups.items()}
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "left_out", dict(self.left_out))

    def __repr__(self) -> str:
        return brief(
            self,
            f"{self.name!r}",
            number(len(self.images), "image"),
            f"{spread(self.shown)} annotators each",
            number(self.correct.shape[1], "classifier"),
        )

    def _violations(self, where: str) -> Iterator[Violation]:
        yield from validation.image_violations(where, self.images)
        yield from validation.count_violations(where, self.images, self.selected, self.shown)
        yield from validation.correct_violations(where, self.images, self.correct)
        if self.labels is not None:
            yield from validation.text_violations(where, self.images, "label", self.labels)
        for name, values in self.groups.items():
            if name in validation.RESERVED_COLUMNS or not name:
                yield Violation("group-column-name-reserved", where=where, column=name)
            yield from validation.text_violations(where, self.images, f"group {name!r}", values)
        names = np.asarray(self.images, dtype=np.str_).tolist()
        if both := sorted(set(names) & set(self.left_out)):
            yield Violation("image-kept-and-left-out", where=where, images=listing(both))
        if self.answers is not None:
            yield from self.answers.violations(where, self.images, self.selected, self.shown)
        if self.selection is not None:
            counts = np.asarray(self.selected), np.asarray(self.shown)
            yield from self.selection.violations(where, np.asarray(self.images), *counts)
        # Single answers are no percentages, and a table of accepted counts may have few values.
        if self.answers is None and (self.selection is None or self.selection.table is None):
            selected, total = (np.asarray(n).astype(np.int64) for n in (self.selected, self.shown))
            yield from validation.value_violations(where, selected, total)
