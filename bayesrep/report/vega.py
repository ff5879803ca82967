"""Vega-Lite specifications as plain data, and Vega itself.

A chart draws rows that the page puts into its named data sets ("data" and, for some, "lines" or
"cells"); what the rows are is in assets/page.js. Colours are names of the page's style variables.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from typing import Any

from bayesrep.atomic import replaced_file, user_cache
from bayesrep.report import methods

Spec = dict[str, Any]

POSTERIOR, RAW_COLOR, SOFT, INK = (
    f"var({name})" for name in (methods.POSTERIOR.css, methods.RAW_LOOK.css, "--soft", "--ink")
)
GREY, PAPER = "var(--grey)", "var(--paper)"
ROLES = (
    *(POSTERIOR, RAW_COLOR, SOFT),
    *(f"var({look.css})" for look in (methods.JACKKNIFE, methods.EM_SPLINE, methods.NAIVE)),
)
"""Colours of the reference, the replication, the candidates and further data sets."""


def number(field: str, **more: Any) -> Spec:
    """A channel that shows numbers."""
    return {"field": field, "type": "quantitative", **more}


def name(field: str, **more: Any) -> Spec:
    """A channel that shows names."""
    return {"field": field, "type": "nominal", **more}


def colors(field: str, names: Sequence[str], each: Sequence[str], **more: Any) -> Spec:
    """A channel that gives every name its colour."""
    return name(field, scale={"domain": list(names), "range": list(each)}, **more)


def mark(kind: str | Spec, *, data: str = "data", **encoding: Any) -> Spec:
    """Marks of one kind, with their channels."""
    return {"data": {"name": data}, "mark": kind, "encoding": encoding}


def chart(first: Spec, *others: Spec, height: int = 280, **more: Any) -> Spec:
    """A figure of marks over each other, as wide as the page."""
    return {
        **({"layer": [first, *others]} if others else first),
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        **more,
    }


def square(first: Spec, *others: Spec, side: int) -> Spec:
    """A figure of marks over each other as high as it is wide, up to so many pixels."""
    return {
        "layer": [first, *others],
        "width": side,
        "height": side,
        "autosize": {"type": "pad"},
        "usermeta": {"square": side},
    }


def found(this: Any, other: Any) -> Spec:
    """One value for what is looked for, another for the rest."""
    return {"condition": {"test": "datum['found']", "value": this}, "value": other}


def densities(names: Sequence[str], each: Sequence[str], *, hidden: bool = False) -> Spec:
    """Densities of true selection frequencies; a click on the legend may hide one."""
    shown = mark(
        {"type": "area", "opacity": 0.18, "line": {"strokeWidth": 2}},
        x=number("s", title="true selection frequency s (%)"),
        y=number("density", title="density", stack=None),
        color=colors("which", names, each),
    )
    if not hidden:
        return chart(shown)
    # What is clicked is hidden, so that at first, when nothing is, all are shown.
    click = {"name": "hidden", "select": {"type": "point", "fields": ["which"], "toggle": "true"}}
    visible = {"filter": {"not": {"param": "hidden", "empty": False}}}
    return chart(shown | {"transform": [visible]}, params=[{**click, "bind": "legend"}])


@cache
def bundle() -> str:
    """Vega's JavaScript; it takes a second to put together, and is kept between commands."""
    kept = user_cache() / f"vega-{version('vl-convert-python')}.js"
    try:
        return kept.read_text(encoding="utf-8")
    except (OSError, ValueError):
        from vl_convert import javascript_bundle

        text = javascript_bundle()  # pyright: ignore[reportCallIssue]
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        with replaced_file(kept) as partial:
            partial.write_text(text, encoding="utf-8")
    return text
