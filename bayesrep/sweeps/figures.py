"""A sweep as a figure: methods side by side over the grid, coverage, and what they cost."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from bayesrep.report.methods import OTHER_LOOK, POSTERIOR_LOOK, color_of, label_of
from bayesrep.report.style import default_style, interval_points, legend_below, panels
from bayesrep.sweeps.coverage import scores, varying_axes
from bayesrep.sweeps.run_spec import FIT_METHODS

METHOD_MARKERS = "osD^vP"
"""They tell methods of one colour apart, such as those of the posterior."""


@default_style()
def sweep_figure(runs: pl.DataFrame, estimates: pl.DataFrame) -> Any:
    """The mean gap by method over the first axis that varies, coverage, and time."""
    axes = varying_axes(runs)
    axis = axes[1] if len(axes) > 1 else "method"
    # Over all other axes it is averaged.
    means = pl.col("mean_gap", "gap_width", "single_held", "seconds").mean()
    keys = list(dict.fromkeys(("method", axis)))
    table = scores(runs, estimates).group_by(keys, maintain_order=True).agg(means)
    covered = table.filter(pl.col("single_held").is_not_null())
    has_coverage = len(covered) > 0
    drawing, places = panels(2 + has_coverage)
    _each_method(places[0], table, axis, _draw_gaps)
    truth = estimates.filter(quantity="mean_gap")["truth"].mean()
    if truth is not None:
        places[0].axhline(100 * float(truth), color="0.3", lw=0.9, ls="--", label="mean truth")  # type: ignore[arg-type]
    places[0].set(ylabel="mean bias-corrected gap (points)")
    if has_coverage:
        every = table["method"].unique(maintain_order=True).to_list()
        _each_method(places[1], covered, axis, partial(_draw_points, "single_held", 100), every)
        places[1].axhline(95, color="0.4", lw=0.8, ls="--")
        places[1].set(ylabel="classifiers whose interval holds the truth (%)", ylim=(-3, 103))
    _times(places[-1], runs, table, axis)
    legend_below(drawing)
    return drawing


def _each_method(
    axes: Any,
    table: pl.DataFrame,
    axis: str,
    draw: Callable[[Any, Any, pl.DataFrame, Any], None],
    every: Sequence[str] = (),
) -> None:
    """Draw the table's methods over an axis, a little apart, in their looks among `every`."""
    values = table[axis].unique(maintain_order=True).to_list()
    methods = table["method"].unique(maintain_order=True).to_list()
    for number, method in enumerate(methods):
        rows = table.filter(method=method)
        offset = 0.0 if axis == "method" else 0.5 * (number - (len(methods) - 1) / 2) / len(methods)
        x = np.array([values.index(each) + offset for each in rows[axis]])
        draw(axes, x, rows, _look(method, list(every) or methods))
    axes.set_xticks(range(len(values)), values, rotation=30 * (axis == "method"))
    axes.set_xlabel(axis.replace("_", " "))
    axes.set_xlim(-0.6, len(values) - 0.4)


def _look(method: str, methods: list[str]) -> dict[str, Any]:
    """Colour, marker and name of a method: those of a posterior have one colour."""
    fits = [each for each in methods if each in FIT_METHODS]
    if method in FIT_METHODS:
        return {
            "color": POSTERIOR_LOOK.paper,
            "marker": METHOD_MARKERS[fits.index(method) % len(METHOD_MARKERS)],
            "label": f"posterior by {method}",
        }
    others = [each for each in methods if color_of(each) == OTHER_LOOK.paper]
    place = others.index(method) if method in others else 0
    marker = METHOD_MARKERS[place % len(METHOD_MARKERS)]
    return {"color": color_of(method), "marker": marker, "label": label_of(method)}


def _draw_gaps(axes: Any, x: Any, rows: pl.DataFrame, look: Any) -> None:
    gap, width = (100 * rows[n].cast(pl.Float64).to_numpy() for n in ("mean_gap", "gap_width"))
    half = np.nan_to_num(width) / 2
    interval_points(axes, x, gap, gap - half, gap + half, **look)


def _draw_points(name: str, unit: int, axes: Any, x: Any, rows: pl.DataFrame, look: Any) -> None:
    axes.plot(x, unit * rows[name].cast(pl.Float64).to_numpy(), lw=0, **look)


def _times(axes: Any, runs: pl.DataFrame, table: pl.DataFrame, axis: str) -> None:
    """Seconds against the size of the studies, or over the axis where all are of one size."""
    size = pl.col("images") * pl.col("classifiers")
    sized = runs.filter(pl.col("error").is_null()).with_columns(size=size)
    if sized["size"].n_unique() > 1:
        methods = sized["method"].unique(maintain_order=True).to_list()
        for method in methods:
            rows = sized.filter(method=method)
            axes.plot(rows["size"], rows["seconds"], lw=0, **_look(method, methods))
        axes.set(xscale="log", xlabel="images x classifiers")
    else:
        _each_method(axes, table, axis, partial(_draw_points, "seconds", 1))
    axes.set(yscale="log", ylabel="seconds a run")
