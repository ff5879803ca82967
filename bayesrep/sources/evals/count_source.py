"""Counts of a study from a table, from models that solve, or from scorers that judge."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.files.tables import read_only, require
from bayesrep.files.values import texts, whole_numbers
from bayesrep.sources.evals.records import item_keys
from bayesrep.sources.match_names import explain_names
from bayesrep.studies import validation
from bayesrep.studies.column_aliases import in_our_words
from bayesrep.studies.worker_answers import WorkerAnswers
from bayesrep.types import Ints

_ITEM_COUNTS = ("image", "selected", "shown")


@dataclass(frozen=True, eq=False)
class CountedItems:
    """Counts of some items of one data set."""

    items: list[str]  # items with counts
    selected: Ints
    shown: Ints
    answers: WorkerAnswers | None = None  # by rater, if each gave one answer about an item


def from_table(path: str | Path, task: str, known_items: pl.Series) -> CountedItems:
    """Read one data set's counts from a table of dataset, item, selected, shown."""
    table, where = read_only(path, ("dataset", "image", "item", "question"))
    table = table.rename(in_our_words(table.columns, ("image",)))
    require(table, ("dataset", *_ITEM_COUNTS), where)
    columns = [item_keys(texts(table["image"], where))]
    columns += [whole_numbers(table[name], where) for name in _ITEM_COUNTS[1:]]
    rows = pl.DataFrame(columns)
    names = texts(table["dataset"], where)
    rows = rows.filter(names == task)
    if not len(rows):
        datasets = listing(names.unique().sort(), "data set")
        raise StudyError("no-counts-of-data-set", where=where, dataset=task, datasets=datasets)
    if (repeated := rows.filter(pl.col("image").is_duplicated())).height:
        items = listing(repeated["image"].unique(maintain_order=True), "item")
        raise StudyError("item-counted-twice", where=where, items=items, dataset=task)
    if len(strange := rows.filter(~pl.col("image").is_in(known_items.implode()))):
        items = listing(strange["image"], "item")
        hint = explain_names(strange["image"], known_items)
        raise StudyError(
            "counts-of-unknown-items", where=where, items=items, dataset=task, hint=hint
        )
    items, selected, shown = (rows[name] for name in _ITEM_COUNTS)
    broken = validation.count_violations(f"{where}, {task!r}", items.to_list(), selected, shown)
    validation.raise_first(broken)
    return CountedItems(items.to_list(), selected.to_numpy(), shown.to_numpy())


def from_answers(answers: pl.DataFrame, who: str, names: Sequence[str], task: str) -> CountedItems:
    """Count the raters who say yes to each item of a data set."""
    if absent := [name for name in names if name not in set(answers[who])]:
        noun = {"model": "solver", "scorer": "judge"}[who]
        raise OptionError("no-scores-on-data-set", raters=listing(absent, noun), dataset=task)
    mine = answers.filter(pl.col(who).is_in(list(names)))
    groups = mine.group_by("item", maintain_order=True)
    counts = groups.agg(pl.col("solved").sum().cast(pl.Int64), pl.len().cast(pl.Int64))
    once = not mine.select(pl.struct("item", who).is_duplicated().any()).item()
    places = counts.select("item").with_row_index("place")
    rows = mine.join(places, on="item", maintain_order="left")
    answers_by_rater = WorkerAnswers.of(
        rows["place"].to_numpy().astype(np.int64), rows[who].to_numpy(), rows["solved"].to_numpy()
    )
    return CountedItems(
        counts["item"].to_list(),
        counts["solved"].to_numpy(),
        counts["len"].to_numpy(),
        answers_by_rater if once else None,
    )


def on_items(counted: CountedItems, items: Sequence[str]) -> CountedItems:
    """Select the counts of some items, in the items' order."""
    place = {item: number for number, item in enumerate(counted.items)}
    kept_items = [item for item in items if item in place]
    rows = np.array([place[item] for item in kept_items], dtype=np.int64)
    answers = counted.answers
    if answers is not None:
        new = np.full(len(counted.items), -1, dtype=np.int64)
        new[rows] = np.arange(len(rows))
        of_kept = new[answers.image] >= 0
        answers = WorkerAnswers.of(
            new[answers.image][of_kept],
            answers.workers[answers.worker][of_kept],
            answers.selected[of_kept],
        )
    return CountedItems(kept_items, counted.selected[rows], counted.shown[rows], answers)
