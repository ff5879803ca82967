"""Candidate labels that people judge (Tsipras et al., 2020, section 3 and appendix B.1)."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from bayesrep.errors import OptionError
from bayesrep.studies.layout import MAX_RANKS
from bayesrep.studies.predictions import Predictions


def candidate_labels(datasets: Sequence[Predictions], *, top: int = MAX_RANKS) -> pl.DataFrame:
    """List the candidate labels of every image.

    Parameters
    ----------
    datasets
        Classifiers' answers, from `bayesrep.read_predictions`, with at least `top` answers each.
    top
        Number of each classifier's most probable answers that count.

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
        top_answers = each.answers[:, :, :top].astype(np.int64)
        row = np.broadcast_to(np.arange(len(each.images))[None, :, None], top_answers.shape)
        # Answers that are missing have negative numbers.
        is_answer = top_answers >= 0
        # The own label is a candidate even where no classifier gives it.
        rows = np.concatenate([row[is_answer], np.arange(len(each.images))])
        labels = np.concatenate([top_answers[is_answer], each.labels.astype(np.int64)])
        own = np.arange(len(rows)) >= is_answer.sum()
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
