"""Draw every figure of a simulated study and write docs/gallery.md: `python docs/gallery.py`.

It fits the study of `bayesrep demo --quick` and takes some minutes.
"""

import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import bayesrep
from bayesrep.report.figure import picture_bytes
from bayesrep.report.figure_catalogue import FIGURE_ENTRIES, FigureEntry, in_words
from bayesrep.report.figure_registry import FIGURES_BY_NAME, NamedFigure

sys.path.append(str(Path(__file__).resolve().parents[1]))  # experiments are not installed
from experiments.papers.catalogue import entries
from experiments.papers.registry import PAPER_FIGURES

DOCS = Path(__file__).resolve().parent
PICTURES = DOCS / "images" / "gallery"
PAGE = DOCS / "gallery.md"
REPLICATES = 10
FIGURES = {**FIGURES_BY_NAME, **PAPER_FIGURES}
PLOTS = {
    "accuracies": "every classifier on both data sets, as measured and adjusted",
    "gaps": "what every method leaves of the mean drop",
    "ranks": "ranks of classifiers at equal selection frequencies",
    "pairs": "differences of the closest pairs of classifiers",
    "curves": "accuracy by selection frequency",
    "frequencies": "selection frequencies, observed, expected and true",
}
BEGIN = """# Gallery

Every figure, with the code or the command that makes it. Made by `python docs/gallery.py`, of a
simulated study (24 classifiers, 2,000 + 2,000 images, 36 annotators), and so is this page.
Intervals of the paper's figures are of ten replicates here; the commands take the paper's number.

## In a notebook

`study` and `posterior` are those of the [tutorial in Python](tutorial-python.md). All are
interactive in Jupyter and saved as PDF, SVG, PNG or Vega-Lite (.json) by `.save(path)`.
"""
PAPER = """
## On the command line

`my-study` and `posterior.nc` are those of the [tutorial](tutorial.md); `--out` ends in .pdf, .svg
or .png (extra [pictures]). Figures of papers are drawn by `python -m experiments.papers` in a
checkout.
"""
END = """
## Of more than a study and its fit

What people see, label sets, photographs or probabilities are needed for these;
`bayesrep figure --list` and `python -m experiments.papers list` say the same of your own study.

| figure | shows | needs |
|---|---|---|
"""


def save(figure: Any, name: str) -> None:
    """Write a picture."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    if isinstance(figure, Mapping):
        (PICTURES / f"{name}.png").write_bytes(picture_bytes(figure, "png", scale=1))
    else:
        figure.savefig(PICTURES / f"{name}.png", dpi=80)


def shown(name: str) -> str:
    """A picture's line on the page."""
    return f"![{name}](images/gallery/{name}.png)\n"


def command(name: str, figure: NamedFigure) -> str:
    """The command that draws a figure."""
    parts = ["bayesrep figure" if name in FIGURES_BY_NAME else "python -m experiments.papers", name]
    parts += ["my-study"] * figure.needs_study + ["posterior.nc"] * figure.needs_posterior
    return " ".join([*parts, f"--out {name}.pdf"])


def drawn(name: str, figure: NamedFigure, study: Any, posterior: Any) -> Any:
    """A figure, of few replicates where the paper's number takes long."""
    inputs = [study] * figure.needs_study + [posterior] * figure.needs_posterior
    paper = name.startswith("paper") and "bootstrap" in figure.options
    return figure.draw(*inputs, **({"bootstrap": REPLICATES} if paper else {}))


def text() -> str:
    """The page."""
    parts = [BEGIN]
    for name, words in PLOTS.items():
        code = f"```py\nbayesrep.plot_{name}(study, posterior)\n```"
        parts.append(f"### plot_{name}\n\n{words.capitalize()}.\n\n{code}\n")
        parts.append(shown(f"plot-{name}"))
    parts.append(PAPER)
    told = {entry.name: entry for entry in (*FIGURE_ENTRIES, *entries()) if entry.name}
    for name, figure in FIGURES.items():
        if of_a_study(figure):
            said = told[name].shows
            words = said[0].upper() + said[1:]
            code = f"```console\n$ {command(name, figure)}\n```"
            parts.append(f"### {name}\n\n{words}.\n\n{code}\n")
            parts.append(shown(name))
    others = [told[name] for name, figure in FIGURES.items() if not of_a_study(figure)]
    return "\n".join([*parts, END.lstrip() + "".join(map(row, others))])


def of_a_study(figure: NamedFigure) -> bool:
    """Whether a study and its fit are all that it takes."""
    return figure.needs_study or not figure.inputs


def row(entry: FigureEntry) -> str:
    """A figure's line in the table of those that need more."""
    needs = ", ".join(f"`{in_words(need)}`" for need in entry.needs)
    return f"| `{entry.name}` | {entry.shows} | {needs} |\n"


def main() -> None:
    """Fit, draw and write."""
    warnings.simplefilter("ignore")
    study = bayesrep.simulate_study(images=2000, classifiers=24)
    posterior = bayesrep.fit(study, method="nuts")  # of which there are chains to draw
    for name in PLOTS:
        save(getattr(bayesrep, f"plot_{name}")(study, posterior).spec, f"plot-{name}")
    for name, figure in FIGURES.items():
        if of_a_study(figure):
            sys.stderr.write(f"{name}\n")
            save(drawn(name, figure, study, posterior), name)
    PAGE.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
