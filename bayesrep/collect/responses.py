"""Responses: assignments of a collection's tasks as answers, counts and workers' progress.

Assignments stay as they are, a list of places each; the rows that they stand for, an answer of a
worker about a place of a task, are made some at a time, so that their number does not matter.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from bayesrep.collect.collection import Collection
from bayesrep.collect.contains_tasks import QUESTION_KEY
from bayesrep.errors import StudyError, listing
from bayesrep.types import Ints

BATCH_ROWS = 2**19  # approximate number of answers in a batch


@dataclass(frozen=True, eq=False)
class Answered:
    """The assignments of a collection that count.

    Attributes
    ----------
    collection
        The tasks.
    assignments
        One row an assignment: `task`, `worker`, `selected` (numbers of places), `main`, `seconds`,
        `time`, `pay`.
    left_out
        Number of discarded assignments by reason.
    """

    collection: Collection
    assignments: pl.DataFrame
    left_out: Mapping[str, int]

    def counts(self) -> pl.DataFrame:
        """Count how often each label was selected for each image, without controls.

        Returns
        -------
        polars.DataFrame
            One row an image and label that somebody was asked about: `dataset`, `image`, `label`,
            `own`, `selected`, `shown`.
        """
        tasks = self.collection.tasks
        first, size, task = self._places
        assignments_of_task = np.bincount(task, minlength=len(first))
        selected = np.bincount(_selected_rows(self.assignments, first[task]), minlength=len(tasks))
        table = tasks.select(*QUESTION_KEY, "own", "control").with_columns(
            selected=pl.Series(selected), shown=pl.Series(np.repeat(assignments_of_task, size))
        )
        # Of many tasks a copy of the images' rows would be most of the memory.
        of_images = table.lazy().filter(pl.col("control").is_null()).with_row_index("order")
        return (
            of_images.group_by([*QUESTION_KEY, "own"])
            .agg(pl.col("selected", "shown").sum(), pl.col("order").min())
            .filter(pl.col("shown") > 0)
            .sort("order")
            .drop("order")
            .collect(engine="streaming")
        )

    def rows(self) -> int:
        """Count all answers."""
        _, size, task = self._places
        return int(size[task].sum())

    def batches(self, rows: int = BATCH_ROWS) -> Iterator[pl.DataFrame]:
        """Yield all answers in batches.

        Yields
        ------
        polars.DataFrame
            One row an answer: `dataset`, `image`, `label`, `own`, `worker`, `selected` (bool),
            `main` (whether it is the main object's; null of grids), `task`, `place`, `control`,
            `seconds`, `time`.
        """
        first, size, task = self._places
        ends = np.cumsum(size[task])
        tasks, begin = self.collection.tasks, 0
        while begin < len(task):
            done = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, done + rows, side="right")))
            some = slice(begin, end)
            sizes = size[task[some]]
            starts = np.cumsum(sizes) - sizes
            place = np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
            part = self.assignments[some]
            chosen = np.zeros(len(place), dtype=np.bool_)
            chosen[_selected_rows(part, starts)] = True
            assignment = np.repeat(np.arange(len(part)), sizes)
            of_places = tasks[np.repeat(first[task[some]], sizes) + place]
            of_people = part.select("worker", "seconds", "time", first="main")[assignment]
            table = of_places.hstack(of_people).with_columns(selected=pl.Series(chosen))
            main = pl.lit(None, pl.Boolean)
            if self.collection.kind == "classify":
                main = (pl.col("place") == pl.col("first")).fill_null(value=False)
            yield table.with_columns(main=main).select(list(ANSWER_SCHEMA))
            begin = end

    def table(self) -> pl.DataFrame:
        """Return all answers in one table, as `batches` has them."""
        parts = list(self.batches())
        return pl.concat(parts) if parts else pl.DataFrame(schema=ANSWER_SCHEMA)

    def progress(self) -> pl.DataFrame:
        """Summarize each worker's assignments, those with most first.

        Returns
        -------
        polars.DataFrame
            `worker`, `assignments`, `hours`, `pay`, `per_hour`, `selected` (share of the places),
            `controls` (share of the positive controls selected); null where it is not known.
        """
        tasks = self.collection.tasks
        first, size, task = self._places
        positive = (tasks["control"] == "positive").fill_null(value=False).to_numpy()
        of_task = np.add.reduceat(positive, first) if len(first) else positive
        # One row an assignment: what its task held, and what was selected of it.
        assigned = pl.DataFrame(
            {
                "worker": self.assignments["worker"],
                "seconds": self.assignments["seconds"],
                "pay": self.assignments["pay"],
                "places": size[task],
                "chosen": self.assignments["selected"].list.len().cast(pl.Int64),
                "positive": of_task[task].astype(np.int64),
            }
        )
        # Of the positive controls shown, how many were selected.
        assignment = np.repeat(np.arange(len(assigned)), assigned["chosen"].to_numpy())
        on = np.bincount(
            assignment,
            weights=positive[_selected_rows(self.assignments, first[task])],
            minlength=len(assigned),
        )
        # A worker whose times or pay are unknown has none, instead of zero.
        has_times = pl.col("seconds").count() > 0
        return (
            assigned.with_columns(on=pl.Series(on))
            .group_by("worker", maintain_order=True)
            .agg(
                assignments=pl.len().cast(pl.Int64),
                hours=pl.when(has_times).then(pl.col("seconds").sum() / 3600),
                pay=pl.when(pl.col("pay").count() > 0).then(pl.col("pay").sum()),
                selected=pl.col("chosen").sum() / pl.col("places").sum(),
                controls=pl.col("on").sum() / pl.col("positive").sum(),
            )
            .with_columns(
                per_hour=pl.when(pl.col("hours") > 0).then(pl.col("pay") / pl.col("hours")),
                controls=pl.col("controls").fill_nan(None),
            )
            .sort("assignments", descending=True, maintain_order=True)
            .select("worker", "assignments", "hours", "pay", "per_hour", "selected", "controls")
        )

    @cached_property
    def _places(self) -> tuple[Ints, Ints, Ints]:
        """First row and size of every task [T], and task of every assignment [A]."""
        names = self.collection.tasks["task"]
        size = names.rle().struct.field("len").cast(pl.Int64).to_numpy()
        first = np.cumsum(size) - size
        number = pl.DataFrame({"task": names[first], "number": np.arange(len(first))})
        task = self.assignments.select("task").join(number, on="task", maintain_order="left")
        return first, size, task["number"].to_numpy()


ANSWER_SCHEMA: Mapping[str, type[pl.DataType]] = {
    "dataset": pl.String,
    "image": pl.String,
    "label": pl.String,
    "own": pl.Boolean,
    "worker": pl.String,
    "selected": pl.Boolean,
    "main": pl.Boolean,
    "task": pl.String,
    "place": pl.Int64,
    "control": pl.String,
    "seconds": pl.Float64,
    "time": pl.String,
}


def count_selections(answers: pl.DataFrame) -> pl.DataFrame:
    """Count how often each label was selected for each image, as `Answered.counts`."""
    if missing := [name for name in (*QUESTION_KEY, "own") if name not in answers.columns]:
        raise StudyError("answers-lack-collected-column", column=missing[0])
    if "control" in answers.columns:
        answers = answers.filter(pl.col("control").is_null())
    return answers.group_by([*QUESTION_KEY, "own"], maintain_order=True).agg(
        pl.col("selected").sum().cast(pl.Int64), shown=pl.len().cast(pl.Int64)
    )


def _selected_rows(assignments: pl.DataFrame, starts: Ints) -> Ints:
    """Find the rows of selected places, if an assignment's places begin at `starts`."""
    lengths = assignments["selected"].list.len().cast(pl.Int64).to_numpy()
    places = assignments["selected"].explode(empty_as_null=False).to_numpy()
    rows = np.repeat(starts, lengths)
    rows += places
    rows -= 1
    return rows


def match_assignments(collection: Collection, assignments: pl.DataFrame) -> Answered:
    """Match assignments to their tasks.

    Parameters
    ----------
    collection
        The tasks.
    assignments
        One row an assignment: `task`, `worker`, `selected`, `main`, `seconds`, `time`, `pay`,
        `rejected`, `file`, as `bayesrep.sources.assignments` reads them. Of a worker's
        assignments of one task the first counts.

    Raises
    ------
    StudyError
        Naming the file, where a task is none of this collection's or a place none of its task's.
    """
    sizes = collection.tasks.group_by("task").agg(size=pl.len().cast(pl.Int64))
    joined = assignments.join(sizes, on="task", how="left", maintain_order="left")
    _check_tasks(collection, joined)
    wrong = joined.filter(
        (pl.col("selected").list.min() < 1)
        | (pl.col("selected").list.max() > pl.col("size"))
        | (pl.col("selected").list.n_unique() < pl.col("selected").list.len())
        | ~pl.col("main").is_between(1, pl.col("size")).fill_null(value=True)
    )
    if len(wrong):
        raise StudyError(
            "answered-places-unknown-or-repeated",
            file=wrong["file"][0],
            tasks=listing(wrong["task"].to_list(), "task"),
        )
    left_out: dict[str, int] = {}
    joined = joined.drop("size")

    def keep(reason: str, remaining: pl.DataFrame) -> None:
        nonlocal joined
        if len(remaining) < len(joined):
            left_out[reason] = len(joined) - len(remaining)
        joined = remaining

    # The offline page saves all answers so far each time: later files repeat earlier ones.
    same = ["task", "worker", "time"]
    repeated = joined.select(pl.col("time").is_not_null() & ~pl.struct(same).is_first_distinct())
    keep("the same assignment in two files", joined.filter(~repeated.to_series()))
    keep("rejected", joined.filter(~pl.col("rejected")))
    first = joined.sort("time", nulls_last=True, maintain_order=True)
    first = first.unique(["task", "worker"], keep="first", maintain_order=True)
    keep("a worker's second of a task", first)
    columns = ["task", "worker", "selected", "main", "seconds", "time", "pay"]
    return Answered(collection, joined.select(columns), left_out)


def _check_tasks(collection: Collection, joined: pl.DataFrame) -> None:
    strange = joined.filter(pl.col("size").is_null())
    if not len(strange):
        return
    fingerprint, prefix = collection.fingerprint, str(strange["task"][0]).split("-")[0]
    file = strange["file"][0]
    names = listing(strange["task"].unique(maintain_order=True).to_list(), "task")
    if prefix == fingerprint:
        raise StudyError("answered-tasks-unknown", file=file, tasks=names)
    raise StudyError(
        "answered-tasks-of-another-collection",
        file=file,
        tasks=names,
        other_collection=prefix,
        collection=fingerprint,
    )
