"""People's answers about a test set's images: Tsipras et al. (2020), sections 4 and 5."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from bayesrep.errors import StudyError, listing
from bayesrep.files.names import normalize_names
from bayesrep.files.tables import read_only, require
from bayesrep.files.values import all_flags, whole_numbers
from bayesrep.protocols.class_names import class_numbers
from bayesrep.protocols.humans import beside
from bayesrep.sources.match_names import explain_absence
from bayesrep.studies.predictions import Predictions
from bayesrep.types import Floats

COUNT_COLUMNS = ("image", "label", "selected", "shown")
MAIN_OBJECT_COLUMNS = ("image", "label", "selected", "object", "names", "objects", "main_label")


@dataclass(frozen=True, eq=False)
class LabelValues:
    """A value for some labels of some of N images."""

    keys: NDArray[np.int64]  # image · K + label [L], increasing
    values: NDArray[Any]  # value of each label [L]
    classes: int  # K, number of classes

    def values_of(self, labels: ArrayLike, missing: Any) -> NDArray[Any]:
        """The values of labels [..., N], which may be -1; `missing` where none is known."""
        numbers = np.asarray(labels)
        keys = np.arange(numbers.shape[-1], dtype=np.int64) * self.classes + numbers
        place = np.searchsorted(self.keys, keys)
        is_known = (np.append(self.keys, -1)[place] == keys) & (numbers >= 0)
        return np.where(is_known, np.append(self.values, missing)[place], missing)

    @property
    def image(self) -> NDArray[np.int64]:
        """The image of each value [L]."""
        return self.keys // self.classes

    @property
    def label(self) -> NDArray[np.int64]:
        """The label of each value [L]."""
        return self.keys % self.classes


@dataclass(frozen=True, eq=False)
class People:
    """People's answers about the N images of one data set."""

    frequency: LabelValues | None = None  # how often each label is selected
    shown: LabelValues | None = None  # how many annotators were asked about each of these
    # The object, from 1, that each label is said of; 0 where nobody selected it, or with none
    object: LabelValues | None = None
    names: LabelValues | None = None  # whether most people call a label's object by it
    chosen: LabelValues | None = None  # how many select each label as that of an object
    # Objects of each image [N], 0 where it was not classified; then the main one's label, or -1.
    number: NDArray[np.int64] | None = None
    main: NDArray[np.int64] | None = None
    # The share of annotators who say that a label is the main object's, where that is known
    first: LabelValues | None = None
    mains: LabelValues | None = None  # number of annotators who say so
    # [N]: how many objects annotators see, on average; NaN where nobody was asked
    mean_objects: Floats | None = None
    # [N]: the share of annotators who see so many objects as most do; NaN where nobody was asked
    agreement: Floats | None = None


