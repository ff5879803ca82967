"""Figure 6: accuracies adjusted by the jackknife and by EM + spline.

Intervals of single classifiers as in the paper: of the jackknife's standard error over annotators,
and percentiles of a bootstrap over images for EM + spline. Gaps and slopes have bootstrap intervals
for both, with ordinary regression's standard error of the slope beside.
"""

from typing import Any

import numpy as np

from bayesrep.choices import PAPER_REPLICATES
from bayesrep.estimators import analyse
from bayesrep.numerics.estimands import slope_standard_error
from bayesrep.report.methods import label_of, look_of
from experiments.papers.helpers import accuracy_axes, analysis_numbers, mark_truth, share_heights
from experiments.papers.study_facts import StudyFacts
from experiments.results import interval_points
from experiments.style import legend_below, panels

ANNOTATOR_METHODS = ("raw", "jackknife", "em-spline")


def numbers(
    facts: StudyFacts, *, bootstrap: int = PAPER_REPLICATES, progress: bool = False
) -> dict[str, Any]:
    """Adjusted accuracies with intervals, gaps and lines of every method."""
    analyses = analyse(
        facts.study, ANNOTATOR_METHODS, bootstrap=bootstrap, seed=facts.seed, progress=progress
    )
    methods = {analysis.method: analysis_numbers(analysis) for analysis in analyses}
    of_annotators = analyses[ANNOTATOR_METHODS.index("jackknife")].own_interval
    methods["jackknife"] |= dict(zip(("lower", "upper"), of_annotators.tolist(), strict=True))
    for part in methods.values():
        error = slope_standard_error(facts.reference_accuracy, part["adjusted_accuracy"])
        part["slope_standard_error"] = float(error)
    return {
        "classifiers": list(facts.study.classifiers),
        **facts.accuracies(),
        "true_slope": facts.true_slope,
        "bootstrap": bootstrap,
        "methods": methods,
    }


def draw(data: dict[str, Any]) -> Any:
    """One panel for each method: unadjusted, adjusted, true, and the two lines."""
    figure, both = panels(2)
    x = np.array(data["reference_accuracy"])
    for axes, letter, method in zip(both, "ab", ANNOTATOR_METHODS[1:], strict=True):
        accuracy_axes(axes, x)
        for name in ("raw", method):
            part = data["methods"][name]
            y, low, high = (
                100 * np.array(part[key]) for key in ("adjusted_accuracy", "lower", "upper")
            )
            color, label = (
                look_of(name).paper,
                label_of(name) + (", 95 %" if name == method else ""),
            )
            style: dict[str, Any] = {"color": color, "label": label, "ms": 2.6, "zorder": 3}
            if name == method:
                interval_points(axes, 100 * x, y, low, high, **style)
            else:
                axes.plot(100 * x, y, "o", **style)
            slope, intercept = (
                part["quantities"][key]["estimate"] for key in ("slope", "intercept")
            )
            ends = np.array([x.min(), x.max()])
            axes.plot(100 * ends, 100 * (slope * ends + intercept), color=color, lw=1)
        mark_truth(axes, data)
        axes.set_title(f"({letter}) {label_of(method)}", loc="left", fontsize=10)
    share_heights(both)
    legend_below(figure)
    return figure
