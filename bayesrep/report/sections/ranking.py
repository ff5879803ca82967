"""Ranks once selection is removed, and how far a classifier is from those beside it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from bayesrep.errors import StudyError, listing
from bayesrep.numerics.estimands import INTERVAL, ranks
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior
from bayesrep.report import vega
from bayesrep.report.figure import Figure, Reading, beside, on_paper
from bayesrep.report.sections.section import Block, Section, Source, chooser, numbers
from bayesrep.report.vega import Css
from bayesrep.studies.study import Study
from bayesrep.studies.vocabulary import Words
from bayesrep.types import Floats, Ints

NEAR_CLASSIFIERS = 10  # classifiers that one is compared with
RANK_ROWS = 30  # rows of a figure
RING_MARK: vega.Spec = {"type": "point", "color": Css.GREY, "size": 34, "opacity": 1}
PAIR_KEY = (("ring", "as measured"), ("dot", "at the same selection frequency, 95 %"))


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranking(Section):
    """Ranks of all classifiers, and each one's differences from its neighbours."""

    classifiers: tuple[str, ...]  # names
    # [3, C]: mean, lower and upper end (95 %) of the rank by adjusted accuracy, 1 the best
    rank: Floats
    measured: Floats  # [C]: rank by the accuracy measured on the replication
    order: Ints  # [C]: classifiers, the best first
    neighbours: Ints  # [C, M]: those whose ranks are nearest, the best first
    # [4, C, M]: mean, lower and upper end (95 %) of each one's adjusted accuracy minus the
    # neighbour's, and the probability that it is the better one
    differences: Floats
    measured_differences: Floats  # [C, M]: the same of the accuracies measured on the replication

    id, short, title, takes = "ranks-section", "Ranks", "Who is better", "ranks"

    @classmethod
    def compute(cls, source: Source) -> Self:
        """Take the posterior's draws."""
        fitted, names = source.need_posterior, source.study.classifiers
        draws = fitted.draws_over_crowds
        ranked = ranks(draws)
        ends = np.quantile(ranked, INTERVAL, axis=(0, 1), method="nearest")
        mean = ranked.mean(axis=(0, 1))
        order = np.argsort(mean, kind="stable")
        neighbours = _neighbours(order, min(NEAR_CLASSIFIERS, len(names) - 1))
        accuracy = source.study.replication.correct.mean(axis=0)
        return cls(
            classifiers=names,
            rank=np.stack([mean, *ends]),
            measured=ranks(accuracy),
            order=order,
            neighbours=neighbours,
            differences=_differences(draws.reshape(-1, len(names)), neighbours),
            measured_differences=accuracy[:, None] - accuracy[neighbours],
            words=source.words,
        )

    def blocks(self) -> Iterator[Block]:
        """Both forest plots; nothing of a single classifier."""
        if len(self.classifiers) < 2:
            return
        words = self.words
        yield self.block(
            lead=f"Ranks and differences take into account that {words.classifiers} answer the "
            f"same {words.images}. An interval is for one {words.classifier} or one pair: of many, "
            "some lie far apart by chance.",
            controls=[chooser("rank-classifier", words)],
            figures=[self.rank_figure(), self.pair_figure()],
        )

    def rank_figure(self) -> Figure:
        """Ranks of the best, or of those around the classifier that is chosen."""
        n_rows = min(RANK_ROWS, len(self.order))
        mean, lower, upper = (end[self.order] for end in self.rank)
        names = [self.classifiers[each] for each in self.order]
        rows = rank_rows(names, mean, lower, upper, self.measured[self.order])
        places = np.argsort(self.order)
        # The first of so many rows around a place; page and sentence have the same.
        firsts = np.clip([0, *places - n_rows // 2], 0, len(rows) - n_rows)
        whole = len(self.order) == n_rows
        hint = "" if whole else f"; choose a {self.words.classifier} to see those around it"
        reading, *texts = (
            f"Ranks {first + 1} to {first + n_rows} of {len(rows)} by mean rank{hint}."
            for first in firsts.tolist()
        )
        figure = rank_figure(rows, n_rows, self.words, places=places.tolist())
        return figure._replace(readings=Reading(("chosen",), texts), reading=reading)

    def pair_figure(self, number: int | None = None) -> Figure:
        """Differences from its neighbours of the classifier that is chosen, or of one."""
        best = int(self.order[0])
        every = range(len(self.classifiers)) if number is None else [number]
        columns = ("means", "lowers", "uppers", "probabilities", "raws")
        values = np.round([*self.differences, self.measured_differences], 5)
        rows = [
            {"others": [self.classifiers[each] for each in self.neighbours[every, j]]}
            | dict(zip(columns, numbers(values[:, every, j]), strict=True))
            for j in range(self.neighbours.shape[1])
        ]
        suffix = "" if number is None else f"-{number}"
        chosen_row = f"(chosen < 0 ? {best} : chosen)" if number is None else "0"
        transform = [vega.calculate("other", f"datum.others[{chosen_row}]")]
        names = ("mean", "lower", "upper", "probability", "measured")
        transform += [
            vega.calculate(one, f"100 * datum.{each}[{chosen_row}]")
            for one, each in zip(names, columns, strict=True)
        ]
        more: vega.Spec = {"params": {"chosen": -1}}
        if number is not None:
            more = {"title": self.classifiers[number]}
        return Figure(
            f"pairs{suffix}",
            f"A {self.words.classifier}'s adjusted accuracy minus that of those beside it, with "
            "intervals",
            _pairs_chart(f"pairs{suffix}", len(rows), "other", transform=transform, **more),
            self._read_pairs(best),
            data={f"pairs{suffix}": rows},
            readings=Reading(("chosen",), [self._read_pairs(each) for each in every]),
            key=PAIR_KEY,
            columns=("other", "mean", "lower", "upper", "measured", "probability"),
        )

    def _read_pairs(self, number: int) -> str:
        """Count the neighbours that a classifier clearly differs from."""
        _, lower, upper, _ = self.differences[:, number]
        n_distinct = int(((lower > 0) | (upper < 0)).sum())
        return (
            f"{self.classifiers[number]} against the {len(lower)} of nearest rank: {n_distinct} of "
            f"them {'is' if n_distinct == 1 else 'are'} clearly better or worse."
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
        differences = draws[:, each, None] - draws[:, others]
        rows[:, each] = (
            differences.mean(axis=0),
            *np.quantile(differences, INTERVAL, axis=0),
            (differences > 0).mean(axis=0),
        )
    return rows


def rank_rows(
    classifiers: Sequence[str], mean: Floats, lower: Floats, upper: Floats, measured: Floats
) -> list[dict[str, Any]]:
    """A row for every classifier, the best first."""
    return [
        {"classifier": name, "place": place}
        | dict(zip(("mean", "lower", "upper", "measured"), map(float, ends), strict=True))
        for place, (name, *ends) in enumerate(
            zip(classifiers, np.round(mean, 3), lower, upper, measured, strict=True)
        )
    ]


def rank_figure(
    rows: Sequence[Mapping[str, Any]], n_rows: int, words: Words, *, places: Sequence[int] = ()
) -> Figure:
    """Ranks with intervals beside those as measured."""
    y = vega.name("classifier", sort=None, title=None, axis={"labelLimit": 150, "grid": True})
    whole = {"domain": [0.5, len(rows) + 0.5], "nice": False}
    # With part of the rows in view their ranks would be a narrow strip of the whole scale.
    scale = whole if n_rows == len(rows) else {"zero": False}
    x = {"title": "rank, 1 the best", "scale": scale}
    tooltip = [
        vega.name("classifier", title=words.classifier),
        vega.number("mean", format=".1f", title="mean rank"),
        vega.number("lower", format=".0f", title="95 % from"),
        vega.number("upper", format=".0f", title="to"),
        vega.number("measured", title="as measured"),
    ]
    # The window of rows follows who is chosen, who stands in its middle unless near an end.
    place = "(chosen < 0 ? 0 : places[chosen])"
    first = f"clamp({place} - {n_rows // 2}, 0, {len(rows) - n_rows})"
    color = vega.found(Css.RAW, Css.POSTERIOR)
    rule: vega.Spec = {"type": "rule", "strokeWidth": 2, "opacity": 0.7}
    dot: vega.Spec = {"type": "circle", "size": 50, "opacity": 1}
    spec = vega.chart(
        "ranking",
        vega.mark(rule, y=y, x=vega.number("lower", **x), x2={"field": "upper"}, color=color),
        vega.mark(RING_MARK, y=y, x=vega.number("measured", **x), tooltip=tooltip),
        vega.mark(dot, y=y, x=vega.number("mean", **x), color=color, tooltip=tooltip),
        transform=[
            {"filter": f"datum.place >= {first} && datum.place < {first} + {n_rows}"},
            vega.calculate("found", "chosen >= 0 && datum.place === places[chosen]"),
        ],
        params={"chosen": -1, "places": list(places)},
        height=19 * n_rows + 10,
    )
    return Figure(
        "ranking",
        f"{words.classifiers.title()}' ranks by adjusted accuracy with intervals, beside those by "
        "measured accuracy",
        spec,
        data={"ranking": rows},
        key=[("ring", "rank as measured"), ("dot", "rank adjusted, 95 %")],
    )


def pairs_figure(pairs: pl.DataFrame, words: Words) -> Figure:
    """Differences of pairs of classifiers, from a table of `bayesrep.compare_classifiers`."""
    columns = {"difference": "mean", "lower": "lower", "upper": "upper"}
    columns |= {"raw_difference": "measured", "probability": "probability"}
    rows = pairs.select(
        pl.format("{} \N{MINUS SIGN} {}", "classifier", "other").alias("pair"),
        *("classifier", "other"),
        *((pl.col(name) * 100).round(4).alias(other) for name, other in columns.items()),
    )
    return Figure(
        "pairs",
        f"Differences of {words.classifiers}' accuracies, two by two, as measured and at equal "
        "selection frequencies",
        _pairs_chart("pairs", len(rows), "pair"),
        data={"pairs": rows.to_dicts()},
        key=PAIR_KEY,
    )


def _pairs_chart(data: str, count: int, name: str, **more: Any) -> vega.Spec:
    # On paper the plot is narrower than its title, which has room on the side of the names.
    x: vega.Spec = {"title": "points better (below 0: worse)", "axis": {"titleAnchor": "end"}}
    label = {"labelLimit": 150 if name == "other" else 0, "grid": True}
    y = vega.name(name, sort=None, title=None, axis=label)
    titles = {"mean": "points", **vega.ENDS, "measured": "as measured"}
    tooltip = vega.tooltip(titles, ".2f", **{name: "compared with" if name == "other" else "pair"})
    tooltip.append(vega.number("probability", title="probably better (%)", format=".0f"))
    rule: vega.Spec = {"type": "rule", "strokeWidth": 2, "color": Css.POSTERIOR}
    dot: vega.Spec = {"type": "circle", "size": 60, "color": Css.POSTERIOR, "opacity": 1}
    return vega.chart(
        data,
        vega.at_value({"type": "rule", "color": Css.SOFT}, "x", 0, x),
        vega.mark(rule, y=y, x=vega.number("lower", **x), x2={"field": "upper"}),
        vega.mark(RING_MARK, y=y, x=vega.number("measured", **x)),
        vega.mark(dot, y=y, x=vega.number("mean", **x), tooltip=tooltip),
        height=26 * count + 10,
        **more,
    )


def draw_ranks(study: Study, posterior: Posterior) -> vega.Spec:
    """Ranks by adjusted accuracy with 95 % intervals, beside those by measured accuracy."""
    return on_paper(Ranking.compute(Source(study, Fitted(study, posterior))).rank_figure())


def draw_pairs(study: Study, posterior: Posterior, *, classifiers: Sequence[str] = ()) -> vega.Spec:
    """A classifier's adjusted accuracy minus its neighbours', with 95 % intervals, of each."""
    if unknown := [name for name in classifiers if name not in study.classifiers]:
        raise StudyError("classifiers-not-in-study", classifiers=listing(unknown, "classifier"))
    section = Ranking.compute(Source(study, Fitted(study, posterior)))
    chosen = list(classifiers) or [study.classifiers[section.order[0]]]
    figures = [section.pair_figure(study.classifiers.index(name)) for name in chosen]
    return on_paper(figures[0]) if len(figures) == 1 else beside(figures)
