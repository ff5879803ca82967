"""A sweep as a figure: methods side by side over the grid, coverage, and what they cost."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from bayesrep.report import vega
from bayesrep.report.figure import Figure, beside
from bayesrep.report.methods import look_of
from bayesrep.report.vega import Css, Spec
from bayesrep.sweeps.coverage import scores, varying_axes
from bayesrep.sweeps.run_spec import FIT_METHODS

SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")
"""They tell methods of one colour apart, such as those of the posterior."""
LEAST_SECONDS = 1e-3  # no time at all has no place on an axis of logarithms


def sweep_figure(runs: pl.DataFrame, estimates: pl.DataFrame) -> Spec:
    """The mean gap by method over the first axis that varies, coverage, and time."""
    axis = [*varying_axes(runs), "method"][1]
    seconds = pl.col("seconds").clip(lower_bound=LEAST_SECONDS)
    # Whatever else varies is averaged over.
    keys = list(dict.fromkeys(("method", axis)))
    means = [pl.col(name).mean() for name in ("mean_gap", "gap_width", "single_held", "seconds")]
    table = scores(runs, estimates).group_by(keys, maintain_order=True).agg(means)
    gap, half = 100 * pl.col("mean_gap"), 50 * pl.col("gap_width")
    table = table.with_columns(seconds, gap=gap, low=gap - half, high=gap + half)
    rows = table.with_columns(held=100 * pl.col("single_held")).to_dicts()
    methods = table["method"].unique(maintain_order=True).to_list()
    titled: Spec = {"title": axis.replace("_", " "), "axis": {"labelAngle": 0}}
    x: Spec = {"x": vega.name(axis, sort=None, **titled)}
    if axis != "method":
        x["xOffset"] = vega.name("method", scale={"domain": methods})
    truth = estimates.filter(quantity="mean_gap")["truth"].mean()
    at = None if truth is None else 100 * float(truth)  # type: ignore[arg-type]
    looks = _looks(methods)
    bare = {channel: {**each, "legend": None} for channel, each in looks.items()}
    points: Spec = {"title": "mean bias-corrected gap (points)"}
    drawn = [_panel("gap", points, x, rows, looks, at=at)]
    covered = [row for row in rows if row["held"] is not None]
    if covered:
        share: Spec = {"title": "intervals that hold the truth (%)", "scale": {"domain": [0, 100]}}
        drawn.append(_panel("held", share, x, covered, bare, at=95))
    # Time goes with the size of the studies where they are not all of one.
    sized = runs.filter(pl.col("error").is_null()).select(
        "method", seconds, size=pl.col("images") * pl.col("classifiers")
    )
    if sized["size"].n_unique() > 1:
        rows = sized.to_dicts()
        x = {"x": vega.number("size", title="images x classifiers", scale={"type": "log"})}
    spent = {"title": "seconds a run", "scale": {"type": "log"}, "axis": {"grid": False}}
    return beside([*drawn, _panel("seconds", spent, x, rows, bare)], columns=3)


def _looks(methods: Sequence[str]) -> Spec:
    looks = {each: look_of("joint" if each in FIT_METHODS else each) for each in methods}
    same = [[other for other in methods if looks[other].css == looks[each].css] for each in methods]
    shapes = [SHAPES[a.index(each) % len(SHAPES)] for a, each in zip(same, methods, strict=True)]
    shades = [f"var({look.css})" for look in looks.values()]
    names = {n: f"posterior by {n}" if n in FIT_METHODS else k.label for n, k in looks.items()}
    key = {"labelExpr": f"{json.dumps(names)}[datum.value]", "columns": 3, "labelLimit": 0}
    return {
        "color": vega.colors("method", methods, shades, legend=key),
        "shape": vega.colors("method", methods, shapes, legend=key),
    }


def _panel(
    field: str,
    y: Spec,
    x: Spec,
    rows: Sequence[Mapping[str, Any]],
    looks: Spec,
    *,
    at: float | None = None,
) -> Figure:
    """Points of every method, their intervals if there are any, and a line across."""
    channels = {**x, **looks}
    layers = [vega.mark({"type": "point", "filled": True, "size": 60, "opacity": 1}, **channels)]
    layers[0]["encoding"]["y"] = vega.number(field, **y)
    if field == "gap":
        stroke = {**looks["color"], "legend": None}
        rule = vega.mark("rule", **x, stroke=stroke, y=vega.number("low"))
        rule["encoding"]["y2"] = {"field": "high"}
        layers.insert(0, rule)
    if at is not None:
        line: Spec = {"type": "rule", "color": Css.SOFT, "strokeDash": [5, 4]}
        layers.append(vega.at_value(line, "y", at, y))
    return Figure(field, str(y["title"]), vega.chart(field, *layers), data={field: rows})
