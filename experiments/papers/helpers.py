"""Shared parts of the paper's figures: an analysis as numbers, and marks of the truth."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesrep.estimators.analysis import QUANTITIES, Analysis
from experiments.style import Color

INTERVAL_KEYS = ("estimate", "lower", "upper")


def analysis_numbers(analysis: Analysis) -> dict[str, Any]:
    """One method's estimates with 95 % intervals, ready for JSON.

    ``adjusted_accuracy``, ``lower`` and ``upper`` of the classifiers, and under ``quantities``
    estimate, lower and upper of what is said of all together.
    """
    rows = np.vstack([analysis.values, analysis.interval])
    classifiers, together = np.split(rows, [len(analysis.statistics.classifiers)], axis=1)
    return {
        **dict(zip(("adjusted_accuracy", *INTERVAL_KEYS[1:]), classifiers.tolist(), strict=True)),
        "quantities": {
            quantity: dict(zip(INTERVAL_KEYS, column, strict=True))
            for quantity, column in zip(QUANTITIES, together.T.tolist(), strict=True)
        },
    }


def quantity(series: Sequence[dict[str, Any]], name: str, scale: float) -> list[Any]:
    """Estimate, lower and upper end of one of `QUANTITIES` along a series of analyses."""
    values = [part["quantities"][name] for part in series]
    return [scale * np.array([value[end] for value in values]) for end in INTERVAL_KEYS]


def mark_truth(axes: Any, data: dict[str, Any]) -> None:
    """True adjusted accuracies as dashes on `accuracy_axes`, where they are known."""
    if data["true_adjusted_accuracy"] is not None:
        x, y = (
            100 * np.array(data[name]) for name in ("reference_accuracy", "true_adjusted_accuracy")
        )
        axes.plot(x, y, "_", color=Color.INK, ms=5, mew=0.9, label="truth", zorder=4)


def line_at_truth(axes: Any, value: float | None, label: str | None = None) -> None:
    """A dotted line across the axes at a true value, where it is known."""
    if value is not None:
        axes.axhline(value, color=Color.INK, lw=1, ls=":", label=label)


def share_heights(several: Sequence[Any]) -> None:
    """Give axes that are to be compared the same range from bottom to top."""
    low, high = zip(*(axes.get_ylim() for axes in several), strict=True)
    for axes in several:
        axes.set_ylim(min(low), max(high))


def shades(count: int) -> list[str]:
    """Colours for an ordered series, from light to dark; all stand out on white."""
    from matplotlib.colors import LinearSegmentedColormap, to_hex

    ramp = LinearSegmentedColormap.from_list("house", ["#f0b400", "#56B4E9", "#0072B2", "#00263f"])
    return [to_hex(ramp(place)) for place in np.linspace(0, 1, count)]


def accuracy_axes(axes: Any, reference: np.ndarray) -> None:
    """Make axes show accuracy on the replication against ``reference`` [C], with y = x."""
    edges = 100 * np.array([reference.min(), reference.max()])
    edges += np.array([-0.045, 0.045]) * max(np.ptp(edges), 1.0)
    axes.plot(edges, edges, color=Color.GREY, lw=1, ls="--", zorder=1, label="no drop")
    axes.set(xlabel="accuracy on the reference (%)", ylabel="accuracy on the replication (%)")
    axes.set_xlim(*edges)
