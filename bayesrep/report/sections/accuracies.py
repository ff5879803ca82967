"""Every classifier on both data sets: how it moves, what it loses, and all of its estimates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl

from bayesrep.estimators import classifier_table, matching_sentences
from bayesrep.estimators.analysis import Analysis
from bayesrep.estimators.annotators import compare_annotators
from bayesrep.posterior.groups import Posterior
from bayesrep.report import vega
from bayesrep.report.figures import (
    GREY,
    INK,
    accuracy_axes,
    interval_points,
    legend_below,
    panels,
)
from bayesrep.report.methods import color_of, label_of, look_of, title_of
from bayesrep.report.sections.section import (
    Block,
    Figure,
    Section,
    Source,
    Table,
    chooser,
    figure_source,
    limits,
    numbers,
    quiet,
    search,
    slider,
)
from bayesrep.studies.rules import REQUIRED_ROLES
from bayesrep.studies.study import Study
from bayesrep.summary.tables import accuracies
from bayesrep.types import Floats

DIAGNOSTIC_COLUMNS = (
    {"name": "rhat", "title": "R-hat", "kind": "number"},
    {"name": "ess", "title": "ESS", "kind": "count"},
)


TICK: vega.Spec = {
    "type": "tick",
    "color": vega.INK,
    "thickness": 1.3,
    "size": 8,
    "opacity": 0.65,
    "orient": "horizontal",
}


class AccuracyEstimates(NamedTuple):
    """Accuracies of every classifier by every method.

    Attributes
    ----------
    methods
        In order; the posterior is the last, if there is one.
    classifiers
        classifier, reference, replication, then for each method METHOD, METHOD_lower and
        METHOD_upper (adjusted accuracies), truth where it is known, and rhat and ess of the
        posterior's.
    missing
        Why there is no posterior's.
    """

    methods: tuple[str, ...]
    classifiers: pl.DataFrame
    missing: str

    def range(self) -> tuple[float, float]:
        """Ends of both axes of the figure of all classifiers, in percent."""
        own = self.methods[-1]
        names = [*REQUIRED_ROLES, own, f"{own}_lower", f"{own}_upper"]
        names += ["truth"] if self.knows_truth else []
        return limits(*(self.classifiers[name].to_numpy() for name in names))

    @property
    def has_intervals(self) -> bool:
        """Whether the last method's accuracies have them."""
        lower = self.classifiers[f"{self.methods[-1]}_lower"]
        return lower.null_count() < len(lower)

    @property
    def knows_truth(self) -> bool:
        """Whether the study does."""
        return "truth" in self.classifiers.columns


def estimates(source: Source) -> AccuracyEstimates:
    """Take the point estimates and, where there is one, the posterior."""
    return source.make_once("estimates", partial(_estimates, source))


def _estimates(source: Source) -> AccuracyEstimates:
    study = source.study
    summary, missing = source.attempt(accuracies)
    table = pl.DataFrame({"classifier": study.classifiers}).with_columns(
        reference=study.reference.correct.mean(axis=0),
        replication=study.replication.correct.mean(axis=0),
    )
    if study.truth is not None:
        truth = np.asarray(study.truth.adjusted_accuracy, dtype=float)
        table = table.with_columns(truth=truth)
    points = classifier_table(source.points())
    methods: list[str] = []
    for rows in (points,) if summary is None else (points, summary):
        for (method,), part in rows.group_by("method", maintain_order=True):
            methods.append(str(method))
            columns = _of_method(part, methods[-1])
            table = table.join(columns, on="classifier", how="left", maintain_order="left")
    return AccuracyEstimates(tuple(methods), table, missing)


