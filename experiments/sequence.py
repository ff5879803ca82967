"""The whole sequence: as measured, naive, jackknife, EM + spline, joint posterior.

    python -m experiments.sequence
    python -m experiments.sequence --study placebo --cifar10h DIR --cifar10.1 DIR

What each step leaves of the accuracy drop, on one study, beside what is known to be left. Point
estimates have percentile intervals of a bootstrap over images, the posterior its own.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

import bayesrep
from bayesrep.estimators import METHODS, analyse
from bayesrep.report.figures import INK, interval_points, legend_below, panels
from bayesrep.report.methods import color_of, label_of
from bayesrep.report.paper.parts import analysis_numbers
from bayesrep.report.text import columns, percent
from experiments.results import gap_cells, recorded, slope_cells, warned
from experiments.studies import Chosen, make_page

BOOTSTRAP = 450


def numbers(chosen: Chosen, *, bootstrap: int = BOOTSTRAP) -> dict[str, Any]:
    """Every method's estimates, how far they are from the truth and how often intervals hold it."""
    methods, said = points(chosen, bootstrap=bootstrap)
    posterior = bayesrep.fit(chosen.study, seed=chosen.seed, progress=False)
    methods["joint"] = of_posterior(
        bayesrep.summarize(chosen.study, posterior, allow_unconverged=True),
        bayesrep.summarize_gaps(chosen.study, posterior, allow_unconverged=True),
    )
    for part in methods.values():
        part |= against_truth(part, chosen)
    return {
        "classifiers": list(chosen.study.classifiers),
        **chosen.accuracies(),
        "true_slope": chosen.true_slope,
        "bootstrap": bootstrap,
        "methods": methods,
        "verdict": str(posterior.posterior.attrs["verdict"]),
        "converged": bool(posterior.posterior.attrs["converged"]),
        "warnings": said,
    }


def points(chosen: Chosen, *, bootstrap: int) -> tuple[dict[str, Any], list[str]]:
    """The point estimates' numbers, and what was warned."""
    with recorded() as said:
        analyses = analyse(chosen.study, METHODS, bootstrap=bootstrap, seed=chosen.seed)
    return {analysis.method: analysis_numbers(analysis) for analysis in analyses}, said


def of_posterior(rows: pl.DataFrame, gaps: pl.DataFrame) -> dict[str, Any]:
    """What `bayesrep.summarize` and `summarize_gaps` say, in the form of `analysis_numbers`."""
    by = {row.pop("quantity"): row for row in gaps.drop("method").to_dicts()}
    names = ("bias_corrected_gap", "selection_gap", "share_explained", "slope")
    return {
        **{name: rows[name].to_list() for name in ("adjusted_accuracy", "lower", "upper")},
        "quantities": {name: by[name] for name in names},
    }


def against_truth(part: dict[str, Any], chosen: Chosen) -> dict[str, Any]:
    """Errors of single classifiers: mean, root mean square, and the intervals' coverage."""
    adjusted, lower, upper = (np.array(part[k]) for k in ("adjusted_accuracy", "lower", "upper"))
    error = adjusted - chosen.truth
    return {
        "mean_error": float(error.mean()),
        "rmse": float(np.sqrt((error**2).mean())),
        "coverage": float(((lower <= chosen.truth) & (chosen.truth <= upper)).mean()),
        "mean_width": float((upper - lower).mean()),
    }


def draw(found: dict[str, Any]) -> Any:
    """(a) mean gap by method with its interval; (b) errors of single classifiers."""
    figure, (gaps, errors) = panels(2)
    truth = np.array(found["true_adjusted_accuracy"])
    scatter = np.random.default_rng(0).uniform(-0.16, 0.16, len(truth))
    for place, (method, part) in enumerate(found["methods"].items()):
        gap = part["quantities"]["bias_corrected_gap"]
        y, low, high = (100 * gap[key] for key in ("estimate", "lower", "upper"))
        interval_points(gaps, place, y, low, high, color=color_of(method), ms=6)
        over_line = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        where = {"xytext": (8, 0), "textcoords": "offset points", "va": "center"}
        gaps.annotate(f"{y:.2f}", (place, y), **where, bbox=over_line)
        error = 100 * (np.array(part["adjusted_accuracy"]) - truth)
        errors.plot(place + scatter, error, "o", color=color_of(method), ms=2.6, alpha=0.6)
        middle = [place - 0.25, place + 0.25]
        label = "mean over classifiers" if place == 0 else None
        errors.plot(middle, [error.mean()] * 2, color=INK, lw=1.8, label=label)
    gaps.axhline(100 * found["true_gap"], color=INK, lw=1, ls="--", label="truth")
    errors.axhline(0, color=INK, lw=1, ls="--")
    for axes in (gaps, errors):
        names = [label_of(method).replace(" ", "\n", 1) for method in found["methods"]]
        axes.set_xticks(range(len(names)), names, fontsize=9)
        axes.set_xlim(-0.5, len(names) - 0.4)
        axes.grid(visible=False, axis="x")
    gaps.set_ylabel("mean bias-corrected gap (points), 95 % interval")
    gaps.set_title("(a) what is left of the accuracy drop", loc="left", fontsize=10)
    errors.set_ylabel("estimate minus truth (points)")
    errors.set_title("(b) adjusted accuracy, every classifier", loc="left", fontsize=10)
    legend_below(figure)
    return figure


def table(found: dict[str, Any]) -> str:
    """One line for each method."""
    rows: list[list[str]] = []
    for method, part in found["methods"].items():
        rows.append(
            [
                method,
                *gap_cells(part),
                percent(part["quantities"]["share_explained"]["estimate"], 0),
                *slope_cells(part),
                f"{100 * part['mean_error']:+.2f}",
                percent(part["rmse"], 2),
                percent(part["coverage"], 0),
                percent(part["mean_width"], 2),
            ]
        )
    rows.append(["truth", percent(found["true_gap"], 2), "", "", f"{found['true_slope']:.3f}"])
    rows[-1] += [""] * 5
    header = ["method", "mean gap", "95 %", "explained", "slope", "95 %"]
    return columns([*header, "error", "RMSE", "truth inside", "width"], rows)


def remarks(found: dict[str, Any]) -> str:
    """What the columns are, beside the paper."""
    return (
        "Gaps, errors and widths in points; error, RMSE, coverage and width are of the adjusted "
        "accuracies of single classifiers, which see the same images and so err together. The "
        "intervals of gap and slope are of a bootstrap over images; those of the joint posterior "
        "are of its draws moved to the sandwich covariance. In the paper the raw drop is 11.7 "
        "points, naive matching leaves 5.7, the jackknife 4.6 and EM + spline 3.6 ± 1.5, with a "
        f"slope of 1.01 ± 0.09.{warned(found)}\n\n{found['verdict']}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Make docs/results/sequence-STUDY.{md,json,png}."""
    return make_page("sequence", __doc__, argv, numbers, table, draw, remarks)


if __name__ == "__main__":
    sys.exit(main())
