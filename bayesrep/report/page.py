"""The report as one HTML file that needs no network.

What is shown comes from `bayesrep.report.sections`; Vega draws the figures, and its bundle is in
the page. Every name of the study reaches HTML escaped: by the template, as text nodes in the
script, and in JSON whose "<" is written as an escape.
"""

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from bayesrep.atomic import replaced_file
from bayesrep.report import methods, vega
from bayesrep.report.sections import Content
from bayesrep.report.sections.section import Block
from bayesrep.studies.study import Study
from bayesrep.version import __version__


def write_page(content: Content, path: str | Path) -> None:
    """Write the report, whole or not at all; what is there is replaced."""
    with replaced_file(Path(path)) as partial:
        partial.write_text(page(content), encoding="utf-8")


def page(content: Content) -> str:
    """The report as HTML."""
    title = f"{content.study.name}: how much of the accuracy drop is real?"
    return page_of(title, _summary(content.study), list(content.blocks()))


def page_of(title: str, summary: str, blocks: Sequence[Block]) -> str:
    """Parts under one title as HTML, with the script that draws their figures."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    assets = files("bayesrep.report").joinpath("assets")

    def asset(name: str) -> str:
        return assets.joinpath(name).read_text(encoding="utf-8")

    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    figures = [figure for block in blocks for figure in block.figures]
    data: dict[str, Any] = {figure.id: figure.rows for figure in figures if figure.rows}
    for block in blocks:
        data.update(block.data)
    return environment.from_string(asset("page.html")).render(
        version=__version__,
        title=title,
        summary=summary,
        blocks=blocks,
        css=Markup(methods.style() + asset("page.css")),
        script=Markup(_inline(asset("page.js"))),
        bundle=Markup(_inline(vega.bundle())),
        content=Markup(_json(data)),
        specs=Markup(_json({figure.id: figure.spec for figure in figures})),
    )


def _inline(script: str) -> str:
    """A script in which nothing ends its element."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _json(value: Any) -> str:
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _summary(study: Study) -> str:
    sizes = ", ".join(
        f"{role} ({data.name}): {len(data.images):,} images"
        + f", {len(data.left_out):,} more left out, which could not be decoded"
        * bool(data.left_out)
        for role, data in study.datasets.items()
    )
    return f"{len(study.classifiers)} classifiers. {sizes}."
