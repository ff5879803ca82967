"""The report as one HTML file that needs no network.

What is shown comes from `bayesrep.report.sections`; Vega draws the figures, and its bundle is in
the page. Every name of the study reaches HTML escaped: by the template, as text nodes in the
script, and in JSON whose "<" is written as an escape.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from bayesrep.atomic import replaced_file
from bayesrep.posterior.groups import Posterior
from bayesrep.report import methods, vega
from bayesrep.report.numbers import numbers_of
from bayesrep.report.picture import Figure, Say
from bayesrep.report.sections import Accuracies, Content, Ranking, Trust, gather
from bayesrep.report.sections.accuracies import classifier_sentences
from bayesrep.report.sections.section import Block
from bayesrep.report.wording import real_minus, translate_block, worded_figure
from bayesrep.studies.study import Study
from bayesrep.studies.words import PLAIN, Voice
from bayesrep.version import __version__

UNKNOWN = "No classifier is called so."
"""What is said beside a figure where a name is typed that is none."""


class Front(NamedTuple):
    """What the first screen holds.

    Attributes
    ----------
    title
        The finding, or what the page is about.
    summary
        The data.
    kicker
        The study's name, above the title.
    sentence
        The finding in full.
    badge
        Style and words of the verdict.
    figure
        That shows the finding.
    missing
        What is not in it, and why.
    """

    title: str
    summary: str
    kicker: str = ""
    sentence: str = ""
    badge: tuple[str, str] | None = None
    figure: Figure | None = None
    missing: str = ""


def report_html(study: Study, posterior: Posterior | None = None, **options: Any) -> str:
    """The report of a study as one HTML page.

    Parameters
    ----------
    study
        The study.
    posterior
        Posterior of the study; None leaves out the sections that need one.
    **options
        Options of `bayesrep.report.sections.gather`: bootstrap, seed, crowd_sd, points, people,
        pictures, progress.

    Raises
    ------
    OptionError, PosteriorError
        As `gather`.
    """
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
    return page_of(_front(content), list(content.blocks()), data, content.voice, names)


def _front(content: Content) -> Front:
    study, trust = content.study, content.sections[Trust]
    summary = _summary(study)
    if (opening := content.opening) is None:
        return Front(f"{study.name}: how much of the accuracy drop is real?", summary)
    caveat = content.caveat
    return Front(
        title=f"No answer: {caveat}" if caveat else opening.title,
        summary=summary,
        kicker=study.name,
        sentence=f"No answer, since {caveat}: {opening.sentence}" if caveat else opening.sentence,
        badge=trust.badge if isinstance(trust, Trust) else None,
        figure=opening.figure,
        missing=opening.missing,
    )


def page_of(
    front: Front,
    blocks: Sequence[Block],
    data: Mapping[str, Any] | None = None,
    voice: Voice = PLAIN,
    names: Sequence[str] = (),
) -> str:
    """Parts under one title as HTML, with the script that draws their figures, in a voice.

    `names` are left as they are: one that looks like a number is none.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    assets = files("bayesrep.report").joinpath("assets")

    def asset(name: str) -> str:
        return assets.joinpath(name).read_text(encoding="utf-8")

    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )

    odd = [name for name in names if real_minus(name) != name]

    def say(text: str) -> str:
        return real_minus(voice(text), odd)

    environment.filters |= {"code": _with_code, "say": say}
    front, blocks = _translate_front(front, say), [translate_block(block, say) for block in blocks]
    figures = [*([front.figure] if front.figure else [])]
    figures += [figure for block in blocks for figure in block.figures]
    content: dict[str, Any] = {"unknown": say(UNKNOWN), "config": vega.CONFIG, **(data or {})}
    content["sentences"] = list(map(say, content.get("sentences", [])))
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
        css=Markup(methods.style() + asset("page.css")),
        script=Markup(_inline(asset("page.js"))),
        bundle=Markup(_inline(vega.bundle())),
        numbers=Markup(_json(numbers)),
        content=Markup(_json(content)),
        rows=Markup(_json(rows)),
        specs=Markup(_json(specs)),
    )


def _translate_front(front: Front, say: Say) -> Front:
    """The first screen, said by ``say``; the study's name stays."""
    texts = {
        name: say(getattr(front, name)) for name in ("title", "summary", "sentence", "missing")
    }
    badge = front.badge and (front.badge[0], say(front.badge[1]))
    figure = front.figure and worded_figure(front.figure, say)
    return front._replace(**texts, badge=badge, figure=figure)


def _with_code(text: str) -> Any:
    """A sentence, escaped, in which `commands` are set as such."""
    from markupsafe import Markup, escape

    def parts() -> Iterator[Any]:
        for place, part in enumerate(text.split("`")):
            yield Markup("<code>{}</code>").format(part) if place % 2 else escape(part)

    return Markup("").join(parts())


def _inline(script: str) -> str:
    """A script in which nothing ends its element."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _json(value: Any) -> str:
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _summary(study: Study) -> str:
    count = len(study.classifiers)
    sizes = ", ".join(
        f"{role}{f' ({data.name})' if data.name != role else ''}: {len(data.images):,} images"
        + (
            f", {len(data.left_out):,} more left out, which could not be decoded"
            if data.left_out
            else ""
        )
        for role, data in study.datasets.items()
    )
    low, high = (
        pick(int(pick(data.shown)) for data in study.datasets.values()) for pick in (min, max)
    )
    each = f"{low}" if low == high else f"{low} to {high}"
    return (
        f"{count:,} classifier{'s' if count != 1 else ''}. {sizes[0].upper()}{sizes[1:]}. "
        f"{each} annotator{'s' if high != 1 else ''} an image."
    )
