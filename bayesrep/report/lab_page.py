"""The lab as a page: two populations, a number of answers, and what matching on these leaves."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bayesrep.atomic import replaced_file
from bayesrep.numerics.noisy_matching import BetaMixture
from bayesrep.report import vega
from bayesrep.report.page import Front, page_of
from bayesrep.report.sections.bias import ROLES
from bayesrep.report.sections.section import Block, Figure, Table, slider
from bayesrep.report.vega import Spec
from bayesrep.studies.words import VOICE

TITLE = "What does matching on a few answers leave?"
LEAST_CONCENTRATION, MOST_CONCENTRATION = 0.5, 60.0
"""Concentrations a + b that the page's sliders reach."""
MEANS = 1.0, 99.0


def write_lab(
    path: Path, reference: BetaMixture, pool: BetaMixture, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Write the page, whole or not at all.

    Parameters
    ----------
    path
        Where.
    reference, pool
        Populations that the sliders begin with: of a mixture the beta of the same mean and
        variance.
    rows
        Rows of `bayesrep.lab.explore`, for the table.
    """
    with replaced_file(path) as partial:
        partial.write_text(lab_page(reference, pool, rows), encoding="utf-8")


def lab_page(reference: BetaMixture, pool: BetaMixture, rows: Sequence[Mapping[str, Any]]) -> str:
    """The page as HTML."""
    summary = (
        "A replication's images are chosen from candidates such that their measured selection "
        "frequencies are the reference's. The measurement is noisy, and the candidates are another "
        "population: so what is chosen is not as easy as the reference. Move the populations."
    )
    return page_of(Front(TITLE, summary), [_lab(reference, pool), _table(rows)], voice=VOICE.get())


def _lab(reference: BetaMixture, pool: BetaMixture) -> Block:
    roles, colors = zip(*ROLES.items(), strict=True)
    methods = [("fine", "every count"), ("published", "five bins, as ImageNet-v2")]
    controls: list[Spec] = [
        *_population("lab-reference", "Reference", reference),
        *_population("lab-pool", "Candidates", pool),
        slider("lab-answers", "Answers about an image", 0, 100, 10),
        {
            "kind": "select",
            "id": "lab-method",
            "label": "Matched on",
            "options": methods,
            "value": "fine",
        },
        slider("lab-careless", "Answers given without looking (%)", 0, 60, 0),
        slider("lab-low", "Accuracy where nobody selects (%)", 0, 100, 15),
        slider("lab-high", "Accuracy where all select (%)", 0, 100, 85),
    ]
    label = "Distributions of selection frequency: the reference, the candidates, what is chosen"
    by_answers = "What is left of the gap in selection frequency, by number of answers"
    return Block(
        id="lab-section",
        short="The lab",
        title="Two populations and a noisy measurement",
        controls=controls,
        figures=[
            Figure("lab", label, vega.densities(roles, colors)),
            Figure("lab-gap", by_answers, _by_answers()),
        ],
    )


def _population(name: str, label: str, mixture: BetaMixture) -> list[Spec]:
    """Sliders for mean and concentration."""
    mean, concentration = moments(mixture)
    shown = float(np.clip(round(200 * mean) / 2, *MEANS))
    spread = float(np.clip(round(2 * concentration) / 2, LEAST_CONCENTRATION, MOST_CONCENTRATION))
    return [
        slider(name, f"{label}: mean (%)", *MEANS, shown, step=0.5),
        slider(
            f"{name}-spread",
            f"{label}: a + b (large: alike)",
            LEAST_CONCENTRATION,
            MOST_CONCENTRATION,
            spread,
            step=0.5,
        ),
    ]


def moments(mixture: BetaMixture) -> tuple[float, float]:
    """Mean and concentration a + b of the beta with the mixture's mean and variance."""
    means = mixture.a / (mixture.a + mixture.b)
    squares = means * (mixture.a + 1) / (mixture.a + mixture.b + 1)
    mean = float(mixture.weights @ means)
    variance = float(mixture.weights @ squares) - mean**2
    return mean, mean * (1 - mean) / max(variance, 1e-12) - 1


def _by_answers() -> Spec:
    names, colors = ("every count", "five bins"), (vega.POSTERIOR, vega.RAW_COLOR)
    line = vega.mark(
        {"type": "line", "point": True},
        x=vega.number("answers", title="answers about an image"),
        y=vega.number("gap", title="left of the gap (points)"),
        color=vega.colors("which", names, colors),
    )
    here = vega.mark({"type": "rule", "strokeDash": [4, 4]}, x=vega.number("answers"))
    here["transform"] = [{"filter": "datum.now"}]
    here["encoding"]["color"] = {"value": vega.SOFT}
    return vega.chart(line, here)


def _table(rows: Sequence[Mapping[str, Any]]) -> Block:
    def points(value: float | None) -> str:
        return "–" if value is None else f"{100 * value:.2f}".replace("-0.00", "0.00")

    header = ["Answers", "Reference's share", "Five bins", "Every count", "Simulated", "Posterior"]
    cells = [
        [
            str(row["answers"]),
            points(row["weight"]),
            points(row["published"]),
            points(row["fine"]),
            f"{points(row['simulated'])} ± {points(2 * row['error'])}",
            points(row["posterior"]),
        ]
        for row in rows
    ]
    return Block(
        id="lab-table-section",
        short="Numbers",
        title="What each way to choose leaves, exactly",
        lead="Points of the mean selection frequency, for the populations this page was made with. "
        "The reference's share is n / (n + α + β) of equation 1 of Engstrom et al. (2020), in "
        "percent: the rest of the replication is like the candidates. Posterior: chosen such that "
        "the expected distribution of true frequencies is the reference's (bayesrep match-images).",
        table=Table("lab-table", "What each way to choose leaves", header, cells),
    )
