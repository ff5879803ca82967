"""Quality control of answers: the published rules, each by its name (docs/crowd.md has a table).

Rules apply in the order of `RULE_OF_NAME`, each to the rows that those before it keep.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from bayesrep.errors import OptionError, StudyError

MIN_SELECTED_LABELS = 6
MAX_NEGATIVE_CONTROLS = 1
MAX_FLAGGED_SHARE = 0.30
MIN_CONTROL_SHARES = {"workers": 0.20, "assignments": 0.40}
MAX_FAILED_SHARE = 0.50

_IMAGE, _ASSIGNMENT = ["dataset", "image"], ["task", "worker"]


@dataclass(frozen=True, eq=False)
class Cleaned:
    """The answers to count, and the losses by rule."""

    kept: pl.DataFrame  # remaining rows of the table, in its order
    # One row a rule: `rule`, and how many `workers` (all of whose answers went), `assignments` (of
    # which all went) and `answers` it left out.
    dropped: pl.DataFrame
    # One row a data set: `dataset`, mean selection frequency over images `before` and `after`,
    # `images` before and `images_lost`, all of whose answers went.
    effect: pl.DataFrame


def clean_answers(answers: pl.DataFrame, rules: Collection[str], *, seed: int = 0) -> Cleaned:
    """Remove answers by rules of quality control, and count the losses of each.

    Parameters
    ----------
    answers
        One row an answer: `dataset`, `image`, `worker`, `selected` (bool); for some rules `task`,
        `control` ("positive", "negative" or null), `seconds` (of the assignment).
    rules
        Names of `RULE_OF_NAME`, two of them with a number: "time=20", "equal=5".
    seed
        Seed of the choice of answers that `equal` keeps.

    Raises
    ------
    OptionError
        If there is no such rule, or it takes no such number.
    StudyError
        If a rule needs a column that the table lacks, or nothing is left.
    """
    number_of = dict(map(_parse_rule, rules))
    after, rows = answers, []
    for name, rule in RULE_OF_NAME.items():
        if name not in number_of:
            continue
        if missing := [each for each in rule.needs if each not in answers.columns]:
            raise StudyError("cleaning-rule-needs-column", cleaning_rule=name, column=missing[0])
        before, after = after, after.filter(rule.keeps(after, number_of[name], seed))
        rows.append((name, *_count_losses(before, after)))
        if after.is_empty():
            raise StudyError("cleaning-rule-leaves-no-answer", cleaning_rule=name)
    schema = {"rule": pl.String, "workers": pl.Int64, "assignments": pl.Int64, "answers": pl.Int64}
    return Cleaned(after, pl.DataFrame(rows, schema=schema, orient="row"), _effect(answers, after))


def _parse_rule(text: str) -> tuple[str, float | None]:
    name, equals, number = text.partition("=")
    if name not in RULE_OF_NAME:
        raise OptionError(
            "unknown-cleaning-rule", cleaning_rule=name, choices=", ".join(RULE_OF_NAME)
        )
    if not equals:
        return name, None
    whole = name == "equal" and number.isdecimal() and int(number) > 0
    if not (whole or (name == "time" and number.replace(".", "", 1).isdecimal())):
        raise OptionError("cleaning-rule-number", cleaning_rule=text)
    return name, float(number)


def _count_losses(before: pl.DataFrame, after: pl.DataFrame) -> tuple[int, int, int]:
    def distinct(table: pl.DataFrame, names: list[str]) -> int:
        return table.select(names).n_unique() if set(names) <= set(table.columns) else 0

    return (
        distinct(before, ["worker"]) - distinct(after, ["worker"]),
        distinct(before, _ASSIGNMENT) - distinct(after, _ASSIGNMENT),
        len(before) - len(after),
    )


def _effect(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    def means(table: pl.DataFrame, name: str) -> pl.DataFrame:
        if "control" in table.columns:
            table = table.filter(pl.col("control").is_null())
        of_images = table.group_by(_IMAGE, maintain_order=True).agg(pl.col("selected").mean())
        return of_images.group_by("dataset", maintain_order=True).agg(
            pl.col("selected").mean().alias(name), pl.len().cast(pl.Int64).alias(f"images_{name}")
        )

    both = means(before, "before").join(means(after, "after"), on="dataset", how="left")
    return both.select(
        "dataset",
        "before",
        "after",
        images=pl.col("images_before"),
        images_lost=pl.col("images_before") - pl.col("images_after").fill_null(0),
    )


@dataclass(frozen=True)
class Rule:
    """A rule of quality control."""

    # From the rows so far, the rule's number and a seed to true for every row to keep.
    keeps: Callable[[pl.DataFrame, float | None, int], pl.Expr | pl.Series]
    needs: tuple[str, ...] = ()  # columns besides dataset, image, worker and selected


def _engstrom(*_: object) -> pl.Expr:
    negative = (pl.col("control") == "negative").fill_null(value=False)
    flagged = (pl.col("selected").sum() < MIN_SELECTED_LABELS) | (
        (pl.col("selected") & negative).sum() > MAX_NEGATIVE_CONTROLS
    )
    return _share_of_assignments(flagged.over(_ASSIGNMENT)) < MAX_FLAGGED_SHARE


def _tsipras(table: pl.DataFrame, *_: object) -> pl.Expr:
    positive = (pl.col("control") == "positive").fill_null(value=False)
    if not table.select(positive.any()).item():
        raise StudyError("no-answer-about-positive-control")
    # Of its assignment's positive controls those that are selected; 1 where it has none.
    share = ((pl.col("selected") & positive).sum() / positive.sum()).over(_ASSIGNMENT).fill_nan(1.0)
    seldom = _share_of_assignments(share < MIN_CONTROL_SHARES["workers"]) >= MAX_FAILED_SHARE
    return ~seldom & (share >= MIN_CONTROL_SHARES["assignments"])


def _share_of_assignments(condition: pl.Expr) -> pl.Expr:
    """Compute each worker's share of assignments that meet a condition."""
    first = pl.int_range(pl.len()).over(_ASSIGNMENT) == 0
    return ((condition & first).sum() / first.sum()).over("worker")


def _equalize_counts(table: pl.DataFrame, number: float | None, seed: int) -> pl.Series:
    size = pl.len().over(_IMAGE).min() if number is None else pl.lit(number)
    order = pl.Series("order", np.random.default_rng(seed).permutation(len(table)))
    place = pl.col("order").rank("ordinal").over(_IMAGE)
    return table.select(_IMAGE).with_columns(order).select(kept=place <= size)["kept"]


RULE_OF_NAME: Mapping[str, Rule] = {
    "engstrom2020": Rule(_engstrom, ("task", "control")),
    "tsipras2020": Rule(_tsipras, ("task", "control")),
    "time": Rule(lambda _, number, __: pl.col("seconds") >= (number or 0), ("task", "seconds")),
    "repeats": Rule(
        lambda table, *_: (
            pl.int_range(pl.len()).over([*_IMAGE, *({"label"} & set(table.columns)), "worker"]) == 0
        )
    ),
    "controls": Rule(lambda *_: pl.col("control").is_null(), ("control",)),
    "equal": Rule(_equalize_counts),
}
"""The rules, in the order in which they are applied."""
