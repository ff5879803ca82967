"""Why matching on noisy counts is biased: two betas, and what is matched from the second."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bayesrep.numerics.noisy_matching import BetaMixture, replication_mixture
from bayesrep.report import vega
from bayesrep.report.figure import Figure, Reading
from bayesrep.report.sections.section import Block, Section, Source, numbers, select_place, slider
from bayesrep.report.table_format import percent
from bayesrep.report.vega import Css
from bayesrep.studies.vocabulary import Words
from bayesrep.types import Floats

CURVE_COLORS = {"reference": Css.POSTERIOR, "candidates": Css.SOFT, "replication": Css.RAW}
REFERENCE_BETA = (3.0, 2.0)
POOL_BETAS = {
    "harder": (2.0, 2.0),
    "much harder": (1.5, 3.0),
    "as hard": (3.0, 2.0),
    "easier": (6.0, 1.5),
}
"""Betas of the candidates, beside the reference's; the first is that of the paper's figure 3."""
TOY_MAX, TOY_START = 40, 10
S_101 = np.linspace(0, 1, 101)
INNER_FREQUENCIES = np.clip(S_101, 0.0025, 0.9975)
"""Frequencies at which densities are computed that may be infinite at the ends."""


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
        (alpha, beta), ends, words = REFERENCE_BETA, ("none", "many"), self.words
        candidates = [f"{name}: Beta({a:g}, {b:g})" for name, (a, b) in POOL_BETAS.items()]
        yield self.block(
            lead="Where the candidates are harder than the reference, those whose counts match the "
            f"reference's make a replication that lies lower: among {words.images} with a high "
            f"count more were lucky where most are hard. The fewer {words.annotators} count, the "
            f"lower. (Each follows a beta, the reference Beta({alpha:g}, {beta:g}), as in "
            "equation 1 of Engstrom et al., 2020; a click on the legend hides one.)",
            controls=[
                select_place("toy_pool", "Candidates", candidates),
                slider("toy_answers", words.annotators.title(), 0, TOY_MAX, TOY_START, ends=ends),
            ],
            figures=[toy_figure(words)],
        )


def toy_figure(words: Words) -> Figure:
    """The densities of the reference, the candidates and the replication, by both controls."""
    reference = _beta(*REFERENCE_BETA)
    pools = [_beta(a, b) for a, b in POOL_BETAS.values()]
    curves = [[replication_mixture(reference, p, n) for n in range(TOY_MAX + 1)] for p in pools]
    texts = [
        [_read(n, reference.mean, each.mean, words) for n, each in enumerate(row)] for row in curves
    ]
    rows = population_rows(
        S_101,
        reference.density(INNER_FREQUENCIES),
        np.array([pool.density(INNER_FREQUENCIES) for pool in pools]),
        np.array([[each.density(INNER_FREQUENCIES) for each in row] for row in curves]),
    )
    return Figure(
        "toy",
        "Distributions of selection frequency in the two-beta model",
        populations_chart("toy", "datum.matched[toy_pool][toy_answers]", "datum.pools[toy_pool]")
        | {"params": [vega.param("toy_pool", 0), vega.param("toy_answers", TOY_START)]},
        data={"toy": rows},
        readings=Reading(("toy_pool", "toy_answers"), texts),
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
    names: Sequence[str] = tuple(CURVE_COLORS)
    spec = vega.densities(
        data,
        names,
        tuple(CURVE_COLORS.values()),
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
