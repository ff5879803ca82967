"""Vega-Lite specifications of the page's figures.

Each draws rows that the page puts into its named data sets ("data" and, for some, "lines" or
"cells"); what the rows are is in assets/page.js. Colours are names of the page's style variables.
"""

from __future__ import annotations

from typing import Any

import altair as alt

__all__ = ["METHOD_COLORS", "specs"]

METHOD_COLORS = {
    "raw": "var(--raw)",
    "naive": "var(--naive)",
    "jackknife": "var(--jackknife)",
    "em-spline": "var(--em-spline)",
}
POSTERIOR, RAW, SOFT, INK = "var(--posterior)", "var(--raw)", "var(--soft)", "var(--ink)"


def specs(methods: dict[str, str], roles: list[str], pair: tuple[str, str]) -> dict[str, Any]:
    """All specifications by the name of their figure.

    Parameters
    ----------
    methods
        Label of every method shown, in order.
    roles
        Of the data sets, as legends call them.
    pair
        The two roles of the figure of one image.
    """
    charts = {
        "answer-chart": _answer(methods),
        "scatter": _scatter(),
        "histogram": _histogram(roles),
        "density": _density(roles),
        "image": _image(list(pair)),
        "toy": _toy(),
        "curve": _curve(),
        "pvalues": _p_values(),
        "ranks": _ranks(),
        "energy": _energy(),
    }
    return {name: _sized(chart, name) for name, chart in charts.items()}


def _sized(chart: Any, name: str) -> dict[str, Any]:
    height = {"answer-chart": 190, "scatter": 420}.get(name, 280)
    spec = chart.properties(width="container", height=height).to_dict()
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    spec.pop("config", None)  # the page has its own, for light and dark
    return spec


def _data(name: str = "data") -> Any:
    return alt.NamedData(name)


def _colors(names: list[str], colors: list[str]) -> Any:
    return alt.Scale(domain=names, range=colors)


def _answer(methods: dict[str, str]) -> Any:
    colors = [METHOD_COLORS.get(name, POSTERIOR) for name in methods]
    labels = list(methods.values())
    base = alt.Chart(_data()).encode(
        y=alt.Y("method:N", sort=labels, title=None, axis=alt.Axis(labelLimit=220))
    )
    tooltip = [
        alt.Tooltip("method:N"),
        alt.Tooltip("gap:Q", format=".2f", title="gap (%)"),
        alt.Tooltip("lower:Q", format=".2f"),
        alt.Tooltip("upper:Q", format=".2f"),
    ]
    bars = base.mark_bar(height=18).encode(
        x=alt.X("gap:Q", title="mean accuracy gap (%)"),
        color=alt.Color("method:N", scale=_colors(labels, colors), legend=None),
        tooltip=tooltip,
    )
    rules = base.mark_rule(color=INK, strokeWidth=1.5).encode(x="lower:Q", x2="upper:Q")
    return bars + rules


def _scatter() -> Any:
    x = alt.X("reference:Q", title="accuracy on the reference (%)", scale=alt.Scale(zero=False))
    lines = (
        alt.Chart(_data("lines"))
        .mark_line()
        .encode(
            x=alt.X("x:Q", scale=alt.Scale(zero=False), title="accuracy on the reference (%)"),
            y=alt.Y("y:Q", scale=alt.Scale(zero=False), title="accuracy on the replication (%)"),
            strokeDash=alt.StrokeDash(
                "which:N",
                scale=alt.Scale(domain=["no drop", "fitted line"], range=[[5, 4], [1, 0]]),
            ),
            color=alt.Color(
                "which:N",
                scale=_colors(["no drop", "fitted line"], [SOFT, POSTERIOR]),
                legend=None,
            ),
        )
    )
    base = alt.Chart(_data()).encode(x=x)
    found = alt.datum["found"]
    rules = base.mark_rule(color=POSTERIOR, opacity=0.45).encode(y="lower:Q", y2="upper:Q")
    points = base.mark_circle().encode(
        y="accuracy:Q",
        color=alt.condition(found, alt.value(RAW), alt.value(POSTERIOR)),
        size=alt.condition(found, alt.value(150), alt.value(38)),
        opacity=alt.condition(found, alt.value(1), alt.value(0.75)),
        tooltip=[
            alt.Tooltip("classifier:N"),
            alt.Tooltip("reference:Q", format=".1f", title="reference (%)"),
            alt.Tooltip("accuracy:Q", format=".1f", title="shown (%)"),
            alt.Tooltip("lower:Q", format=".1f"),
            alt.Tooltip("upper:Q", format=".1f"),
        ],
    )
    return (lines + rules + points).resolve_scale(color="independent")


