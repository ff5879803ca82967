"""Which answers to count: the published rules of quality control, each by its name.

An *assignment* is what one worker did of one task (a grid of images). *Controls* are images of
which the right answer is known: positive ones show the label, negative ones do not.

`engstrom2020`: an assignment is flagged if fewer than 6 of its images are selected or more than one
negative control is; all answers of workers with 30 % or more of their assignments flagged are left
out (Engstrom et al. 2020, appendix B.1).

`tsipras2020`: all answers of workers who select less than 20 % of the positive controls on half or
more of their assignments are left out, then assignments with less than 40 % of them (Tsipras et al.
2020, appendix B.1.2).

`time`: assignments that took fewer seconds than asked for. `repeats`: all but a worker's first
answer about an image (and label, where there is such a column). `controls`: the answers about
controls themselves, which were put there to be known. `equal`: so many answers of every image, at
random; images with fewer keep all (Engstrom et al. have as many as the image with the fewest).

Rules are applied in the order of `RULES`, whatever order they are asked for in, and each sees only
what those before it left.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from bayesrep.errors import OptionError, StudyError

LEAST_SELECTED_LABELS = 6
MOST_NEGATIVE = 1
MOST_FLAGGED_SHARE = 0.30
LEAST_OF_CONTROLS = {"workers": 0.20, "assignments": 0.40}
HALF = 0.50

_IMAGE, _ASSIGNMENT = ["dataset", "image"], ["task", "worker"]


@dataclass(frozen=True)
class RuleInputs:
    """What rules need to be told.

    Attributes
    ----------
    seconds
        Least time of an assignment.
    answers
        Answers that are kept of every image; None keeps as many as the image with the fewest has.
    seed
        Seed of the choice of answers that are kept.
    """

    seconds: float = 0.0
    answers: int | None = None
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Cleaned:
    """The answers to count, and what was left out.

    Attributes
    ----------
    kept
        The rows of the table that are left, in its order.
    dropped
        One row a rule: `rule`, and how many `workers` (all of whose answers went), `assignments`
        (of which all went) and `answers` it left out.
    effect
        One row a data set: `dataset`, mean selection frequency over images `before` and `after`,
        `images` before and `images_lost`, all of whose answers went.
    """

    kept: pl.DataFrame
    dropped: pl.DataFrame
    effect: pl.DataFrame


def clean_answers(
    answers: pl.DataFrame, rules: Collection[str], asked: RuleInputs | None = None
) -> Cleaned:
    """Leave out the answers that rules of quality control do not trust; nothing goes uncounted.

    Parameters
    ----------
    answers
        One row an answer: `dataset`, `image`, `worker`, `selected` (bool); for some rules `task`,
        `control` ("positive", "negative" or null), `seconds` (of the assignment).
    rules
        Names of `RULES`.
    asked
        What rules need to be told, where it is not the defaults.

    Raises
    ------
    OptionError
        If there is no such rule.
    StudyError
        If a rule needs a column that the table lacks, or nothing is left.
    """
    if unknown := sorted(set(rules) - set(RULES)):
        raise OptionError(
            "unknown-cleaning-rule", cleaning_rule=unknown[0], choices=", ".join(RULES)
        )
    kept, rows = answers, []
    # Rules apply in their published order, whatever order they are given in.
    for name, rule in RULES.items():
        if name not in rules:
            continue
        if missing := [each for each in rule.needs if each not in answers.columns]:
            raise StudyError("cleaning-rule-needs-column", cleaning_rule=name, column=missing[0])
        # Each rule sees only what the rules before it kept, and its losses are counted.
        before, kept = kept, kept.filter(rule.keeps(kept, asked or RuleInputs()))
        rows.append((name, *_count_losses(before, kept)))
        if kept.is_empty():
            raise StudyError("cleaning-rule-leaves-no-answer", cleaning_rule=name)
    schema = {"rule": pl.String, "workers": pl.Int64, "assignments": pl.Int64, "answers": pl.Int64}
    return Cleaned(kept, pl.DataFrame(rows, schema=schema, orient="row"), _effect(answers, kept))


def _count_losses(before: pl.DataFrame, kept: pl.DataFrame) -> tuple[int, int, int]:
    """Workers and assignments that are gone altogether, and answers."""

    def distinct(table: pl.DataFrame, names: list[str]) -> int:
        return table.select(names).n_unique() if set(names) <= set(table.columns) else 0

    return (
        distinct(before, ["worker"]) - distinct(kept, ["worker"]),
        distinct(before, _ASSIGNMENT) - distinct(kept, _ASSIGNMENT),
        len(before) - len(kept),
    )


def _effect(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Mean selection frequencies over images, but for controls, with all answers and with these."""

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
    """A rule: what it needs, and which rows it keeps.

    Attributes
    ----------
    keeps
        From the rows so far, and what rules are told, to true for every row to keep.
    needs
        Columns beside dataset, image, worker and selected.
    """

    keeps: Callable[[pl.DataFrame, RuleInputs], pl.Expr | pl.Series]
    needs: tuple[str, ...] = ()


