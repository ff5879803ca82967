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
        for name, figure in FIGURES.items():
            if of_a_study(figure):
                save(drawn(name, figure, study, posterior), site / PICTURES / f"{name}.png")


def save(figure: Any, path: Path) -> None:
    """Write a picture."""
    if isinstance(figure, Mapping):
        path.write_bytes(picture_bytes(figure, "png", scale=1))
    else:
        figure.savefig(path, dpi=80)


def shown(name: str, entry: FigureEntry) -> str:
    """A figure on the page; its picture is made after the page."""
    parts = [f"### {name}", f"{entry.shows[0].upper()}{entry.shows[1:]}."]
    parts.append(f"```console\n$ {command(name, FIGURES[name])}\n```")
    plot = f"plot_{'gaps' if name == 'answer' else name}"
    if plot in bayesrep.__all__:
        parts.append(f"```py\nbayesrep.{plot}(study, posterior)\n```")
    if wanted():
        parts.append(f'<img alt="{name}" src="{PICTURES}/{name}.png">')
    return "\n\n".join(parts) + "\n"


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
    ours = [name for name, figure in FIGURES.items() if of_a_study(figure)]
    others = "".join(row(told[name]) for name in FIGURES if name not in ours)
    return "\n".join([*(shown(name, told[name]) for name in ours), END + others])


def of_a_study(figure: NamedFigure) -> bool:
    """Whether a study and its fit are all that it takes."""
    return figure.needs_study or not figure.inputs


def row(entry: FigureEntry) -> str:
    """A figure's line in the table of those that need more."""
    needs = ", ".join(f"`{in_words(need)}`" for need in entry.needs)
    return f"| `{entry.name}` | {entry.shows} | {needs} |\n"
