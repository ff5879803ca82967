"""The lab as a page: two populations, a number of answers, and what matching on these leaves."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bayesrep.atomic import replaced_file
from bayesrep.numerics.noisy_matching import BetaMixture
from bayesrep.planning.discretise import S_EDGES, S_NODES, masses_of
from bayesrep.planning.matching_methods import N_BINS
from bayesrep.report import vega
from bayesrep.report.figure import Figure, Reading
from bayesrep.report.page import FirstScreen, page_of
from bayesrep.report.sections.bias import population_rows, populations_chart
from bayesrep.report.sections.section import Block, Table, numbers, select_place, slider
from bayesrep.report.table_format import percent
from bayesrep.report.vega import Css, Spec
from bayesrep.studies.vocabulary import Words
from bayesrep.types import Floats
from experiments.papers.lab import chosen_masses

PAGE_TITLE = "What does matching on a few answers leave?"
BINS_BY_METHOD = {"every count": None, "five bins, as ImageNet-v2": N_BINS}
P_CARELESS = (0.0, 0.2, 0.4)
"""Shares of answers that are given without looking."""
POOL_SHIFTS = (-0.2, -0.1, 0.1)
"""Shifts that make the page's candidates easier or harder than those given."""
LEAST_MEAN, MOST_MEAN = 0.02, 0.98
LAB_MAX, LAB_START = 40, 10
CURVE_ANSWERS = (*range(6), 7, 10, 14, 20, 28, 40, 60, 80, 100)
EVERY_NODE = 6
"""Nodes at which densities are drawn."""
ACCURACY_SLOPE = 0.7
"""Accuracy on images that all select, less that on images that none selects."""


def write_lab(
    path: Path,
    reference: BetaMixture,
    pool: BetaMixture,
    rows: Sequence[Mapping[str, Any]],
    words: Words,
) -> None:
    """Write the page, whole or not at all."""
    with replaced_file(path) as partial:
        partial.write_text(lab_page(reference, pool, rows, words), encoding="utf-8")


def lab_page(
    reference: BetaMixture, pool: BetaMixture, rows: Sequence[Mapping[str, Any]], words: Words
) -> str:
    """The page as HTML."""
    summary = (
        f"A replication's {words.images} are chosen from candidates such that their measured "
        "selection frequencies are the reference's. The measurement is noisy, and the candidates "
        "are another population: so what is chosen is not as easy as the reference. "
        "Choose candidates, and how many answers there are."
    )
    return page_of(
        FirstScreen(PAGE_TITLE, summary), [_lab(reference, pool, words), _table(rows)], words
    )


def _lab(reference: BetaMixture, pool: BetaMixture, words: Words) -> Block:
    pools = candidate_pools(reference, pool)
    controls: list[Spec] = [
        select_place("lab_pool", "Candidates", list(pools)),
        slider("lab_answers", f"Answers about an {words.image}", 0, LAB_MAX, LAB_START),
        select_place("lab_method", "Matched on", list(BINS_BY_METHOD)),
        select_place(
            "lab_careless",
            "Answers given without looking",
            [f"{100 * c:.0f} %" for c in P_CARELESS],
        ),
    ]
    masses, every = masses_of(reference), [masses_of(each) for each in pools.values()]
    return Block(
        id="lab-section",
        short="The lab",
        title="Two populations and a noisy measurement",
        controls=controls,
        figures=[_populations(masses, every, words), _gaps_by_answers(masses, every, words)],
    )


def candidate_pools(reference: BetaMixture, pool: BetaMixture) -> dict[str, BetaMixture]:
    """The candidates as given, some that are harder and easier by as much, and the reference's."""
    mean, concentration = moments(pool)
    pools = {f"as given: mean {percent(mean)} %": pool}
    for shift in POOL_SHIFTS:
        moved = float(np.clip(mean + shift, LEAST_MEAN, MOST_MEAN))
        a = moved * concentration
        name = f"{'harder' if shift < 0 else 'easier'}: mean {percent(moved)} %"
        pools[name] = BetaMixture(np.array([a]), np.array([concentration - a]), np.ones(1))
    return pools | {"like the reference": reference}


def moments(mixture: BetaMixture) -> tuple[float, float]:
    """Mean and concentration a + b of the beta with the mixture's mean and variance."""
    means = mixture.a / (mixture.a + mixture.b)
    squares = means * (mixture.a + 1) / (mixture.a + mixture.b + 1)
    mean = float(mixture.weights @ means)
    return mean, mean * (1 - mean) / max(float(mixture.weights @ squares) - mean**2, 1e-12) - 1


