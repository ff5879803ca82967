"""Effective robustness: how far a classifier is above the line that others follow.

Taori et al. (2020), "Measuring robustness to natural distribution shifts in image classification",
equation 1: with slope b and intercept a of a baseline's line, and g the logit or the probit,

    robustness  =  accuracy  −  g⁻¹(a + b g(reference accuracy)).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from bayesrep.errors import StudyError, listing
from bayesrep.numerics.estimands import INTERVAL, accuracy_line
from bayesrep.protocols.lines import (
    can_be_shown,
    fit_lines,
    resampled_accuracies,
    restore_accuracies,
    transform_accuracies,
)
from bayesrep.studies.predictions import Predictions
from bayesrep.types import Bools, Floats

CURVED_SCALES = ("logit", "probit")
FEWEST_ON_LINE = 3  # two are on any line


@dataclass(frozen=True, eq=False)
class Shift:
    """Accuracies of C classifiers on the reference and on another data set.

    Attributes
    ----------
    dataset
        The other data set's name.
    reference, accuracy : float64 [C]
        Accuracies on the reference and on the other.
    draws : float64 [S, C] and float64 [S, C]
        The same on other images of the same populations.
    adjusted
        Whether those on the other are adjusted for how its images were selected.
    """

    dataset: str
    reference: Floats
    accuracy: Floats
    draws: tuple[Floats, Floats]
    adjusted: bool = False


@dataclass(frozen=True, eq=False)
class EffectiveRobustness:
    """Result of `measure_robustness`.

    Attributes
    ----------
    classifiers
        dataset, adjusted, classifier, baseline (whether the line is through it), scale ("logit",
        "probit"), reference_accuracy, accuracy, expected_accuracy (the line's), robustness and its
        95 % interval over images, lower and upper. Null where there is no line.
    lines
        dataset, adjusted, and the columns of `fit_lines`: the baseline's coefficients.
    """

    classifiers: pl.DataFrame
    lines: pl.DataFrame


def measure_shifts(answers: Sequence[Predictions], *, seed: int = 0) -> list[Shift]:
    """Accuracies as measured, of the first data set beside each of the others.

    Parameters
    ----------
    answers
        Answers of the same classifiers on all data sets, the reference's first.
    seed
        Seed of the Bayesian bootstrap over images.

    Raises
    ------
    StudyError
        Where there is no other data set.
    """
    if len(answers) < 2:
        raise StudyError("no-answers-beside-reference", dataset=answers[0].dataset)
    children = np.random.SeedSequence(seed).spawn(len(answers))
    means = [each.correct.sum(axis=1) / each.answered.sum(axis=1) for each in answers]
    draws = [
        resampled_accuracies(each.correct, each.answered, child)
        for each, child in zip(answers, children, strict=True)
    ]
    return [
        Shift(each.dataset, means[0], mean, (draws[0], replicates))
        for each, mean, replicates in zip(answers[1:], means[1:], draws[1:], strict=True)
    ]


def measure_robustness(
    shifts: Sequence[Shift], classifiers: Sequence[str], *, baseline: Sequence[str] | None = None
) -> EffectiveRobustness:
    """Compute each classifier's distance from the baseline's line on each data set.

    Parameters
    ----------
    shifts
        Accuracies on each data set, from `measure_shifts`.
    classifiers
        Names of the C classifiers.
    baseline
        Those that the line goes through; by default all.

    Raises
    ------
    StudyError
        Where the baseline names somebody else, or fewer than three.
    """
    chosen = set(classifiers if baseline is None else baseline)
    if unknown := sorted(chosen - set(classifiers)):
        raise StudyError("classifiers-not-in-study", classifiers=listing(unknown, "classifier"))
    if len(chosen) < FEWEST_ON_LINE:
        raise StudyError("line-needs-more-classifiers", fewest=FEWEST_ON_LINE)
    on_line = np.array([name in chosen for name in classifiers])
    rows = [
        _robustness_rows(shift, classifiers, on_line, scale)
        for shift in shifts
        for scale in CURVED_SCALES
    ]
    lines: list[pl.DataFrame] = []
    for shift in shifts:
        x, y = (draws[:, on_line] for draws in shift.draws)
        line = fit_lines(shift.reference[on_line], shift.accuracy[on_line], (x, y))
        lines.append(_label_rows(shift, line))
    return EffectiveRobustness(pl.concat(rows), pl.concat(lines))


def _robustness_rows(
    shift: Shift, classifiers: Sequence[str], on_line: Bools, scale: str
) -> pl.DataFrame:
    used = on_line & can_be_shown(shift.reference, shift.accuracy, scale)
    expected = expect_accuracies(shift.reference, shift.accuracy, used, scale)
    residuals = shift.draws[1] - expect_accuracies(*shift.draws, used, scale)
    lower, upper = np.quantile(residuals, INTERVAL, axis=0)
    table = pl.DataFrame(
        {
            "classifier": list(classifiers),
            "baseline": on_line,
            "scale": scale,
            "reference_accuracy": shift.reference,
            "accuracy": shift.accuracy,
            "expected_accuracy": expected,
            "robustness": shift.accuracy - expected,
            "lower": lower,
            "upper": upper,
        }
    )
    return _label_rows(shift, table.fill_nan(None))


def _label_rows(shift: Shift, table: pl.DataFrame) -> pl.DataFrame:
    named = pl.lit(shift.dataset).alias("dataset"), pl.lit(shift.adjusted).alias("adjusted")
    return table.select(*named, pl.all())


def expect_accuracies(x: Floats, y: Floats, used: Bools, scale: str) -> Floats:
    """The accuracies that a line tells of those on the reference."""
    if used.sum() < FEWEST_ON_LINE:
        return np.full(x.shape, np.nan)
    across, up = transform_accuracies(x, scale), transform_accuracies(y, scale)
    slope, intercept = map(np.asarray, accuracy_line(across[..., used], up[..., used]))
    return restore_accuracies(slope[..., None] * across + intercept[..., None], scale)
