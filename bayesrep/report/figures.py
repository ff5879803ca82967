"""Figures; drawn without a display and saved whole."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

INK, GREY = "#222222", "#8a8a8a"
COLORS = {"raw": "#D55E00", "naive": "#E69F00", "joint": "#0072B2"}  # Okabe & Ito (2008)
LABELS = {"raw": "as measured", "naive": "naive matching", "joint": "joint posterior, 95 %"}


def _axes() -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 5.0), dpi=160, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def adjusted_accuracy_figure(table: pl.DataFrame, truth: np.ndarray | None) -> Any:
    """Reference accuracy against replication accuracy, before and after adjustment.

    Parameters
    ----------
    table
        Rows of :func:`bayesrep.estimate` and :func:`bayesrep.summarize`, classifiers only.
    truth
        [C] true adjusted accuracies in the order of the classifiers, where they are known.
    """
    figure, axes = _axes()
    x = np.empty(0)
    for method in ("raw", "naive", "joint"):
        rows = table.filter(pl.col("method") == method)
        x, y = (100 * rows[n].to_numpy() for n in ("reference_accuracy", "adjusted_accuracy"))
        style = {"color": COLORS[method], "label": LABELS[method]}
        if method == "joint" and len(rows):
            low, high = (100 * rows[n].to_numpy() for n in ("lower", "upper"))
            axes.errorbar(
                x, y, [y - low, high - y], fmt="o", ms=3.2, lw=0.8, alpha=0.85, zorder=3, **style
            )
        else:
            axes.plot(x, y, "o", ms=3.2, alpha=0.85, zorder=2, **style)
    if truth is not None:
        axes.plot(x, 100 * truth, "_", ms=6, mew=1.4, color=INK, label="truth", zorder=4)
    edges = np.array([x.min() - 1, x.max() + 1])
    axes.plot(edges, edges, color=GREY, lw=1, ls="--", zorder=1)
    axes.annotate(
        "no drop",
        (edges.mean(), edges.mean()),
        (-6, 6),
        textcoords="offset points",
        ha="right",
        color=GREY,
        fontsize=9,
    )
    axes.set_xlim(*edges)
    axes.set_xlabel("accuracy on the reference (%)")
    axes.set_ylabel("accuracy on the replication (%)")
    axes.legend(frameon=False, loc="upper left")
    return figure


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format its suffix names; the same figure gives the same bytes."""
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, metadata=metadata)
