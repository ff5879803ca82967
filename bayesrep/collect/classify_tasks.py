"""Tasks with one image and a few labels, of which annotators choose one for every object."""

import numpy as np
import polars as pl

from bayesrep.collect.contains_tasks import PLACE_COLUMNS, check_questions, task_names
from bayesrep.errors import OptionError, StudyError, listing

MAX_CLASSIFY_LABELS = 12  # most labels of one image; the paper has six


def plan_classify(asked: pl.DataFrame, *, seed: int = 0) -> pl.DataFrame:
    """Make one task for every image.

    Parameters
    ----------
    asked
        One row an image and label: `dataset`, `image`, `label`, `own`, `source`, as `plan_grids`
        takes them.
    seed
        Seed of the order of the tasks, and of the labels in them, so that the own label is not
        first.

    Returns
    -------
    polars.DataFrame
        One row a label of a task: `task`, `place` (from 1), `dataset`, `image`, `label`, `own`,
        `control` (null), `source`.

    Raises
    ------
    StudyError
        If an image has a label twice, only one, or too many to be looked at together.
    """
    if seed < 0:
        raise OptionError("seed-not-whole-number", seed=seed)
    asked = check_questions(asked)
    image = ["dataset", "image"]
    sizes = asked.group_by(image, maintain_order=True).agg(size=pl.len())
    # A question with one label has only one answer, and a long list is not read.
    if len(refused := sizes.filter(pl.col("size") < 2)):
        raise StudyError("only-one-label-of-image", images=listing(refused["image"].to_list()))
    if len(refused := sizes.filter(pl.col("size") > MAX_CLASSIFY_LABELS)):
        raise StudyError(
            "labels-of-image-exceed-most",
            images=listing(refused["image"].to_list()),
            most_labels=MAX_CLASSIFY_LABELS,
        )
    random = np.random.default_rng(seed)
    # Tasks come in random order, and so do the labels within each.
    order = random.permutation(len(sizes))
    table = asked.join(
        sizes.select(image).with_columns(number=pl.Series(order)), on=image, maintain_order="left"
    )
    number = table["number"].to_numpy()
    by_task = np.lexsort((random.random(len(table)), number))
    table, number = table[by_task], number[by_task]
    # Places within a task count from 1.
    place = np.arange(len(table)) - np.searchsorted(number, number) + 1
    table = table.with_columns(control=pl.lit(None, pl.String))
    return table.with_columns(task=task_names(table, number), place=pl.Series(place)).select(
        PLACE_COLUMNS
    )
