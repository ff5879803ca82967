"""Figure 5: why conditioning on observed selection frequencies is biased.

    python -m experiments.figure5
    python -m experiments.figure5 --study placebo --cifar10h DIR --cifar10.1 DIR

For several numbers of annotators n' (all images thinned to n' in exact expectation): (a) the
reference's distribution of counts, (b) accuracy of the median classifier given the count, (c) the
naive estimate of every classifier, which sums the products of (a) and (b).
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesrep.estimators.naive import accuracy_by_count, matched_accuracy, thinned
from bayesrep.report.figures import INK, accuracy_axes, legend_below, panels, shades
from bayesrep.report.text import columns, percent
from experiments.results import recorded, warned
from experiments.studies import Chosen, fractions, make_page

FEWEST_IMAGES = 20  # a point of (b) with fewer, in expectation, is noise and is not drawn


def numbers(chosen: Chosen) -> dict[str, Any]:
    """The three panels' points for every n'."""
    reference = chosen.reference_accuracy
    median = int(np.argsort(reference, kind="stable")[len(reference) // 2])
    with recorded() as said:
        series = [_series(chosen, n, median) for n in fractions(chosen.annotators, 8, 4, 2, 1)]
    return {
        "median_classifier": chosen.study.classifiers[median],
        "reference_accuracy": reference.tolist(),
        "replication_accuracy": chosen.replication_accuracy.tolist(),
        "true_adjusted_accuracy": chosen.truth.tolist(),
        "true_gap": chosen.true_gap,
        "annotators": series,
        "warnings": said,
    }


def _series(chosen: Chosen, annotators: int, median: int) -> dict[str, Any]:
    counts = thinned(chosen.whole, annotators)
    accuracy, known = accuracy_by_count(counts)
    adjusted = matched_accuracy(counts)[0]
    given = np.where(known[0], accuracy[0, :, median], np.nan)
    return {
        "annotators": annotators,
        "shares": (counts.reference[0] / counts.reference.sum()).tolist(),
        "accuracy": [None if np.isnan(value) else float(value) for value in given],
        "images": counts.replication[0].tolist(),
        "adjusted_accuracy": adjusted.tolist(),
        "mean_gap": float((chosen.reference_accuracy - adjusted).mean()),
    }


def draw(found: dict[str, Any]) -> Any:
    """Three panels, a shade for each n'."""
    figure, (density, curve, scatter) = panels(3)
    reference = np.array(found["reference_accuracy"])
    accuracy_axes(scatter, reference)
    for series, color in zip(found["annotators"], shades(len(found["annotators"])), strict=True):
        n = series["annotators"]
        frequency = 100 * np.arange(n + 1) / n
        line = {"color": color, "label": f"{n} annotators", "marker": "o", "ms": 3, "lw": 1.2}
        density.plot(frequency, np.array(series["shares"]) * (n + 1), **line)
        drawn = np.array(series["images"]) >= FEWEST_IMAGES
        accuracy = np.array(series["accuracy"], float)
        curve.plot(frequency[drawn], 100 * accuracy[drawn], **line)
        points = {**line, "lw": 0, "ms": 2.2}
        scatter.plot(100 * reference, 100 * np.array(series["adjusted_accuracy"]), **points)
    truth = 100 * np.array(found["true_adjusted_accuracy"])
    scatter.plot(100 * reference, truth, "_", color=INK, ms=5, mew=0.9, label="truth", zorder=4)
    density.set_title("(a) reference: share of images × (n' + 1)", loc="left", fontsize=10)
    density.set_ylabel("density")
    curve.set_title(f"(b) replication: {found['median_classifier']}", loc="left", fontsize=10)
    curve.set_ylabel("accuracy (%)")
    for axes in (density, curve):
        axes.set_xlabel("observed selection frequency k'/n' (%)")
    scatter.set_title("(c) naive estimate, all classifiers", loc="left", fontsize=10)
    legend_below(figure)
    return figure


def table(found: dict[str, Any]) -> str:
    """Mean gap and the ends of panels (a) and (b), one line for each n'."""
    rows = [
        [
            str(series["annotators"]),
            percent(series["shares"][-1]),
            percent(series["accuracy"][-1]),
            percent(series["mean_gap"], 2),
        ]
        for series in found["annotators"]
    ]
    rows.append(["truth", "", "", percent(found["true_gap"], 2)])
    return columns(["annotators", "selected by all", "accuracy there", "naive mean gap"], rows)


def remarks(found: dict[str, Any]) -> str:
    """What is seen, beside the paper."""
    adjusted = np.array([series["adjusted_accuracy"] for series in found["annotators"]])
    rises = (np.diff(adjusted, axis=0) > 0).all(axis=0)
    first, last = found["annotators"][0], found["annotators"][-1]
    return (
        f"From {first['annotators']} to {last['annotators']} annotators the naive mean gap moves "
        f"from {percent(first['mean_gap'], 2)} to {percent(last['mean_gap'], 2)} points; the "
        f"estimate rises at every step for {rises.sum()} of {len(rises)} classifiers. In the paper "
        "it rises for every classifier, and 40 annotators leave 5.7 of 11.7 points. Panel (a) "
        "shows the share of images at each count times n' + 1, so that lines of different n' are "
        f"comparable densities; (b) leaves out counts of fewer than {FEWEST_IMAGES} images."
        + warned(found)
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Make docs/results/figure-5-STUDY.{md,json,png}."""
    return make_page("figure-5", __doc__, argv, numbers, table, draw, remarks)


if __name__ == "__main__":
    sys.exit(main())
