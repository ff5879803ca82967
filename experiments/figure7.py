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
from scipy.stats import beta, norm

from bayesrep.estimators.mixtures import complete_cells, fit_mixtures, log_masses
from bayesrep.report.figures import COLORS, INK, legend_below, panels
from bayesrep.report.text import columns, percent
from bayesrep.rules import REQUIRED_ROLES
from bayesrep.simulate import MEAN_SELECTION_FREQUENCY, PROCESSES
from experiments.results import recorded, warned
from experiments.studies import Chosen, make_page

COMPONENTS = 3
LEAST_SHARE = 0.003
# Equal steps of logit s: a density that is steep near 1 keeps its shape.
GRID = expit(np.linspace(-6, 6, 601))


def numbers(chosen: Chosen) -> dict[str, Any]:
    """Fitted parameters, densities, and induced and observed shares of every count."""
    cells = complete_cells(chosen.whole, chosen.annotators)
    with recorded() as said:
        fit = fit_mixtures(cells, components=COMPONENTS, seed=chosen.seed)
    induced = np.exp(log_masses(fit, cells)[:, 0])
    found: dict[str, Any] = {"annotators": chosen.annotators, "s": GRID.tolist(), "warnings": said}
    for row, role in enumerate(REQUIRED_ROLES):
        a, b, weights = (field[row, 0] for field in (fit.a, fit.b, fit.weights))
        smooth = ~fit.degenerate[row, 0]
        found[role] = {
            "a": a.tolist(),
            "b": b.tolist(),
            "weights": weights.tolist(),
            "shrunk_to_a_point": (~smooth).tolist(),
            "mean": float(weights @ (a / (a + b))),
            "log_likelihood": float(fit.log_likelihood[row, 0]),
            "converged": bool(fit.converged[row, 0]),
            "density": (beta.pdf(GRID[:, None], a[smooth], b[smooth]) @ weights[smooth]).tolist(),
            "true_density": true_density(role).tolist() if chosen.label == "simulated" else None,
            "induced": induced[row].tolist(),
            "observed": (cells.images[row, 0] / cells.images[row, 0].sum()).tolist(),
        }
    return found


def points(part: dict[str, Any]) -> list[tuple[float, float]]:
    """Mean and weight of the components that have shrunk to a point."""
    fields = (part[key] for key in ("a", "b", "weights", "shrunk_to_a_point"))
    return [(a / (a + b), weight) for a, b, weight, point in zip(*fields, strict=True) if point]


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


def draw(found: dict[str, Any]) -> Any:
    """A panel for each data set; counts are drawn as densities, share × (n + 1)."""
    figure, both = panels(2)
    n, s = found["annotators"], 100 * np.array(found["s"])
    top = 1.6 * (n + 1) * max(max(found[role]["observed"]) for role in REQUIRED_ROLES)
    for axes, letter, role in zip(both, "ab", REQUIRED_ROLES, strict=True):
        part = found[role]
        edges = 100 * np.arange(n + 2) / (n + 1)
        observed = np.array(part["observed"]) * (n + 1)
        axes.stairs(observed, edges, color=COLORS["naive"], fill=True, alpha=0.45, label="observed")
        middle = (edges[1:] + edges[:-1]) / 2
        induced = np.array(part["induced"]) * (n + 1)
        axes.plot(middle, induced, "o", color=COLORS["raw"], ms=3, label="induced by the fit")
        axes.plot(s, part["density"], color=COLORS["joint"], lw=1.6, label="fitted p(s)")
        for step, (place, weight) in enumerate(points(part)):
            axes.plot([100 * place] * 2, [0, top], color=COLORS["joint"], lw=1.6, ls=":")
            axes.annotate(
                f"point mass\n{100 * weight:.0f} %",
                (100 * place, top),
                (-4, -2 - 28 * step),
                textcoords="offset points",
                ha="right",
                va="top",
                fontsize=9,
                color=COLORS["joint"],
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            )
        if part["true_density"] is not None:
            axes.plot(s, part["true_density"], color=INK, lw=1.1, ls="--", label="true p(s)")
        axes.set_ylim(0, top)
        axes.set_xlim(lowest(found), 100.5)
        axes.set_xlabel("selection frequency (%)")
        axes.set_title(f"({letter}) {role}", loc="left", fontsize=10)
    both[0].set_ylabel("density")
    legend_below(figure)
    return figure


def lowest(found: dict[str, Any]) -> float:
    """Where the drawn range begins (percent): at the first count with LEAST_SHARE."""
    largest = np.maximum(*(found[role]["observed"] for role in REQUIRED_ROLES))
    first = int(np.flatnonzero(largest >= LEAST_SHARE)[0])
    return 100 * first / (found["annotators"] + 1)


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
