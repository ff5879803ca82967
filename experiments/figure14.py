"""Figure 14: EM + spline with more or fewer components in the mixtures.

    python -m experiments.figure14
    python -m experiments.figure14 --study placebo --cifar10h DIR --cifar10.1 DIR

The mixtures have K = 1..6 components, 3 K - 1 parameters each. Beside the estimates, with a
bootstrap over images (the same replicates for every K), stand the mixtures' likelihoods, the
information criteria and the likelihood of held-out images.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from bayesrep.estimands import accuracy_line
from bayesrep.estimators import EMSpline, analyse
from bayesrep.estimators.components import compare_components
from bayesrep.report.figures import (
    COLORS,
    INK,
    accuracy_axes,
    interval_points,
    legend_below,
    panels,
    shades,
)
from bayesrep.report.text import columns, components_table, percent
from experiments.results import analysis_numbers, gap_cells, recorded, slope_cells, warned
from experiments.studies import Chosen, make_page

COMPONENTS = (1, 2, 3, 4, 5, 6)
BOOTSTRAP = 200


def numbers(
    chosen: Chosen,
    *,
    components: Sequence[int] = COMPONENTS,
    bootstrap: int = BOOTSTRAP,
) -> dict[str, Any]:
    """Adjusted accuracies, gaps and slopes for every K, and the mixtures' likelihoods."""
    estimators = [EMSpline(components=size) for size in components]
    with recorded() as said:
        analyses = analyse(chosen.study, estimators, bootstrap=bootstrap, seed=chosen.seed)
        likelihoods = compare_components(chosen.study, components, seed=chosen.seed)
    series = [
        {"components": size, "parameters": 3 * size - 1, **analysis_numbers(analysis)}
        for size, analysis in zip(components, analyses, strict=True)
    ]
    return {
        "reference_accuracy": chosen.reference_accuracy.tolist(),
        "true_adjusted_accuracy": chosen.truth.tolist(),
        "true_gap": chosen.true_gap,
        "true_slope": float(accuracy_line(chosen.reference_accuracy, chosen.truth)[0]),
        "bootstrap": bootstrap,
        "series": series,
        "likelihoods": likelihoods.to_dicts(),
        "warnings": said,
    }


def draw(found: dict[str, Any]) -> Any:
    """(a) accuracies for every K; (b) mean gap and (c) slope against K > 1."""
    figure, (scatter, gaps, slopes) = panels(3)
    x = np.array(found["reference_accuracy"])
    accuracy_axes(scatter, x)
    for part, color in zip(found["series"], shades(len(found["series"])), strict=True):
        y = 100 * np.array(part["adjusted_accuracy"])
        scatter.plot(100 * x, y, "o", color=color, ms=2.2, label=f"K = {part['components']}")
    truth = 100 * np.array(found["true_adjusted_accuracy"])
    scatter.plot(100 * x, truth, "_", color=INK, ms=5, mew=0.9, label="truth")
    scatter.set_title("(a) EM + spline, all classifiers", loc="left", fontsize=10)
    gaps.axhline(100 * found["true_gap"], color=INK, lw=1, ls=":", label="true gap or slope")
    slopes.axhline(found["true_slope"], color=INK, lw=1, ls=":")
    _draw_by_components(gaps, found, "bias_corrected_gap", 100)
    _draw_by_components(slopes, found, "slope", 1)
    gaps.set_ylabel("mean bias-corrected gap (points)")
    gaps.set_title("(b) mean over classifiers", loc="left", fontsize=10)
    slopes.set_ylabel("slope of adjusted on reference accuracy")
    slopes.set_title("(c) line over classifiers", loc="left", fontsize=10)
    legend_below(figure)
    return figure


def _draw_by_components(axes: Any, found: dict[str, Any], quantity: str, scale: float) -> None:
    several = [part for part in found["series"] if part["components"] > 1]
    size = [part["components"] for part in several]
    values = [part["quantities"][quantity] for part in several]
    y, low, high = (
        scale * np.array([v[k] for v in values]) for k in ("estimate", "lower", "upper")
    )
    style = {"color": COLORS["em-spline"], "label": "EM + spline, 95 %"}
    interval_points(axes, size, y, low, high, ms=4, **style)
    axes.set_xticks(size)
    axes.set_xlabel("components K of each mixture")


def table(found: dict[str, Any]) -> str:
    """Mean gap and slope for every K, then the mixtures' likelihoods."""
    rows: list[list[str]] = []
    for part in found["series"]:
        rows.append(
            [
                str(part["components"]),
                *gap_cells(part),
                *slope_cells(part),
            ]
        )
    rows.append(["truth", percent(found["true_gap"], 2), "", f"{found['true_slope']:.3f}", ""])
    gaps = columns(["K", "mean gap", "95 %", "slope", "95 %"], rows)
    return f"{gaps}\n\n{components_table(pl.DataFrame(found['likelihoods']))}"


def remarks(found: dict[str, Any]) -> str:
    """How far the estimates move with K, beside the paper."""
    by = {
        part["components"]: part["quantities"]["bias_corrected_gap"]["estimate"]
        for part in found["series"]
    }
    several = [gap for size, gap in by.items() if size > 1]
    return (
        f"With two components and more the mean gap lies between {percent(min(several), 2)} and "
        f"{percent(max(several), 2)} points; with one, left out of (b) and (c), it is "
        f"{percent(by.get(1), 2)}. The paper finds similar results with more than four times as "
        "many parameters. AIC and BIC: smaller is better; the log likelihood of held-out images: "
        "larger is better; a star marks the best. Degenerate components have shrunk to a point or "
        f"lost their images.{warned(found)}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Make docs/results/figure-14-STUDY.{md,json,png}."""
    return make_page("figure-14", __doc__, argv, numbers, table, draw, remarks)


if __name__ == "__main__":
    sys.exit(main())
