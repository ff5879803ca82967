"""Remeasurement of items that a rule selected, predicted from their counts alone.

A mixture of the frequency s over items, betas with masses at 0 and 1 (`numerics/solve_rates.py`),
is fitted to the counts, truncated by the rule. Predictions of an item's next answers are ratios of
its masses f(k, n), of k yes among n:

    E[s | k, n]          =  f(k + 1, n + 1) / f(k, n)
    E[s² | k, n]         =  f(k + 2, n + 2) / f(k, n)
    P(k' of n' | k, n)   =  C(n', k') f(k + k', n + n') / f(k, n)

Given the mixture these very items are independent, which adds their variance to the draws'.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrep.errors import OptionError, StudyError
from bayesrep.estimators.solve_rates import check_runs, fit_solve_rates
from bayesrep.numerics.binomial import log_binomial
from bayesrep.numerics.estimands import MEDIAN_AND_INTERVAL
from bayesrep.numerics.solve_rates import SolveRates, log_counts
from bayesrep.studies import validation
from bayesrep.studies.selection import Selection, truncating
from bayesrep.types import Float, Floats, Int, Ints

MAX_REMEASURED_ANSWERS = 10_000


@dataclass(frozen=True)
class Remeasured:
    """Remeasured items: fractions, each as median and 95 % interval (lower, upper)."""

    items: int  # their number
    measured: float  # mean of k / n
    frequency: tuple[float, float, float]  # mean true frequency or, of new answers, share of yes
    dropped: tuple[float, float, float] | None  # share that would fail the rule; None without one


def remeasure_counts(
    selected: Ints,
    shown: Ints | int,
    selection: Selection | str | None = None,
    *,
    images: ArrayLike | None = None,
    answers: int | None = None,
    draws: int = 4_000,
    seed: int = 0,
) -> Remeasured:
    """Predict a remeasurement of items, k of n each, from the rule that selected them.

    With `answers`, the share of yes among so many new ones to each item, else the true frequency.
    """
    rule = None if selection is None else Selection.parse(selection)
    k, n = _check_counts(selected, shown, rule, images)
    if answers is not None and answers < 1:
        raise OptionError("new-answers-below-one", answers=answers)
    fit = fit_solve_rates(k, n, selection=truncating(rule), draws=draws, seed=seed)
    rng = np.random.default_rng([seed, 1])
    # E[s | k, n] and E[s² | k, n]: ratios of the likelihoods with one and two more selections.
    mean, square = (
        np.exp(log_counts(fit.rates, fit.solved + r, fit.attempts + r) - fit.logs) for r in (1, 2)
    )
    check_runs((mean @ fit.items / fit.items.sum())[:, None], ["the mean frequency"])
    variance = square - mean**2
    # A share of new answers also has their own binomial noise.
    if answers is not None:
        variance = variance + (mean - square) / answers
    dropped = None
    # Applied to new answers the rule rejects some of the items that it had selected.
    if rule is not None:
        passing = _predict_passing(fit.rates, fit.logs, fit.solved, fit.attempts, rule)
        dropped = summarize_mean(1 - passing, passing * (1 - passing), fit.items, rng)
    frequency = summarize_mean(mean, variance, fit.items, rng)
    return Remeasured(len(k), float((k / n).mean()), frequency, dropped)


def _check_counts(
    selected: Ints, n_annotators: Ints | int, rule: Selection | None, images: ArrayLike | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    size = np.size(selected)
    names = np.arange(size).astype(np.str_) if images is None else np.asarray(images)
    n_annotators = np.full(size, n_annotators) if np.ndim(n_annotators) == 0 else n_annotators
    validation.raise_first(validation.image_violations("the counts", names))
    validation.raise_first(validation.count_violations("the counts", names, selected, n_annotators))
    k, n = np.asarray(selected).astype(np.int64), np.asarray(n_annotators).astype(np.int64)
    if rule is not None:
        validation.raise_first(rule.violations("the counts", names, k, n))
    validation.raise_first(validation.value_violations("the counts", k, n))
    if (n > MAX_REMEASURED_ANSWERS).any():
        raise StudyError("too-many-answers-to-item", most=MAX_REMEASURED_ANSWERS)
    return k, n


def _predict_passing(
    rates: SolveRates,
    logs: Float[np.ndarray, "draw cell"],
    selected: Int[np.ndarray, "cell"],
    n: Int[np.ndarray, "cell"],
    rule: Selection,
) -> Float[np.ndarray, "draw cell"]:
    """Compute Σ_k' a(k', n') P(k' of n' | k, n), the probability of passing the rule again."""
    chance = np.empty_like(logs)
    for cell, size in enumerate(rule.count_answers(n).tolist()):
        counts = np.arange(size + 1)
        probability = rule.probability(counts, np.full(size + 1, size))
        passing = counts[probability > 0]
        # Counts that cannot pass contribute nothing and are skipped.
        joint = log_counts(rates, selected[cell] + passing, np.full(len(passing), n[cell] + size))
        mass = np.exp(joint + log_binomial(size, passing) - logs[:, cell, None])
        chance[:, cell] = mass @ probability[passing]
    return np.clip(chance, 0, 1)


def summarize_mean(
    mean: Float[np.ndarray, "draw cell"],
    variance: Float[np.ndarray, "draw cell"],
    items: Int[np.ndarray, "cell"],
    rng: np.random.Generator,
) -> tuple[float, float, float]:
    """Summarise a mean over many items, normal given the mixture, by median and interval."""
    total = items.sum()
    # Given the mixture items are independent: their variances add up.
    sd = np.sqrt(np.maximum(variance @ items, 0)) / total
    draws: Floats = mean @ items / total + sd * rng.standard_normal(len(mean))
    lower, middle, upper = np.quantile(np.clip(draws, 0, 1), MEDIAN_AND_INTERVAL)
    return float(middle), float(lower), float(upper)


def as_row(
    name: str, rule: Selection | None, result: Remeasured, role: str | None = None
) -> dict[str, object]:
    """Write one data set's result as a row of `bayesrep.remeasure`."""
    row: dict[str, object] = {"dataset": name, "role": role}
    row |= {"selection": None if rule is None else rule.rule, "images": result.items}
    row["measured"] = result.measured
    intervals = {
        "frequency": result.frequency,
        "regression": tuple(value - result.measured for value in result.frequency),
        "dropped": result.dropped or (None, None, None),
    }
    for key, (middle, lower, upper) in intervals.items():
        row |= {key: middle, f"{key}_lower": lower, f"{key}_upper": upper}
    return row
