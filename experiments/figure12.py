"""Figure 12: whether the naive estimate is a line in 1/n, as the jackknife takes it to be.

    python -m experiments.figure12
    python -m experiments.figure12 --study placebo --cifar10h DIR --cifar10.1 DIR

The naive estimate of ten classifiers, evenly spread in accuracy, against 1/n', n' = 2..n (exact
thinning), a straight line through n' >= n/2 followed to 1/n' = 0, and the jackknife estimate and
the truth there.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from bayesrep.estimators.annotators import compare_annotators, linearity
from bayesrep.report.figures import COLORS, GREY, INK, legend_below, panels
from bayesrep.report.text import columns, percent
from experiments.results import recorded, warned
from experiments.studies import Chosen, make_page

FEWEST = 2
CLASSIFIERS = 10
NEAREST_TICKS = 0.03


def numbers(chosen: Chosen) -> dict[str, Any]:
    """Naive estimates for every n', lines and jackknife estimates of ten classifiers and all."""
    with recorded() as said:
        table = compare_annotators(chosen.study)
    size = len(chosen.study.classifiers)
    naive = table["naive"].to_numpy().reshape(-1, size)[FEWEST - 1 :]
    jackknife = table["jackknife"].to_numpy().reshape(-1, size)[-1]
    annotators = np.arange(FEWEST, chosen.annotators + 1)
    accuracy = chosen.reference_accuracy
    wanted = np.linspace(accuracy.min(), accuracy.max(), CLASSIFIERS)
    picked = np.unique(np.abs(accuracy[:, None] - wanted).argmin(axis=0))
    series = {
        chosen.study.classifiers[c]: (naive[:, c], jackknife[c], chosen.truth[c])
        for c in picked[np.argsort(accuracy[picked])]
    }
    mean = naive.mean(axis=1), jackknife.mean(), chosen.truth.mean()
    whole = linearity(table)
    return {
        "annotators": annotators.tolist(),
        "classifiers": {name: _line(annotators, *part) for name, part in series.items()},
        "mean": _line(annotators, *mean),
        "linearity": None if whole is None else asdict(whole),
        "warnings": said,
    }


def _line(annotators: Any, naive: Any, jackknife: float, truth: float) -> dict[str, Any]:
    """The line through n' >= n/2, and the slope in 1/n' at its start and at its end."""
    inverse = 1 / annotators
    late = annotators >= annotators[-1] / 2
    slope, intercept = np.polyfit(inverse[late], naive[late], 1)
    left = naive[late] - intercept - slope * inverse[late]
    steps = np.diff(naive) / np.diff(inverse)
    return {
        "naive": naive.tolist(),
        "slope": float(slope),
        "intercept": float(intercept),
        "r_squared": float(1 - left @ left / np.sum((naive[late] - naive[late].mean()) ** 2)),
        "slope_at_fewest": float(steps[0]),
        "slope_at_half": float(steps[np.flatnonzero(late)[0]]),
        "slope_at_all": float(steps[-1]),
        "jackknife": float(jackknife),
        "true_adjusted_accuracy": float(truth),
    }


def draw(found: dict[str, Any]) -> Any:
    """A line of points for each classifier, running to the left into 1/n' = 0."""
    figure, (axes,) = panels(1)
    inverse = 1 / np.array(found["annotators"])
    first = inverse[np.array(found["annotators"]) >= found["annotators"][-1] / 2][0]
    for part in found["classifiers"].values():
        naive = 100 * np.array(part["naive"])
        axes.plot(inverse, naive, "o-", color=COLORS["naive"], ms=2.5, lw=0.8, label="naive")
        ends = np.array([0, first])
        line = 100 * (part["intercept"] + part["slope"] * ends)
        axes.plot(ends, line, color=GREY, lw=1.2, zorder=1, label="line through n' ≥ n/2")
        style = {"color": COLORS["jackknife"], "mfc": "none", "label": "jackknife from n"}
        axes.plot(0, 100 * part["jackknife"], "o", ms=5, clip_on=False, zorder=4, **style)
        truth = 100 * part["true_adjusted_accuracy"]
        axes.plot(0, truth, "_", ms=11, mew=1.3, color=INK, clip_on=False, zorder=3, label="truth")
    axes.set_xlim(0, None)
    most = found["annotators"][-1]
    ticks = [n for n in (2, 3, 4, 6, 10, 20) if 1 / n - 1 / most > NEAREST_TICKS] + [most]
    axes.set_xticks([0, *(1 / n for n in ticks)], ["0", *(f"1/{n}" for n in ticks)])
    axes.set_xlabel("1 / annotators per image")
    axes.set_ylabel("adjusted accuracy (%)")
    legend_below(figure)
    return figure


def table(found: dict[str, Any]) -> str:
    """One line for each classifier, and one for the mean over all."""
    parts = {**found["classifiers"], "mean of all": found["mean"]}
    rows = [
        [
            name,
            percent(part["naive"][-1], 2),
            percent(part["intercept"], 2),
            percent(part["jackknife"], 2),
            percent(part["true_adjusted_accuracy"], 2),
            f"{part['r_squared']:.4f}",
            *(f"{100 * part[f'slope_at_{where}']:.1f}" for where in ("fewest", "half", "all")),
        ]
        for name, part in parts.items()
    ]
    header = ["classifier", "naive", "line at 0", "jackknife", "truth", "R²"]
    return columns([*header, "slope at 2", "at n/2", "at n"], rows)


def remarks(found: dict[str, Any]) -> str:
    """Whether the slope grows towards 1/n' = 0, beside the paper."""
    parts = found["classifiers"].values()
    steeper = sum(abs(part["slope_at_all"]) > abs(part["slope_at_half"]) for part in parts)
    mean = found["mean"]
    rest = mean["true_adjusted_accuracy"] - mean["jackknife"]
    return (
        "Slopes are points of the naive estimate per unit of 1/n'. From n/2 to n annotators the "
        f"slope steepens for {steeper} of the {len(parts)} classifiers. For the mean over all "
        f"classifiers it goes from {100 * mean['slope_at_fewest']:.1f} at {FEWEST} annotators over "
        f"{100 * mean['slope_at_half']:.1f} at n/2 to {100 * mean['slope_at_all']:.1f} at n, and "
        f"the line through n' ≥ n/2 has R² = {mean['r_squared']:.4f}. The mean jackknife estimate "
        f"is {percent(rest, 2)} points below the truth (negative: above). In the paper the curves "
        "are nearly straight and steepen slightly towards 0, so that the jackknife should correct "
        f"too little rather than too much.{warned(found)}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Make docs/results/figure-12-STUDY.{md,json,png}."""
    return make_page("figure-12", __doc__, argv, numbers, table, draw, remarks)


if __name__ == "__main__":
    sys.exit(main())
