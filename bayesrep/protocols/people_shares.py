"""Shares of images by people's answers, and of predictions, with intervals over images.

A label that nobody selects is never one that is selected as often as another.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from bayesrep.errors import StudyError
from bayesrep.protocols.intervals import proportion_interval
from bayesrep.protocols.people import People, own_and_other
from bayesrep.studies.predictions import Predictions
from bayesrep.types import Bools, Floats

TOP_K = 5
Row: TypeAlias = tuple[str, str, Any, Any]
"""Statistic, figure, images of which it is so, images that count; numbers, or [C]."""


def compare_labels_with_people(
    predictions: Predictions, people: People, *, interval: str = "jeffreys"
) -> pl.DataFrame:
    """Compute shares of images by what people see on them.

    Parameters
    ----------
    predictions
        Whose labels are the data set's.
    people
        From `read_people`.
    interval
        See `proportion_interval`.

    Returns
    -------
    polars.DataFrame
        statistic, figure (of Tsipras et al.), of (images that count), images (of which it is so),
        share, lower, upper (95 %).

    Raises
    ------
    StudyError
        Where nothing is known of any image.
    """
    return _shares({}, list(_image_statistics(predictions, people)), interval)


def _shares(names: Mapping[str, Any], rows: Sequence[Row], interval: str) -> pl.DataFrame:
    """Names, and shares of images with their intervals; each name has all rows."""
    if not rows:
        raise StudyError("seen-by-people-unknown")
    images, total = (np.stack([row[n] for row in rows], axis=-1).ravel() for n in (2, 3))
    texts = {n: [row[k] for row in rows] for k, n in enumerate(("statistic", "figure"))}
    names = {**names, **{n: each * (len(images) // len(rows)) for n, each in texts.items()}}
    lower, upper = proportion_interval(images, total, interval)
    with np.errstate(invalid="ignore"):
        numbers = {"of": total, "images": images, "share": images / total}
        numbers |= {"lower": lower, "upper": upper}
    return pl.DataFrame({**names, **numbers}).fill_nan(None)


def _image_statistics(predictions: Predictions, people: People) -> Iterator[Row]:
    own = predictions.labels
    if people.frequency is not None:
        freq = people.frequency
        mine, best = own_and_other(freq, own)
        judged = ~np.isnan(mine)
        both = judged & ~np.isnan(best)
        yield "the own label is selected by nobody", "25", (mine[judged] == 0).sum(), judged.sum()
        for text, figure, share in (
            ("another label is selected as often", "7", 1.0),
            ("another label is selected half as often", "23a", 0.5),
        ):
            is_so = _as_often(best[both], mine[both], share)
            yield text, figure, is_so.sum(), both.sum()
        if people.number is not None:
            one = judged & (people.number == 1)
            several = np.bincount(freq.image[freq.values > 0], minlength=len(own))[one] > 1
            text = "with one object, several labels are selected"
            yield text, "8", several.sum(), one.sum()
    if people.number is not None and people.main is not None and people.chosen is not None:
        number, main = people.number, people.main
        done = number > 0
        for count in range(1, 4):
            is_so = number == count if count < 3 else number >= count
            text = f"{count} object{'s' if count > 1 else ''}{' or more' if count == 3 else ''}"
            yield text, "3a", is_so.sum(), done.sum()
        yield "the main label is another", "19", (done & (main != own)).sum(), done.sum()
        many = number > 1
        if people.object is not None:
            other = people.object.values_of(main, 0) != people.object.values_of(own, 0)
            text = "with several objects, the main one is another"
            yield text, "5", (other & many).sum(), many.sum()
        missed = done & (people.chosen.values_of(own, 0) == 0)
        yield "the own label is chosen for no object", "26", missed.sum(), done.sum()


def compare_predictions_with_people(
    predictions: Predictions, people: People, *, interval: str = "jeffreys"
) -> pl.DataFrame:
    """Compute shares of every classifier's predictions by what people say of them.

    Parameters
    ----------
    predictions
        The answers on one data set.
    people
        From `read_people`.
    interval
        See `proportion_interval`.

    Returns
    -------
    polars.DataFrame
        classifier, statistic, figure (of Tsipras et al.), of, images, share, lower, upper. Accuracy
        on images of several objects and of one: by the data set's label, by those by which most
        people call the objects (figure 4), by the main one's (figure 6); of the answers that are
        wrong, how many people select, and at least as often as the own label (figure 11;
        predictions that nobody was asked about count as selected never); and of the *top-5
        corrections*, wrong by top-1 and right by top-5, those whose first answer and label are both
        seen by people, as different objects (appendix C.1).
    """
    rows = list(_prediction_statistics(predictions, people))
    return _shares({"classifier": np.repeat(predictions.classifiers, len(rows))}, rows, interval)


def _prediction_statistics(predictions: Predictions, people: People) -> Iterator[Row]:
    answered, own, first = predictions.answered, predictions.labels, predictions.first

    def count_images(is_so: Bools, subset: Bools) -> tuple[Any, Any]:
        return (is_so & subset).sum(axis=1), np.broadcast_to(subset, is_so.shape).sum(axis=1)

    if people.number is not None and people.object is not None and people.main is not None:
        object_numbers = people.object.values_of(first, 0)
        named = np.zeros_like(object_numbers)
        if people.names is not None:
            named = people.names.values_of(first, missing=0)
        several, one = people.number > 1, people.number == 1
        for name, images in (("several objects", several), ("one object", one)):
            both = answered & images
            counts = count_images(predictions.correct, both)
            yield f"{name}: right by the own label", "4a", *counts
            yield f"{name}: right by any object", "4b", *count_images(named > 0, both)
        # Images whose main object, by people, is not the label of the benchmark.
        another = answered & (people.number > 0) & (people.main != own)
        text = "another main label: right by the"
        yield f"{text} own label", "6", *count_images(predictions.correct, another)
        yield f"{text} main label", "6", *count_images(first == people.main, another)
        if predictions.answers.shape[2] >= TOP_K:
            mine = people.object.values_of(own, 0)
            corrected = predictions.correct_within(TOP_K) & ~predictions.correct
            corrected &= people.number > 0
            different = (object_numbers > 0) & (mine > 0) & (object_numbers != mine)
            text = "top-5 corrections that are two objects"
            yield text, "22", *count_images(different, answered & corrected)
    if people.frequency is not None:
        mine: Floats = people.frequency.values_of(own, np.nan)
        theirs: Floats = people.frequency.values_of(first, 0.0)
        wrong = answered & ~predictions.correct & ~np.isnan(mine)
        as_often = _as_often(theirs, mine)
        yield "mistakes selected as often as the own label", "11", *count_images(as_often, wrong)
        yield "mistakes selected by half or more", "10", *count_images(theirs >= 0.5, wrong)


def _as_often(values: Floats, own: Floats, share: float = 1.0) -> Bools:
    """Return whether labels are selected, so many times as often as own ones (NaN: not asked)."""
    with np.errstate(invalid="ignore"):
        return (values > 0) & (values >= share * own)
