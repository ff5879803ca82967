"""Outcomes of all images: those whose own label was clear, and those that were classified.

The images that annotators classify are only those of which several labels seemed plausible (Tsipras
et al., 2020): what these show is not what all images show.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.studies.predictions import Predictions

IMAGE_KEY = ("dataset", "image")


def label_fates(fates: pl.DataFrame, answers: Predictions) -> pl.DataFrame:
    """Add each image's own label, from the predictions of its data set, to its fate."""
    labels = pl.DataFrame(
        {"image": answers.images, "label": answers.labels.astype(str)},
        schema_overrides={"image": pl.String, "label": pl.String},
    )
    labelled = fates.join(labels, on="image", how="left", maintain_order="left")
    if len(strange := labelled.filter(pl.col("label").is_null())):
        names = listing(strange["image"].to_list())
        raise OptionError("study-lacks-image-labels", dataset=answers.dataset, images=names)
    return labelled.select(*IMAGE_KEY, "label", "fate")


@dataclass(frozen=True, eq=False)
class WithClear:
    """Objects in images, including images that needed no annotators."""

    # As of `aggregate`; a clear image has one row, its own label as its one object's, and nulls in
    # place of annotators' votes.
    table: pl.DataFrame
    fates: Mapping[str, int]  # number of images by fate
    classified: int  # images that annotators classified
    clear: int  # clear ones in the table


def with_clear(table: pl.DataFrame, fates: pl.DataFrame) -> WithClear:
    """Put the images whose own label was clear beside those that annotators classified.

    Where a table has a part of the latter, as large a part of the clear ones is taken.
    """
    if len(twice := fates.filter(fates.select(IMAGE_KEY).is_duplicated())):
        names = listing(twice["image"].unique(maintain_order=True).to_list())
        raise StudyError("fate-told-twice", images=names)
    queue, classified = (
        fates.filter(fate="classify"),
        table.select(IMAGE_KEY).unique(maintain_order=True),
    )
    if len(strange := classified.join(queue, on=IMAGE_KEY, how="anti", maintain_order="left")):
        raise StudyError("classified-against-fates", images=listing(strange["image"].to_list()))
    clear = pl.concat(
        [
            _evenly_spaced(part, int((classified["dataset"] == name).sum()))
            for (name,), part in fates.group_by("dataset", maintain_order=True)
        ]
    )
    own = pl.col("label")
    rows = clear.select(*IMAGE_KEY, "label").with_columns(
        own=True, object=1, names=True, objects=1, main_label=own
    )
    both = pl.concat([table, rows.cast({"object": pl.Int64, "objects": pl.Int64})], how="diagonal")
    counted = dict(fates.group_by("fate", maintain_order=True).len().iter_rows())
    return WithClear(both.select(table.columns), counted, len(classified), len(clear))


def _evenly_spaced(fates: pl.DataFrame, classified: int) -> pl.DataFrame:
    """Take an evenly spaced share of the clear images, equal to the share classified so far."""
    queue, clear = len(fates.filter(fate="classify")), fates.filter(fate="clear")
    size = round(len(clear) * classified / queue) if queue else len(clear)
    return clear[np.arange(size) * len(clear) // max(size, 1)]