def _engstrom(_: pl.DataFrame, __: RuleInputs) -> pl.Expr:
    negative = (pl.col("control") == "negative").fill_null(value=False)
    flagged = (pl.col("selected").sum() < LEAST_SELECTED_LABELS) | (
        (pl.col("selected") & negative).sum() > MOST_NEGATIVE
    )
    return _share_of_assignments(flagged.over(_ASSIGNMENT)) < MOST_FLAGGED_SHARE


def _tsipras(table: pl.DataFrame, _: RuleInputs) -> pl.Expr:
    share = _of_controls(table)
    seldom = _share_of_assignments(share < LEAST_OF_CONTROLS["workers"]) >= HALF
    return ~seldom & (share >= LEAST_OF_CONTROLS["assignments"])


def _of_controls(table: pl.DataFrame) -> pl.Expr:
    """Share of its assignment's positive controls that are selected; 1 where it has none."""
    positive = (pl.col("control") == "positive").fill_null(value=False)
    if not table.select(positive.any()).item():
        raise StudyError("no-answer-about-positive-control")
    share = (pl.col("selected") & positive).sum() / positive.sum()
    return share.over(_ASSIGNMENT).fill_nan(1.0)


def _share_of_assignments(of: pl.Expr) -> pl.Expr:
    """By worker: the share of his assignments for which something holds."""
    first = pl.int_range(pl.len()).over(_ASSIGNMENT) == 0
    return ((of & first).sum() / first.sum()).over("worker")


def _in_time(_: pl.DataFrame, asked: RuleInputs) -> pl.Expr:
    return pl.col("seconds") >= asked.seconds


def _is_first_answer(table: pl.DataFrame, _: RuleInputs) -> pl.Expr:
    asked = [*_IMAGE, *({"label"} & set(table.columns))]
    return pl.int_range(pl.len()).over([*asked, "worker"]) == 0


def _no_control(_: pl.DataFrame, __: RuleInputs) -> pl.Expr:
    return pl.col("control").is_null()


def _equalize_counts(table: pl.DataFrame, asked: RuleInputs) -> pl.Series:
    size = pl.len().over(_IMAGE).min() if asked.answers is None else pl.lit(asked.answers)
    order = pl.Series("order", np.random.default_rng(asked.seed).permutation(len(table)))
    place = pl.col("order").rank("ordinal").over(_IMAGE)
    return table.select(_IMAGE).with_columns(order).select(kept=place <= size)["kept"]


RULES: Mapping[str, Rule] = {
    "engstrom2020": Rule(_engstrom, ("task", "control")),
    "tsipras2020": Rule(_tsipras, ("task", "control")),
    "time": Rule(_in_time, ("task", "seconds")),
    "repeats": Rule(_is_first_answer),
    "controls": Rule(_no_control, ("control",)),
    "equal": Rule(_equalize_counts),
}
"""The rules, in the order in which they are applied."""
