"""Figure 12: whether the naive estimate is a line in 1/n, as the jackknife takes it to be.

The naive estimate of ten classifiers, evenly spread in accuracy, against 1/n', n' = 2..n (exact
thinning), a straight line through n' >= n/2 followed to 1/n' = 0, and the jackknife estimate and,
where it is known, the truth there.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from bayesrep.errors import StudyError
from bayesrep.estimators.annotators import compare_annotators, linearity
from bayesrep.studies.vocabulary import VOCABULARY_OF_NAME, Words
from experiments.papers.study_facts import StudyFacts
from experiments.style import Color, legend_below, panels

MIN_ANNOTATORS = 2
N_CLASSIFIERS = 10
NEAREST_TICKS = 0.03


def numbers(facts: StudyFacts, *, classifiers: Sequence[str] = ()) -> dict[str, Any]:
    """Naive estimates for every n', lines and jackknife estimates of some classifiers and all."""
    if facts.annotators <= MIN_ANNOTATORS:
        raise StudyError(
            "figure12-needs-annotators", annotators=facts.annotators, fewest=MIN_ANNOTATORS + 1
        )
    table = compare_annotators(facts.study)
    size = len(facts.study.classifiers)
    naive = table["naive"].to_numpy().reshape(-1, size)[MIN_ANNOTATORS - 1 :]
    jackknife = table["jackknife"].to_numpy().reshape(-1, size)[-1]
    annotators = np.arange(MIN_ANNOTATORS, facts.annotators + 1)
    truth = [None] * size if facts.truth is None else facts.truth.tolist()
    series = {
        facts.study.classifiers[c]: (naive[:, c], jackknife[c], truth[c])
        for c in facts.columns(classifiers) or _spread_in(facts.reference_accuracy)
    }
    true_mean = None if facts.truth is None else float(facts.truth.mean())
    whole = linearity(table)
    return {
        "annotators": annotators.tolist(),
        "classifiers": {name: _line(annotators, *part) for name, part in series.items()},
        "mean": _line(annotators, naive.mean(axis=1), jackknife.mean(), true_mean),
        "linearity": None if whole is None else asdict(whole),
    }


def _spread_in(accuracy: Any) -> list[int]:
    """Columns of classifiers that lie nearest to equal steps of accuracy, ascending."""
    targets = np.linspace(accuracy.min(), accuracy.max(), N_CLASSIFIERS)
    picked = np.unique(np.abs(accuracy[:, None] - targets).argmin(axis=0))
    return picked[np.argsort(accuracy[picked])].tolist()


def _line(annotators: Any, naive: Any, jackknife: float, truth: float | None) -> dict[str, Any]:
    """The line through n' >= n/2, and the slope in 1/n' at its start and at its end."""
    inverse = 1 / annotators
    late = annotators >= annotators[-1] / 2
    slope, intercept = np.polyfit(inverse[late], naive[late], 1)
    residuals = naive[late] - intercept - slope * inverse[late]
    scatter = np.sum((naive[late] - naive[late].mean()) ** 2)
    steps = np.diff(naive) / np.diff(inverse)
    return {
        "naive": naive.tolist(),
        "slope": float(slope),
        "intercept": float(intercept),
        "r_squared": float(1 - residuals @ residuals / scatter) if scatter else 1.0,
        "slope_at_fewest": float(steps[0]),
        "slope_at_half": float(steps[np.flatnonzero(late)[0]]),
        "slope_at_all": float(steps[-1]),
        "jackknife": float(jackknife),
        "true_adjusted_accuracy": truth,
    }


def draw(data: dict[str, Any], words: Words = VOCABULARY_OF_NAME["images"]) -> Any:
    """A line of points for each classifier, running to the left into 1/n' = 0."""
    figure, (axes,) = panels(1)
    inverse = 1 / np.array(data["annotators"])
    first = inverse[np.array(data["annotators"]) >= data["annotators"][-1] / 2][0]
    for part in data["classifiers"].values():
        naive = 100 * np.array(part["naive"])
        axes.plot(inverse, naive, "o-", color=Color.YELLOW, ms=2.5, lw=0.8, label="naive")
        ends = np.array([0, first])
        line = 100 * (part["intercept"] + part["slope"] * ends)
        axes.plot(ends, line, color=Color.GREY, lw=1.2, zorder=1, label="line through n' ≥ n/2")
        style = {"color": Color.GREEN, "mfc": "none", "label": "jackknife from n"}
        axes.plot(0, 100 * part["jackknife"], "o", ms=5, clip_on=False, zorder=4, **style)
        if part["true_adjusted_accuracy"] is not None:
            style = {"color": Color.INK, "clip_on": False, "zorder": 3, "label": "truth"}
            axes.plot(0, 100 * part["true_adjusted_accuracy"], "_", ms=11, mew=1.3, **style)
    axes.set_xlim(0, None)
    most = data["annotators"][-1]
    ticks = [n for n in (2, 3, 4, 6, 10, 20) if 1 / n - 1 / most > NEAREST_TICKS] + [most]
    axes.set_xticks([0, *(1 / n for n in ticks)], ["0", *(f"1/{n}" for n in ticks)])
    axes.set(xlabel=f"1 / {words.annotators} per {words.image}", ylabel="adjusted accuracy (%)")
    legend_below(figure)
    return figure
