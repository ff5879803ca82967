"""What became of every image: those whose own label was clear, beside those that were classified.

The images that annotators classify are only those of which several labels seemed plausible (Tsipras
et al., 2020): what these show is not what all images show.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.studies.predictions import Predictions

IMAGE = ("dataset", "image")


def label_fates(fates: pl.DataFrame, answers: Predictions) -> pl.DataFrame:
    """Fates with each image's own label, as the answers to its data set have it."""
    labels = pl.DataFrame(
        {"image": answers.images, "label": answers.labels.astype(str)},
        schema_overrides={"image": pl.String, "label": pl.String},
    )
    labelled = fates.join(labels, on="image", how="left", maintain_order="left")
    if len(strange := labelled.filter(pl.col("label").is_null())):
        names = listing(strange["image"].to_list())
        raise OptionError("study-lacks-image-labels", dataset=answers.dataset, images=names)
    return labelled.select(*IMAGE, "label", "fate")


@dataclass(frozen=True, eq=False)
class WithClear:
    """What images show, those among them about which nobody had to be asked.

    Attributes
    ----------
    table
        As of `aggregate`; of a clear image one row, its own label as its one object's, and nothing
        of what annotators would have said.
    fates
        How many images there are of each fate, by its name.
    asked, clear
        How many images annotators classified, and how many clear ones are in the table.
    """

    table: pl.DataFrame
    fates: Mapping[str, int]
    asked: int
    clear: int


def with_clear(table: pl.DataFrame, fates: pl.DataFrame) -> WithClear:
    """Put the images whose own label was clear beside those that annotators classified.

    Classified are only images of which several labels seemed plausible: shares of them are not
    those of all images. Where the table has a part of these alone, as large a part of the clear
    ones of the data set is taken, at even distances.
    """
    if len(twice := fates.filter(fates.select(IMAGE).is_duplicated())):
        names = listing(twice["image"].unique(maintain_order=True).to_list())
        raise StudyError("fate-told-twice", images=names)
    went, here = fates.filter(fate="classify"), table.select(IMAGE).unique(maintain_order=True)
    if len(strange := here.join(went, on=IMAGE, how="anti", maintain_order="left")):
        raise StudyError("classified-against-fates", images=listing(strange["image"].to_list()))
    clear = pl.concat(
        [
            _as_large_a_part(part, int((here["dataset"] == name).sum()))
            for (name,), part in fates.group_by("dataset", maintain_order=True)
        ]
    )
    own = pl.col("label")
    rows = clear.select(*IMAGE, "label").with_columns(
        own=True, object=1, names=True, objects=1, main_label=own
    )
    both = pl.concat([table, rows.cast({"object": pl.Int64, "objects": pl.Int64})], how="diagonal")
    counted = dict(fates.group_by("fate", maintain_order=True).len().iter_rows())
    return WithClear(both.select(table.columns), counted, len(here), len(clear))


def _as_large_a_part(fates: pl.DataFrame, classified: int) -> pl.DataFrame:
    """An evenly spaced part of the clear images, as large as the part classified of the others."""
    went, clear = len(fates.filter(fate="classify")), fates.filter(fate="clear")
    taken = round(len(clear) * classified / went) if went else len(clear)
    return clear[np.arange(taken) * len(clear) // max(taken, 1)]
