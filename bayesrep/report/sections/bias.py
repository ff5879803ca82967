"""Why matching on noisy counts is biased: two betas, and what is matched from the second."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bayesrep.numerics.noisy_matching import BetaMixture, replication_mixture
from bayesrep.report import vega
from bayesrep.report.picture import Figure, Reading
from bayesrep.report.sections.section import Block, Section, Source, numbers, select_place, slider
from bayesrep.report.text import percent
from bayesrep.studies.vocabulary import Words
from bayesrep.types import Floats

ROLES = {"reference": vega.POSTERIOR, "candidates": vega.SOFT, "replication": vega.RAW_COLOR}
REFERENCE = (3.0, 2.0)
POOLS = {
    "harder": (2.0, 2.0),
    "much harder": (1.5, 3.0),
    "as hard": (3.0, 2.0),
    "easier": (6.0, 1.5),
}
"""Betas of the candidates, beside the reference's; the first is that of the paper's figure 3."""
MOST_ANSWERS, FIRST_ANSWERS = 40, 10
GRID = np.linspace(0, 1, 101)
INNER = np.clip(GRID, 0.0025, 0.9975)
"""Where densities are computed that may be infinite at the ends."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Bias(Section):
    """Nothing of the study: the model is the same for all."""

    id, short, takes = "bias", "Why", ""
    title = "Why matching on noisy counts is biased"

    @classmethod
    def compute(cls, source: Source) -> Self:
        """Take nothing."""
        return cls(words=source.words)

    def blocks(self) -> Iterator[Block]:
        """A choice of candidates, a slider for the annotators, and three densities."""
        (alpha, beta), pools, words = REFERENCE, list(POOLS.items()), self.words
        yield self.block(
            lead="Where the candidates are harder than the reference, those whose counts match the "
            f"reference's make a replication that lies lower: among {words.images} with a high "
            f"count more were lucky where most are hard. The fewer {words.annotators} count, the "
            f"lower. (Each follows a beta, the reference Beta({alpha:g}, {beta:g}), as in "
            "equation 1 of Engstrom et al., 2020; a click on the legend hides one.)",
            controls=[
                select_place(
                    "toy_pool",
                    "Candidates",
                    [f"{name}: Beta({a:g}, {b:g})" for name, (a, b) in pools],
                ),
                slider(
                    "toy_answers",
                    words.annotators.title(),
                    0,
                    MOST_ANSWERS,
                    FIRST_ANSWERS,
                    ends=("none", "many"),
                ),
            ],
            figures=[toy_figure(words)],
        )


def toy_figure(words: Words) -> Figure:
    """The densities of the reference, the candidates and the replication, by both controls."""
    reference = _beta(*REFERENCE)
    pools = [_beta(a, b) for a, b in POOLS.values()]
    made = [[replication_mixture(reference, p, n) for n in range(MOST_ANSWERS + 1)] for p in pools]
    return Figure(
        "toy",
        "Distributions of selection frequency in the two-beta model",
        populations_chart("toy", "datum.matched[toy_pool][toy_answers]", "datum.pools[toy_pool]")
        | {"params": [vega.param("toy_pool", 0), vega.param("toy_answers", FIRST_ANSWERS)]},
        data={
            "toy": population_rows(
                GRID,
                reference.density(INNER),
                np.array([pool.density(INNER) for pool in pools]),
                np.array([[each.density(INNER) for each in row] for row in made]),
            )
        },
        readings=Reading(
            ("toy_pool", "toy_answers"),
            [
                [_read(n, reference.mean, each.mean, words) for n, each in enumerate(row)]
                for row in made
            ],
        ),
        columns=("s", "which", "density"),
    )


def _beta(a: float, b: float) -> BetaMixture:
    return BetaMixture(np.array([a]), np.array([b]), np.ones(1))


def _read(annotators: int, reference: float, replication: float, words: Words) -> str:
    lost = reference - replication
    people = words.annotator if annotators == 1 else words.annotators
    return (
        f"Matched by {annotators} {people}, the replication's "
        f"mean selection frequency is {percent(replication)} %, the reference's "
        f"{percent(reference)} %: {percent(abs(lost))} points are "
        f"{'gained by' if lost < 0 else 'lost to'} noise."
    )


def population_rows(
    s: Floats, reference: Floats, pools: Floats, matched: Floats
) -> list[dict[str, Any]]:
    """A row for each frequency: densities [s], [pool, s] and what is matched, [..., s]."""
    return [
        {
            "s": round(100 * float(s[i]), 2),
            "reference": round(float(reference[i]), 4),
            "pools": numbers(np.round(pools[..., i], 3)),
            "matched": numbers(np.round(matched[..., i], 3)),
        }
        for i in range(len(s))
    ]


def populations_chart(data: str, matched: str, pool: str) -> vega.Spec:
    """Densities of three populations, two of them chosen from a row; each can be hidden."""
    names: Sequence[str] = tuple(ROLES)
    spec = vega.densities(
        data,
        names,
        tuple(ROLES.values()),
        transform=[
            vega.calculate("candidates", pool),
            vega.calculate("replication", matched),
            {"fold": list(names), "as": ["which", "density"]},
        ],
    )
    # What is clicked is hidden, so that at first, when nothing is, all are shown.
    click = {"name": "hidden", "select": {"type": "point", "fields": ["which"], "toggle": "true"}}
    visible = {"filter": {"not": {"param": "hidden", "empty": False}}}
    (layer,) = spec["layer"]
    layer = {**layer, "params": [{**click, "bind": "legend"}], "transform": [visible]}
    return {**spec, "layer": [layer]}
