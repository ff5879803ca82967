"""The report as one HTML file that needs no network.

What is shown comes from `bayesrep.report.content`, the figures' specifications from
`bayesrep.report.charts`. Vega draws them; its bundle is in the page. Every name of the study
reaches HTML escaped: by the template, as text nodes in the script, and in JSON whose "<" is
written as an escape.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep import __version__
from bayesrep.atomic import replaced_file, user_cache
from bayesrep.report.charts import specs
from bayesrep.report.content import Content
from bayesrep.report.sections import LABELS, method_labels, sections

__all__ = ["page", "write_page"]

DIGITS = 5  # of fractions and densities in the page

Floats = NDArray[np.float64]


def write_page(content: Content, path: str | Path) -> None:
    """Write the report, whole or not at all.

    Parameters
    ----------
    content
        From `bayesrep.report.content.gather`.
    path
        The HTML file; what is there is replaced.
    """
    with replaced_file(Path(path)) as partial:
        partial.write_text(page(content), encoding="utf-8")


def page(content: Content) -> str:
    """The report as HTML.

    Parameters
    ----------
    content
        From `bayesrep.report.content.gather`.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    assets = files("bayesrep.report").joinpath("assets")

    def asset(name: str) -> str:
        return assets.joinpath(name).read_text(encoding="utf-8")

    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    every_section = list(sections(content))
    drawn = {figure["id"] for section in every_section for figure in section["figures"]}
    pair = tuple(content.image.densities) if content.image else ("reference", "replication")
    every = specs(method_labels(content), list(content.study.datasets), (pair[0], pair[1]))
    return environment.from_string(asset("page.html")).render(
        version=__version__,
        title=content.study.name,
        summary=_summary(content),
        sections=every_section,
        css=Markup(asset("page.css")),
        script=Markup(_inline(asset("page.js"))),
        bundle=Markup(_inline(vega())),
        content=Markup(_json(_payload(content))),
        specs=Markup(_json({name: each for name, each in every.items() if name in drawn})),
    )


@cache
def vega() -> str:
    """Vega's JavaScript; it takes a second to put together, and is kept between commands."""
    kept = user_cache() / f"vega-{version('vl-convert-python')}.js"
    try:
        return kept.read_text(encoding="utf-8")
    except (OSError, ValueError):
        from vl_convert import javascript_bundle

        bundle = javascript_bundle()  # pyright: ignore[reportCallIssue]
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        with replaced_file(kept) as partial:
            partial.write_text(bundle, encoding="utf-8")
    return bundle


