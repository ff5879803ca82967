"""The answer: how much of the drop is real, in a sentence, in one figure and by method."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Self

import numpy as np
import polars as pl

from bayesrep.checks.assumptions import correction_notes
from bayesrep.choices import FEW_REPLICATES
from bayesrep.estimators import gap_table
from bayesrep.estimators.analysis import Analysis
from bayesrep.posterior.fitted import Fitted
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
from bayesrep.report.figure import Figure, on_paper
from bayesrep.report.methods import look_of, title_of
from bayesrep.report.sections.accuracies_figure import accuracies_figure
from bayesrep.report.sections.accuracy_estimates import AccuracyEstimates, estimates, interval_text
from bayesrep.report.sections.section import Block, Section, Source, limits, point_estimates, quiet
from bayesrep.report.table_format import percent
from bayesrep.report.vega import Css
from bayesrep.studies.study import Study
from bayesrep.studies.vocabulary import Words
from bayesrep.summary.tables import gaps

COMPARE_TEXT = "Compare at the same selection frequency"
NUMBER_WORDS = ("no", "one", "two", "three", "four", "five", "six")


class Opening(NamedTuple):
    """The first screen: what was found, how it reads in full, and the figure that shows it."""

    title: str
    sentence: str
    figure: Figure
    missing: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer(Section):
    """Mean gaps by method, and the drop divided."""

    study: Study  # study that the answer is about
    accuracies: AccuracyEstimates  # what every method says of every classifier
    # method, gap, lower, upper (mean bias-corrected gap and its 95 % interval), share (of the drop
    # that selection explains; null of raw, and where no drop is clear or it is none)
    gaps: pl.DataFrame
    drops: Mapping[str, Drop]  # the drop as each method divides it
    # Mean gap of these reference images to the true adjusted accuracies, where they are known
    truth: float | None

    id, short, title, takes = "answer", "Methods", "The same drop by every method", "posterior"
    waits = True

    @classmethod
    def compute(cls, source: Source) -> Self:
        """Take the point estimates and, where there is one, the posterior."""
        estimated = estimates(source)
        divided, missing = source.attempt(gaps)
        points = gap_table(source.points())
        drops = drops_of(source.study, points if divided is None else pl.concat([points, divided]))
        if divided is not None:
            fitted, method = source.need_posterior, str(divided["method"][0])
            drops[method] = replace(drops[method], note=correction_notes(fitted))
        return cls(
            study=source.study,
            accuracies=estimated,
            gaps=gap_rows(drops),
            drops=drops,
            truth=true_gap(source.study),
            missing=missing,
            words=source.words,
        )

    @property
    def drop(self) -> Drop:
        """The drop as the last of the methods divides it."""
        return [*self.drops.values()][-1]

    def opening(self) -> Opening:
        """The first screen."""
        return Opening(
            title=headline_for(self.study, self.drop),
            sentence=answer_for(self.study, self.drop),
            figure=accuracies_figure(self.accuracies, self.drop)._replace(play=COMPARE_TEXT),
            missing=self.missing,
        )

    def blocks(self) -> Iterator[Block]:
        """The gaps by method."""
        yield self.block(figures=[gaps_figure(self.gaps, self.truth, self.words)])


def drops_of(study: Study, gaps: pl.DataFrame) -> dict[str, Drop]:
    """The measured drop as every method of a table of `bayesrep.estimate_gaps` divides it."""
    measured = measured_drop(study)
    by_method = gaps.group_by("method", maintain_order=True)
    return {str(method): drop_of(rows, measured) for (method,), rows in by_method}


def gap_rows(drops: Mapping[str, Drop]) -> pl.DataFrame:
    """A row for every method: method, gap, lower, upper and share, fractions."""
    rows: list[tuple[str, float | None, float | None, float | None, float | None]] = []
    for method, drop in drops.items():
        raw, clear = method == "raw", drop.measured.is_above_zero and is_share(drop.share)
        gap = drop.measured if raw else drop.remaining
        share = drop.share.value if clear and not raw else None
        rows.append((method, gap.value, gap.lower, gap.upper, share))
    schema = {"method": pl.String, **dict.fromkeys(("gap", "lower", "upper", "share"), pl.Float64)}
    return pl.DataFrame(rows, schema, orient="row")


def true_gap(study: Study) -> float | None:
    """Mean gap of the reference's images to the true adjusted accuracies, where they are known."""
    if study.truth is None:
        return None
    adjusted = np.asarray(study.truth.adjusted_accuracy, dtype=float)
    return float((study.reference.correct.mean(axis=0) - adjusted).mean())


