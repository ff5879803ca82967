"""All labels that are right on an image: the annotations behind multi-label accuracy.

Besides tables and mappings this reads `real.json` of Beyer et al. (2020), "Are we done with
ImageNet?": lists in the order of the validation images, ILSVRC2012_val_00000001.JPEG first.
"""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from bayesrep.choices import Empty
from bayesrep.errors import OptionError, ProtocolWarning, StudyError, listing
from bayesrep.files import strict_json
from bayesrep.files.names import normalize_name, normalize_names
from bayesrep.files.tables import read_only, require
from bayesrep.files.values import all_flags, flags, texts
from bayesrep.protocols.class_names import class_numbers
from bayesrep.sources.match_names import explain_absence
from bayesrep.studies.predictions import Predictions
from bayesrep.types import Bools

_VALIDATION_NAME = re.compile(r"ILSVRC2012_val_(\d{8})")


@dataclass(frozen=True, eq=False)
class LabelSets:
    """The right labels of the N images of one data set.

    Attributes
    ----------
    known : bool [N]
        Whether somebody looked which labels are right; without, nothing is said of the image.
    image, label : int [L]
        Every right label of every image, as numbers of images and classes.
    classes
        How many classes there are.
    categories : mapping of str to bool [N]
        Images with a row of each category, where the files have any.
    """

    known: Bools
    image: NDArray[np.integer[Any]]
    label: NDArray[np.integer[Any]]
    classes: int
    categories: Mapping[str, Bools] = field(default_factory=dict[str, Bools])

    def __post_init__(self) -> None:
        keys = np.unique(np.asarray(self.image, np.int64) * self.classes + self.label)
        object.__setattr__(self, "image", keys // self.classes)
        object.__setattr__(self, "label", keys % self.classes)

    @property
    def sizes(self) -> NDArray[np.integer[Any]]:
        """Count the right labels of each image [N]."""
        return np.bincount(self.image, minlength=len(self.known))

    def select_images(self, empty: str = "exclude") -> Bools:
        """The images [N] that count: with `empty="wrong"` those without a right label, too."""
        if empty not in (choices := get_args(Empty)):
            raise OptionError("unknown-empty-handling", empty=empty, choices=", ".join(choices))
        return self.known & (self.sizes > 0) if empty == "exclude" else self.known

    def contain(self, answers: ArrayLike) -> Bools:
        """Return whether each answer [..., N] is among the right labels of its image."""
        numbers = np.asarray(answers)
        keys = self.image * self.classes + self.label  # increasing
        query = np.arange(numbers.shape[-1], dtype=np.int64) * self.classes + numbers
        return (np.append(keys, -1)[np.searchsorted(keys, query)] == query) & (numbers >= 0)


def read_label_sets(paths: Sequence[str | Path], predictions: Predictions) -> LabelSets:
    """Read the label sets of a data set's images.

    Parameters
    ----------
    paths
        Files as above; sets of other images are passed over.
    predictions
        Whose images and classes count.

    Returns
    -------
    LabelSets

    Raises
    ------
    StudyError
        Naming the file and the labels that are not classes, the images with two sets, or that the
        files hold none of the images.

    Warns
    -----
    ProtocolWarning
        Where some of the images have no set; they are left out.
    """
    sets = _read(paths, predictions)
    if sets is None:
        raise _other_images_error(paths, predictions)
    return sets


def read_some_label_sets(
    paths: Sequence[str | Path], *predictions: Predictions
) -> tuple[LabelSets | None, ...]:
    """Read the label sets of the data sets that have any, None for the others.

    Raises
    ------
    StudyError
        As `read_label_sets`, where none of them has any.

    Warns
    -----
    ProtocolWarning
        As `read_label_sets`, and where a data set has none.
    """
    read = tuple(_read(paths, data) for data in predictions)
    if all(sets is None for sets in read):
        raise _other_images_error(paths, predictions[0])
    for data, sets in zip(predictions, read, strict=True):
        if sets is None:
            warnings.warn(
                f"{_list_paths(paths)}: no label set of any image of {data.dataset!r}, of which "
                "nothing is said",
                ProtocolWarning,
                stacklevel=2,
            )
    return read


def _list_paths(paths: Sequence[str | Path]) -> str:
    return ", ".join(map(str, paths))


def _other_images_error(paths: Sequence[str | Path], predictions: Predictions) -> StudyError:
    """Say that no file has a set of these images, and what the first has."""
    hint = ""
    for path in map(Path, paths[:1]):
        if path.suffix.lower() == ".json":
            content = strict_json.read(path)
            table = pl.DataFrame({"image": list(content) if isinstance(content, dict) else []})
        else:
            table = _read_rows(path)
        hint = explain_absence(predictions.images.tolist(), table)
    return StudyError(
        "label-sets-of-other-images",
        where=_list_paths(paths),
        dataset=predictions.dataset,
        example=str(predictions.images[0]),
        hint=hint,
    )


def _read(paths: Sequence[str | Path], predictions: Predictions) -> LabelSets | None:
    """The label sets of a data set's images, None where no image has one."""
    places = {normalize_name(name): row for row, name in enumerate(predictions.images.tolist())}
    has_labels, once = np.zeros((2, len(places)), dtype=np.bool_)
    pairs: list[tuple[int, int]] = []
    categories: dict[str, Bools] = {}
    for path in map(Path, paths):
        for name, image in _categories(path, predictions.dataset, places):
            categories.setdefault(name, np.zeros(len(places), np.bool_))[image] = True
        sets = [
            (image, [normalize_name(str(label)) for label in labels])
            for image, labels in _sets(path, predictions, places)
        ]
        labels = (label for _, each in sets for label in each)
        numbers = class_numbers(labels, predictions.classes, str(path), "label")
        of_sets = [places[image] for image, _ in sets]
        # What was judged later adds to a set.
        if path.suffix.lower() == ".json" or "right" not in _read_rows(path).columns:
            if twice := [image for image, _ in sets if once[places[image]]]:
                raise StudyError("second-label-set", path=path, images=listing(twice))
            once[of_sets] = True
        has_labels[of_sets] = True
        pairs += [(places[image], numbers[label]) for image, each in sets for label in each]
    if not has_labels.any():
        return None
    if not has_labels.all():
        missing = predictions.images[~has_labels].tolist()
        warnings.warn(
            f"{_list_paths(paths)}: no label set of {listing(missing)} of {predictions.dataset!r}; "
            f"accuracies are those on the other {has_labels.sum():,}",
            ProtocolWarning,
            stacklevel=3,
        )
    image, label = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return LabelSets(has_labels, image, label, len(predictions.classes), categories)


def _sets(
    path: Path, predictions: Predictions, places: Mapping[str, int]
) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the images that count, each with its labels."""
    if path.suffix.lower() != ".json":
        yield from _table_sets(path, predictions.dataset, places)
        return
    content = strict_json.read(path)
    if isinstance(content, dict):
        called = ((normalize_name(image), labels) for image, labels in content.items())
        named = ((image, labels) for image, labels in called if image in places)
    elif isinstance(content, list):
        named = _in_order(path, content, predictions)
    else:
        raise StudyError("label-sets-not-list-mapping", path=path)
    for image, labels in named:
        if not isinstance(labels, list):
            raise StudyError("label-set-not-list", path=path, image=image)
        yield image, labels


def _in_order(
    path: Path, content: list[Any], predictions: Predictions
) -> Iterator[tuple[str, Any]]:
    for image in predictions.images.tolist():
        match = _VALIDATION_NAME.search(image)
        if match is None:
            continue
        number = int(match.group(1))
        if not 1 <= number <= (count := len(content)):
            raise StudyError(
                "image-beyond-label-sets", path=path, label_set_count=count, image=image
            )
        yield normalize_name(image), content[number - 1]


def _categories(path: Path, dataset: str, places: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield every category that a table names, with its image."""
    if path.suffix.lower() == ".json":
        return
    table = _rows_of(_read_rows(path), dataset)
    if not {"category", "image"} <= set(table.columns):
        return
    rows = table.select("category", "image").drop_nulls().unique()
    for category, image in rows.sort("category", "image").iter_rows():
        if category and image in places:
            yield category, places[image]


def _read_rows(path: Path) -> pl.DataFrame:
    table, where = read_only(path, ("dataset", "image", "label", "category"))
    if "dataset" in table.columns:  # a row of no data set would be lost
        table = table.with_columns(texts(table["dataset"], where))
    if "right" in table.columns:
        table = table.filter(flags(table["right"], where).fill_null(value=False))
    return table.with_columns(normalize_names(pl.col("^(dataset|image|label|category)$")))


def _rows_of(table: pl.DataFrame, dataset: str) -> pl.DataFrame:
    if "dataset" not in table.columns:
        return table
    return table.filter(pl.col("dataset") == normalize_name(dataset))


def _table_sets(
    path: Path, dataset: str, places: Mapping[str, int]
) -> Iterator[tuple[str, Sequence[Any]]]:
    table = _read_rows(path)
    require(table, ("image", "label"), str(path))
    table = _rows_of(table, dataset)
    rows = table.select("image", "label")
    if {"object", "names"} <= set(table.columns):
        rows = rows.filter(all_flags(table["names"], str(path)))
    rows = rows.filter(pl.col("image").is_in(list(places)))
    if (repeated := rows.filter(rows.is_duplicated())).height:
        images = listing(repeated["image"].unique(maintain_order=True))
        raise StudyError("label-twice-for-image", path=path, images=images)
    for (image,), part in rows.group_by(["image"], maintain_order=True):
        yield str(image), [label for label in part["label"].to_list() if label not in (None, "")]
