"""Classifiers and people side by side on both data sets: accuracies, pairs and lines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from bayesrep.errors import StudyError
from bayesrep.protocols.humans import beside
from bayesrep.protocols.intervals import independent_difference, proportion_interval
from bayesrep.protocols.label_sets import LabelSets
from bayesrep.protocols.lines import fit_lines, resampled_accuracies
from bayesrep.protocols.pairs import compare_pairs
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.types import Bools


@dataclass(frozen=True, eq=False)
class Participants:
    """All participants on one data set."""

    names: tuple[str, ...]  # names of the C participants, classifiers first
    # Whether there is a right answer, and one at all, on each image that counts [C, N].
    right: Bools
    answered: Bools


@dataclass(frozen=True, eq=False)
class Comparison:
    """Result of `compare`.

    Attributes
    ----------
    accuracies
        participant, kind ("classifier" or "human"), metric ("top-1", or "multi-label" with label
        sets), then for both data sets reference_images, reference_accuracy, reference_lower,
        reference_upper (95 %), replication_images ... replication_upper, and gap, gap_lower,
        gap_upper (95 %, see `independent_difference`). Null where somebody answered nothing.
    lines
        Through the classifiers: see `fit_lines`. Without rows for fewer than two.
    sides
        The answers behind them, of the reference and of the replication.
    """

    accuracies: pl.DataFrame
    lines: pl.DataFrame
    sides: tuple[Participants, ...]

    def pairs(self) -> pl.DataFrame:
        """Compare every two participants on either data set.

        Returns
        -------
        polars.DataFrame
            dataset (its role) and the columns of `compare_pairs`; p_holm is for all pairs of a
            data set.
        """
        return pl.concat(
            compare_pairs(side.names, side.right, side.answered).select(
                pl.lit(role).alias("dataset"), pl.all()
            )
            for role, side in zip(REQUIRED_ROLES, self.sides, strict=True)
        )


def compare(
    reference: Predictions,
    replication: Predictions,
    *,
    humans: tuple[Predictions, ...] | None = None,
    sets: tuple[LabelSets, LabelSets] | None = None,
    interval: str = "jeffreys",
    seed: int = 0,
) -> Comparison:
    """Accuracies of classifiers and people on both data sets, and the lines through them.

    Parameters
    ----------
    reference, replication
        Answers of the same classifiers on both data sets, from `read_predictions`.
    humans
        People's answers on both, from `read_humans`. Then only images count that at least one
        person answered, for classifiers too.
    sets
        Right labels of the images of both data sets: an answer is right if it is one of them,
        and images without a right label do not count. Without, it is right if it is the image's
        label.
    interval
        Kind of interval of the accuracies: see `proportion_interval`.
    seed
        Seed of the bootstrap over images behind the lines' intervals.

    Returns
    -------
    Comparison

    Raises
    ------
    StudyError
        Where classifiers or classes differ or no image is left.
    """
    if reference.classes != replication.classes or reference.classifiers != replication.classifiers:
        raise StudyError("classifiers-or-classes-differ")
    people = (None, None) if humans is None else humans
    label_sets = (None, None) if sets is None else sets
    sides = tuple(
        side_of(data, persons, labels)
        for data, persons, labels in zip((reference, replication), people, label_sets, strict=True)
    )
    machines, names = len(reference.classifiers), sides[0].names
    kinds, metric = kinds_of(reference, names), "top-1" if sets is None else "multi-label"
    counts = [(side.right.sum(axis=1), side.answered.sum(axis=1)) for side in sides]
    accuracies = accuracy_rows(names, kinds, metric, counts, interval)
    draws = tuple(
        resampled_accuracies(side.right[:machines], side.answered[:machines], child)
        for side, child in zip(sides, np.random.SeedSequence(seed).spawn(2), strict=True)
    )
    x, y = (accuracies[f"{role}_accuracy"].head(machines) for role in REQUIRED_ROLES)
    lines = fit_lines(x, y, (draws[0], draws[1]))
    return Comparison(accuracies, lines if machines > 1 else lines.clear(), sides)


def kinds_of(data: Predictions, names: Sequence[str]) -> list[str]:
    """What participants are: classifiers first, then people."""
    machines = len(data.classifiers)
    return ["classifier"] * machines + ["human"] * (len(names) - machines)


def side_of(data: Predictions, people: Predictions | None, sets: LabelSets | None) -> Participants:
    """All participants on one data set; see `compare` for what counts and what is right."""
    if people is not None:
        data = beside(data, people)
    answered, right = data.answered, data.correct
    if sets is not None:
        answered = answered & sets.select_images()
        right = sets.contain(data.first)
    if not answered.any():
        raise StudyError("no-image-to-compare", dataset=data.dataset)
    return Participants(data.classifiers, right & answered, answered)


def accuracy_rows(
    names: Sequence[str], kinds: Sequence[str], metric: str, counts: Sequence[Any], interval: str
) -> pl.DataFrame:
    """Accuracies and gaps with their intervals, in the columns of `Comparison`."""
    table: dict[str, Any] = {"participant": list(names), "kind": list(kinds), "metric": metric}
    accuracy = []
    for role, (right, images) in zip(REQUIRED_ROLES, counts, strict=True):
        with np.errstate(invalid="ignore"):
            accuracy.append(right / images)
        lower, upper = proportion_interval(right, images, interval)
        table |= {f"{role}_images": images, f"{role}_accuracy": accuracy[-1]}
        table |= {f"{role}_lower": lower, f"{role}_upper": upper}
    (x, n), (y, m) = counts
    lower, upper, _ = independent_difference(x, n, y, m)
    none = (n == 0) | (m == 0)
    table |= {
        "gap": accuracy[0] - accuracy[1],
        "gap_lower": np.where(none, np.nan, lower),
        "gap_upper": np.where(none, np.nan, upper),
    }
    return pl.DataFrame(table).fill_nan(None)
