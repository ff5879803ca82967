"""Ranks once selection is removed, and how far a classifier is from those beside it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bayesrep.errors import StudyError, listing
from bayesrep.numerics.estimands import INTERVAL, ranks
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior
from bayesrep.report import vega
from bayesrep.report.figures import BLUE, GREY, INK, legend_below, panels
from bayesrep.report.sections.section import (
    Block,
    Figure,
    Section,
    Source,
    chooser,
    numbers,
)
from bayesrep.studies.study import Study
from bayesrep.types import Floats, Ints

NEAR_CLASSIFIERS = 10  # classifiers that one is compared with
SHOWN_ROWS = 30  # rows of a figure


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranking(Section):
    """Ranks of all classifiers, and each one's differences from its neighbours.

    Attributes
    ----------
    classifiers
        Names.
    rank : float64 [3, C]
        Mean, lower and upper end (95 %) of the rank by adjusted accuracy, 1 the best.
    measured : float64 [C]
        Rank by the accuracy measured on the replication.
    order : int [C]
        Classifiers, the best first.
    neighbours : int [C, M]
        Those whose ranks are nearest, the best first.
    differences : float64 [4, C, M]
        Mean, lower and upper end (95 %) of each one's adjusted accuracy less the neighbour's, and
        the probability that it is the better one.
    """

    classifiers: tuple[str, ...]
    rank: Floats
    measured: Floats
    order: Ints
    neighbours: Ints
    differences: Floats

    id, short, title, takes = "ranks-section", "Ranks", "Who is better", "ranks"

    @classmethod
    def compute(cls, source: Source) -> Self:
        """Take the posterior's joint draws."""
        fitted, names = source.need_posterior, source.study.classifiers
        draws = fitted.together
        ranked = ranks(draws)
        ends = np.quantile(ranked, INTERVAL, axis=(0, 1), method="nearest")
        mean = ranked.mean(axis=(0, 1))
        order = np.argsort(mean, kind="stable")
        neighbours = _neighbours(order, min(NEAR_CLASSIFIERS, len(names) - 1))
        return cls(
            classifiers=names,
            rank=np.stack([mean, *ends]),
            measured=ranks(source.study.replication.correct.mean(axis=0)),
            order=order,
            neighbours=neighbours,
            differences=_differences(draws.reshape(-1, len(names)), neighbours),
        )

    def blocks(self) -> Iterator[Block]:
        """Both forest plots; nothing of a single classifier."""
        if len(self.classifiers) < 2:
            return
        columns = ("mean", "lower", "upper", "probability")
        shown = min(SHOWN_ROWS, len(self.classifiers))
        yield self.block(
            lead="Ranks and differences take into account that classifiers answer the same images. "
            "An interval is for one classifier or one pair: of many, some lie far apart by chance.",
            controls=[chooser("rank-classifier")],
            figures=[
                Figure(
                    "ranking",
                    "Classifiers' ranks by adjusted accuracy with intervals, beside those by "
                    "measured accuracy",
                    _ranks(shown, len(self.classifiers)),
                    key=[("ring", "rank as measured"), ("dot", "rank adjusted, 95 %")],
                ),
                Figure(
                    "pairs",
                    "A classifier's adjusted accuracy less that of those beside it, with intervals",
                    _pairs(self.neighbours.shape[1]),
                ),
            ],
            data={
                "ranks": {
                    **dict(zip(columns, map(numbers, self.rank), strict=False)),
                    "measured": numbers(self.measured),
                    "order": self.order.tolist(),
                    "shown": shown,
                },
                "pairs": {
                    "neighbours": self.neighbours.tolist(),
                    **{
                        name: numbers(np.round(each, 4))
                        for name, each in zip(columns, self.differences, strict=True)
                    },
                },
            },
        )


