"""What the site shows of a simulated study, fitted when it is built: a report and every figure.

`BAYESREP_LIVE_REPORT=0` leaves both out, where some minutes are too long.
"""

import os
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

PICTURES = "images/gallery"
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
BEGIN = """### In a notebook

`study` and `posterior` are those of the [tutorial in Python](tutorial-python.md). All are
interactive in Jupyter and saved as PDF, SVG, PNG or Vega-Lite (.json) by `.save(path)`.
"""
PAPER = """### On the command line

`my-study` and `posterior.nc` are those of the [tutorial](tutorial.md); `--out` ends in .pdf, .svg
or .png (extra [pictures]). Figures of papers are drawn by `python -m experiments.papers` in a
checkout; their intervals are of ten replicates here, the commands take the paper's number.
"""
END = """### Of more than a study and its fit

What people see, label sets, photographs or probabilities are needed for these;
`bayesrep figure --list` and `python -m experiments.papers list` say the same of your own study.

| figure | shows | needs |
|---|---|---|
"""


def wanted() -> bool:
    """Whether the study is to be fitted."""
    return os.environ.get("BAYESREP_LIVE_REPORT", "1") != "0"


def write(site: Path) -> None:
    """Simulate, fit, and write the report and the pictures."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = bayesrep.simulate_study(images=2000, classifiers=24)
        # Of which there are chains to draw.
        posterior = bayesrep.fit(study, method="nuts", progress=False)
        bayesrep.report(study, posterior).save(site / "live.html", force=True)
        (site / PICTURES).mkdir(parents=True, exist_ok=True)
        for name in PLOTS:
            plot = getattr(bayesrep, f"plot_{name}")(study, posterior)
            save(plot.spec, site / PICTURES / f"plot_{name}.png")
        for name, figure in FIGURES.items():
            if of_a_study(figure):
                save(drawn(name, figure, study, posterior), site / PICTURES / f"{name}.png")


def save(figure: Any, path: Path) -> None:
    """Write a picture."""
    if isinstance(figure, Mapping):
        path.write_bytes(picture_bytes(figure, "png", scale=1))
    else:
        figure.savefig(path, dpi=80)


def shown(name: str, words: str, kind: str, code: str) -> str:
    """A figure on the page; its picture is made after the page."""
    picture = f'\n\n<img alt="{name}" src="{PICTURES}/{name}.png">' if wanted() else ""
    said = f"{words[0].upper()}{words[1:]}"
    return f"#### {name}\n\n{said}.\n\n```{kind}\n{code}\n```{picture}\n"


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


def gallery() -> str:
    """Every figure, with the code or the command that makes it."""
    told = {entry.name: entry for entry in (*FIGURE_ENTRIES, *entries()) if entry.name}
    plots = [
        shown(f"plot_{name}", words, "py", f"bayesrep.plot_{name}(study, posterior)")
        for name, words in PLOTS.items()
    ]
    ours = [name for name, figure in FIGURES.items() if of_a_study(figure)]
    commands = [
        shown(name, told[name].shows, "console", f"$ {command(name, FIGURES[name])}")
        for name in ours
    ]
    others = "".join(row(told[name]) for name in FIGURES if name not in ours)
    return "\n".join([BEGIN, *plots, PAPER, *commands, END + others])


def of_a_study(figure: NamedFigure) -> bool:
    """Whether a study and its fit are all that it takes."""
    return figure.needs_study or not figure.inputs


def row(entry: FigureEntry) -> str:
    """A figure's line in the table of those that need more."""
    needs = ", ".join(f"`{in_words(need)}`" for need in entry.needs)
    return f"| `{entry.name}` | {entry.shows} | {needs} |\n"