def _inline(script: str) -> str:
    """A script in which nothing ends its element."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _json(value: Any) -> str:
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _summary(content: Content) -> str:
    study = content.study
    sizes = ", ".join(
        f"{role} ({data.name}): {len(data.images):,} images"
        + f", {len(data.left_out):,} more left out, which could not be decoded"
        * bool(data.left_out)
        for role, data in study.datasets.items()
    )
    return f"{len(study.classifiers)} classifiers. {sizes}."


def _numbers(values: Any) -> Any:
    """Nested lists of rounded numbers; what is not finite becomes null."""
    array = np.asarray(values, dtype=float)
    rounded = np.round(array, DIGITS).astype(object)
    rounded[~np.isfinite(array)] = None
    return rounded.tolist()


def _payload(content: Content) -> dict[str, Any]:
    """What the script draws from; fractions, but figures that never change are in percent."""
    table = content.classifiers
    numbers = {name: _numbers(table[name].to_numpy()) for name in table.columns[1:]}
    curves = content.curves
    return {
        "labels": method_labels(content),
        "gaps": [
            {**row, "method": LABELS[row["method"]]}
            for row in _percent(content.gaps, "gap", "lower", "upper").to_dicts()
        ],
        "classifiers": {"classifier": table["classifier"].to_list(), **numbers},
        "columns": _columns(content),
        "naive": _numbers(content.naive),
        "histogram": _histogram(content),
        "density": _density(content),
        "image": None
        if content.image is None
        else {
            "annotators": content.image.annotators,
            "densities": {r: _numbers(d) for r, d in content.image.densities.items()},
        },
        "curves": None
        if curves is None
        else {
            **{name: _numbers(band) for name, band in zip(_BAND, curves.bands, strict=True)},
            "frequency": _numbers(curves.frequency),
            "images": curves.images.tolist(),
            "right": curves.right.tolist(),
        },
        **_chains(content),
    }


_BAND = ("mean", "lower", "upper")


def _percent(table: pl.DataFrame, *names: str) -> pl.DataFrame:
    return table.with_columns((pl.col(*names) * 100).round(3))


def _columns(content: Content) -> list[dict[str, str]]:
    found = [{"name": "classifier", "title": "classifier", "kind": "name"}]
    found += [
        {"name": name, "title": name, "kind": "percent"} for name in ("reference", "replication")
    ]
    for method in method_labels(content):
        if method == "raw":
            continue
        found.append({"name": method, "title": LABELS[method], "kind": "percent"})
        if content.classifiers[f"{method}_lower"].null_count() < len(content.classifiers):
            found.append(
                {
                    "name": f"{method}_lower",
                    "other": f"{method}_upper",
                    "title": f"95 % of {LABELS[method].lower()}",
                    "kind": "interval",
                }
            )
    if "rhat" in content.classifiers.columns:
        found += [
            {"name": "rhat", "title": "R-hat", "kind": "number"},
            {"name": "ess", "title": "ESS", "kind": "count"},
        ]
    return found


def _histogram(content: Content) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for role, part in content.frequencies.items():
        predicted = part.predicted
        bounds = np.full((2, len(part.observed)), np.nan) if predicted is None else predicted[1:]
        columns = [
            100 * part.edges[:-1],
            100 * part.edges[1:],
            100 * part.observed,
            *(100 * bounds),
        ]
        names = ("low", "high", "observed", "lower", "upper")
        rows += [
            {"which": role, **dict(zip(names, values, strict=True))}
            for values in zip(*map(_numbers, columns), strict=True)
        ]
    return rows


def _density(content: Content) -> list[dict[str, Any]]:
    return [
        {"which": role, "s": s, **dict(zip(_BAND, values, strict=True))}
        for role, part in content.frequencies.items()
        if part.density is not None
        for s, values in enumerate(zip(*_numbers(part.density), strict=True))
    ]


def _chains(content: Content) -> dict[str, Any]:
    trust = content.trust
    if trust is None:
        return {}
    found: dict[str, Any] = {}
    if trust.p_values is not None:
        counts, edges = np.histogram(trust.p_values, np.linspace(0, 1, 11))
        found["pvalues"] = [
            {"low": low, "high": high, "classifiers": int(count)}
            for low, high, count in zip(
                _numbers(edges[:-1]), _numbers(edges[1:]), counts, strict=True
            )
        ]
    if trust.ranks is not None:
        width = 100 / trust.ranks.shape[1]
        found["ranks"] = [
            {"chain": f"chain {chain + 1}", "rank": (place + 0.5) * width, "draws": int(draws)}
            for chain, counts in enumerate(trust.ranks)
            for place, draws in enumerate(counts)
        ]
    if trust.energy is not None:
        names = {"marginal": "energy", "transition": "change from draw to draw"}
        edges = np.histogram_bin_edges(np.concatenate(list(trust.energy.values())), 40)
        middle = (edges[1:] + edges[:-1]) / 2
        found["energy"] = [
            {"which": names[kind], "energy": x, "density": y}
            for kind, values in trust.energy.items()
            for x, y in zip(
                _numbers(middle),
                _numbers(np.histogram(values, edges, density=True)[0]),
                strict=True,
            )
        ]
    return found