def _of_method(rows: pl.DataFrame, method: str) -> pl.DataFrame:
    """A method's columns, and what the posterior's are worth."""
    diagnosed = "rhat" in rows.columns
    return rows.select(
        "classifier",
        pl.col("adjusted_accuracy").alias(method),
        *(pl.col(end).alias(f"{method}_{end}") for end in ("lower", "upper")),
        *(
            [pl.col("rhat"), pl.min_horizontal("ess_bulk", "ess_tail").alias("ess")]
            if diagnosed
            else []
        ),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Accuracies(Section):
    """Accuracies of every classifier by every method.

    Attributes
    ----------
    methods, classifiers
        As in `AccuracyEstimates`.
    naive : float64 [n + 1, C]
        Adjusted accuracy by naive matching with 0 ... n annotators; with none it is as measured.
    matching : tuple of str
        With how many annotators images were matched, and what that leaves out.
    """

    methods: tuple[str, ...]
    classifiers: pl.DataFrame
    naive: Floats
    matching: tuple[str, ...]

    id, short, takes = "accuracies", "Classifiers", "posterior"
    title = "What every classifier loses"
    waits = True

    @classmethod
    def compute(cls, source: Source) -> Self:
        """Take the point estimates and, where there is one, the posterior."""
        estimated = estimates(source)
        by_annotators = compare_annotators(source.study)["naive"].to_numpy()
        raw = estimated.classifiers["replication"].to_numpy()
        return cls(
            methods=estimated.methods,
            classifiers=estimated.classifiers,
            naive=np.vstack([raw, by_annotators.reshape(-1, len(raw))]),
            matching=tuple(matching_sentences(source.points())),
            missing=estimated.missing,
        )

    def blocks(self) -> Iterator[Block]:
        """Drops of all classifiers, then the table."""
        most = len(self.naive) - 1
        own, titles = self.methods[-1], {method: title_of(method) for method in self.methods}
        truth = (
            [("truth", "truth, known of a simulation")]
            if "truth" in self.classifiers.columns
            else []
        )
        # A single classifier needs neither search nor choice.
        several = len(self.classifiers) > 1
        yield self.block(
            lead=("Choose a classifier by its name, or by touching its point. " if several else "")
            + "Naive matching with no annotator is the accuracy as measured; more annotators leave "
            "less noise in the matching, never none.",
            controls=[
                {
                    "kind": "select",
                    "id": "method",
                    "label": "Adjusted by",
                    "value": own,
                    "options": list(titles.items()),
                },
                slider(
                    "annotators", "Annotators used", 0, most, most, ends=("none", "all there are")
                ),
                *([search("search"), chooser("classifier")] if several else []),
            ],
            told=True,
            figures=[
                Figure(
                    "drops",
                    "Dots of every classifier's drop against its accuracy on the reference, as "
                    "measured and adjusted, with intervals",
                    _drops(self),
                    key=[
                        ("ring", "drop as measured"),
                        ("dot", "drop at the same selection frequency, 95 %"),
                        *truth,
                    ],
                )
            ],
            data={
                "labels": titles,
                "colors": {method: look_of(method).css for method in self.methods},
                "own": own,
                "columns": list(self._columns()),
                "naive": numbers(self.naive),
            },
        )
        yield Block(
            id="table",
            short="Table",
            title="All estimates",
            lead="In percent: what each classifier would score on the replication if its images "
            "were selected as often as the reference's. In the bars a ring is the accuracy as "
            "measured, the dot the adjusted one with its 95 % interval"
            + (", the upright line the truth" if truth else "")
            + ("; click a heading to sort." if several else ".")
            + "".join(f" {sentence}" for sentence in self.matching),
            long=True,
            controls=[
                *([search("table-search")] if several else []),
                {"kind": "check", "id": "all-methods", "label": "Other methods too"},
            ],
            table=Table("classifiers", "All estimates of every classifier", csv=True),
        )

    def columns_of(self) -> dict[str, Any]:
        """The table by columns, fractions."""
        table, names = self.classifiers, self.classifiers["classifier"].to_list()
        values = {name: numbers(table[name].to_numpy()) for name in table.columns[1:]}
        return {"classifier": names, **values}

    def _columns(self) -> Iterator[dict[str, Any]]:
        """The columns of the table, as the script takes them: what matters most comes first."""
        own, *others = reversed(self.methods)
        yield {"name": "classifier", "title": "classifier", "kind": "name"}
        yield {"name": own, "title": title_of(own), "kind": "percent"}
        low, high = limits(
            *(self.classifiers[name].to_numpy() for name in ("replication", own)),
            *(self.classifiers[f"{own}_{end}"].to_numpy() for end in ("lower", "upper")),
            pad=0.02,
        )
        bars = {"name": "bars", "title": f"{low:.0f} to {high:.0f} %", "kind": "bars"}
        yield {**bars, "of": own, "low": low / 100, "high": high / 100}
        yield from self._interval(own)
        for name in REQUIRED_ROLES:
            yield {"name": name, "title": name, "kind": "percent"}
        for method in reversed(others):
            if method != "raw":
                column = {"name": method, "title": title_of(method), "kind": "percent"}
                yield {**column, "other": True}
                yield from ({**each, "other": True} for each in self._interval(method))
        if "rhat" in self.classifiers.columns:
            yield from ({**each, "other": True} for each in DIAGNOSTIC_COLUMNS)

    def _interval(self, method: str) -> Iterator[dict[str, Any]]:
        lower, upper = f"{method}_lower", f"{method}_upper"
        if self.classifiers[lower].null_count() < len(self.classifiers):
            title = f"95 % of {label_of(method)}"
            yield {"name": lower, "upper": upper, "title": title, "kind": "interval"}


def hero(found: AccuracyEstimates) -> vega.Spec:
    """Every classifier where it was measured and where it stands at the same frequencies.

    Both axes have the same ends and the same length, whatever the method and the screen.
    """
    low, high = found.range()
    scale = {"domain": [low, high], "nice": False, "zero": False}
    axis = {"tickCount": 6, "format": ".0f" if high - low > 8 else ".1f"}
    x = vega.number(
        "reference",
        title="accuracy on the reference (%)",
        scale=scale,
        axis={**axis, "grid": False},
    )
    y = {"title": "accuracy on the replication (%)", "scale": scale, "axis": axis}
    # The diagonal of no drop, and what names it.
    line = vega.mark(
        {"type": "line", "color": vega.SOFT, "strokeDash": [5, 4]},
        data="lines",
        x={**x, "field": "x"},
        y=vega.number("y", **y),
    )
    no_drop = vega.mark(
        {"type": "text", "color": vega.SOFT, "angle": -45, "align": "right", "dy": -7, "dx": -8},
        data="corner",
        x={**x, "field": "x"},
        y=vega.number("y", **y),
        text={"value": "no drop"},
    )
    # The bracket that shows the mean drop as measured and what remains of it.
    guides = vega.mark(
        {"type": "rule", "color": vega.SOFT, "strokeDash": [1, 3]},
        data="guides",
        x={**x, "field": "low"},
        x2={"field": "x"},
        y=vega.number("y", **y),
    )
    bracket = vega.mark(
        {"type": "rule", "strokeWidth": 3},
        data="bracket",
        x={"value": 10},
        y=vega.number("from", **y),
        y2={"field": "to"},
        color={"field": "color", "type": "nominal", "scale": None},
    )
    told = vega.mark(
        {"type": "text", "align": "left", "dx": 19, "fontSize": 13, "fontWeight": 600}
        | {"stroke": vega.PAPER, "strokeWidth": 4, "strokeJoin": "round"},
        data="told",
        x={"value": 0},
        y=vega.number("y", **y),
        text=vega.name("text"),
    )
    # The text is drawn twice: a halo of paper below, ink above.
    over = {**told, "mark": {**told["mark"], "stroke": None, "color": vega.INK}}
    # For each classifier: from the ring as measured to the dot adjusted, with its interval.
    shift = vega.mark(
        {"type": "rule", "color": vega.POSTERIOR, "opacity": 0.5},
        x=x,
        y=vega.number("measured", **y),
        y2={"field": "place"},
    )
    spread = vega.mark(
        {"type": "rule", "color": vega.POSTERIOR, "opacity": 0.22, "strokeWidth": 5},
        x=x,
        y=vega.number("lower", **y),
        y2={"field": "upper"},
    )
    ring = vega.mark(
        {"type": "point", "color": vega.GREY, "size": 30, "strokeWidth": 1.3, "opacity": 1},
        x=x,
        y=vega.number("measured", **y),
        tooltip=_tooltip_marks(),
    )
    dot = vega.mark(
        {"type": "circle", "opacity": 0.9},
        x=x,
        y=vega.number("place", **y),
        color=vega.found(vega.RAW_COLOR, vega.POSTERIOR),
        size=vega.found(140, 34),
        tooltip=_tooltip_marks(),
    )
    layers = [line, no_drop, guides, spread, shift, ring, dot]
    if found.knows_truth:
        layers.append(vega.mark(TICK, x=x, y=vega.number("truth", **y)))
    layers += [bracket, told, over, _names(x, vega.number("place", **y))]
    return vega.square(*layers, side=600)


def _drops(found: "Accuracies") -> vega.Spec:
    """Accuracy lost against accuracy on the reference; the axes are the same by every method."""
    table = found.classifiers
    reference = table["reference"].to_numpy()
    # Both axes hold whatever method and number of annotators the controls choose.
    lost = [reference - table[name].to_numpy() for name in found.methods]
    lost += [reference - found.naive[0]]
    own = found.methods[-1]
    lost += [reference - table[f"{own}_{end}"].to_numpy() for end in ("lower", "upper")]
    if "truth" in table.columns:
        lost.append(reference - table["truth"].to_numpy())
    across = {"domain": limits(reference), "nice": False}
    scale = {"domain": limits(*lost, [0.0]), "nice": True}
    x = vega.number("reference", title="accuracy on the reference (%)", scale=across)
    y = {"title": "points lost on the replication", "scale": scale}
    # From below to above: the line of no drop, the trend, intervals, rings and dots.
    zero = vega.mark({"type": "rule", "color": vega.SOFT}, data="zero", y=vega.number("y", **y))
    line = vega.mark(
        {"type": "line", "color": vega.SOFT, "strokeDash": [5, 4], "clip": True},
        data="lines",
        x={**x, "field": "x"},
        y=vega.number("y", **y),
    )
    own_color = {"field": "color", "type": "nominal", "scale": None}
    rules = vega.mark(
        {"type": "rule", "opacity": 0.45, "clip": True},
        x=x,
        y=vega.number("lower", **y),
        y2={"field": "upper"},
        color=own_color,
    )
    ring = vega.mark(
        {"type": "point", "color": vega.GREY, "size": 26, "strokeWidth": 1.2, "opacity": 1},
        x=x,
        y=vega.number("measured", **y),
        tooltip=_tooltip_marks(),
    )
    dot = vega.mark(
        {"type": "circle", "opacity": 0.9, "clip": True},
        x=x,
        y=vega.number("drop", **y),
        color=own_color,
        size=vega.found(150, 38),
        tooltip=_tooltip_marks(),
    )
    layers = [zero, line, rules, ring, dot]
    if "truth" in table.columns:
        layers.append(vega.mark(TICK, x=x, y=vega.number("truth", **y)))
    return vega.chart(*layers, _names(x, vega.number("drop", **y)), height=380)


def _names(x: vega.Spec, y: vega.Spec) -> vega.Spec:
    """Names beside the points that are looked for."""
    text = {"type": "text", "align": "left", "dx": 8, "fontSize": 12, "fontWeight": 600}
    return vega.mark(
        {**text, "color": vega.INK}, data="named", x=x, y=y, text=vega.name("classifier")
    )


def _tooltip_marks() -> list[vega.Spec]:
    """What a point says when it is touched."""
    titles = ["classifier", "reference", "as measured", "adjusted", "of the drop", "rank"]
    return [vega.name(f"tip_{i}", title=title) for i, title in enumerate(titles)]


@quiet()
def figure(
    study: Study,
    posterior: Posterior,
    *,
    bootstrap: int = 0,
    seed: int = 0,
    points: Sequence[Analysis] = (),
) -> Any:
    """Every classifier's accuracy as measured, and at the same selection frequencies."""
    source = figure_source(study, posterior, points, bootstrap=bootstrap, seed=seed)
    estimated = estimates(source)
    rows, own = estimated.classifiers, estimated.methods[-1]
    figure, (axes,) = panels(1)
    reference = rows["reference"].to_numpy()
    accuracy_axes(axes, reference)
    x, raw = 100 * reference, 100 * rows["replication"].to_numpy()
    adjusted, low, high = (
        100 * rows[name].to_numpy() for name in (own, f"{own}_lower", f"{own}_upper")
    )
    axes.vlines(x, raw, adjusted, color=color_of(own), lw=0.6, alpha=0.5)
    axes.plot(x, raw, "o", ms=3.2, mfc="none", mec=GREY, label=label_of("raw"))
    style: dict[str, Any] = {"color": color_of(own), "ms": 3, "label": label_of(own)}
    interval_points(axes, x, adjusted, low, high, **style)
    if estimated.knows_truth:
        axes.plot(x, 100 * rows["truth"].to_numpy(), "_", ms=6, mew=1.4, color=INK, label="truth")
    low, high = estimated.range()
    axes.set(xlim=(low, high), ylim=(low, high), box_aspect=1)
    legend_below(figure)
    return figure
