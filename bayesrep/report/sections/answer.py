"""The answer: how much of the drop is real, in a sentence and by method."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import polars as pl

from bayesrep.estimators import gap_table
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior
from bayesrep.report import vega
from bayesrep.report.answer import Drop, Estimate, answer_for, drop_of, is_share, measured_drop
from bayesrep.report.figures import INK, panels
from bayesrep.report.methods import color_of, label_of, look_of, title_of
from bayesrep.report.sections.section import (
    Block,
    Figure,
    Section,
    Source,
    Table,
    point_estimates,
    quiet,
)
from bayesrep.report.text import ends, percent
from bayesrep.studies.study import Study
from bayesrep.summary.tables import gaps


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer(Section):
    """Mean gaps by method, and the drop divided.

    Attributes
    ----------
    study
        Of which it is.
    gaps
        method, gap, lower, upper (mean bias-corrected gap and its 95 % interval), share (of the
        drop that selection explains; null of raw, and where no drop is clear or it is none).
    drop
        The drop as the last of these methods divides it.
    """

    study: Study
    gaps: pl.DataFrame
    drop: Drop

    id, short, title, takes = "answer", "Answer", "The answer", "posterior"

    @classmethod
    def of(cls, source: Source) -> Self:
        """Take the point estimates and, where there is one, the posterior."""
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
        return cls(study=source.study, gaps=rows, drop=[*drops.values()][-1], missing=missing)

    def blocks(self) -> Iterator[Block]:
        """The sentence, its bar, and the gaps as a chart and as a table."""
        titles = [title_of(method) for method in self.gaps["method"]]
        told = [
            [
                title,
                percent(row["gap"], 2),
                ends(row["lower"], row["upper"], 2, none="–"),
                "–" if row["share"] is None else percent(row["share"], 0),
            ]
            for title, row in zip(titles, self.gaps.to_dicts(), strict=True)
        ]
        reading = (
            "The first bar is the drop as measured, the others what is left of it once "
            "images are compared at the same selection frequency; lines are 95 % intervals."
        )
        header = ["method", "mean gap (%)", "95 % interval", "share explained (%)"]
        label = "Bars of the mean accuracy gap by method, with intervals"
        percents = self.gaps.with_columns(
            (pl.col("gap", "lower", "upper") * 100).round(3), method=pl.Series(titles)
        )
        yield self.block(
            lead=answer_for(self.study, self.drop),
            lead_class="answer",
            share=_share(self.drop.told_share),
            missing=self.missing,
            figures=[
                Figure("answer-chart", label, self._chart(titles), reading, percents.to_dicts())
            ],
            table=Table("gaps", "Mean gaps", header, told),
        )

    def _chart(self, titles: list[str]) -> vega.Spec:
        shades = [f"var({look_of(method).css})" for method in self.gaps["method"]]
        y = vega.name("method", sort=titles, title=None, axis={"labelLimit": 220})
        bars = vega.mark(
            {"type": "bar", "height": 18},
            y=y,
            x=vega.number("gap", title="mean accuracy gap (%)"),
            color=vega.colors("method", titles, shades, legend=None),
            tooltip=[
                vega.name("method"),
                vega.number("gap", format=".2f", title="gap (%)"),
                vega.number("lower", format=".2f"),
                vega.number("upper", format=".2f"),
            ],
        )
        rule: vega.Spec = {"type": "rule", "color": vega.INK, "strokeWidth": 1.5}
        rules = vega.mark(rule, y=y, x=vega.number("lower"), x2={"field": "upper"})
        return vega.chart(bars, rules, height=190)


def _row(method: str, drop: Drop) -> dict[str, Any]:
    measured, raw = drop.measured, method == "raw"
    gap = measured if raw else drop.remaining
    told = not raw and measured.above and is_share(drop.share)
    share = drop.share.value if told else None
    ends = {"lower": gap.lower, "upper": gap.upper}
    return {"method": method, "gap": gap.value, **ends, "share": share}


def _share(told: Estimate | None) -> dict[str, Any] | None:
    """One bar: what selection explains of the drop, and what remains."""
    if told is None:
        return None
    label = (
        f"Selection explains {percent(told.value, 0)} % of the drop "
        f"({percent(told.lower, 0)} to {percent(told.upper, 0)})"
    )
    parts = {"selection": told.value, "remains": 1 - told.value}
    return {
        "label": label,
        "parts": [
            {"kind": kind, "percent": round(100 * part, 1), "text": f"{kind} {percent(part, 0)} %"}
            for kind, part in parts.items()
        ],
    }


@quiet()
def figure(study: Study, posterior: Posterior, *, bootstrap: int = 50, seed: int = 0) -> Any:
    """Mean gaps by method with 95 % intervals."""
    points = partial(point_estimates, study, bootstrap, seed)
    rows = Answer.of(Source(study, Fitted(study, posterior), points)).gaps
    figure, (axes,) = panels(1)
    place = np.arange(len(rows))[::-1]
    gap, low, high = (100 * rows[end].to_numpy().astype(float) for end in ("gap", "lower", "upper"))
    axes.barh(place, gap, color=[color_of(name) for name in rows["method"]], height=0.6)
    axes.hlines(place, low, high, color=INK, lw=1.5)
    axes.set_yticks(place, [label_of(name) for name in rows["method"]])
    axes.set_xlabel("mean accuracy gap (%)")
    axes.grid(visible=False, axis="y")
    return figure