def read_people(
    predictions: Predictions, *, counts: Path | None = None, objects: Path | None = None
) -> People:
    """Read what people say of a data set's images; rows of other images are passed over.

    Parameters
    ----------
    predictions
        Whose images and classes count.
    counts
        A table with dataset (optional), image, label, selected, shown.
    objects
        A table as `bayesrep collect read --table objects` writes it.

    Raises
    ------
    StudyError
        Naming the file: a column that is missing, labels that are not classes, the same label
        twice, or none of the images.
    """
    size, parts = len(predictions.classes), {}
    if counts is not None:
        table, keys = _rows(counts, COUNT_COLUMNS, predictions)
        selected, n_shown = (
            whole_numbers(table[name], str(counts)).to_numpy() for name in ("selected", "shown")
        )
        if not ((n_shown > 0) & (selected >= 0) & (selected <= n_shown)).all():
            raise StudyError("label-counts-not-within-shown", path=counts)
        parts["frequency"] = LabelValues(keys, selected / n_shown, size)
        parts["shown"] = LabelValues(keys, n_shown, size)
    if objects is not None:
        table, keys = _rows(objects, MAIN_OBJECT_COLUMNS, predictions)
        object_numbers, selected = (
            whole_numbers(table[name], str(objects), missing=True).fill_null(unasked)
            for name, unasked in (("object", 0), ("selected", 1))
        )
        # Of an image that was clear nobody had to be asked: its own label is that of its object.
        table = table.with_columns(selected)
        parts["object"] = LabelValues(keys, object_numbers.to_numpy(), size)
        parts["names"] = LabelValues(keys, all_flags(table["names"], str(objects)).to_numpy(), size)
        parts["chosen"] = LabelValues(keys, table["selected"].to_numpy(), size)
        number, main = np.zeros((2, len(predictions.images)), dtype=np.int64)
        main -= 1
        names = normalize_names(table["main_label"])
        codes = class_numbers(names.unique().to_list(), predictions.classes, str(objects), "label")
        number[keys // size] = whole_numbers(table["objects"], str(objects)).to_numpy()
        main[keys // size] = names.replace_strict(codes, return_dtype=pl.Int64).to_numpy()
        parts |= {"number": number, "main": main}
        if {"main", "shown"} <= set(table.columns):
            judged = table["shown"].is_not_null()
            table, keys = table.filter(judged), keys[judged.to_numpy()]
            n_main, n_presented = (
                whole_numbers(table[name], str(objects)).to_numpy() for name in ("main", "shown")
            )
            if not ((n_presented > 0) & (n_main >= 0) & (n_main <= n_presented)).all():
                raise StudyError("main-not-within-shown", path=objects)
            parts["first"] = LabelValues(keys, n_main / n_presented, size)
            parts["mains"] = LabelValues(keys, n_main, size)
            mean = np.full(len(predictions.images), np.nan)
            images = keys // size
            chosen = np.bincount(images, table["selected"].to_numpy(), minlength=len(mean))
            mean[images] = chosen[images] / n_presented
            parts["mean_objects"] = mean
            if "agreed" in table.columns:
                agreement = np.full(len(predictions.images), np.nan)
                agreed = whole_numbers(table["agreed"], str(objects)).to_numpy()
                agreement[keys // size] = agreed / n_presented
                parts["agreement"] = agreement
    return People(**parts)


def _rows(
    path: Path, columns: tuple[str, ...], predictions: Predictions
) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """The rows about the images, in the order of their keys, and these."""
    table = read_only(path, ("dataset", "image", "label", "main_label")).frame
    require(table, columns, str(path))
    named = [name for name in ("dataset", "image", "label") if name in table.columns]
    table = named_table = table.with_columns(normalize_names(pl.col(named)))
    if "dataset" in table.columns:
        table = table.filter(pl.col("dataset") == predictions.dataset)
    places = {name: row for row, name in enumerate(predictions.images.tolist())}
    table = table.filter(pl.col("image").is_in(list(places)))
    if table.is_empty():
        raise StudyError(
            "people-images-unknown",
            path=path,
            dataset=predictions.dataset,
            example=str(predictions.images[0]),
            hint=explain_absence(predictions.images.tolist(), named_table),
        )
    if (twice := table.filter(table.select("image", "label").is_duplicated())).height:
        names = listing(twice["image"].unique(maintain_order=True).to_list())
        raise StudyError("label-twice-for-image", path=path, images=names)
    codes = class_numbers(
        table["label"].unique().to_list(), predictions.classes, str(path), "label"
    )
    image = table["image"].replace_strict(places, return_dtype=pl.Int64).to_numpy()
    label = table["label"].replace_strict(codes, return_dtype=pl.Int64).to_numpy()
    keys = image * len(predictions.classes) + label
    order = np.argsort(keys)
    return table[order], keys[order]


def people_beside(predictions: Predictions, people: People) -> Predictions:
    """Put beside classifiers what people take the images for.

    Parameters
    ----------
    predictions
        The classifiers' answers.
    people
        From `read_people`.

    Returns
    -------
    Predictions
        First answers of the classifiers, then of "people, selecting" (the label selected most
        often; the data set's own where others are selected as often) and "people, choosing" (the
        main object's label), as far as they are known: the two of appendix C.4, for `confusion`.
        Images about which people were not asked, or of which they selected no label, are answered
        by nobody.
    """
    own, named = predictions.labels, dict[str, NDArray[np.int64]]()
    if people.frequency is not None:
        frequency = people.frequency
        best = np.full(len(own), -1, dtype=np.int64)
        # In increasing order, the own label last of those that are equal, the last one stays.
        order = np.lexsort((frequency.label == np.asarray(own)[frequency.image], frequency.values))
        order = order[frequency.values[order] > 0]
        best[frequency.image[order]] = frequency.label[order]
        named["people, selecting"] = best
    if people.main is not None:
        named["people, choosing"] = people.main
    answers = np.stack(list(named.values()))[:, :, None]
    humans = replace(predictions, classifiers=tuple(named), answers=answers, confidence=None)
    return beside(predictions, humans)


def own_and_other(frequency: LabelValues, own: ArrayLike) -> tuple[Floats, Floats]:
    """Return each image's selection frequency of its own label, and the best of the others."""
    labels = np.asarray(own)
    best = np.full(len(labels), np.nan)
    other = frequency.label != labels[frequency.image]
    np.fmax.at(best, frequency.image[other], frequency.values[other])
    return frequency.values_of(labels, np.nan), best
