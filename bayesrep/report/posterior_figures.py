"""The report's figures for a paper: of one study and its posterior.

What they show is that of the page (`bayesrep.report.content`). Ranks and energies are ArviZ's own
plots, which every reader of a Bayesian analysis knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.checks.predictions import check_predictions
from bayesrep.errors import PosteriorError, StudyError, listing
from bayesrep.posterior.files import arviz
from bayesrep.posterior.fitted import Fitted
from bayesrep.report.content import (
    CURVE_GRID,
    GRID,
    curves_of,
    frequencies_of,
    gather,
    image_of,
    mixture_draws,
)
from bayesrep.report.figures import (
    COLORS,
    GREY,
    INK,
    LABELS,
    accuracy_axes,
    interval_points,
    legend_below,
    panels,
)
from bayesrep.studies.rules import REQUIRED_ROLES
from bayesrep.studies.study import Study

__all__ = [
    "accuracies",
    "answer",
    "checks",
    "curves",
    "energy",
    "frequencies",
    "image",
    "ranks",
]

ROLE_COLORS = {"reference": COLORS["joint"], "replication": COLORS["raw"], "candidates": GREY}
SHOWN = 4  # curves in one figure
_TOP = 12.0  # of a density, which may be infinite at an end

Floats = NDArray[np.float64]


def answer(study: Study, posterior: Any, *, bootstrap: int = 50, seed: int = 0) -> Any:
    """Mean gaps by method with 95 % intervals."""
    gaps = gather(study, posterior, bootstrap=bootstrap, seed=seed).gaps
    figure, (axes,) = panels(1)
    names = [LABELS.get(name, "posterior") for name in gaps["method"]]
    place = np.arange(len(names))[::-1]
    colors = [COLORS.get(name, COLORS["joint"]) for name in gaps["method"]]
    axes.barh(place, 100 * gaps["gap"].to_numpy(), color=colors, height=0.6)
    low, high = (100 * gaps[end].to_numpy().astype(float) for end in ("lower", "upper"))
    axes.hlines(place, low, high, color=INK, lw=1.5)
    axes.set_yticks(place, names)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("mean accuracy gap (%)")
    return figure


def accuracies(study: Study, posterior: Any, *, bootstrap: int = 0, seed: int = 0) -> Any:
    """Adjusted against reference accuracy, as measured, by EM + spline and by the posterior."""
    content = gather(study, posterior, bootstrap=bootstrap, seed=seed)
    if content.model is None or content.model not in content.classifiers.columns:
        raise PosteriorError(f"no adjusted accuracies: {content.missing.get('posterior', 'none')}")
    rows = content.classifiers
    figure, (axes,) = panels(1)
    reference = rows["reference"].to_numpy()
    accuracy_axes(axes, reference)
    for method in ("raw", "em-spline"):
        values = 100 * rows[method].to_numpy()
        style = {"color": COLORS[method], "ms": 3, "label": LABELS[method]}
        axes.plot(100 * reference, values, "o", **style)
    own, low, high = (
        100 * rows[name].to_numpy()
        for name in (content.model, f"{content.model}_lower", f"{content.model}_upper")
    )
    interval_points(
        axes, 100 * reference, own, low, high, color=COLORS["joint"], ms=3, label="posterior"
    )
    legend_below(figure)
    return figure


def frequencies(study: Study, posterior: Any) -> Any:
    """Observed selection frequencies with predictive bands, and the fitted distributions."""
    Fitted(study, posterior)
    bands = mixture_draws(posterior)
    figure, (left, right) = panels(2)
    for role, data in study.datasets.items():
        part = frequencies_of(data, role, posterior, bands)
        color, edges = ROLE_COLORS[role], 100 * part.edges
        left.stairs(100 * part.observed, edges, color=color, fill=True, alpha=0.3, label=role)
        if part.predicted is not None:
            _, low, high = 100 * part.predicted
            left.vlines((edges[1:] + edges[:-1]) / 2, low, high, color=color, lw=1.5)
        if part.density is not None:
            mean, low, high = part.density
            right.plot(100 * GRID, mean, color=color, lw=1.5, label=role)
            right.fill_between(100 * GRID, low, high, color=color, alpha=0.2, lw=0)
    left.set_xlabel("observed selection frequency (%)")
    left.set_ylabel("share of images (%)")
    right.set_xlabel("true selection frequency (%)")
    right.set_ylabel("density")
    right.set_ylim(0, min(right.get_ylim()[1], _TOP))
    legend_below(figure)
    return figure


def image(study: Study, posterior: Any) -> Any:
    """True selection frequency of an image that 7 of 10 annotators select, in both pools."""
    Fitted(study, posterior)
    found = image_of(study, mixture_draws(posterior))
    k = round(0.7 * found.annotators)
    figure, (axes,) = panels(1)
    for role, density in found.densities.items():
        style = {"color": ROLE_COLORS[role], "lw": 1.6, "label": role}
        axes.plot(100 * GRID, density[k], **style)
    axes.axvline(100 * k / found.annotators, color=GREY, ls="--", lw=1, label="measured")
    axes.set_xlabel(f"true selection frequency given {k} of {found.annotators} (%)")
    axes.set_ylabel("density")
    axes.set_ylim(0, None)
    legend_below(figure)
    return figure


def curves(study: Study, posterior: Any, *, classifiers: Sequence[str] = ()) -> Any:
    """Accuracy curves with 95 % bands and the observed cells, of the classifiers named.

    Raises
    ------
    StudyError
        For a name that is no classifier's.
    """
    if unknown := [name for name in classifiers if name not in study.classifiers]:
        raise StudyError(f"{listing(unknown, 'classifier')} is not in the study")
    Fitted(study, posterior)
    found = curves_of(study, posterior)
    chosen = list(classifiers) or _spread(study)
    figure, every = panels(len(chosen), rows=-(-len(chosen) // 2))
    size = 4 + 60 * found.images / found.images.max()
    for axes, name in zip(every, chosen, strict=True):
        number = study.classifiers.index(name)
        mean, low, high = 100 * found.bands[:, number]
        axes.plot(100 * CURVE_GRID, mean, color=COLORS["joint"], lw=1.6, label="posterior")
        axes.fill_between(100 * CURVE_GRID, low, high, color=COLORS["joint"], alpha=0.25, lw=0)
        seen = 100 * found.right[number] / found.images
        axes.scatter(100 * found.frequency, seen, s=size, color=COLORS["raw"], label="observed")
        axes.set_title(name, loc="left", fontsize=9)
        axes.set_ylim(-2, 102)
        axes.set_xlabel("selection frequency (%)")
        axes.set_ylabel("accuracy (%)")
    legend_below(figure)
    return figure


def _spread(study: Study) -> list[str]:
    """A few classifiers from the least to the most accurate."""
    order = np.argsort(study.reference.correct.mean(axis=0), kind="stable")
    places = np.linspace(0, len(order) - 1, min(SHOWN, len(order))).round().astype(int)
    return [study.classifiers[number] for number in order[places]]


def checks(study: Study, posterior: Any) -> Any:
    """Posterior predictive checks: p-values of the classifiers' answers and of the counts."""
    Fitted(study, posterior)
    table = check_predictions(posterior)
    answers = table.filter(pl.col("kind") == "answers")["p"].to_numpy()
    figure, (axes,) = panels(1)
    axes.hist(answers, np.linspace(0, 1, 11), color=COLORS["joint"], alpha=0.5, label="classifiers")
    for role in REQUIRED_ROLES:
        counts = table.filter(pl.col("kind") == "counts", pl.col("name") == role)
        if len(counts):
            label = f"counts of the {role}"
            axes.axvline(counts["p"][0], color=ROLE_COLORS[role], lw=1.6, ls="--", label=label)
    axes.axhline(len(study.classifiers) / 10, color=GREY, lw=1)
    axes.set_xlim(0, 1)
    axes.set_xlabel("p-value")
    axes.set_ylabel("classifiers")
    legend_below(figure)
    return figure


def ranks(study: Study, posterior: Any) -> Any:
    """ArviZ's rank plot of the mean selection frequencies."""
    Fitted(study, posterior)
    return _figure_of(arviz().plot_rank(posterior, var_names=["mean_selection_frequency"]))


def energy(study: Study, posterior: Any) -> Any:
    """ArviZ's plot of the energy and its changes from draw to draw."""
    Fitted(study, posterior)
    return _figure_of(arviz().plot_energy(posterior))


def _figure_of(plot: Any) -> Any:
    """The matplotlib figure of what ArviZ returns: axes in its old version, a plot in its new."""
    if hasattr(plot, "viz"):
        return plot.viz["figure"].item()
    return np.ravel(np.asarray(plot, dtype=object))[0].figure