def _populations(reference: Floats, pools: Sequence[Floats], words: Words) -> Figure:
    """Densities of the reference, the candidates and what is chosen of them."""
    chosen = np.array(
        [
            [
                [
                    [
                        chosen_masses(reference, pool, n, bins=bins, careless=careless)
                        for n in range(LAB_MAX + 1)
                    ]
                    for careless in P_CARELESS
                ]
                for bins in BINS_BY_METHOD.values()
            ]
            for pool in pools
        ]
    )  # [pool, method, careless, answers, node]
    width = np.diff(S_EDGES)
    rows = population_rows(
        S_NODES[::EVERY_NODE],
        *((masses / width)[..., ::EVERY_NODE] for masses in (reference, np.array(pools), chosen)),
    )
    spec = populations_chart(
        "lab",
        "datum.matched[lab_pool][lab_method][lab_careless][lab_answers]",
        "datum.pools[lab_pool]",
    )
    names = ("lab_pool", "lab_method", "lab_careless", "lab_answers")
    first = dict.fromkeys(names, 0) | {"lab_answers": LAB_START}
    reference_mean, means = float(reference @ S_NODES), chosen @ S_NODES
    texts = [
        [
            [
                [
                    _read(n, reference_mean, float(pool @ S_NODES), float(mean), careless, words)
                    for n, mean in enumerate(by_answers)
                ]
                for careless, by_answers in zip(P_CARELESS, by_careless, strict=True)
            ]
            for by_careless in by_method
        ]
        for pool, by_method in zip(pools, means, strict=True)
    ]
    return Figure(
        "lab",
        "Distributions of selection frequency: the reference, the candidates, what is chosen",
        {**spec, "params": [vega.param(*each) for each in first.items()]},
        data={"lab": rows},
        readings=Reading(names, texts),
        columns=("s", "which", "density"),
    )


def _read(
    answers: int, reference: float, pool: float, chosen: float, careless: float, words: Words
) -> str:
    """State the remaining gap of a matching in a sentence."""
    gap = reference - chosen
    heard = (percent((1 - careless) * mean + careless / 2, 2) for mean in (chosen, reference))
    again, own = heard
    return (
        f"Matched on {answers} answer{'s' if answers != 1 else ''} an {words.image}, the "
        f"replication's mean selection frequency is {percent(chosen, 2)} %, the reference's "
        f"{percent(reference, 2)} %, the candidates' {percent(pool, 2)} %: {percent(gap, 2)} "
        f"points are left. Asked again, {words.people} would select {again} % of it and {own} % of "
        f"the reference. A {words.classifier} that gets {percent(ACCURACY_SLOPE, 0)} points more "
        f"of the {words.images} right that all select than of those that nobody does loses "
        f"{percent(ACCURACY_SLOPE * gap, 2)} points of accuracy."
    )


def _gap_rows(reference: Floats, pools: Sequence[Floats]) -> list[dict[str, Any]]:
    """Points of the gap that both ways leave, by answers, pool and carelessness."""
    reference_mean = float(reference @ S_NODES)

    def find_gap(pool: Floats, answers: int, bins: int | None, careless: float) -> float:
        chosen = chosen_masses(reference, pool, answers, bins=bins, careless=careless)
        return 100 * (reference_mean - float(chosen @ S_NODES))

    return [
        {"answers": answers, "which": which}
        | {
            "gaps": numbers(
                [[find_gap(pool, answers, bins, c) for c in P_CARELESS] for pool in pools]
            )
        }
        for which, bins in zip(("every count", "five bins"), BINS_BY_METHOD.values(), strict=True)
        for answers in CURVE_ANSWERS
    ]


def _gaps_by_answers(reference: Floats, pools: Sequence[Floats], words: Words) -> Figure:
    """Plot the gap that both matching methods leave, by number of answers."""
    x = {"title": f"answers about an {words.image}"}
    line = vega.mark(
        {"type": "line", "point": True},
        x=vega.number("answers", **x),
        y=vega.number("gap", title="left of the gap (points)"),
        color=vega.colors("which", ("every count", "five bins"), (Css.POSTERIOR, Css.RAW)),
    )
    marker: Spec = {
        "data": {"values": [{}]},
        "mark": {"type": "rule", "strokeDash": [4, 4], "color": Css.SOFT},
        "encoding": {"x": {"datum": {"expr": "toNumber(lab_answers)"}, "type": "quantitative"}},
    }
    return Figure(
        "lab-gap",
        "What is left of the gap in selection frequency, by number of answers",
        vega.chart(
            "lab-gaps",
            line,
            marker,
            transform=[vega.calculate("gap", "datum.gaps[lab_pool][lab_careless]")],
            params={"lab_pool": 0, "lab_careless": 0, "lab_answers": LAB_START},
        ),
        "What is left of the gap in selection frequency falls as one over the answers, and slower "
        "with coarse bins.",
        {"lab-gaps": _gap_rows(reference, pools)},
        columns=("answers", "which", "gap"),
    )


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
        "the expected distribution of true frequencies is the reference's (bayesrep collect "
        "match).",
        table=Table("lab-table", "What each way to choose leaves", header, cells),
    )
