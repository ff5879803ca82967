"""One figure: a chart with its rows, which the page, notebooks and files for papers show alike."""

import json
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from bayesrep.atomic import replaced_file
from bayesrep.errors import OptionError
from bayesrep.report import methods, vega
from bayesrep.report.vega import Css, Spec

FILE_SUFFIXES = (".pdf", ".svg", ".png")
CHART_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
VEGA_LITE_VERSION = "5.21"
"""The version that draws files: the last of the fifth, of which the schema is."""
WIDTH_PIXELS, SQUARE_PIXELS, BESIDE_PIXELS = 440, 400, 290
"""Widths on paper: of a chart, of a square one, and of one beside another."""
PIXEL_SCALE = 3
"""Pixels of a PNG for each of the chart's: 216 to the inch."""
FONT_NAMES = "Liberation Sans, Arial, Helvetica, sans-serif"
PAPER_COLORS: Mapping[str, str] = {
    **{
        look.css: look.paper for look in (*methods.ESTIMATOR_LOOKS.values(), methods.POSTERIOR_LOOK)
    },
    methods.OTHER_LOOK.css: methods.OTHER_LOOK.paper,
    **{"--ink": "#222222", "--soft": "#57606a", "--grey": methods.OTHER_LOOK.paper},
    **{"--paper": "#ffffff", "--line": "#dddddd"},
}
"""Colours of the page's style variables on paper."""
TOP_LEVEL = ("params", "usermeta", "autosize")
"""Entries that a chart shows once, also beside another chart."""
TICK_SHAPE = "M-1,0L1,0"
UPRIGHT_SHAPE = "M0,-1L0,1"
KEY_MARKS: Mapping[str, tuple[str, str | None, str]] = {
    "ring": ("circle", None, Css.GREY),
    "ring raw": ("circle", None, Css.RAW),
    "dot": ("circle", Css.POSTERIOR, Css.POSTERIOR),
    "truth": (TICK_SHAPE, None, Css.INK),
    "line": (TICK_SHAPE, None, Css.POSTERIOR),
    "bar": ("square", Css.POSTERIOR, Css.POSTERIOR),
    "bar raw": ("square", Css.RAW, Css.RAW),
    "bar soft": ("square", Css.SOFT, Css.SOFT),
    "upright": (UPRIGHT_SHAPE, None, Css.INK),
}
"""Shape, filling and stroke of the marks of a key, which are classes of page.css."""
_SVG_NAME = re.compile(r"\b(clip|gradient_)\d+")
_PDF_REFS = re.compile(rb"(?:\n +/\w+ \d+ 0 R)+")


class Reading(NamedTuple):
    """Sentences that read a figure, one for every value of the parameters that they go by."""

    by: Sequence[str]  # names of the parameters, the outermost first
    # Lists, or mappings, of sentences in this order; a sentence that comes early is of all
    texts: Any


class Figure(NamedTuple):
    """A figure: what it shows, its rows, and how it is drawn and read."""

    id: str  # the page's element
    label: str  # what a person hears who does not see it
    spec: Spec  # the chart, without its rows
    reading: str = ""  # the sentence that reads it
    # Rows of the chart's named data sets; figures that name the same one share it
    data: Mapping[str, Sequence[Mapping[str, Any]]] = {}
    # What its marks are: class of a mark in page.css, and what it stands for
    key: Sequence[tuple[str, str]] = ()
    play: str = ""  # what a button says that moves it
    readings: Reading | None = None  # sentences in place of `reading`, where they follow a control
    # Fields that a download holds; empty where it holds the rows as they are
    columns: Sequence[str] = ()


def on_paper(figure: Figure, **values: Any) -> Spec:
    """The figure as one Vega-Lite specification with its rows, a key and sizes for a paper."""
    spec = figure.spec
    if given := spec.get("params"):
        names = [each["name"] for each in given]
        chosen = {name: {"name": name, "value": values[name]} for name in values}
        spec = {**spec, "params": [chosen.get(n, p) for n, p in zip(names, given, strict=True)]}
    return _finish(_with_key(_set_width(spec, WIDTH_PIXELS), figure.key, columns=3), [figure])