def _histogram(roles: list[str]) -> Any:
    color = alt.Color("which:N", scale=_colors(roles, [POSTERIOR, RAW, SOFT]))
    x = alt.X("low:Q", title="observed selection frequency (%)", scale=alt.Scale(nice=False))
    base = alt.Chart(_data()).encode(color=color)
    bars = base.mark_bar(opacity=0.35, stroke=None).encode(
        x=x,
        x2="high:Q",
        y=alt.Y("observed:Q", title="share of images (%)", stack=None, scale=alt.Scale(zero=True)),
        y2=alt.datum(0),
        tooltip=["which:N", alt.Tooltip("observed:Q", format=".2f", title="observed (%)")],
    )
    middle = base.transform_calculate(middle="(datum.low + datum.high) / 2")
    bands = middle.mark_rule(strokeWidth=2).encode(x="middle:Q", y="lower:Q", y2="upper:Q")
    return bars + bands


def _density(roles: list[str]) -> Any:
    base = alt.Chart(_data()).encode(
        x=alt.X("s:Q", title="true selection frequency s (%)"),
        color=alt.Color("which:N", scale=_colors(roles, [POSTERIOR, RAW, SOFT])),
    )
    top = alt.Scale(domain=[0, 12], clamp=True)
    band = base.mark_area(opacity=0.25).encode(
        y=alt.Y("lower:Q", title="density p(s)", scale=top), y2="upper:Q"
    )
    return band + base.mark_line().encode(y=alt.Y("mean:Q", scale=top))


def _lines(names: list[str], colors: list[str]) -> Any:
    return (
        alt.Chart(_data())
        .mark_area(opacity=0.18, line={"strokeWidth": 2})
        .encode(
            x=alt.X("s:Q", title="true selection frequency s (%)"),
            y=alt.Y("density:Q", title="density", stack=None),
            color=alt.Color("which:N", scale=_colors(names, colors)),
        )
    )


def _image(names: list[str]) -> Any:
    return _lines(names, [POSTERIOR, RAW])


def _toy() -> Any:
    return _lines(["reference", "candidates", "replication"], [POSTERIOR, SOFT, RAW])


def _curve() -> Any:
    y = alt.Scale(domain=[0, 100])
    base = alt.Chart(_data()).encode(x=alt.X("s:Q", title="selection frequency (%)"))
    band = base.mark_area(opacity=0.25, color=POSTERIOR).encode(
        y=alt.Y("lower:Q", title="accuracy (%)", scale=y), y2="upper:Q"
    )
    line = base.mark_line(color=POSTERIOR).encode(y=alt.Y("mean:Q", scale=y))
    cells = (
        alt.Chart(_data("cells"))
        .mark_circle(color=RAW, opacity=0.65)
        .encode(
            x="frequency:Q",
            y=alt.Y("accuracy:Q", scale=y),
            size=alt.Size("images:Q", legend=None, scale=alt.Scale(range=[8, 260])),
            tooltip=[
                alt.Tooltip("frequency:Q", format=".0f", title="selected (%)"),
                alt.Tooltip("images:Q"),
                alt.Tooltip("right:Q"),
            ],
        )
    )
    return band + line + cells


def _p_values() -> Any:
    return (
        alt.Chart(_data())
        .mark_bar(color=POSTERIOR, opacity=0.6)
        .encode(
            x=alt.X(
                "low:Q", title="p-value of a classifier's answers", scale=alt.Scale(nice=False)
            ),
            x2="high:Q",
            y=alt.Y("classifiers:Q", title="classifiers"),
            y2=alt.datum(0),
        )
    )


def _ranks() -> Any:
    return (
        alt.Chart(_data())
        .mark_line(interpolate="step")
        .encode(
            x=alt.X("rank:Q", title="rank among the draws of all chains (%)"),
            y=alt.Y("draws:Q", title="draws", scale=alt.Scale(zero=True)),
            color=alt.Color("chain:N", scale=alt.Scale(scheme="viridis"), legend=None),
            tooltip=["chain:N", "draws:Q"],
        )
    )


def _energy() -> Any:
    names = ["energy", "change from draw to draw"]
    return (
        alt.Chart(_data())
        .mark_area(opacity=0.2, line={"strokeWidth": 2}, interpolate="step")
        .encode(
            x=alt.X("energy:Q", title="energy less its mean"),
            y=alt.Y("density:Q", title="density", stack=None),
            color=alt.Color("which:N", scale=_colors(names, [POSTERIOR, RAW])),
        )
    )
