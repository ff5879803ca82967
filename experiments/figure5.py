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

from bayesrep.report.paper import figure5
from bayesrep.report.paper.figure5 import FEWEST_IMAGES, draw
from bayesrep.report.text import columns, percent
from experiments.results import recording, warned
from experiments.studies import make_page

numbers = recording(figure5.numbers)


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
