"""Classifiers and people on parts of the images: table 2 of Shankar et al. (2020)."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from bayesrep.errors import OptionError, ProtocolWarning, StudyError, listing
from bayesrep.files.names import normalize_name, normalize_names
from bayesrep.files.tables import read_only, require
from bayesrep.files.values import durations, is_missing, parse_flags
from bayesrep.protocols.comparison import Participants, accuracy_rows, kinds_of, side_of
from bayesrep.protocols.label_sets import LabelSets
from bayesrep.sources.match_names import explain_absence
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.types import Bools

ALL_IMAGES = "all images"
FAST_SECONDS = 60.0


def compare_subsets(
    reference: Predictions,
    replication: Predictions,
    subsets: Mapping[str, Sequence[Bools]],
    *,
    humans: tuple[Predictions, ...] | None = None,
    sets: tuple[LabelSets | None, ...] | None = None,
    interval: str = "clopper-pearson",
) -> pl.DataFrame:
    """Accuracies of classifiers and people on subsets of the images of both data sets.

    Parameters
    ----------
    reference, replication
        Answers of the same classifiers on both.
    subsets
        Name to two masks over images, [N] of the reference and [N'] of the replication.
    humans, interval
        As `compare` takes them.
    sets
        As `compare` takes them; of one of the two there may be none (`read_some_label_sets`), and
        nothing is said of that one.

    Returns
    -------
    polars.DataFrame
        subset and the columns of `Comparison.accuracies`, then reference_change and
        replication_change: the accuracy minus that on all images. The subset "all images" comes
        first. Null where somebody answered nothing.

    Raises
    ------
    StudyError
        As `compare`, where a subset has no image in either data set, or takes the name "all
        images".

    Warns
    -----
    ProtocolWarning
        Where a subset has images in one of the data sets alone.
    """
    if ALL_IMAGES in subsets:
        raise StudyError("all-images-name-taken", subset=ALL_IMAGES)
    if reference.classifiers != replication.classifiers:
        raise StudyError("classifiers-differ-between-datasets")
    people = (None, None) if humans is None else humans
    label_sets = (None, None) if sets is None else sets
    both = (reference, replication)
    sides = [side_of(*each) for each in zip(both, people, label_sets, strict=True)]
    names = sides[0].names
    # By label sets nothing is known of a data set without any.
    if sets is not None:
        blanks = (np.zeros_like(side.answered) for side in sides)
        nothing = (Participants(names, blank, blank) for blank in blanks)
        known = zip(sides, nothing, sets, strict=True)
        sides = [none if each is None else side for side, none, each in known]
    kinds, metric = kinds_of(reference, names), "top-1" if sets is None else "multi-label"
    every = {ALL_IMAGES: [np.ones(len(each.images), np.bool_) for each in both], **subsets}
    tables = []
    # One table of accuracies a subset; a side on which nobody answered has none.
    for name, masks in every.items():
        counts = [
            ((side.right & mask).sum(axis=1), (side.answered & mask).sum(axis=1))
            for side, mask in zip(sides, masks, strict=True)
        ]
        if not any(images.any() for _, images in counts):
            raise StudyError("subset-without-answers", subset=name)
        for role, side, (_, images) in zip(REQUIRED_ROLES, sides, counts, strict=True):
            if side.answered.any() and not images.any():
                warnings.warn(
                    f"subset {name!r}: nobody answered an image of it in the {role}, of which "
                    "nothing is said",
                    ProtocolWarning,
                    stacklevel=2,
                )
        rows = accuracy_rows(names, kinds, metric, counts, interval)
        tables.append(rows.select(pl.lit(name).alias("subset"), pl.all()))
    # All images are the first table: changes are from there.
    changes = [
        pl.concat(
            [table[f"{role}_accuracy"] - tables[0][f"{role}_accuracy"] for table in tables]
        ).alias(f"{role}_change")
        for role in REQUIRED_ROLES
    ]
    return pl.concat(tables).with_columns(changes)


def of_classes(
    masks: Mapping[str, Bools], *predictions: Predictions
) -> dict[str, tuple[Bools, ...]]:
    """Subsets of classes, from `class_subsets`, as masks over the images of each data set."""
    return {name: tuple(mask[each.labels] for each in predictions) for name, mask in masks.items()}


def read_image_subsets(path: str | Path, *predictions: Predictions) -> dict[str, tuple[Bools, ...]]:
    """Read which images belong to what.

    Parameters
    ----------
    path
        A table (CSV or Parquet) with the column image and, where there are several data sets,
        dataset. Each further column is a way to part the images: of true and false, the subset of
        that name; of texts, a subset for each text. Without further columns the images are one
        subset, by the file's name. Images that have no row are in none.
    predictions
        Whose images count.

    Raises
    ------
    StudyError
        Naming the file: no column image, an image twice, or none of the images.
    """
    file = Path(path)
    table = read_only(file, ("dataset", "image")).frame
    require(table, ("image",), str(file))
    text = table.select(normalize_names(pl.all()).fill_null(""))
    columns = [name for name in text.columns if name not in ("image", "dataset")]
    # A table without further columns is one subset, named after its file.
    if not columns:
        text, columns = text.with_columns(pl.lit("true").alias(file.stem)), [file.stem]
    parts = [_rows_of(text, each, str(file)) for each in predictions]
    if not any(len(part) for part in parts):
        images = _image_names(predictions[0])
        hint = explain_absence(images, text)
        raise StudyError("subset-images-unknown", file=file, example=images[0], hint=hint)
    # A column of flags is one subset; any other column is a subset for each of its values.
    members: dict[str, tuple[Bools, ...]] = {}
    for column in columns:
        cells = [part[column] for part in parts]
        flags = all((parse_flags(each).is_not_null() | is_missing(each)).all() for each in cells)
        values = [column] if flags else sorted({v for part in parts for v in part[column] if v})
        for value in values:
            selected = parse_flags(pl.col(column)) if flags else pl.col(column) == value
            masks = tuple(
                _mask(part.filter(selected), each)
                for part, each in zip(parts, predictions, strict=True)
            )
            members[f"{column}: {value}" if value in members else value] = masks
    return members


def _rows_of(table: pl.DataFrame, data: Predictions, where: str) -> pl.DataFrame:
    if "dataset" in table.columns:
        table = table.filter(pl.col("dataset") == normalize_name(data.dataset))
    rows = table.filter(pl.col("image").is_in(_image_names(data)))
    if (twice := rows.filter(rows["image"].is_duplicated())).height:
        names = listing(twice["image"].unique(maintain_order=True))
        raise StudyError("subset-image-twice", where=where, images=names, dataset=data.dataset)
    return rows


def _mask(rows: pl.DataFrame, data: Predictions) -> Bools:
    return np.isin(_image_names(data), rows["image"].to_numpy().astype(np.str_))


def _image_names(data: Predictions) -> list[str]:
    """The names of the images as tables have them."""
    return [normalize_name(name) for name in data.images.tolist()]


def fast_images(
    path: str | Path, *predictions: Predictions, seconds: float = FAST_SECONDS
) -> tuple[Bools, ...]:
    """Images to which people's median time was at most so many seconds.

    Parameters
    ----------
    path
        The table of people's answers (`read_humans`), with the column seconds: how long each took.
        Answers without a time do not count.
    predictions
        Whose images count.
    seconds
        60 by Shankar et al. (2020), section 5.

    Raises
    ------
    StudyError
        Naming the file: without the column, or with something else than times in it.
    OptionError
        Where seconds are not positive.
    """
    if not seconds > 0:
        raise OptionError("fast-seconds-not-positive", seconds=seconds)
    table, where = read_only(path, ("dataset", "image", "task", "seconds"))
    if "image" not in table.columns and "task" in table.columns:
        table = table.rename({"task": "image"})
    require(table, ("image", "seconds"), where)
    times = durations(table["seconds"], where, missing=True)
    rows = table.with_columns(normalize_names(pl.col("image")), times)
    # Each data set's image takes the median over the people who answered about it.
    masks = []
    for data in predictions:
        mine = rows
        if "dataset" in rows.columns:
            mine = rows.filter(normalize_names(pl.col("dataset")) == normalize_name(data.dataset))
        medians = mine.group_by("image").agg(pl.col("seconds").median()).drop_nulls()
        masks.append(_mask(medians.filter(pl.col("seconds") <= seconds), data))
    return tuple(masks)


def missed_by_all(data: Predictions, sets: LabelSets) -> Bools:
    """Images [N] that somebody answered and nobody right (Shankar et al., 2020, section 5).

    Parameters
    ----------
    data
        Answers of classifiers, or of people.
    sets
        The right labels; images without one are left out.
    """
    eligible = sets.select_images() & data.answered.any(axis=0)
    return eligible & ~(sets.contain(data.first) & data.answered).any(axis=0)
