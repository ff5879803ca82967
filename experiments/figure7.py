"""Figure 7: fitted distributions of the true selection frequency, and the counts they explain.

    python -m experiments.figure7
    python -m experiments.figure7 --study placebo --cifar10h DIR --cifar10.1 DIR

For both data sets: the maximum-likelihood mixture of three betas p(s), the distribution of counts
that it induces, and the observed one. Where images have different numbers of annotators, all are
thinned to the fewest, in exact expectation.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import norm

from bayesrep.report.paper import figure7
from bayesrep.report.paper.figure7 import COMPONENTS, GRID, draw, points
from bayesrep.report.text import columns, percent
from bayesrep.studies.rules import REQUIRED_ROLES
from bayesrep.studies.simulate import MEAN_SELECTION_FREQUENCY, PROCESSES
from experiments.results import recorded, warned
from experiments.studies import Chosen, make_page


def numbers(chosen: Chosen) -> dict[str, Any]:
    """The figure's numbers, with the densities that simulated the study."""
    simulated = chosen.label == "simulated"
    truth = {role: true_density(role) for role in REQUIRED_ROLES} if simulated else None
    with recorded() as said:
        found = figure7.numbers(chosen, true_density=truth)
    return {**found, "warnings": said}


def true_density(role: str) -> NDArray[np.float64]:
    """Density of s on the grid in the process that simulates "outside" studies."""
    process = PROCESSES["outside"]
    mixture = process.mixtures[role]
    nodes, mass = process.nodes(mixture)
    shift = _root_of_mean(logit(nodes), mass, MEAN_SELECTION_FREQUENCY[role])
    locations = np.array(mixture.locations) + shift
    components = norm.pdf(logit(GRID)[:, None], locations, mixture.spreads)
    return components @ np.array(mixture.weights) / (GRID * (1 - GRID))


def _root_of_mean(position: NDArray[np.float64], mass: NDArray[np.float64], mean: float) -> float:
    from scipy.optimize import brentq

    return float(brentq(lambda shift: float(expit(position + shift) @ mass) - mean, -5, 5))


def table(found: dict[str, Any]) -> str:
    """The components of both fits."""
    rows = [
        [
            role,
            f"{a:.3f}",
            f"{b:.3f}",
            percent(a / (a + b), 2),
            percent(weight),
            "yes" if point else "no",
        ]
        for role in REQUIRED_ROLES
        for a, b, weight, point in zip(
            *(found[role][key] for key in ("a", "b", "weights", "shrunk_to_a_point")), strict=True
        )
    ]
    return columns(["data set", "a", "b", "component mean", "weight", "a point"], rows)


def remarks(found: dict[str, Any]) -> str:
    """How well the counts are explained, and what the figure leaves out."""
    parts: list[str] = []
    for role in REQUIRED_ROLES:
        part = found[role]
        above = np.array(part["observed"]) - np.array(part["induced"])
        parts.append(
            f"The {role}'s fit has the mean {percent(part['mean'], 2)} %, "
            f"{len(points(part))} of {COMPONENTS} components shrunk to a point, and is off the "
            f"observed shares by {percent(np.abs(above).sum() / 2, 2)} points in total variation."
        )
    return (
        " ".join(parts) + " Counts are drawn as densities, share × (n + 1), with bars of equal "
        "width, from the first count with 0.3 % of the images of a data set. Components that have "
        "shrunk to a point are dotted lines with their weight, the others the density, cut at the "
        "top where it is infinite. The paper's fitted densities put more mass at high selection "
        "frequencies than the observed counts. Counts of n annotators determine n moments of p(s), "
        f"not its details.{warned(found)}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Make docs/results/figure-7-STUDY.{md,json,png}."""
    return make_page("figure-7", __doc__, argv, numbers, table, draw, remarks)


if __name__ == "__main__":
    sys.exit(main())
