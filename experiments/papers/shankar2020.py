"""Figures 1 and 4 of Shankar et al. (2020): multi-label accuracy of classifiers and people."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from bayesrep.errors import StudyError
from bayesrep.protocols.by_subset import compare_subsets, of_classes
from bayesrep.protocols.label_sets import LabelSets
from bayesrep.protocols.lines import line_band
from bayesrep.protocols.multi_label import multilabel
from bayesrep.protocols.subsets import class_subsets
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.validation import REQUIRED_ROLES
from experiments.style import Color, legend_below, panels

LEAST_CLASSIFIERS = 3  # classifiers, for a line with its band
OBJECTS_SUBSET = "objects"
_PARTICIPANT_STYLES = {"classifier": (Color.INK, "classifiers"), "human": (Color.PURPLE, "people")}


def both_sets(
    both: Sequence[Predictions],
    sets: Sequence[LabelSets],
    humans: Sequence[Predictions] | None = None,
) -> Any:
    """Figure 1: replication against reference, all classes and, of ImageNet's, objects alone."""
    objects = class_subsets(both[0].classes).get(OBJECTS_SUBSET)
    subsets = {} if objects is None else of_classes({"objects only": objects}, *both)
    table = compare_subsets(
        both[0],
        both[1],
        subsets,
        humans=None if humans is None else (humans[0], humans[1]),
        sets=(sets[0], sets[1]),
    )
    titles = table["subset"].unique(maintain_order=True)
    figure, every = panels(len(titles))
    for axes, title in zip(every, titles, strict=True):
        _scatter(axes, table.filter(subset=title))
        axes.set_title(title, loc="left", fontsize=10)
    every[0].set_ylabel("multi-label accuracy on the replication (%)")
    legend_below(figure)
    return figure


def _scatter(axes: Any, table: pl.DataFrame) -> None:
    x, y = (table[f"{role}_accuracy"].to_numpy() for role in REQUIRED_ROLES)
    ends = np.array([np.nanmin([x, y]), np.nanmax([x, y])])
    ends += np.array([-0.05, 0.05]) * max(np.ptp(ends), 0.02)
    ends = ends.clip(0.001, 0.999)
    axes.plot(100 * ends, 100 * ends, color=Color.GREY, lw=1, ls="--", label="y = x")
    machines = table.filter(kind="classifier")
    if len(machines) >= LEAST_CLASSIFIERS:
        acc = [machines[f"{role}_accuracy"].to_numpy() for role in REQUIRED_ROLES]
        grid = np.linspace(max(ends[0], acc[0].min()), acc[0].max(), 100)
        line, low, high = (100 * each for each in line_band(acc[0], acc[1], grid, "linear"))
        axes.plot(100 * grid, line, color=Color.RED, lw=1.2, label="linear fit")
        axes.fill_between(100 * grid, low, high, color=Color.RED, alpha=0.18, lw=0)
    for kind, (color, label) in _PARTICIPANT_STYLES.items():
        rows = table.filter(kind=kind)
        if rows.is_empty():
            continue
        x, y = (100 * rows[f"{role}_accuracy"].to_numpy() for role in REQUIRED_ROLES)
        span = {
            role: [100 * rows[f"{role}_{end}"].to_numpy() for end in ("lower", "upper")]
            for role in REQUIRED_ROLES
        }
        axes.hlines(y, *span["reference"], color=color, lw=0.6, alpha=0.5)
        axes.vlines(x, *span["replication"], color=color, lw=0.6, alpha=0.5)
        axes.plot(x, y, "o", ms=3.5, color=color, label=label, zorder=4)
    axes.set(xlabel="multi-label accuracy on the reference (%)")


def beside_top(predictions: Predictions, sets: LabelSets) -> Any:
    """Figure 4: multi-label accuracy against top-1 and against top-5, with lines."""
    table = multilabel(predictions, sets, subsets={}, trials=1)
    wide = table.filter(subset="all").pivot("metric", index="classifier", values="accuracy")
    if "top-5" not in wide.columns:
        raise StudyError("figure-needs-five-answers")
    figure, every = panels(2)
    y = wide["multi-label"].to_numpy()
    for axes, metric in zip(every, ("top-1", "top-5"), strict=True):
        x = wide[metric].to_numpy()
        ends = np.array([min(x.min(), y.min()), max(x.max(), y.max())])
        axes.plot(100 * ends, 100 * ends, color=Color.GREY, lw=1, ls="--", label="y = x")
        if len(wide) >= LEAST_CLASSIFIERS:
            grid = np.linspace(x.min(), x.max(), 100)
            line, *_ = line_band(x, y, grid, "linear")
            axes.plot(100 * grid, 100 * line, color=Color.RED, lw=1.2, label="linear fit")
        axes.plot(100 * x, 100 * y, "o", ms=3.5, color=Color.BLUE, label="classifiers")
        axes.set(xlabel=f"{metric} accuracy (%)", ylabel="multi-label accuracy (%)")
        median = 100 * np.median(y - x)
        axes.set_title(f"median difference {median:+.1f} points", loc="left", fontsize=10)
    legend_below(figure)
    return figure
