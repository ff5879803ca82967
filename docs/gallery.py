"""Draw every figure of a simulated study and write docs/gallery.md: `python docs/gallery.py`.

It fits the study of `bayesrep demo --quick` and takes some minutes.
"""

import sys
import warnings
from pathlib import Path
from typing import Any

import bayesrep
from bayesrep.report.figure_names import FIGURES, Figure

DOCS = Path(__file__).resolve().parent
PICTURES = DOCS / "images" / "gallery"
PLOTS = {
    "accuracies": "every classifier on both data sets, as measured and adjusted",
    "gaps": "what every method leaves of the mean drop",
    "ranks": "ranks of classifiers at equal selection frequencies",
    "curves": "accuracy by selection frequency",
    "frequencies": "selection frequencies, observed, expected and true",
}
NEED_TABLES = ("people", "judged")  # of what people see, from `bayesrep collect`
BEGIN = """# Gallery

Every figure, with the code or the command that makes it. Made by `python docs/gallery.py`, of a
simulated study (24 classifiers, 2,000 + 2,000 images, 36 annotators), and so is this page.

## In a notebook

`study` and `posterior` are those of the [tutorial in Python](tutorial-python.md). The first three
are interactive in Jupyter; all are saved as PDF, SVG or PNG by `.save(path)`, and `.figure` is
matplotlib's.
"""
PAPER = """
## On the command line

`my-study` and `posterior.nc` are those of the [tutorial](tutorial.md); `--out` ends in .pdf, .svg
or .png.
"""
END = """
`people` and `judged` show what people see on the images, from the tables of
[`bayesrep collect`](how-to/collect.md).
"""


def save(figure: Any, name: str) -> str:
    """Write a picture; its line on the page."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURES / f"{name}.png", dpi=80)
    return f"![{name}](images/gallery/{name}.png)"


def command(name: str, figure: Figure) -> str:
    """The command that draws a figure."""
    parts = ["bayesrep figure", name]
    parts += ["my-study"] * figure.needs_study + ["posterior.nc"] * figure.needs_posterior
    return " ".join([*parts, f"--out {name}.pdf"])


def drawn(name: str, figure: Figure, study: Any, posterior: Any) -> Any:
    """A figure, without the bootstrap where it takes long."""
    inputs = [study] * figure.needs_study + [posterior] * figure.needs_posterior
    options = {"bootstrap": 0} if name.startswith("paper") and "bootstrap" in figure.options else {}
    return figure.draw(*inputs, **options)


def main() -> None:
    """Fit, draw and write."""
    warnings.simplefilter("ignore")
    study = bayesrep.simulate_study(images=2000, classifiers=24)
    posterior = bayesrep.fit(study)
    page = [BEGIN]
    for name, words in PLOTS.items():
        plot = getattr(bayesrep, f"plot_{name}")(study, posterior)
        code = f"```py\nbayesrep.plot_{name}(study, posterior)\n```"
        page.append(f"### plot_{name}\n\n{words.capitalize()}.\n\n{code}\n")
        page.append(save(plot.figure, f"plot-{name}") + "\n")
    page.append(PAPER)
    for name, figure in FIGURES.items():
        if name in NEED_TABLES:
            continue
        sys.stderr.write(f"{name}\n")
        words = figure.description[0].upper() + figure.description[1:]
        page.append(f"### {name}\n\n{words}.\n\n```console\n$ {command(name, figure)}\n```\n")
        page.append(save(drawn(name, figure, study, posterior), name) + "\n")
    (DOCS / "gallery.md").write_text("\n".join([*page, END.lstrip()]), encoding="utf-8")


if __name__ == "__main__":
    main()