def beside(figures: Sequence[Figure], columns: int = 2) -> Spec:
    """Figures beside each other as one specification, so many in a row; each has its title."""
    parts: list[Spec] = []
    seen_keys: set[tuple[tuple[str, str], ...]] = set()
    for figure in figures:
        spec = _set_width(figure.spec, BESIDE_PIXELS)
        if (key := tuple(figure.key)) not in seen_keys:  # figures of the same marks have one key
            spec = _with_key(spec, key, columns=1)
            seen_keys.add(key)
        parts.append({name: value for name, value in spec.items() if name not in TOP_LEVEL})
    params = {each["name"]: each for figure in figures for each in figure.spec.get("params", [])}
    whole: Spec = {
        "concat": parts,
        "columns": columns,
        "resolve": {"scale": {"color": "independent"}},
        **({"params": [*params.values()]} if params else {}),
        "spacing": 24,
    }
    return _finish(whole, figures)


def _set_width(spec: Spec, width: int) -> Spec:
    """Copy a chart with a width in pixels in place of the page's."""
    if "square" in spec.get("usermeta", {}):
        side = min(width, SQUARE_PIXELS)
        return {**spec, "width": side, "height": side}
    return {**spec, "width": width, "autosize": {"type": "pad"}}


def _finish(spec: Spec, figures: Sequence[Figure]) -> Spec:
    """Complete a chart with rows, key, colours and style."""
    datasets = {name: rows for figure in figures for name, rows in figure.data.items()}
    whole: Spec = {
        "$schema": CHART_SCHEMA,
        **spec,
        "description": "; ".join(figure.label for figure in figures),
        "datasets": datasets,
        "config": {**vega.BASE_STYLE, "font": FONT_NAMES, "background": Css.PAPER, "padding": 8},
    }
    whole.pop("usermeta", None)
    return vega.style_with(whole, PAPER_COLORS)


def _with_key(spec: Spec, key: Sequence[tuple[str, str]], *, columns: int) -> Spec:
    """Add a layer of no marks, whose legend explains the other layers."""
    if not key:
        return spec
    shapes, fills, strokes = zip(*(KEY_MARKS[mark] for mark, _ in key), strict=True)
    legend: Spec = {"symbolStrokeWidth": 1.6, "symbolSize": 60, "labelLimit": 0}
    names = [text for _, text in key]

    def channel(values: Sequence[Any]) -> Spec:
        scale = {"domain": names, "range": [value or "transparent" for value in values]}
        return vega.name("key", scale=scale, legend={**legend, "columns": columns}, title=None)

    channels = {"shape": channel(shapes), "fill": channel(fills), "stroke": channel(strokes)}
    layer: Spec = {"data": {"values": []}, "mark": "point", "encoding": channels}
    resolve = {"scale": dict.fromkeys(channels, "independent")}
    return {**spec, "layer": [*spec["layer"], layer], "resolve": resolve}


def has_pictures() -> bool:
    """Return whether the extra [pictures] is installed, which draws files."""
    return all(map(find_spec, ("PIL", "vl_convert")))


def check_format(path: Path) -> Path:
    """Refuse, before any work, a file that cannot be drawn: by its suffix, or without the extra."""
    if path.suffix.lower() not in FILE_SUFFIXES:
        choices = " or ".join([", ".join(FILE_SUFFIXES[:-1]), FILE_SUFFIXES[-1]])
        raise OptionError("figure-ending-unknown", path=path, endings=choices)
    if not has_pictures():
        raise OptionError("pictures-not-installed")
    return path


def picture_bytes(spec: Mapping[str, Any], kind: str, *, scale: float = PIXEL_SCALE) -> bytes:
    """A specification drawn as "pdf", "svg" or "png"; drawn again it has the same bytes."""
    import vl_convert

    text = json.dumps(spec, allow_nan=False)
    if kind == "png":
        return vl_convert.vegalite_to_png(text, vl_version=VEGA_LITE_VERSION, scale=scale)
    drawn = vl_convert.vegalite_to_svg(text, vl_version=VEGA_LITE_VERSION)
    # The library goes on counting from the last drawing, and orders a PDF's resources by hashes.
    numbers: dict[str, int] = {}
    svg = _SVG_NAME.sub(lambda n: f"{n[1]}{numbers.setdefault(n[0], len(numbers))}", drawn)
    if kind == "svg":
        return svg.encode()
    pdf = vl_convert.svg_to_pdf(svg)
    return _PDF_REFS.sub(lambda refs: b"\n" + b"\n".join(sorted(refs[0].split(b"\n")[1:])), pdf)


def save_picture(spec: Mapping[str, Any], path: Path) -> None:
    """Write a drawn specification, whole or not at all, in the format its suffix names."""
    kind = check_format(path).suffix.lower()[1:]
    with replaced_file(path) as partial:
        partial.write_bytes(picture_bytes(spec, kind))
