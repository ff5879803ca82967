"""Which labels people are asked about: what classifiers take an image for, and its own label.

Tsipras et al. (2020), section 3 and appendix B.1: the top-5 predictions of several classifiers, and
the data set's label, about 14 candidates an image.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from bayesrep.errors import OptionError
from bayesrep.studies.folder import RANKS
from bayesrep.studies.predictions import Predictions


def candidate_labels(datasets: Sequence[Predictions], *, top: int = RANKS) -> pl.DataFrame:
    """Candidate labels of every image.

    Parameters
    ----------
    datasets
        What classifiers answered, from `bayesrep.read_predictions`, with `top` answers at least.
    top
        How many of each classifier's most probable answers count.

    Returns
    -------
    polars.DataFrame
        One row an image and label, the images' order kept: `dataset`, `image`, `label`,
        `classifiers` (how many have it among their answers) and `own` (the data set's label).

    Raises
    ------
    OptionError
        If fewer answers are known.
    """
    if top < 1:
        raise OptionError("top-answers-out-of-range", top=top)
    parts = []
    for each in datasets:
        if each.answers.shape[2] < top:
            raise OptionError(
                "top-exceeds-known-answers",
                dataset=each.dataset,
                known_count=each.answers.shape[2],
                top=top,
            )
        said = each.answers[:, :, :top].astype(np.int64)
        row = np.broadcast_to(np.arange(len(each.images))[None, :, None], said.shape)
        # Answers that are missing have negative numbers.
        known = said >= 0
        # The own label is a candidate even where no classifier gives it.
        rows = np.concatenate([row[known], np.arange(len(each.images))])
        labels = np.concatenate([said[known], each.labels.astype(np.int64)])
        own = np.arange(len(rows)) >= known.sum()
        table = pl.DataFrame({"row": rows, "class": labels, "own": own})
        table = table.group_by("row", "class").agg(
            (~pl.col("own")).sum().cast(pl.Int64).alias("classifiers"), pl.col("own").any()
        )
        table = table.sort(
            ["row", "own", "classifiers", "class"], descending=[False, True, True, False]
        )
        parts.append(
            pl.DataFrame(
                {
                    "dataset": np.repeat(each.dataset, len(table)),
                    "image": each.images[table["row"].to_numpy()],
                    "label": np.asarray(each.classes)[table["class"].to_numpy()],
                    "classifiers": table["classifiers"],
                    "own": table["own"],
                }
            )
        )
    return pl.concat(parts)