def _neighbours(order: Ints, count: int) -> Ints:
    """The neighbours of every classifier in an order, the best first."""
    size = len(order)
    nearest = np.empty((size, count), dtype=int)
    for place, each in enumerate(order):
        first = int(np.clip(place - count // 2, 0, size - 1 - count))
        nearest[each] = np.delete(order[first : first + count + 1], place - first)
    return nearest


def _differences(draws: Floats, neighbours: Ints) -> Floats:
    rows = np.empty((4, *neighbours.shape))
    for each, others in enumerate(neighbours):
        apart = draws[:, each, None] - draws[:, others]
        rows[:, each] = (
            apart.mean(axis=0),
            *np.quantile(apart, INTERVAL, axis=0),
            (apart > 0).mean(axis=0),
        )
    return rows


def _ranks(shown: int, classifiers: int) -> vega.Spec:
    y = vega.name("classifier", sort=None, title=None, axis={"labelLimit": 150, "grid": True})
    whole = {"domain": [0.5, classifiers + 0.5], "nice": False}
    scale = whole if shown == classifiers else {"zero": False}
    x = {"title": "rank, 1 the best", "scale": scale}
    tooltip = [
        vega.name("classifier", title="classifier"),
        vega.name("told", title="rank"),
        vega.number("measured", title="as measured"),
    ]
    color = vega.found(vega.RAW_COLOR, vega.POSTERIOR)
    return vega.chart(
        vega.mark(
            {"type": "rule", "strokeWidth": 2, "opacity": 0.7},
            y=y,
            x=vega.number("lower", **x),
            x2={"field": "upper"},
            color=color,
        ),
        vega.mark(
            {"type": "point", "color": vega.GREY, "size": 34, "opacity": 1},
            y=y,
            x=vega.number("measured", **x),
        ),
        vega.mark(
            {"type": "circle", "size": 50, "opacity": 1},
            y=y,
            x=vega.number("mean", **x),
            color=color,
            tooltip=tooltip,
        ),
        height=19 * shown + 10,
    )


def _pairs(count: int) -> vega.Spec:
    y = vega.name("classifier", sort=None, title=None, axis={"labelLimit": 150, "grid": True})
    # On paper the plot is narrower than its title, which has room on the side of the names.
    x: vega.Spec = {"title": "points better (below 0: worse)", "axis": {"titleAnchor": "end"}}
    zero: vega.Spec = {"type": "rule", "color": vega.SOFT}
    tooltip = [
        vega.name("classifier", title="compared with"),
        vega.name("told", title="points"),
        vega.number("probability", title="probably better (%)", format=".0f"),
    ]
    return vega.chart(
        vega.mark(zero, data="zero", x=vega.number("x", **x)),
        vega.mark(
            {"type": "rule", "strokeWidth": 2, "color": vega.POSTERIOR},
            y=y,
            x=vega.number("lower", **x),
            x2={"field": "upper"},
        ),
        vega.mark(
            {"type": "circle", "size": 60, "color": vega.POSTERIOR, "opacity": 1},
            y=y,
            x=vega.number("mean", **x),
            tooltip=tooltip,
        ),
        height=26 * count + 10,
    )


def rank_figure(study: Study, posterior: Posterior) -> Any:
    """Ranks by adjusted accuracy with 95 % intervals, beside those by measured accuracy."""
    section = Ranking.compute(Source(study, Fitted(study, posterior)))
    order = section.order[:SHOWN_ROWS]
    place = np.arange(len(order))[::-1]
    figure, (axes,) = panels(1)
    mean, low, high = section.rank[:, order]
    axes.hlines(place, low, high, color=BLUE, lw=1.2)
    axes.plot(mean, place, "o", ms=4, color=BLUE, label="adjusted, 95 %")
    axes.plot(section.measured[order], place, "o", ms=4, mfc="none", mec=GREY, label="as measured")
    axes.set_yticks(place, [section.classifiers[each] for each in order], fontsize=7)
    title = "rank" if len(order) == len(section.order) else f"rank (the first {len(order)})"
    axes.set(xlabel=f"{title}, 1 the best", ylim=(-0.8, len(order) - 0.2))
    legend_below(figure)
    return figure


def pair_figure(study: Study, posterior: Posterior, *, classifiers: Sequence[str] = ()) -> Any:
    """A classifier's adjusted accuracy less its neighbours', with 95 % intervals; of each named.

    Raises
    ------
    StudyError
        For a name that is not a classifier's.
    """
    if unknown := [name for name in classifiers if name not in study.classifiers]:
        raise StudyError("classifiers-not-in-study", classifiers=listing(unknown, "classifier"))
    section = Ranking.compute(Source(study, Fitted(study, posterior)))
    chosen = list(classifiers) or [study.classifiers[section.order[0]]]
    figure, every = panels(len(chosen), rows=-(-len(chosen) // 2))
    for axes, name in zip(every, chosen, strict=True):
        number = study.classifiers.index(name)
        others = section.neighbours[number]
        place = np.arange(len(others))[::-1]
        mean, low, high, _ = 100 * section.differences[:, number]
        axes.axvline(0, color=INK, lw=0.8)
        axes.hlines(place, low, high, color=BLUE, lw=1.4)
        axes.plot(mean, place, "o", ms=5, color=BLUE)
        axes.set_yticks(place, [study.classifiers[each] for each in others], fontsize=8)
        axes.set_title(name, loc="left", fontsize=9)
        axes.set_xlabel("points better (below 0: worse)")
    return figure
