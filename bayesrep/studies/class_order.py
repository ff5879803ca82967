"""Mismatched class numbers of labels and answers: from 1 on one side, or sorted as text."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import StudyError
from bayesrep.types import Ints

MIN_CLASS_IMAGES = 20  # fewer cannot tell a mistake from a classifier that errs
_MIN_ACCURACY, _MIN_CHANCE_RATIO, _MIN_RATIO = 0.05, 3, 3  # of the accuracy when read otherwise


class Mistake(NamedTuple):
    """An order of classes that was mistaken."""

    what: str  # what went wrong
    # accuracy, otherwise: as the numbers stand, and under that reading; means over classifiers
    accuracy: float
    otherwise: float


def find_mistake(labels: Ints, answers: Ints, count: int) -> Mistake | None:
    """Find the order of classes that would explain a low accuracy."""
    if (mistake := _find_shift_by_one(labels, answers, count)) is not None:
        return mistake
    if len(labels) < MIN_CLASS_IMAGES or len(np.unique(labels)) < 3:
        return None
    as_text = np.array([int(name) for name in sorted(map(str, range(count)))])
    readings = {
        "the labels are positions of the folder names sorted as text (0, 1, 10, 100, ...)": as_text,
        "the folder names were sorted as text (0, 1, 10, 100, ...) when they were numbered": (
            np.argsort(as_text)
        ),
        "the labels count from 1": np.arange(count) - 1,
        "the labels are one too low": np.arange(count) + 1,
    }
    accuracy = {name: float(np.mean(each[labels] == answers)) for name, each in readings.items()}
    name = max(accuracy, key=lambda name: accuracy[name])
    read = float(np.mean(labels == answers))
    enough = max(_MIN_ACCURACY, _MIN_CHANCE_RATIO / count)
    if accuracy[name] > enough and accuracy[name] >= _MIN_RATIO * read:
        return Mistake(name, read, accuracy[name])
    return None


def _find_shift_by_one(labels: Ints, answers: Ints, count: int) -> Mistake | None:
    """A side that counts from 1, where both reach their ends and the accuracy says so, too."""
    if len(labels) < MIN_CLASS_IMAGES // 2:
        return None
    shift = int(labels.max()) - int(answers.max())
    if abs(shift) != 1 or int(labels.min()) < max(shift, 0) or int(answers.min()) < max(-shift, 0):
        return None
    if 0 not in (int(labels.min()), int(answers.min())):
        return None
    what = "the labels count from 1" if shift == 1 else "the labels are one too low"
    read, otherwise = float(np.mean(labels == answers)), float(np.mean(labels - shift == answers))
    return Mistake(what, read, otherwise) if otherwise > max(2 * read, 1 / count) else None


def refuse_mistake(labels: NDArray[Any], answers: NDArray[Any], *, where: str) -> None:
    """Refuse numbers of classes that labels and answers do not mean alike."""
    numbers = [_whole_or_none(each) for each in (labels, answers)]
    if numbers[0] is None or numbers[1] is None or not labels.size:
        return
    count = int(max(each.max(initial=0) for each in numbers if each is not None)) + 1
    mistake = find_mistake(numbers[0], numbers[1], count)
    if mistake is not None:
        what, accuracy, otherwise = mistake
        facts = {"mistake": what, "accuracy": accuracy, "otherwise": otherwise}
        raise StudyError("class-numbers-not-alike", where=where, **facts)


def _whole_or_none(values: NDArray[Any]) -> Ints | None:
    """Whole numbers from 0, or None where some value is none."""
    if values.dtype.kind in "iu":
        return None if (values < 0).any() else values.astype(np.int64)
    distinct, places = np.unique(values.astype(np.str_), return_inverse=True)
    if not all(each.isascii() and each.isdecimal() and len(each) < 6 for each in distinct.tolist()):
        return None
    return distinct.astype(np.int64)[places].reshape(values.shape)
