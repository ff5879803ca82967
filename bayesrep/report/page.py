"""The report as one HTML file that needs no network.

Every name of the study reaches HTML escaped: by the template, as text nodes in the script, and in
JSON whose "<" is written as an escape.
"""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayesrep.atomic import replaced_file
from bayesrep.posterior.groups import Posterior
from bayesrep.report import methods, vega
from bayesrep.report.figure import Figure
from bayesrep.report.page_json import numbers_of
from bayesrep.report.sections import Accuracies, Content, Ranking, Trust, gather
from bayesrep.report.sections.accuracies import classifier_sentences
from bayesrep.report.sections.section import Block
from bayesrep.report.wording import real_minus
from bayesrep.studies.representation import spread
from bayesrep.studies.study import Study
from bayesrep.studies.vocabulary import Words, words_of
from bayesrep.version import __version__


class FirstScreen(NamedTuple):
    """Contents of the page's first screen."""

    title: str  # the finding, or what the page is about
    summary: str  # the data
    kicker: str = ""  # the study's name, above the title
    sentence: str = ""  # the finding in full
    badge: tuple[str, str] | None = None  # style and words of the verdict
    figure: Figure | None = None  # that shows the finding
    missing: str = ""  # what is not in it, and why


def report_html(study: Study, posterior: Posterior | None = None, **options: Any) -> str:
    """The report of a study as one HTML page."""
    return page(gather(study, posterior, **options))


def write_page(content: Content, path: str | Path) -> None:
    """Write the report, whole or not at all; what is there is replaced."""
    with replaced_file(Path(path)) as partial:
        partial.write_text(page(content), encoding="utf-8")


def page(content: Content) -> str:
    """The report as HTML."""
    data: dict[str, Any] = {"numbers": numbers_of(content)}
    if isinstance(accuracies := content.sections[Accuracies], Accuracies):
        ranking = content.sections[Ranking]
        ranks = (ranking.rank, ranking.measured) if isinstance(ranking, Ranking) else None
        data["sentences"] = classifier_sentences(accuracies, ranks)
    names = content.study.classifiers
    return page_of(_front(content), list(content.blocks()), words_of(content.study), data, names)


def _front(content: Content) -> FirstScreen:
    study, trust = content.study, content.sections[Trust]
    summary = _summary(study)
    if (opening := content.opening) is None:
        return FirstScreen(f"{study.name}: how much of the accuracy drop is real?", summary)
    title, sentence, figure, missing = opening
    if caveat := content.caveat:
        title, sentence = f"No answer: {caveat}", f"No answer, since {caveat}: {sentence}"
    badge = trust.badge if isinstance(trust, Trust) else None
    return FirstScreen(title, summary, study.name, sentence, badge, figure, missing)


def page_of(
    front: FirstScreen,
    blocks: Sequence[Block],
    words: Words,
    data: Mapping[str, Any] | None = None,
    names: Sequence[str] = (),
) -> str:
    """Parts under one title as HTML; `names` are left as they are, even if they look numeric."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    assets = files("bayesrep.report").joinpath("assets")

    def asset(name: str) -> str:
        return assets.joinpath(name).read_text(encoding="utf-8")

    # Found once, not at every text: of thousands of names hardly one looks like a number.
    written = (form for name in names for form in (name, _json(name)[1:-1]))
    odd = [form for form in written if real_minus(form) != form]

    def write_minus(value: Any) -> Any:
        # Scripts, and what the template escapes itself, are of another type and stay as they are.
        return real_minus(value, odd) if type(value) is str else value

    environment = Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=write_minus,
    )
    environment.filters["code"] = lambda text: _with_code(write_minus(text))
    figures = [front.figure] if front.figure else []
    figures += [figure for block in blocks for figure in block.figures]
    # Said beside a figure where a name is typed that is none.
    unknown = f"No {words.classifier} is called so."
    content: dict[str, Any] = {"unknown": unknown, "config": vega.BASE_STYLE, **(data or {})}
    content.setdefault("sentences", [])
    content["readings"] = {
        figure.id: {"first": figure.reading, **figure.readings._asdict()}
        for figure in figures
        if figure.readings
    }
    content["downloads"] = {figure.id: figure.columns for figure in figures if figure.columns}
    for block in blocks:
        content.update(block.data)
    numbers = content.pop("numbers", {})
    rows = {name: each for figure in figures for name, each in figure.data.items()}
    # A description becomes the figure's label, which its drawing would take away otherwise.
    specs = {figure.id: {"description": figure.label, **figure.spec} for figure in figures}
    return environment.from_string(asset("page.html")).render(
        version=__version__,
        front=front,
        blocks=blocks,
        words=words,
        css=Markup(methods.style() + asset("page.css")),
        script=Markup(_inline(asset("page.js"))),
        bundle=Markup(_inline(vega.bundle())),
        numbers=Markup(_json(numbers)),
        content=Markup(write_minus(_json(content))),
        rows=Markup(_json(rows)),
        specs=Markup(write_minus(_json(specs))),
    )


def _with_code(text: str) -> Any:
    """A sentence, escaped, in which `commands` are set as such."""
    from markupsafe import Markup, escape

    code = Markup("<code>{}</code>")
    parts = enumerate(text.split("`"))
    return Markup("").join(code.format(part) if n % 2 else escape(part) for n, part in parts)


def _inline(script: str) -> str:
    """A script in which nothing ends its element."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _json(value: Any) -> str:
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _summary(study: Study) -> str:
    words, count = words_of(study), len(study.classifiers)
    parts: list[str] = []
    for role, data in study.datasets.items():
        named = f"{role}{f' ({data.name})' if data.name != role else ''}"
        parts.append(f"{named}: {len(data.images):,} {words.images}")
        if data.left_out:
            parts.append(f"{len(data.left_out):,} more left out, which could not be decoded")
    sizes, shown = ", ".join(parts), np.concatenate([d.shown for d in study.datasets.values()])
    return (
        f"{count:,} {words.classifier if count == 1 else words.classifiers}. "
        f"{sizes[0].upper()}{sizes[1:]}. {spread(shown)} "
        f"{words.annotator if shown.max() == 1 else words.annotators} an {words.image}."
    )
