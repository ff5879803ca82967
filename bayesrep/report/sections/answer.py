"""The answer: how much of the drop is real, in a sentence, in one figure and by method."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl

from bayesrep.estimators import gap_table
from bayesrep.estimators.analysis import Analysis
from bayesrep.posterior.groups import Posterior
from bayesrep.report import vega
from bayesrep.report.answer import (
    Drop,
    Estimate,
    answer_for,
    drop_of,
    headline_for,
    is_share,
    measured_drop,
)
from bayesrep.report.figures import INK, panels
from bayesrep.report.methods import color_of, label_of, look_of, title_of
from bayesrep.report.sections.accuracies import AccuracyEstimates, estimates, hero
from bayesrep.report.sections.section import (
    Block,
    Figure,
    Section,
    Source,
    figure_source,
    limits,
    quiet,
)
from bayesrep.report.text import percent
from bayesrep.studies.study import Study
from bayesrep.summary.tables import gaps

COMPARE = "Compare at the same selection frequency"


class Opening(NamedTuple):
    """The first screen: what was found, how it reads in full, and the figure that shows it."""

    title: str
    sentence: str
    figure: Figure
    data: Mapping[str, Any]
    missing: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer(Section):
    """Mean gaps by method, and the drop divided.

    Attributes
    ----------
    study
        Study that the answer is about.
    accuracies
        What every method says of every classifier.
    gaps
        method, gap, lower, upper (mean bias-corrected gap and its 95 % interval), share (of the
        drop that selection explains; null of raw, and where no drop is clear or it is none).
    drops
        The drop as each method divides it.
    truth
        Mean gap of these reference images to the true adjusted accuracies, where they are known.
    """

    study: Study
    accuracies: AccuracyEstimates
    gaps: pl.DataFrame
    drops: Mapping[str, Drop]
    truth: float | None

    id, short, title, takes = "answer", "Methods", "The same drop by every method", "posterior"
    waits = True

    @classmethod
    def compute(cls, source: Source) -> Self:
        """Take the point estimates and, where there is one, the posterior."""
        estimated = estimates(source)
        divided, missing = source.attempt(gaps)
        points, measured = gap_table(source.points()), measured_drop(source.study)
        tables = points if divided is None else pl.concat([points, divided])
        drops = {
            str(method): drop_of(rows, measured)
            for (method,), rows in tables.group_by(["method"], maintain_order=True)
        }
        rows = pl.DataFrame(
            [_row(method, drop) for method, drop in drops.items()],
            {"method": pl.String, **dict.fromkeys(("gap", "lower", "upper", "share"), pl.Float64)},
        )
        truth = None
        if estimated.knows_truth:
            table = estimated.classifiers
            truth = float((table["reference"] - table["truth"]).to_numpy().mean())
        return cls(
            study=source.study,
            accuracies=estimated,
            gaps=rows,
            drops=drops,
            truth=truth,
            missing=missing,
        )

    @property
    def drop(self) -> Drop:
        """The drop as the last of the methods divides it."""
        return [*self.drops.values()][-1]

    def opening(self) -> Opening:
        """The first screen."""
        drop, method = self.drop, self.accuracies.methods[-1]
        label = (
            "Every classifier's accuracy on the replication against that on the reference, as "
            "measured and at the same selection frequency, on equal axes; below the diagonal is a "
            f"drop. On average {percent(drop.measured.value)} points are lost as measured, and "
            f"{percent(drop.remaining.value)} at the same selection frequency."
        )
        low, high = self.accuracies.range()
        told = ", with 95 % intervals" if self.accuracies.has_intervals else ""
        reading = (
            "Each ring is a classifier as measured; its dot is where it would stand if the "
            "replication's images were selected as often as the reference's "
            f"({label_of(method)}{told}). On the line nothing is lost."
        )
        key = [("ring", "as measured"), ("dot", "at the same selection frequency")]
        key += [("truth", "truth, known of a simulation")] if self.accuracies.knows_truth else []
        figure = Figure("hero", label, hero(self.accuracies), reading, key=key, play=COMPARE)
        parts = {
            name: {"value": each.value, "lower": each.lower, "upper": each.upper}
            for name, each in (("selection", drop.selection), ("remaining", drop.remaining))
        }
        mean = float(self.accuracies.classifiers["reference"].to_numpy().mean())
        return Opening(
            title=headline_for(self.study, drop),
            sentence=answer_for(self.study, drop),
            figure=figure,
            data={"opening": {"method": method, "mean": mean, "low": low, "high": high, **parts}},
            missing=self.missing,
        )

    def blocks(self) -> Iterator[Block]:
        """The gaps by method."""
        titles = [title_of(method) for method in self.gaps["method"]]
        told = [
            f"{percent(row['gap'])}" + f" ({percent(row['lower'])} to {percent(row['upper'])})"
            if row["lower"] is not None
            else percent(row["gap"])
            for row in self.gaps.to_dicts()
        ]
        told = [each.replace("-", "\N{MINUS SIGN}") for each in told]
        rows = self.gaps.with_columns(
            (pl.col("gap", "lower", "upper", "share") * 100).round(3),
            method=pl.Series(titles),
            told=pl.Series(told),
        )
        reading = (
            "The first dot is the mean drop as measured, the others what is left of it once images "
            "are compared at the same selection frequency, by five ways to estimate it; lines are "
            "95 % intervals."
        ).replace("five", _count(len(titles) - 1))
        if self.truth is not None:
            reading += (
                f" This study is simulated: the truth is {percent(self.truth)} points, the dashed "
                "line. Methods that lie apart from it are biased, as intervals by resampling "
                "images do not know."
            )
        label = "Mean drop in points by method: " + "; ".join(
            f"{title} {each}" for title, each in zip(titles, told, strict=True)
        )
        yield self.block(
            figures=[Figure("answer-chart", label, self._chart(titles), reading, rows.to_dicts())],
            data={"truth": None if self.truth is None else round(100 * self.truth, 3)},
        )

    def _chart(self, titles: list[str]) -> vega.Spec:
        shades = [f"var({look_of(method).css})" for method in self.gaps["method"]]
        ends = [self.gaps[name].to_numpy() for name in ("gap", "lower", "upper")]
        low, high = limits(*ends, [0.0 if self.truth is None else self.truth, 0.0], pad=0.14)
        scale = {"domain": [low, high], "nice": False}
        y = vega.name("method", sort=titles, title=None, axis={"labelLimit": 140, "grid": False})
        x = {"title": "mean drop (points)", "scale": scale, "axis": {"tickCount": 8}}
        color = vega.colors("method", titles, shades, legend=None)
        zero: vega.Spec = {"type": "rule", "color": vega.SOFT}
        truth: vega.Spec = {"type": "rule", "color": vega.INK, "strokeDash": [5, 4]}
        rule: vega.Spec = {"type": "rule", "strokeWidth": 2}
        text: vega.Spec = {"type": "text", "dy": -13, "fontSize": 12, "color": vega.INK}
        return vega.chart(
            vega.mark(zero, data="zero", x=vega.number("x", **x)),
            vega.mark(truth, data="truth", x=vega.number("x", **x)),
            vega.mark(rule, y=y, x=vega.number("lower", **x), x2={"field": "upper"}, color=color),
            vega.mark(
                {"type": "circle", "size": 90, "opacity": 1},
                y=y,
                x=vega.number("gap", **x),
                color=color,
                tooltip=[
                    vega.name("method"),
                    vega.name("told", title="points"),
                    vega.number("share", format=".0f", title="explained (%)"),
                ],
            ),
            vega.mark(
                {**text, "color": vega.INK}, y=y, x=vega.number("gap", **x), text=vega.name("told")
            ),
            height=44 * len(titles) + 20,
        )


def _count(number: int) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six")
    return words[number] if number < len(words) else str(number)


def _row(method: str, drop: Drop) -> dict[str, Any]:
    measured, raw = drop.measured, method == "raw"
    gap: Estimate = measured if raw else drop.remaining
    told = not raw and measured.is_above_zero and is_share(drop.share)
    share = drop.share.value if told else None
    ends = {"lower": gap.lower, "upper": gap.upper}
    return {"method": method, "gap": gap.value, **ends, "share": share}


@quiet()
def figure(
    study: Study,
    posterior: Posterior,
    *,
    bootstrap: int = 50,
    seed: int = 0,
    points: Sequence[Analysis] = (),
) -> Any:
    """Mean gaps by method with 95 % intervals."""
    source = figure_source(study, posterior, points, bootstrap=bootstrap, seed=seed)
    shown = Answer.compute(source)
    figure, (axes,) = panels(1)
    place = np.arange(len(shown.gaps))[::-1]
    gap, low, high = (
        100 * shown.gaps[end].to_numpy().astype(float) for end in ("gap", "lower", "upper")
    )
    for at, method, *ends in zip(place, shown.gaps["method"], gap, low, high, strict=True):
        value, lower, upper = ends
        axes.hlines(at, lower, upper, color=color_of(method), lw=2)
        axes.plot(value, at, "o", color=color_of(method), ms=7)
        axes.annotate(
            f"{value:.1f}", (value, at), xytext=(0, 8), textcoords="offset points", ha="center"
        )
    axes.axvline(0, color=INK, lw=0.8)
    if shown.truth is not None:
        axes.axvline(100 * shown.truth, color=INK, lw=1, ls="--")
        axes.annotate("truth", (100 * shown.truth, place[0] + 0.45), ha="center", fontsize=9)
    axes.set_yticks(place, [label_of(name) for name in shown.gaps["method"]])
    axes.set_ylim(-0.6, place[0] + 0.75)
    axes.set_xlabel("mean accuracy gap (points)")
    axes.grid(visible=False, axis="y")
    return figure
