"""Every classifier on both data sets: how it moves, what it loses, and all of its estimates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl

from bayesrep.estimators import classifier_table, matching_sentences
from bayesrep.estimators.annotators import compare_annotators
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior
from bayesrep.report import vega
from bayesrep.report.answer import Drop, Estimate, drop_of, measured_drop
from bayesrep.report.methods import label_of, look_of, title_of
from bayesrep.report.picture import Figure, Reading, on_paper
from bayesrep.report.sections.section import (
    Block,
    Section,
    Source,
    Table,
    chooser,
    limits,
    numbers,
    search,
    select,
    slider,
)
from bayesrep.report.text import percent
from bayesrep.studies.rules import REQUIRED_ROLES
from bayesrep.studies.study import Study
from bayesrep.summary.tables import accuracies, gaps
from bayesrep.types import Floats

DIAGNOSTIC_COLUMNS = (
    {"name": "rhat", "title": "R-hat", "kind": "number"},
    {"name": "ess", "title": "ESS", "kind": "count"},
)
MOST_NAMES = 12
"""Names that are written beside points: of more, none is."""
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
    summary, missing = source.attempt(accuracies)
    points = classifier_table(source.points())
    return _join_tables(source.study, [points, *([] if summary is None else [summary])], missing)


def _join_tables(
    study: Study, tables: Sequence[pl.DataFrame], missing: str = ""
) -> AccuracyEstimates:
    """What tables of several methods say, a row a classifier."""
    table = pl.DataFrame({"classifier": study.classifiers}).with_columns(
        reference=study.reference.correct.mean(axis=0),
        replication=study.replication.correct.mean(axis=0),
    )
    if study.truth is not None:
        truth = np.asarray(study.truth.adjusted_accuracy, dtype=float)
        table = table.with_columns(truth=truth)
    methods: list[str] = []
    for rows in tables:
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
                select("method", "Adjusted by", list(titles.items()), own),
                slider(
                    "annotators", "Annotators used", 0, most, most, ends=("none", "all there are")
                ),
                *([search("search"), chooser("classifier")] if several else []),
            ],
            told=True,
            figures=[drops_figure(self)],
            data={"own": own, "columns": list(self._columns())},
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


def classifier_rows(found: AccuracyEstimates, naive: Floats | None = None) -> list[dict[str, Any]]:
    """A row for every classifier, fractions, of which both figures of all classifiers are drawn.

    Parameters
    ----------
    found
        All estimates.
    naive : float64 [n + 1, C]
        Accuracies by naive matching with 0 ... n annotators, where the second figure is drawn.
    """
    columns = columns_of(found.classifiers)
    columns["number"] = list(range(len(columns["classifier"])))
    if naive is not None:
        columns["naive_by"] = numbers(naive.T)
    every = zip(*columns.values(), strict=True)
    return [dict(zip(columns, values, strict=True)) for values in every]


def columns_of(table: pl.DataFrame) -> dict[str, Any]:
    """The table by columns, fractions."""
    names = table["classifier"].to_list()
    values = {name: numbers(table[name].to_numpy()) for name in table.columns[1:]}
    return {"classifier": names, **values}


def classifier_sentences(
    found: "Accuracies", ranks: tuple[Floats, Floats] | None = None
) -> list[str]:
    """What is said of each classifier once it is chosen.

    Parameters
    ----------
    found
        All estimates; the last method's are told.
    ranks
        Mean rank with its interval [3, C], and the rank as measured [C].
    """
    own, count = found.methods[-1], len(found.classifiers)
    sentences: list[str] = []
    for number, row in enumerate(found.classifiers.iter_rows(named=True)):
        reference, measured, adjusted = row["reference"], row["replication"], row[own]
        lower, upper = row[f"{own}_lower"], row[f"{own}_upper"]
        remaining = Estimate(
            reference - adjusted,
            None if upper is None else reference - upper,
            None if lower is None else reference - lower,
        )
        said = (
            f"{row['classifier']}: {percent(reference)} % on the reference, {percent(measured)} % "
            f"on the replication as measured, {_interval_text(Estimate(adjusted, lower, upper))} % "
            f"at the same selection frequency. Of {percent(reference - measured)} points, "
            f"{percent(adjusted - measured)} are selection and {_interval_text(remaining)} remain."
        )
        if ranks is not None:
            (mean, low, high), measured_rank = ranks[0][:, number], ranks[1][number]
            said += (
                f" By it, it ranks {mean:.0f} of {count} ({low:.0f} to {high:.0f}); as measured "
                f"{measured_rank:g}."
            )
        sentences.append(said)
    return sentences


def _in_percent(**fields: str) -> list[vega.Spec]:
    """Fields of fractions, in percent; what is not known stays so."""
    return [
        vega.calculate(name, f"isValid({field}) ? 100 * {field} : null")
        for name, field in fields.items()
    ]


IS_FOUND = (
    "datum.number === chosen || (search !== '' && indexof(lower(datum.classifier), search) >= 0)"
)
"""Whether a classifier is the chosen one, or is looked for."""
CHOICE: Mapping[str, Any] = {"chosen": -1, "search": ""}


def accuracies_figure(found: AccuracyEstimates, drop: Drop | None = None) -> Figure:
    """Every classifier where it was measured and where it stands at the same frequencies.

    Both axes have the same ends and the same length, whatever the method and the screen.

    Parameters
    ----------
    found
        The estimates; the last method's are shown.
    drop
        The mean drop, which a bracket divides.
    """
    own = found.methods[-1]
    told = ", with 95 % intervals" if found.has_intervals else ""
    key = [("ring", "as measured"), ("dot", "at the same selection frequency")]
    key += [("truth", "truth, known of a simulation")] if found.knows_truth else []
    label = (
        "Every classifier's accuracy on the replication against that on the reference, as "
        "measured and at the same selection frequency, on equal axes; below the diagonal is a "
        "drop."
    )
    if drop is not None:
        label += (
            f" On average {percent(drop.measured.value)} points are lost as measured, and "
            f"{percent(drop.remaining.value)} at the same selection frequency."
        )
    low, high = found.range()
    return Figure(
        "hero",
        label,
        _accuracies_chart(found),
        "Each ring is a classifier as measured; its dot is where it would stand if the "
        "replication's images were selected as often as the reference's "
        f"({label_of(own)}{told}). On the line nothing is lost.",
        data={
            "classifiers": classifier_rows(found),
            "lines": [{"x": low, "y": low}, {"x": high, "y": high}],
            **_bracket_rows(found, drop),
        },
        key=key,
        columns=("classifier", "reference_percent", "measured", "adjusted", "lower", "upper")
        + (("truth_percent",) if found.knows_truth else ()),
    )


def _bracket_rows(found: AccuracyEstimates, drop: Drop | None) -> dict[str, list[dict[str, Any]]]:
    """What divides the mean drop: its ends as measured and adjusted, and what is said of it."""
    if drop is None:
        return {"guides": [], "bracket": [], "told": []}
    # The drop hangs from the mean reference accuracy down to `level`, where selection takes over,
    # and ends at `bottom`.
    mean = 100 * float(found.classifiers["reference"].to_numpy().mean())
    low, high = found.range()
    level = mean - 100 * drop.remaining.value
    bottom = level - 100 * drop.selection.value
    ends = ((mean, mean), (bottom, level), (bottom, bottom))
    parts = (
        (drop.remaining, (mean + level) / 2, "remain"),
        (
            drop.selection,
            (level + bottom) / 2,
            "selection",
        ),
    )
    # Texts at nearly the same height would cover each other: each is told how far away the other is
    # and on which side of it to stand.
    apart, up = abs(parts[0][1] - parts[1][1]), 1 if parts[0][1] >= parts[1][1] else -1
    told = [
        {"y": round(y, 4), "apart": round(apart, 4), "up": side, "adjusted": True}
        | {"text": f"{_interval_text(part)} {what}"}
        for (part, y, what), side in zip(parts, (up, -up), strict=True)
    ]
    lost = percent(drop.selection.value + drop.remaining.value)
    told.append(
        {"y": round((mean + bottom) / 2, 4), "apart": high - low, "up": 0, "adjusted": False}
        | {"text": f"{lost} points lost, as measured"}
    )
    return {
        "guides": [
            {"low": low + 0.025 * (high - low), "mean": round(mean, 4)}
            | {"first": round(first, 4), "last": round(last, 4)}
            for first, last in ends
        ],
        "bracket": [
            {"color": color, "first": round(first, 4), "last": round(last, 4), "to": round(to, 4)}
            for color, first, last, to in (
                (vega.SOFT, bottom, level, mean),
                (vega.POSTERIOR, bottom, level, bottom),
            )
        ],
        "told": told,
    }


def _interval_text(part: Estimate) -> str:
    told = percent(part.value)
    if part.lower is not None and part.upper is not None:
        told += f" ({percent(part.lower)} to {percent(part.upper)})"
    return told.replace("-", "\N{MINUS SIGN}")


def _accuracies_chart(found: AccuracyEstimates) -> vega.Spec:
    low, high = found.range()
    scale = {"domain": [low, high], "nice": False, "zero": False}
    axis = {"tickCount": 6, "format": ".0f" if high - low > 8 else ".1f"}
    x = vega.number(
        "reference_percent",
        title="accuracy on the reference (%)",
        scale=scale,
        axis={**axis, "grid": False},
    )
    y = {"title": "accuracy on the replication (%)", "scale": scale, "axis": axis}
    own = found.methods[-1]
    transform = [
        *_in_percent(
            reference_percent="datum.reference",
            measured="datum.replication",
            adjusted=f"datum['{own}']",
            lower=f"datum['{own}_lower']",
            upper=f"datum['{own}_upper']",
            truth_percent="datum.truth",
        ),
        vega.calculate("place", "datum.measured + stage * (datum.adjusted - datum.measured)"),
        vega.calculate("found", IS_FOUND),
    ]
    # The diagonal of no drop, and what names it.
    line = vega.mark(
        {"type": "line", "color": vega.SOFT, "strokeDash": [5, 4]},
        data="lines",
        x={**x, "field": "x"},
        y=vega.number("y", **y),
    )
    no_drop = vega.mark(
        {"type": "text", "color": vega.SOFT, "angle": -45, "align": "right", "dy": -7, "dx": -8},
        data="lines",
        x={**x, "field": "x"},
        y=vega.number("y", **y),
        text={"value": "no drop"},
    )
    no_drop["transform"] = [{"filter": f"datum.x === {high}"}]
    # The bracket that shows the mean drop as measured and what remains of it.
    moving = vega.calculate("y", "datum.first + stage * (datum.last - datum.first)")
    guides = vega.mark(
        {"type": "rule", "color": vega.SOFT, "strokeDash": [1, 3]},
        data="guides",
        x={**x, "field": "low"},
        x2={"field": "mean"},
        y=vega.number("y", **y),
    )
    bracket = vega.mark(
        {"type": "rule", "strokeWidth": 3},
        data="bracket",
        x={"value": 10},
        y=vega.number("y", **y),
        y2={"field": "to"},
        color={"field": "color", "type": "nominal", "scale": None},
    )
    guides["transform"] = bracket["transform"] = [moving]
    # Two lines of text need so much room between them, in percent.
    room = f"(19 * {high - low} / height - datum.apart) / 2"
    shifted = [
        {"filter": "datum.adjusted === (stage === 1)"},
        vega.calculate("shifted", f"datum.y + datum.up * max(0, {room})"),
    ]
    told = vega.text_with_halo(
        {"align": "left", "dx": 19, "fontSize": 13, "fontWeight": 600},
        data="told",
        x={"value": 0},
        y=vega.number("shifted", **y),
        text=vega.name("text"),
    )
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
    spread["transform"] = [{"filter": "stage === 1"}]
    tooltip = _tooltips(found)
    ring = vega.mark(
        {"type": "point", "color": vega.GREY, "size": 30, "strokeWidth": 1.3, "opacity": 1},
        x=x,
        y=vega.number("measured", **y),
        tooltip=tooltip,
    )
    dot = vega.mark(
        {"type": "circle", "opacity": 0.9},
        x=x,
        y=vega.number("place", **y),
        color=vega.found(vega.RAW_COLOR, vega.POSTERIOR),
        size=vega.found(140, 34),
        tooltip=tooltip,
    )
    layers = [line, no_drop, guides, spread, shift, ring, dot]
    if found.knows_truth:
        layers.append(vega.mark(TICK, x=x, y=vega.number("truth_percent", **y)))
    layers += [bracket, *({**each, "transform": shifted} for each in told)]
    layers += [_names(x, vega.number("place", **y))]
    spec = vega.chart("classifiers", *layers, transform=transform, params={"stage": 1, **CHOICE})
    return vega.square(spec, side=600)


def drops_figure(found: "Accuracies") -> Figure:
    """Accuracy lost against accuracy on the reference; the axes are the same by every method."""
    estimated = AccuracyEstimates(found.methods, found.classifiers, "")
    truth = [("truth", "truth, known of a simulation")] if estimated.knows_truth else []
    return Figure(
        "drops",
        "Dots of every classifier's drop against its accuracy on the reference, as measured and "
        "adjusted, with intervals",
        _drops_chart(found),
        data={"classifiers": classifier_rows(estimated, found.naive)},
        key=[
            ("ring", "drop as measured"),
            ("dot", "drop at the same selection frequency, 95 %"),
            *truth,
        ],
        readings=_read_drops(found),
        columns=("classifier", "reference_percent", "measured_drop", "drop", "lower", "upper"),
    )


def _read_drops(found: "Accuracies") -> Reading:
    """What is said of the drops by each method, and by naive matching with so many annotators."""
    reference = found.classifiers["reference"].to_numpy()

    def say(method: str, adjusted: Floats) -> str:
        on_average = "on average " if len(reference) > 1 else ""
        gap = percent(float(np.mean(reference - adjusted)), 2)
        spread = reference - reference.mean()
        slope = ""
        if spread @ spread > 0:
            slope = f"; accuracies have slope {spread @ adjusted / (spread @ spread):.2f}"
        return f"{title_of(method)}: {on_average}{gap} points below the reference{slope}."

    texts: dict[str, Any] = {
        method: say(method, found.classifiers[method].to_numpy()) for method in found.methods
    }
    texts["naive"] = [say("naive", each) for each in found.naive]
    return Reading(("method", "annotators"), texts)


def _drops_chart(found: "Accuracies") -> vega.Spec:
    table = found.classifiers
    reference = table["reference"].to_numpy()
    # Both axes hold whatever method and number of annotators the controls choose.
    lost = [reference - table[name].to_numpy() for name in found.methods]
    lost += [reference - found.naive[0]]
    own, most = found.methods[-1], len(found.naive) - 1
    lost += [reference - table[f"{own}_{end}"].to_numpy() for end in ("lower", "upper")]
    knows_truth = "truth" in table.columns
    if knows_truth:
        lost.append(reference - table["truth"].to_numpy())
    across = {"domain": limits(reference), "nice": False}
    scale = {"domain": limits(*lost, [0.0]), "nice": True}
    x = vega.number("reference_percent", title="accuracy on the reference (%)", scale=across)
    y = {"title": "points lost on the replication", "scale": scale}
    fewer = f"method === 'naive' && annotators < {most}"
    no_interval = f"(method === 'raw' || {fewer})"
    transform = [
        vega.calculate(
            "adjusted",
            "method === 'raw' ? datum.replication : "
            f"({fewer}) ? datum.naive_by[annotators] : datum[method]",
        ),
        *_in_percent(
            reference_percent="datum.reference",
            measured="datum.replication",
            measured_drop="(datum.reference - datum.replication)",
            drop="(datum.reference - datum.adjusted)",
        ),
        *(
            vega.calculate(
                end,
                f"{no_interval} || !isValid(datum[method + '_{other}']) ? null : "
                f"100 * (datum.reference - datum[method + '_{other}'])",
            )
            for end, other in (("lower", "upper"), ("upper", "lower"))
        ),
        *(_in_percent(truth_drop="(datum.reference - datum.truth)") if knows_truth else []),
        vega.calculate("found", IS_FOUND),
    ]
    # From below to above: the line of no drop, the trend, intervals, rings and dots.
    zero = vega.at_value({"type": "rule", "color": vega.SOFT}, "y", 0, y)
    line = vega.mark(
        {"type": "line", "color": vega.SOFT, "strokeDash": [5, 4], "clip": True},
        x={**x, "field": "at"},
        y=vega.number("trend", **y),
    )
    line["transform"] = [{"regression": "drop", "on": "reference_percent", "as": ["at", "trend"]}]
    own_color = {"expr": "shades[method]"}
    rules = vega.mark(
        {"type": "rule", "opacity": 0.45, "clip": True, "color": own_color},
        x=x,
        y=vega.number("lower", **y),
        y2={"field": "upper"},
    )
    tooltip = [
        vega.name("classifier", title="classifier"),
        vega.number("reference_percent", format=".1f", title="reference (%)"),
        vega.number("measured_drop", format=".1f", title="points lost as measured"),
        vega.number("drop", format=".1f", title="points lost at the same selection frequency"),
        vega.number("lower", format=".1f", title="95 % from"),
        vega.number("upper", format=".1f", title="to"),
    ]
    ring = vega.mark(
        {"type": "point", "color": vega.GREY, "size": 26, "strokeWidth": 1.2, "opacity": 1},
        x=x,
        y=vega.number("measured_drop", **y),
        tooltip=tooltip,
    )
    dot = vega.mark(
        {"type": "circle", "opacity": 0.9, "clip": True, "color": own_color},
        x=x,
        y=vega.number("drop", **y),
        size=vega.found(150, 38),
        tooltip=tooltip,
    )
    layers = [zero, *([line] if len(reference) > 1 else []), rules, ring, dot]
    if knows_truth:
        layers.append(vega.mark(TICK, x=x, y=vega.number("truth_drop", **y)))
    shades = {method: f"var({look_of(method).css})" for method in found.methods}
    return vega.chart(
        "classifiers",
        *layers,
        _names(x, vega.number("drop", **y)),
        transform=transform,
        params={"method": own, "annotators": most, **CHOICE, "shades": shades},
        height=380,
    )


def _names(x: vega.Spec, y: vega.Spec) -> vega.Spec:
    """Names beside the points that are looked for, unless these are many."""
    text = {"type": "text", "align": "left", "dx": 8, "fontSize": 12, "fontWeight": 600}
    names = vega.mark({**text, "color": vega.INK}, x=x, y=y, text=vega.name("classifier"))
    names["transform"] = [
        {"filter": "datum.found"},
        {"joinaggregate": [{"op": "count", "as": "matches"}]},
        {"filter": f"datum.matches <= {MOST_NAMES}"},
    ]
    return names


def _tooltips(found: AccuracyEstimates) -> list[vega.Spec]:
    """What a point says when it is touched."""
    fields = {
        "reference_percent": "reference (%)",
        "measured": "as measured (%)",
        "adjusted": "at the same selection frequency (%)",
        **({"lower": "95 % from", "upper": "to"} if found.has_intervals else {}),
        **({"truth_percent": "truth (%)"} if found.knows_truth else {}),
    }
    numbers = (vega.number(name, format=".1f", title=title) for name, title in fields.items())
    return [vega.name("classifier", title="classifier"), *numbers]


def posterior_figure(fitted: Fitted, study: Study) -> Figure:
    """The figure of a posterior alone, with the mean drop as it divides it."""
    drop = drop_of(gaps(fitted), measured_drop(study))
    return accuracies_figure(_join_tables(study, [accuracies(fitted)]), drop)


def figure(study: Study, posterior: Posterior) -> vega.Spec:
    """Every classifier's accuracy as measured, and at the same selection frequencies."""
    return on_paper(posterior_figure(Fitted(study, posterior), study))
