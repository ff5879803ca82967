"""Figure 14: EM + spline with more or fewer components in the mixtures.

The mixtures have K = 1..6 components, 3 K - 1 parameters each; the bootstrap over images has the
same replicates for every K. `bayesrep estimate --table components` sets the mixtures' likelihoods
side by side.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesrep.choices import PAPER_REPLICATES
from bayesrep.estimators import EMSpline, analyse
from bayesrep.studies.vocabulary import VOCABULARY_OF_NAME, Words
from experiments.papers.helpers import (
    accuracy_axes,
    analysis_numbers,
    line_at_truth,
    mark_truth,
    quantity,
    shades,
)
from experiments.papers.study_facts import StudyFacts
from experiments.results import interval_points
from experiments.style import Color, legend_below, panels

COMPONENT_COUNTS = (1, 2, 3, 4, 5, 6)


def numbers(
    facts: StudyFacts,
    *,
    components: Sequence[int] = COMPONENT_COUNTS,
    bootstrap: int = PAPER_REPLICATES,
    progress: bool = False,
) -> dict[str, Any]:
    """Adjusted accuracies, gaps and slopes for every K."""
    estimators = [EMSpline(components=size) for size in components]
    analyses = analyse(
        facts.study, estimators, bootstrap=bootstrap, seed=facts.seed, progress=progress
    )
    series = [
        {"components": size, "parameters": 3 * size - 1, **analysis_numbers(analysis)}
        for size, analysis in zip(components, analyses, strict=True)
    ]
    return {
        **facts.accuracies(),
        "true_slope": facts.true_slope,
        "bootstrap": bootstrap,
        "series": series,
    }


def draw(data: dict[str, Any], words: Words = VOCABULARY_OF_NAME["images"]) -> Any:
    """(a) accuracies for every K; (b) mean gap and (c) slope against K > 1."""
    figure, (scatter, gaps, slopes) = panels(3)
    x = np.array(data["reference_accuracy"])
    accuracy_axes(scatter, x)
    for part, color in zip(data["series"], shades(len(data["series"])), strict=True):
        y = 100 * np.array(part["adjusted_accuracy"])
        scatter.plot(100 * x, y, "o", color=color, ms=2.2, label=f"K = {part['components']}")
    mark_truth(scatter, data)
    scatter.set_title(f"(a) EM + spline, all {words.classifiers}", loc="left", fontsize=10)
    gap = data["true_gap"]
    line_at_truth(gaps, None if gap is None else 100 * gap, "true gap or slope")
    line_at_truth(slopes, data["true_slope"])
    _draw_by_components(gaps, data, "bias_corrected_gap", 100)
    _draw_by_components(slopes, data, "slope", 1)
    gaps.set_ylabel("mean bias-corrected gap (points)")
    gaps.set_title(f"(b) mean over {words.classifiers}", loc="left", fontsize=10)
    slopes.set_ylabel("slope of adjusted on reference accuracy")
    slopes.set_title(f"(c) line over {words.classifiers}", loc="left", fontsize=10)
    legend_below(figure, columns=10)
    return figure


def _draw_by_components(axes: Any, data: dict[str, Any], name: str, scale: float) -> None:
    several = [part for part in data["series"] if part["components"] > 1]
    size = [part["components"] for part in several]
    y, low, high = quantity(several, name, scale)
    style = {"color": Color.PURPLE, "label": "EM + spline, 95 %"}
    interval_points(axes, size, y, low, high, ms=4, **style)
    axes.set_xticks(size)
    axes.set_xlabel("components K of each mixture")
