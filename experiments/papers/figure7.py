"""Figure 7: fitted distributions of the true selection frequency, and the counts they explain.

For both data sets: the maximum-likelihood mixture of three betas p(s), the distribution of counts
that it induces, and the observed one. Where images have different numbers of annotators, all are
thinned to the fewest, in exact expectation.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import beta

from bayesrep.estimators.mixtures import complete_cells, fit_mixtures, log_shares
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.types import Floats
from experiments.papers.study_facts import StudyFacts
from experiments.style import Color, legend_below, panels

FIGURE_COMPONENTS = 3
MIN_DENSITY_SHARE = 0.003  # where the drawn range begins
# Equal steps of logit s: a density that is steep near 1 keeps its shape.
S_LOGIT = expit(np.linspace(-6, 6, 601))


def numbers(
    study_facts: StudyFacts, *, true_density: Mapping[str, Floats] | None = None
) -> dict[str, Any]:
    """Fitted parameters, densities, and induced and observed shares of every count."""
    cells = complete_cells(study_facts.all_cells, study_facts.annotators)
    fit = fit_mixtures(cells, components=FIGURE_COMPONENTS, seed=study_facts.seed)
    induced = np.exp(log_shares(fit, cells)[:, 0])
    facts: dict[str, Any] = {"annotators": study_facts.annotators, "s": S_LOGIT.tolist()}
    for row, role in enumerate(REQUIRED_ROLES):
        a, b, weights = (field[row, 0] for field in (fit.a, fit.b, fit.weights))
        smooth = ~fit.degenerate_components[row, 0]
        facts[role] = {
            "a": a.tolist(),
            "b": b.tolist(),
            "weights": weights.tolist(),
            "shrunk_to_a_point": (~smooth).tolist(),
            "mean": float(weights @ (a / (a + b))),
            "log_likelihood": float(fit.log_likelihood[row, 0]),
            "converged": bool(fit.converged[row, 0]),
            "density": (
                beta.pdf(S_LOGIT[:, None], a[smooth], b[smooth]) @ weights[smooth]
            ).tolist(),
            "true_density": None if true_density is None else true_density[role].tolist(),
            "induced": induced[row].tolist(),
            "observed": (cells.images[row, 0] / cells.images[row, 0].sum()).tolist(),
        }
    return facts


def points(part: dict[str, Any]) -> list[tuple[float, float]]:
    """Mean and weight of the components that have shrunk to a point."""
    fields = (part[key] for key in ("a", "b", "weights", "shrunk_to_a_point"))
    return [(a / (a + b), weight) for a, b, weight, point in zip(*fields, strict=True) if point]


def draw(data: dict[str, Any]) -> Any:
    """A panel for each data set; counts are drawn as densities, share × (n + 1)."""
    figure, both = panels(2)
    n, s = data["annotators"], 100 * np.array(data["s"])
    top = 1.6 * (n + 1) * max(max(data[role]["observed"]) for role in REQUIRED_ROLES)
    for axes, letter, role in zip(both, "ab", REQUIRED_ROLES, strict=True):
        part = data[role]
        edges = 100 * np.arange(n + 2) / (n + 1)
        observed = np.array(part["observed"]) * (n + 1)
        axes.stairs(observed, edges, color=Color.YELLOW, fill=True, alpha=0.45, label="observed")
        middle = (edges[1:] + edges[:-1]) / 2
        induced = np.array(part["induced"]) * (n + 1)
        axes.plot(middle, induced, "o", color=Color.RED, ms=3, label="induced by the fit")
        axes.plot(s, part["density"], color=Color.BLUE, lw=1.6, label="fitted p(s)")
        for step, (place, weight) in enumerate(points(part)):
            axes.plot([100 * place] * 2, [0, top], color=Color.BLUE, lw=1.6, ls=":")
            axes.annotate(
                f"point mass\n{100 * weight:.0f} %",
                (100 * place, top),
                (-4, -2 - 28 * step),
                textcoords="offset points",
                ha="right",
                va="top",
                fontsize=9,
                color=Color.BLUE,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            )
        if part["true_density"] is not None:
            axes.plot(s, part["true_density"], color=Color.INK, lw=1.1, ls="--", label="true p(s)")
        axes.set(ylim=(0, top), xlim=(_axis_start(data), 100.5), xlabel="selection frequency (%)")
        axes.set_title(f"({letter}) {role}", loc="left", fontsize=10)
    both[0].set_ylabel("density")
    legend_below(figure)
    return figure


def _axis_start(data: dict[str, Any]) -> float:
    """Start of the drawn range, in percent: the first count with LEAST_SHARE of the images."""
    largest = np.maximum(*(data[role]["observed"] for role in REQUIRED_ROLES))
    return 100 * int(np.flatnonzero(largest >= MIN_DENSITY_SHARE)[0]) / (data["annotators"] + 1)
