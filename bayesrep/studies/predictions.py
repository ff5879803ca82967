"""Answers of classifiers, or people, on the images of one data set: classes and confidences."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, LiteralString

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import StudyError, Violation, listing
from bayesrep.studies import validation
from bayesrep.types import Bools, Floats

NO_ANSWER = -1


@dataclass(frozen=True, eq=False)
class Predictions:
    """Answers of C classifiers (or labelers) on N images that show one of K classes each.

    Attributes
    ----------
    dataset
        The data set's name.
    images : str [N]
        Unique image names.
    classes : tuple of K str
        Names of the classes; labels and answers are numbers into it.
    labels : int [N]
        The class each image is meant to show.
    classifiers : tuple of C str
        Unique names.
    answers : int [C, N, R]
        The R most probable classes, the first being the prediction; -1 where there is no answer.
    confidence : float64 [C, N] or None
        The probability that each classifier gives to its prediction.

    Raises
    ------
    StudyError
        Naming the data set, the images or classifiers and the first rule broken.
    """

    dataset: str
    images: NDArray[np.str_]
    classes: tuple[str, ...]
    labels: NDArray[np.integer[Any]]
    classifiers: tuple[str, ...]
    answers: NDArray[np.integer[Any]]
    confidence: Floats | None = None

    def __post_init__(self) -> None:
        for name, values in (
            ("images", np.asarray(self.images, dtype=np.str_)),
            ("classes", tuple(map(str, self.classes))),
            ("labels", np.asarray(self.labels)),
            ("classifiers", tuple(map(str, self.classifiers))),
            ("answers", np.asarray(self.answers)),
        ):
            object.__setattr__(self, name, values)
        if self.confidence is not None:
            object.__setattr__(self, "confidence", np.asarray(self.confidence, dtype=np.float64))
        validation.raise_first(self._violations(f"data set {self.dataset!r}"))

    def _violations(self, where: str) -> Iterator[Violation]:
        yield from validation.image_violations(where, self.images)
        if len(set(self.classes)) < len(self.classes):
            yield Violation("class-repeated-in-predictions", where=where)
        if len(set(self.classifiers)) < len(self.classifiers):
            yield Violation("classifier-repeated-in-predictions", where=where)
        count = len(self.images)
        if self.labels.shape != (count,) or self.labels.dtype.kind not in "iu":
            yield Violation("labels-not-class-numbers", where=where, image_count=count)
            return
        strange = (self.labels < 0) | (self.labels >= len(self.classes))
        if strange.any():
            images = listing(self.images[strange].tolist())
            yield Violation("label-not-a-class", where=where, images=images)
        shape = (len(self.classifiers), count)
        if (
            self.answers.ndim != 3
            or self.answers.shape[:2] != shape
            or not self.answers.shape[2]
            or self.answers.dtype.kind not in "iu"
        ):
            shapes = {"shape": list(self.answers.shape), "expected_shape": [*shape, "R"]}
            yield Violation("answers-shape-wrong", where=where, **shapes)
            return
        wrong = (self.answers < NO_ANSWER) | (self.answers >= len(self.classes))
        yield from self._first_violation("answer-not-a-class", where, np.any(wrong, axis=2))
        if self.confidence is not None and self.confidence.shape != shape:
            shapes = {"shape": list(self.confidence.shape), "expected_shape": list(shape)}
            yield Violation("confidence-shape-wrong", where=where, **shapes)
        elif self.confidence is not None:
            within = (self.confidence >= 0) & (self.confidence <= 1)
            yield from self._first_violation("confidence-out-of-range", where, ~within)

    def _first_violation(
        self, rule: LiteralString, where: str, wrong: Bools
    ) -> Iterator[Violation]:
        if wrong.any():
            number = int(np.flatnonzero(wrong.any(axis=1))[0])
            images = listing(self.images[wrong[number]].tolist())
            yield Violation(rule, where=where, classifier=self.classifiers[number], images=images)

    @property
    def first(self) -> NDArray[np.integer[Any]]:
        """The predictions [C, N]."""
        return self.answers[:, :, 0]

    @property
    def answered(self) -> Bools:
        """Mask of the answers that exist [C, N]."""
        return self.first != NO_ANSWER

    @property
    def correct(self) -> Bools:
        """Mask of the predictions that equal the image's label [C, N]."""
        return np.equal(self.first, self.labels)

    def correct_within(self, ranks: int) -> Bools:
        """Test whether the label is among the `ranks` most probable classes [C, N].

        Raises
        ------
        StudyError
            Where fewer classes are known of each answer.
        """
        if ranks > (known := self.answers.shape[2]):
            facts = {"known_ranks": known, "needed_ranks": ranks}
            raise StudyError("too-few-ranked-answers", dataset=self.dataset, **facts)
        return np.any(self.answers[:, :, :ranks] == self.labels[:, None], axis=2)

    def on(self, rows: NDArray[Any]) -> "Predictions":
        """The answers on some images: row numbers, or a mask [N]."""
        confidence = None if self.confidence is None else self.confidence[:, rows]
        parts = {"labels": self.labels[rows], "answers": self.answers[:, rows]}
        return replace(self, images=self.images[rows], confidence=confidence, **parts)


def code_type(classes: int) -> type[np.int16] | type[np.int32]:
    """The smallest integer type for the numbers of so many classes."""
    return np.int16 if classes <= np.iinfo(np.int16).max else np.int32
