"""Vega-Lite specifications as plain data, and Vega itself."""

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from bayesrep.report import methods

Spec = dict[str, Any]


class Css:
    """Colours of the page: variables of its style sheet."""

    POSTERIOR, RAW, SOFT, INK, GREY, PAPER, LINE = (
        f"var({name})"
        for name in (
            *(methods.POSTERIOR_LOOK.css, methods.RAW_LOOK.css),
            *("--soft", "--ink", "--grey", "--paper", "--line"),
        )
    )


_FURTHER_LOOKS = (methods.JACKKNIFE_LOOK, methods.EM_SPLINE, methods.NAIVE_LOOK)
DATASET_COLORS = (
    *(Css.POSTERIOR, Css.RAW, Css.SOFT),
    *(f"var({look.css})" for look in _FURTHER_LOOKS),
)
"""Colours of the reference, the replication, the candidates and further data sets."""
BASE_STYLE: Spec = {
    "font": "system-ui, sans-serif",
    "background": None,
    "axis": {
        **{"labelColor": Css.SOFT, "titleColor": Css.INK, "gridColor": Css.LINE},
        **{"gridOpacity": 0.6, "domainColor": Css.SOFT, "tickColor": Css.SOFT},
        **{"labelFontSize": 12, "titleFontSize": 13},
        **{"titleFontWeight": "normal", "labelOverlap": "parity", "labelSeparation": 4},
    },
    "legend": {
        **{"labelColor": Css.INK, "titleColor": Css.INK, "labelFontSize": 12, "orient": "bottom"},
        **{"title": None, "symbolOpacity": 1},
    },
    "header": {"labelColor": Css.INK, "labelFontSize": 12},
    "title": {"color": Css.INK, "fontSize": 13, "fontWeight": "normal", "anchor": "start"},
    "view": {"stroke": None},
    "mark": {"aria": False},  # a figure is one picture with one label; its numbers are in tables
}
"""Style of every chart, on the page and on paper."""
ENDS = {"lower": "95 % from", "upper": "to"}
"""Titles of an interval in what is told of a mark."""
BOLD_TEXT = '"fontWeight": 600'
"""Bold text of the page. A PDF of two fonts has its parts in the order of their hashes."""


def number(field: str, **more: Any) -> Spec:
    """A channel that shows numbers."""
    return {"field": field, "type": "quantitative", **more}


def name(field: str, **more: Any) -> Spec:
    """A channel that shows names."""
    return {"field": field, "type": "nominal", **more}


def tooltip(titles: Mapping[str, str], form: str, **names: str) -> list[Spec]:
    """What is told of a mark: names, then numbers of one format, by field with their titles."""
    numbers = (number(field, format=form, title=title) for field, title in titles.items())
    return [*(name(field, title=title) for field, title in names.items()), *numbers]


def colors(field: str, names: Sequence[str], each: Sequence[str], **more: Any) -> Spec:
    """A channel that gives every name its colour."""
    return name(field, scale={"domain": list(names), "range": list(each)}, **more)


def mark(kind: str | Spec, *, data: str | None = None, **encoding: Any) -> Spec:
    """Marks of one kind, with their channels, of the chart's rows or of a named data set."""
    own: Spec = {} if data is None else {"data": {"name": data}}
    return {**own, "mark": kind, "encoding": encoding}


def at_value(kind: Spec, channel: str, value: float, scale: Spec) -> Spec:
    """A mark at one number, such as a line where there is no difference."""
    return {
        "data": {"values": [{"at": value}]},
        "mark": kind,
        "encoding": {channel: number("at", **scale)},
    }


def chart(
    data: str,
    *layers: Spec,
    transform: Sequence[Spec] = (),
    params: Mapping[str, Any] | None = None,
    height: int | Spec = 280,
    **more: Any,
) -> Spec:
    """A figure of marks over each other, as wide as the page."""
    return {
        "data": {"name": data},
        **({"transform": list(transform)} if transform else {}),
        **({"params": [param(*each) for each in params.items()]} if params else {}),
        "layer": list(layers),
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        **more,
    }


def param(title: str, value: Any) -> Spec:
    """A parameter: a value or, of a mapping with "expr", what follows from others."""
    follows = isinstance(value, Mapping) and "expr" in value
    return {"name": title, **(value if follows else {"value": value})}


def square(spec: Spec, side: int) -> Spec:
    """The chart as high as it is wide, up to so many pixels."""
    size: Spec = {"width": side, "height": side, "autosize": {"type": "pad"}}
    return {**spec, **size, "usermeta": {"square": side}}


def text_with_halo(kind: Spec, **encoding: Any) -> list[Spec]:
    """Text that reads over lines: drawn twice, a halo of paper below, ink above."""
    halo = {"stroke": Css.PAPER, "strokeWidth": 4, "strokeJoin": "round", "color": Css.PAPER}
    return [
        mark({"type": "text", **kind, **more}, **encoding) for more in (halo, {"color": Css.INK})
    ]


def calculate(field: str, expression: str) -> Spec:
    """A field that the chart computes."""
    return {"calculate": expression, "as": field}


def found(this: Any, other: Any) -> Spec:
    """One value for what is looked for, another for the rest."""
    return {"condition": {"test": "datum['found']", "value": this}, "value": other}


def densities(data: str, names: Sequence[str], each: Sequence[str], **more: Any) -> Spec:
    """Densities of true selection frequencies: rows of s, density and which."""
    areas = mark(
        {"type": "area", "opacity": 0.18, "line": {"strokeWidth": 2}},
        x=number("s", title="true selection frequency s (%)"),
        y=number("density", title="density", stack=None),
        color=colors("which", names, each),
    )
    return chart(data, areas, **more)


def style_with(spec: Any, colours: Mapping[str, str]) -> Any:
    """A specification in which style variables are colours, and letters of one weight."""
    text = re.sub(r"var\((--[a-z-]+)\)", lambda var: colours[var[1]], json.dumps(spec))
    return json.loads(text.replace(BOLD_TEXT, '"fontWeight": "normal"'))


def bundle() -> str:
    """Vega's JavaScript."""
    return files("bayesrep.report").joinpath("assets", "vega.js").read_text(encoding="utf-8")