def gaps_figure(gaps: pl.DataFrame, truth: float | None, words: Words) -> Figure:
    """The mean gap as measured, and as every method leaves it."""
    titles = [title_of(method) for method in gaps["method"]]
    parts = (Estimate(row["gap"], row["lower"], row["upper"]) for row in gaps.to_dicts())
    texts = list(map(interval_text, parts))
    rows = gaps.with_columns(
        (pl.col("gap", "lower", "upper", "share") * 100).round(3),
        method=pl.Series(titles),
        told=pl.Series(texts),
    )
    count = dict(enumerate(NUMBER_WORDS)).get(len(titles) - 1, str(len(titles) - 1))
    reading = (
        "The first dot is the mean drop as measured, the others what is left of it once "
        f"{words.images} are compared at the same selection frequency, by "
        f"{count} ways to estimate it; lines are 95 % intervals."
    )
    if truth is not None:
        reading += (
            f" This study is simulated: the truth is {percent(truth)} points, the dashed "
            "line. Methods that lie apart from it are biased, which intervals by "
            f"resampling {words.images} cannot show."
        )
    label = "Mean drop in points by method: " + "; ".join(
        f"{title} {each}" for title, each in zip(titles, texts, strict=True)
    )
    spec = _gaps_chart(gaps, titles, truth)
    return Figure("answer-chart", label, spec, reading, {"gaps": rows.to_dicts()})


def _gaps_chart(gaps: pl.DataFrame, titles: list[str], truth: float | None) -> vega.Spec:
    shades = [f"var({look_of(method).css})" for method in gaps["method"]]
    ends = [gaps[name].to_numpy() for name in ("gap", "lower", "upper")]
    low, high = limits(*ends, [0.0 if truth is None else truth, 0.0], pad=0.14)
    scale = {"domain": [low, high], "nice": False}
    y = vega.name("method", sort=titles, title=None, axis={"labelLimit": 140, "grid": False})
    x = {"title": "mean drop (points)", "scale": scale, "axis": {"tickCount": 8}}
    color = vega.colors("method", titles, shades, legend=None)
    zero: vega.Spec = {"type": "rule", "color": Css.SOFT}
    dashed: vega.Spec = {"type": "rule", "color": Css.INK, "strokeDash": [5, 4]}
    rule: vega.Spec = {"type": "rule", "strokeWidth": 2}
    text: vega.Spec = {"dy": -13, "fontSize": 12}
    above: vega.Spec = {"type": "text", "text": "truth", "y": -8, "fontSize": 12, "color": Css.INK}
    layers = [vega.at_value(zero, "x", 0, x)]
    if truth is not None:
        layers += [vega.at_value(kind, "x", round(100 * truth, 3), x) for kind in (dashed, above)]
    return vega.chart(
        "gaps",
        *layers,
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
        *vega.text_with_halo(text, y=y, x=vega.number("gap", **x), text=vega.name("told")),
        height=44 * len(titles) + 20,
    )


@quiet()
def figure(
    study: Study,
    posterior: Posterior,
    *,
    bootstrap: int = FEW_REPLICATES,
    seed: int = 0,
    points: Sequence[Analysis] = (),
) -> vega.Spec:
    """Mean gaps by method with 95 % intervals."""
    make = (lambda: points) if points else partial(point_estimates, study, bootstrap, seed)
    answer = Answer.compute(Source(study, Fitted(study, posterior), make))
    return on_paper(gaps_figure(answer.gaps, answer.truth, answer.words))
