"""Review of predictions without a judgement (Shankar et al., 2020, sections 3.2 and 4.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.studies.predictions import Predictions

Numbers: TypeAlias = NDArray[np.integer[Any]]

JUDGEMENT_KEY = ("dataset", "image", "label")


@dataclass(frozen=True, eq=False)
class Review:
    """Predictions to judge, and statistics of the judged ones."""

    # One row a prediction that nobody judged: `dataset`, `image`, `label`, `own` (whether it is the
    # image's own), `classifiers` and `people` (how many predict it) and, where there are reviewers,
    # `reviewer`; `right` is empty, to be filled in.
    tasks: pl.DataFrame
    # One row a data set: `dataset`, `images`, `predictions` (distinct), `judged`, `right`, `share`
    # (of the judged), `several` (of the images with a right label, the share of those with more
    # than one) and `labels` (right ones of an image that has several).
    statistics: pl.DataFrame


def review(
    predictions: Sequence[Predictions],
    judged: pl.DataFrame | None = None,
    *,
    humans: Sequence[Predictions] | None = None,
    reviewers: Sequence[str] = (),
    seed: int = 0,
) -> Review:
    """List predictions without a judgement, assigned to reviewers if there are any."""
    if len(set(reviewers)) < len(reviewers):
        raise OptionError("reviewer-named-twice", reviewers=listing(reviewers, "reviewer"))
    people = humans or [None] * len(predictions)
    every = pl.concat(
        _distinct(data, person) for data, person in zip(predictions, people, strict=True)
    )
    # What has been judged once is not judged again.
    judgements = _read_known_answers(judged)
    joined = every.join(judgements, on=JUDGEMENT_KEY, how="left", maintain_order="left")
    statistics = pl.concat(_statistics(data, joined, judgements) for data in predictions)
    tasks = joined.filter(pl.col("right").is_null())
    # Nobody is asked to judge an answer of their own.
    if reviewers:
        tasks = _assign_reviewers(tasks, reviewers, seed)
    names = [
        *JUDGEMENT_KEY,
        "own",
        "classifiers",
        "people",
        *(["reviewer"] if reviewers else []),
        "right",
    ]
    return Review(tasks.select(names), statistics)


def judge_by_sets(data: Predictions, image: Numbers, label: Numbers) -> pl.DataFrame:
    """Convert label sets into judgements: each of their labels is right."""
    return pl.DataFrame(
        {
            "dataset": data.dataset,
            "image": data.images[image],
            "label": [data.classes[number] for number in label],
            "right": True,
        }
    )


def _distinct(data: Predictions, humans: Predictions | None) -> pl.DataFrame:
    """List an image's distinct predicted labels, its own first, with their counts and people."""
    rows = []
    for part, kind in ((data, "classifiers"), (humans, "people")):
        if part is None:
            continue
        who, image = np.nonzero(part.answered)
        rows.append(
            pl.DataFrame(
                {
                    "place": image.astype(np.int64),
                    "code": part.first[who, image].astype(np.int64),
                    "kind": kind,
                    "who": np.asarray(part.classifiers)[who],
                }
            )
        )
    is_person = pl.col("kind") == "people"
    distinct = (
        pl.concat(rows)
        .group_by("place", "code")
        .agg(
            classifiers=(~is_person).sum().cast(pl.Int64),
            people=is_person.sum().cast(pl.Int64),
            by=pl.col("who").filter(is_person),
        )
    )
    own = pl.Series(np.asarray(data.labels))
    distinct = distinct.with_columns(
        own=pl.col("code") == own.gather(distinct["place"]).cast(pl.Int64)
    )
    distinct = distinct.sort("place", "own", "code", descending=[False, True, False])
    return distinct.with_columns(
        dataset=pl.lit(data.dataset),
        image=pl.Series(data.images).gather(distinct["place"]),
        label=pl.Series(data.classes).gather(distinct["code"]),
    )


def _read_known_answers(judged: pl.DataFrame | None) -> pl.DataFrame:
    schema = dict.fromkeys(JUDGEMENT_KEY, pl.String) | {"right": pl.Boolean}
    if judged is None:
        return pl.DataFrame(schema=schema)
    rows = (
        judged.select(pl.col(JUDGEMENT_KEY).cast(pl.String), "right")
        .drop_nulls()
        .unique(maintain_order=True)
    )
    both = rows.filter(rows.select(JUDGEMENT_KEY).is_duplicated())
    if len(both):
        names = listing(both["image"].unique(maintain_order=True))
        raise StudyError("prediction-judged-both-ways", images=names)
    return rows


def _statistics(data: Predictions, joined: pl.DataFrame, judgements: pl.DataFrame) -> pl.DataFrame:
    rows = joined.filter(pl.col("dataset") == data.dataset)
    done = rows.filter(pl.col("right").is_not_null())
    right = int(done["right"].sum())
    of_images = judgements.filter("right", pl.col("dataset") == data.dataset)
    of_images = of_images.filter(pl.col("image").is_in(data.images.tolist()))
    sizes = of_images.group_by("image").len()["len"].to_numpy()
    several = sizes[sizes > 1]
    return pl.DataFrame(
        {
            "dataset": data.dataset,
            "images": len(data.images),
            "predictions": len(rows),
            "judged": len(done),
            "right": right,
            "share": right / len(done) if len(done) else None,
            "several": len(several) / len(sizes) if len(sizes) else None,
            "labels": float(several.mean()) if len(several) else None,
        },
        schema_overrides={"share": pl.Float64, "several": pl.Float64, "labels": pl.Float64},
    )


def _assign_reviewers(tasks: pl.DataFrame, reviewers: Sequence[str], seed: int) -> pl.DataFrame:
    """Give every task to the reviewer with the least work of those who did not give the answer."""
    order = np.random.default_rng(seed).permutation(len(tasks))
    barred = [set(names) & set(reviewers) for names in tasks["by"].to_list()]
    load = dict.fromkeys(reviewers, 0)
    chosen = [""] * len(tasks)
    for number in sorted(order.tolist(), key=lambda n: -len(barred[n])):
        free = [name for name in reviewers if name not in barred[number]]
        if not free:
            image = tasks["image"][number]
            raise StudyError("no-impartial-reviewer", image=image, label=tasks["label"][number])
        name = min(free, key=load.__getitem__)
        chosen[number], load[name] = name, load[name] + 1
    return tasks.with_columns(reviewer=pl.Series(chosen))
