"""Figure 13: EM + spline with fewer annotators, beside the naive estimator.

Both methods on the counts that n' annotators per image would have given, in exact expectation, with
a bootstrap over images, the same replicates for every n' and method.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesrep.choices import PAPER_REPLICATES
from bayesrep.estimators import EMSpline, Naive, analyse
from bayesrep.report.methods import label_of, look_of
from bayesrep.studies.vocabulary import VOCABULARY_OF_NAME, Words
from experiments.papers.helpers import (
    accuracy_axes,
    analysis_numbers,
    line_at_truth,
    mark_truth,
    quantity,
    shades,
    share_heights,
)
from experiments.papers.study_facts import StudyFacts
from experiments.results import interval_points
from experiments.style import legend_below, panels

COMPARED_METHODS = ("em-spline", "naive")
ANNOTATOR_QUARTERS = (1, 2, 3, 4)


def numbers(
    facts: StudyFacts,
    *,
    quarters: Sequence[int] = ANNOTATOR_QUARTERS,
    bootstrap: int = PAPER_REPLICATES,
    progress: bool = False,
) -> dict[str, Any]:
    """Adjusted accuracies and mean gaps of both methods for every n', so many quarters of n."""
    sizes = sorted({-(-facts.annotators * part // 4) for part in quarters})
    estimators = {
        "em-spline": [EMSpline(annotators=n) for n in sizes],
        "naive": [Naive(annotators=n) for n in sizes],
    }
    analyses = {
        method: analyse(
            facts.study, several, bootstrap=bootstrap, seed=facts.seed, progress=progress
        )
        for method, several in estimators.items()
    }
    rows = {
        method: [
            {"annotators": n, **analysis_numbers(analysis)}
            for n, analysis in zip(sizes, several, strict=True)
        ]
        for method, several in analyses.items()
    }
    return {**facts.accuracies(), "bootstrap": bootstrap, "methods": rows}


def draw(data: dict[str, Any], words: Words = VOCABULARY_OF_NAME["images"]) -> Any:
    """(a) and (b): accuracies by method; (c): mean gap against the number of annotators."""
    figure, axes = panels(3)
    x = np.array(data["reference_accuracy"])
    for place, letter, method in zip(axes, "ab", COMPARED_METHODS, strict=False):
        accuracy_axes(place, x)
        series = data["methods"][method]
        for part, color in zip(series, shades(len(series)), strict=True):
            label = f"{part['annotators']} {words.annotators}"
            y = 100 * np.array(part["adjusted_accuracy"])
            place.plot(100 * x, y, "o", color=color, ms=2.2, label=label)
        mark_truth(place, data)
        place.set_title(f"({letter}) {label_of(method)}", loc="left", fontsize=10)
    share_heights(axes[:2])
    _draw_gaps(axes[2], data, words)
    legend_below(figure, columns=9)
    return figure


def _draw_gaps(axes: Any, data: dict[str, Any], words: Words) -> None:
    for method, shift in zip(COMPARED_METHODS, (-0.006, 0.006), strict=True):
        series = data["methods"][method]
        n = np.array([part["annotators"] for part in series])
        y, low, high = quantity(series, "bias_corrected_gap", 100)
        style = {"color": look_of(method).paper, "label": f"{label_of(method)}, 95 %"}
        interval_points(axes, n + shift * n.max(), y, low, high, ms=4, lw=1.2, **style)
        axes.set_xticks(n)
    line_at_truth(axes, None if data["true_gap"] is None else 100 * data["true_gap"], "true gap")
    axes.set(
        xlabel=f"{words.annotators} per {words.image}", ylabel="mean bias-corrected gap (points)"
    )
    axes.set_title(f"(c) mean over {words.classifiers}", loc="left", fontsize=10)
