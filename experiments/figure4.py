"""Figure 4: how often images of both data sets were selected.

    python -m experiments.figure4
    python -m experiments.figure4 --study placebo --cifar10h DIR --cifar10.1 DIR

Histograms of the observed selection frequency and its means. Where images have different numbers of
annotators, all are thinned to the fewest, in exact expectation; the means use all annotators.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesrep.estimators.naive import thinned
from bayesrep.report.figures import COLORS, panels
from bayesrep.report.text import columns, percent
from experiments.studies import Chosen, make_page

STYLES = {"reference": COLORS["joint"], "replication": COLORS["raw"]}
LEAST_SHARE = 0.001  # where the drawn range begins


def numbers(chosen: Chosen) -> dict[str, Any]:
    """Shares of images by count, mean selection frequencies and their standard errors."""
    counts = thinned(chosen.whole, chosen.annotators)
    found: dict[str, Any] = {"annotators": chosen.annotators}
    for role, images in (
        ("reference", counts.reference[0]),
        ("replication", counts.replication[0]),
    ):
        data = chosen.study.datasets[role]
        frequency = data.selected / data.shown
        found[role] = {
            "images": len(frequency),
            "shares": (images / images.sum()).tolist(),
            "mean": float(frequency.mean()),
            "standard_error": float(frequency.std(ddof=1) / np.sqrt(len(frequency))),
        }
    return found


def draw(found: dict[str, Any]) -> Any:
    """Both histograms over each other, with lines at the means."""
    figure, (axes,) = panels(1)
    n = found["annotators"]
    edges = 100 * (np.arange(n + 2) - 0.5) / n
    for role, color in STYLES.items():
        shares, mean = 100 * np.array(found[role]["shares"]), 100 * found[role]["mean"]
        axes.stairs(shares, edges, color=color, fill=True, alpha=0.25)
        axes.stairs(shares, edges, color=color, lw=1.4, label=f"{role}, mean {mean:.1f} %")
        axes.axvline(mean, color=color, lw=1.2, ls="--")
    largest = np.maximum(*(found[role]["shares"] for role in STYLES))
    axes.set_xlim(edges[np.flatnonzero(largest >= LEAST_SHARE)[0]], edges[-1])
    axes.set_xlabel(f"observed selection frequency (%, {n} annotators)")
    axes.set_ylabel("share of images (%)")
    axes.legend(frameon=False, loc="upper left")
    return figure


def table(found: dict[str, Any]) -> str:
    """Means, standard errors and the share that every annotator selected."""
    rows = [
        [
            role,
            f"{found[role]['images']:,}",
            percent(found[role]["mean"], 2),
            percent(found[role]["standard_error"], 2),
            percent(found[role]["shares"][-1]),
            percent(sum(found[role]["shares"][: found["annotators"] // 2])),
        ]
        for role in STYLES
    ]
    header = ["data set", "images", "mean s", "s.e.", "selected by all", "by fewer than half"]
    return columns(header, rows)


def remarks(found: dict[str, Any]) -> str:
    """What is seen, beside the paper."""
    ends = found["reference"], found["replication"]
    drop = ends[0]["mean"] - ends[1]["mean"]
    error = np.hypot(ends[0]["standard_error"], ends[1]["standard_error"])
    return (
        f"The replication's images are selected {percent(drop, 2)} points less often "
        f"(standard error {percent(float(error), 2)}). The paper measured 85.2 % on ImageNet and "
        "80.7 % on ImageNet-v2, each ± 0.1 points."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Make docs/results/figure-4-STUDY.{md,json,png}."""
    return make_page("figure-4", __doc__, argv, numbers, table, draw, remarks)


if __name__ == "__main__":
    sys.exit(main())
