"""Everything of one paper that a study can show: its figures, and a page beside printed numbers.

index.html       the page
numbers.csv      what is printed, and what it is of the study
NAME.png         every figure that can be drawn
"""

from collections.abc import Collection, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.atomic import replaced_folder
from bayesrep.errors import BayesrepError, plain_text, reason
from bayesrep.files.folders import refuse_foreign
from bayesrep.progress import progress_bar
from bayesrep.report import methods
from bayesrep.report.figure_catalogue import STUDY_NEEDS, in_words
from bayesrep.studies.study import Study
from bayesrep.version import __version__
from experiments.papers import catalogue
from experiments.papers.inputs import PaperInputs
from experiments.papers.printed import printed_numbers, study_numbers
from experiments.papers.registry import PAPER_FIGURES
from experiments.style import save_figure

_LEFT_OUT_NOTE = "no number of a study"


def write_paper(
    paper: str,
    inputs: PaperInputs,
    available: Collection[str],
    out: Path,
    *,
    options: Mapping[str, Any],
    progress: bool = False,
) -> list[dict[str, Any]]:
    """Draw what can be drawn, and write the page; the folder is there whole or not at all."""
    entries = list(catalogue.of_paper(paper))
    figures: list[dict[str, Any]] = []
    refuse_foreign(out, ("index.html", "numbers.csv", "*.png"))
    # The folder takes its place only when all is written.
    with replaced_folder(out) as partial:
        with progress_bar(len(entries), "figure", show=progress) as bar:
            for entry in entries:
                # A figure that cannot be drawn says why, in its place.
                why = entry.why or _describe_needs(entry, available)
                if not why:
                    try:
                        _draw(entry.name, inputs, options, partial)
                    except BayesrepError as error:
                        why = reason(error)
                name = entry.name or None
                entry_facts = {"number": entry.number, "name": name, "shows": entry.shows}
                file = None if why else f"{entry.name}.png"
                command = f"python -m experiments.papers {entry.name}"
                figures.append(
                    entry_facts
                    | {"file": file, "why_not": plain_text(why) or None, "command": command}
                )
                bar.advance(1)
        # The paper's printed numbers beside those of this study.
        values = study_numbers(paper, inputs, available, **options)
        rows = [
            {
                "what": each.what,
                "place": each.place,
                "printed": each.printed,
                "ours": plain_text(values.get(each.key, f"({_LEFT_OUT_NOTE})")),
            }
            for each in printed_numbers()
            if each.paper == paper
        ]
        pl.DataFrame(rows).write_csv(partial / "numbers.csv")
        (partial / "index.html").write_text(
            _page(paper, _summary(inputs, available), rows, figures), encoding="utf-8"
        )
    return figures


def _describe_needs(entry: catalogue.PaperEntry, available: Collection[str]) -> str:
    lacks = [STUDY_NEEDS.get(need, in_words(need)) for need in entry.lacks(available)]
    return f"it needs {', '.join(lacks)}" if lacks else ""


def _draw(name: str, inputs: PaperInputs, options: Mapping[str, Any], folder: Path) -> None:
    figure = PAPER_FIGURES[name]
    accepted = {key: value for key, value in options.items() if key in figure.options}
    drawing = figure.draw(*(getattr(inputs, each) for each in figure.inputs), **accepted)
    save_figure(drawing, folder / f"{name}.png")


def _summary(inputs: PaperInputs, available: Collection[str]) -> str:
    path = inputs.given.study
    if path is None:
        return "Of no study."
    if "study" in available:
        study: Study = inputs.study
        sizes = ", ".join(
            f"{data.name} ({len(data.images):,} images)" for data in study.datasets.values()
        )
        return f"Study {study.name}: {len(study.classifiers)} classifiers on {sizes}."
    return f"Answers in {path.name}, without counts."


def _page(
    paper: str, summary: str, numbers: list[dict[str, str]], figures: list[dict[str, Any]]
) -> str:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    assets = files("bayesrep.report").joinpath("assets")
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    css = methods.style() + assets.joinpath("page.css").read_text(encoding="utf-8")
    text = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    return environment.from_string(text).render(
        version=__version__,
        title=catalogue.PAPER_TITLES[paper],
        summary=summary,
        css=Markup(css),
        numbers=numbers,
        figures=figures,
    )
