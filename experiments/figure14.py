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

import polars as pl

from bayesrep.estimators.components import compare_components
from bayesrep.report.paper import figure14
from bayesrep.report.paper.figure14 import COMPONENTS, draw
from bayesrep.report.text import columns, components_table, percent
from experiments.results import gap_cells, recording, slope_cells, warned
from experiments.studies import Chosen, make_page


@recording
def numbers(
    chosen: Chosen, *, components: Sequence[int] = COMPONENTS, **options: Any
) -> dict[str, Any]:
    """The figure's numbers, and the mixtures' likelihoods."""
    found = figure14.numbers(chosen, components=components, **options)
    likelihoods = compare_components(chosen.study, components, seed=chosen.seed)
    return {**found, "likelihoods": likelihoods.to_dicts()}


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
