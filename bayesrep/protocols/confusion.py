"""Confusions and co-occurrences, by class or by superclass.

Tsipras et al. (2020), section 5.2 and appendix C.4: superclasses that are often taken for each
other by classifiers and people alike are those whose objects share images.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.errors import StudyError
from bayesrep.protocols.intervals import paired_difference, proportion_interval
from bayesrep.protocols.label_sets import LabelSets
from bayesrep.studies.predictions import Predictions
from bayesrep.types import Bools, Ints

Integers = NDArray[np.integer[Any]]


def confusion(
    predictions: Predictions,
    groups: NDArray[np.str_] | None = None,
    *,
    interval: str = "jeffreys",
) -> pl.DataFrame:
    """Compute how often each participant answers each label to images of each class or superclass.

    Parameters
    ----------
    predictions
        Answers on one data set, of classifiers, people or both (`beside`).
    groups : str [K]
        The superclass of each class, one column of `read_groups`; classes without one are left
        out. By default every class by itself.
    interval
        See `proportion_interval`.

    Returns
    -------
    polars.DataFrame
        participant, label, answer, images (of that label, answered), count (of those with that
        answer), rate, lower, upper (95 %). Cells without images are left out; their rate is 0.
    """
    names, codes = _codes(predictions.classes, groups)
    label, size = codes[predictions.labels], len(names)
    tables = [
        _cells(names, _pair_counts(label, codes[first], first >= 0, size), interval).select(
            pl.lit(name).alias("participant"), pl.all()
        )
        for name, first in zip(predictions.classifiers, predictions.first, strict=True)
    ]
    return pl.concat(tables)


def confusion_difference(
    predictions: Predictions,
    participant: str,
    other: str,
    groups: NDArray[np.str_] | None = None,
) -> pl.DataFrame:
    """Compute by how much one participant's confusion rates exceed a second participant's.

    Parameters
    ----------
    predictions
        Answers on one data set.
    participant, other
        Their names; only images that both answered count.
    groups
        As for `confusion`.

    Returns
    -------
    polars.DataFrame
        label, answer, images, rate (of the participant), other_rate, difference (its posterior
        mean), lower, upper (95 %, see `paired_difference`). Each interval is for one cell.

    Raises
    ------
    StudyError
        For an unknown name.
    """
    names, codes = _codes(predictions.classes, groups)
    for name in (participant, other):
        if name not in predictions.classifiers:
            raise StudyError("nobody-of-that-name", dataset=predictions.dataset, name=name)
    place = predictions.classifiers.index
    first, second = (predictions.first[place(name)] for name in (participant, other))
    both = (codes[first] >= 0) & (codes[second] >= 0) & (first >= 0) & (second >= 0)
    label, size = codes[predictions.labels], len(names)
    # How often each participant gives each answer to each label.
    one, two = (_pair_counts(label, codes[each], both, size) for each in (first, second))
    # Answers that both give cancel in the difference: its error is that of discordant images.
    same = _pair_counts(label, codes[first], both & (codes[first] == codes[second]), size)
    rows, columns = np.nonzero(one + two)
    images = one.sum(axis=1)[rows]
    a, b, shared = (each[rows, columns] for each in (one, two, same))
    posterior = paired_difference(a - shared, b - shared, images - a - b + 2 * shared)
    return pl.DataFrame(
        {
            "label": names[rows],
            "answer": names[columns],
            "images": images,
            "rate": a / images,
            "other_rate": b / images,
            **dict(zip(("difference", "lower", "upper"), posterior, strict=False)),
        }
    )


def co_occurrence(
    predictions: Predictions,
    sets: LabelSets,
    groups: NDArray[np.str_] | None = None,
    *,
    empty: str = "exclude",
    interval: str = "jeffreys",
) -> pl.DataFrame:
    """Compute how often an image of one class or superclass also shows another label.

    Parameters
    ----------
    predictions
        Whose images and labels count.
    sets
        All right labels of the images.
    groups
        As for `confusion`.
    empty
        As for `multilabel`: "wrong" keeps images on which no label is right, without another one.
    interval
        See `proportion_interval`.

    Returns
    -------
    polars.DataFrame
        label, answer (the other one), images (of that label, that count), count (of those on
        which another label than the image's own, of that class or superclass, is right), rate,
        lower, upper (95 %). Cells without images are left out; their rate is 0.
    """
    names, codes = _codes(predictions.classes, groups)
    size = len(names)
    own = predictions.labels[sets.image] == sets.label
    image, label = sets.image[~own], codes[sets.label[~own]]
    image, label = image[label >= 0], label[label >= 0]
    # Several labels of one superclass on one image are one occurrence.
    pairs = np.unique(image * size + label)
    image, label = pairs // size, pairs % size
    labels = codes[predictions.labels]
    counts = _pair_counts(labels[image], label, np.ones(len(image), np.bool_), size)
    images = np.bincount(labels[sets.select_images(empty) & (labels >= 0)], minlength=size)
    return _cells(names, counts, interval, images)


def _codes(
    classes: Sequence[str], groups: NDArray[np.str_] | None
) -> tuple[NDArray[np.str_], Integers]:
    """Names of the groups and the number of each class's group [K], -1 where it has none."""
    if groups is None:
        return np.asarray(classes), np.arange(len(classes))
    names = [name for name in dict.fromkeys(groups.tolist()) if name]
    number = {name: place for place, name in enumerate(names)}
    return np.asarray(names), np.array([number.get(name, -1) for name in groups.tolist()])


def _pair_counts(label: Integers, answer: Integers, counted: Bools, size: int) -> Ints:
    """Counts [size, size] of label and answer, where both are in a group."""
    some = counted & (label >= 0) & (answer >= 0)
    keys = label[some].astype(np.int64) * size + answer[some]
    return np.bincount(keys, minlength=size * size).reshape(size, size)


def _cells(
    names: NDArray[np.str_], counts: Ints, interval: str, images: Any = None
) -> pl.DataFrame:
    images = counts.sum(axis=1) if images is None else images
    rows, columns = np.nonzero(counts)
    count, total = counts[rows, columns], images[rows]
    lower, upper = proportion_interval(count, total, interval)
    return pl.DataFrame(
        {
            "label": names[rows],
            "answer": names[columns],
            "images": total,
            "count": count,
            "rate": count / total,
            "lower": lower,
            "upper": upper,
        }
    )
