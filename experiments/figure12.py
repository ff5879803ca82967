"""Figure 12: whether the naive estimate is a line in 1/n, as the jackknife takes it to be.

    python -m experiments.figure12
    python -m experiments.figure12 --study placebo --cifar10h DIR --cifar10.1 DIR

The naive estimate of ten classifiers, evenly spread in accuracy, against 1/n', n' = 2..n (exact
thinning), a straight line through n' >= n/2 followed to 1/n' = 0, and the jackknife estimate and
the truth there.
"""

import sys
from collections.abc import Sequence
from typing import Any

from bayesrep.report.paper import figure12
from bayesrep.report.paper.figure12 import FEWEST, draw
from bayesrep.report.text import columns, percent
from experiments.results import recording, warned
from experiments.studies import make_page

numbers = recording(figure12.numbers)


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
