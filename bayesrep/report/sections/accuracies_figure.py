"""The figure of all classifiers: where each was measured, and where it stands without selection."""

from collections.abc import Mapping
from typing import Any

from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior
from bayesrep.report import vega
from bayesrep.report.answer import Drop, drop_of, measured_drop
from bayesrep.report.figure import Figure, on_paper
from bayesrep.report.methods import label_of
from bayesrep.report.sections.accuracy_estimates import (
    AccuracyEstimates,
    classifier_rows,
    interval_text,
    join_tables,
)
from bayesrep.report.table_format import percent
from bayesrep.report.vega import Css
from bayesrep.studies.study import Study
from bayesrep.summary.tables import accuracies, gaps

MAX_POINT_LABELS = 12
"""Names that are written beside points: of more, none is."""
TICK_MARK: vega.Spec = {
    **{"type": "tick", "color": Css.INK, "thickness": 1.3, "size": 8},
    **{"opacity": 0.65, "orient": "horizontal"},
}
IS_FOUND = (
    "datum.number === chosen || (search !== '' && indexof(lower(datum.classifier), search) >= 0)"
)
"""Condition that a classifier is the chosen one, or matches the search."""
NO_CHOICE: Mapping[str, Any] = {"chosen": -1, "search": ""}


def accuracies_figure(estimates: AccuracyEstimates, drop: Drop | None = None) -> Figure:
    """Draw every classifier as measured, and at the same selection frequencies."""
    own = estimates.methods[-1]
    with_intervals = ", with 95 % intervals" if estimates.has_intervals else ""
    key = [
        ("ring", "as measured"),
        ("dot", "at the same selection frequency"),
        *truth_key(estimates),
    ]
    label = (
        f"Every {estimates.words.classifier}'s accuracy on the replication against that on the "
        "reference, as measured and at the same selection frequency, on equal axes; below the "
        "diagonal is a drop."
    )
    if drop is not None:
        label += (
            f" On average {percent(drop.measured.value)} points are lost as measured, and "
            f"{percent(drop.remaining.value)} at the same selection frequency."
        )
    low, high = estimates.range()
    return Figure(
        "hero",
        label,
        _accuracies_chart(estimates),
        f"Each ring is a {estimates.words.classifier} as measured; its dot is where it would stand "
        f"if the replication's {estimates.words.images} were selected as often as the "
        f"reference's ({label_of(own)}{with_intervals}). On the line nothing is lost.",
        data={
            "classifiers": classifier_rows(estimates),
            "lines": [{"x": low, "y": low}, {"x": high, "y": high}],
            **_bracket_rows(estimates, drop),
        },
        key=key,
        columns=("classifier", "reference_percent", "measured", "adjusted", "lower", "upper")
        + (("truth_percent",) if estimates.knows_truth else ()),
    )


def truth_key(estimates: AccuracyEstimates) -> list[tuple[str, str]]:
    """The key of the mark of the truth, where it is known."""
    return [("truth", "truth, known of a simulation")] if estimates.knows_truth else []


def _bracket_rows(
    estimates: AccuracyEstimates, drop: Drop | None
) -> dict[str, list[dict[str, Any]]]:
    """Compute the brackets that divide the mean drop into measured and adjusted parts."""
    if drop is None:
        return {"guides": [], "bracket": [], "told": []}
    # The drop hangs from the mean reference accuracy down to `level`, where selection takes over,
    # and ends at `bottom`.
    mean = 100 * float(estimates.classifiers["reference"].to_numpy().mean())
    low, high = estimates.range()
    level = mean - 100 * drop.remaining.value
    bottom = level - 100 * drop.selection.value
    ends = ((mean, mean), (bottom, level), (bottom, bottom))
    parts = (
        (drop.remaining, (mean + level) / 2, "remain"),
        (drop.selection, (level + bottom) / 2, "selection"),
    )
    # Texts at nearly the same height would cover each other: each is told how far away the other is
    # and on which side of it to stand.
    difference, up = abs(parts[0][1] - parts[1][1]), 1 if parts[0][1] >= parts[1][1] else -1
    texts = [
        {"y": round(y, 4), "apart": round(difference, 4), "up": side, "adjusted": True}
        | {"text": f"{interval_text(part)} {what}"}
        for (part, y, what), side in zip(parts, (up, -up), strict=True)
    ]
    lost = percent(drop.selection.value + drop.remaining.value)
    texts.append(
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
                (Css.SOFT, bottom, level, mean),
                (Css.POSTERIOR, bottom, level, bottom),
            )
        ],
        "told": texts,
    }


def _accuracies_chart(estimates: AccuracyEstimates) -> vega.Spec:
    low, high = estimates.range()
    scale = {"domain": [low, high], "nice": False, "zero": False}
    axis = {"tickCount": 6, "format": ".0f" if high - low > 8 else ".1f"}
    title = "accuracy on the reference (%)"
    x = vega.number("reference_percent", title=title, scale=scale, axis={**axis, "grid": False})
    y = {"title": "accuracy on the replication (%)", "scale": scale, "axis": axis}
    own = estimates.methods[-1]
    transform = [
        *in_percent(
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
    # From below to above: what classifiers are compared with, they themselves, and the mean drop.
    guides, *bracket = _bracket(x, y, high - low)
    layers = [*_no_drop(x, y, high), guides, *_points(estimates, x, y)]
    if estimates.knows_truth:
        layers.append(vega.mark(TICK_MARK, x=x, y=vega.number("truth_percent", **y)))
    layers += [*bracket, name_found(x, vega.number("place", **y))]
    spec = vega.chart("classifiers", *layers, transform=transform, params={"stage": 1, **NO_CHOICE})
    return vega.square(spec, side=600)


def _no_drop(x: vega.Spec, y: vega.Spec, high: float) -> list[vega.Spec]:
    """The diagonal of no drop, and what names it."""
    places = {"x": {**x, "field": "x"}, "y": vega.number("y", **y)}
    dashes: vega.Spec = {"type": "line", "color": Css.SOFT, "strokeDash": [5, 4]}
    line = vega.mark(dashes, data="lines", **places)
    label = {"type": "text", "color": Css.SOFT, "angle": -45, "align": "right", "dy": -7, "dx": -8}
    no_drop = vega.mark(label, data="lines", **places, text={"value": "no drop"})
    no_drop["transform"] = [{"filter": f"datum.x === {high}"}]
    return [line, no_drop]


def _bracket(x: vega.Spec, y: vega.Spec, height: float) -> list[vega.Spec]:
    """Guides, bracket and texts that divide the mean drop into selection and what remains."""
    moving = vega.calculate("y", "datum.first + stage * (datum.last - datum.first)")
    dots: vega.Spec = {"type": "rule", "color": Css.SOFT, "strokeDash": [1, 3]}
    level, across = vega.number("y", **y), {**x, "field": "low"}
    guides = vega.mark(dots, data="guides", x=across, x2={"field": "mean"}, y=level)
    line: vega.Spec = {"type": "rule", "strokeWidth": 3}
    places = {"x": {"value": 10}, "y": level, "y2": {"field": "to"}}
    color = {"field": "color", "type": "nominal", "scale": None}
    bracket = vega.mark(line, data="bracket", **places, color=color)
    guides["transform"] = bracket["transform"] = [moving]
    # On a phone a text has two lines, and does not reach the points. Two texts need so much room
    # between them, in percent.
    room = f"((height < 300 ? 38 : 19) * {height} / height - datum.apart) / 2"
    broken = "replace(datum.text, regexp('([),]) '), '$1\\n')"
    shifted = [
        {"filter": "datum.adjusted === (stage === 1)"},
        vega.calculate("said", f"height < 300 ? {broken} : datum.text"),
        vega.calculate("shifted", f"datum.y + datum.up * max(0, {room})"),
    ]
    label = vega.text_with_halo(
        {"align": "left", "dx": 19, "fontSize": 13, "fontWeight": 600, "lineBreak": "\n"},
        data="told",
        x={"value": 0},
        y=vega.number("shifted", **y),
        text=vega.name("said"),
    )
    return [guides, bracket, *({**each, "transform": shifted} for each in label)]


def _points(estimates: AccuracyEstimates, x: vega.Spec, y: vega.Spec) -> list[vega.Spec]:
    """Build each classifier's marks: the measured ring, the adjusted dot, and its interval."""
    measured, place = vega.number("measured", **y), vega.number("place", **y)
    thin = {"type": "rule", "color": Css.POSTERIOR, "opacity": 0.5}
    shift = vega.mark(thin, x=x, y=measured, y2={"field": "place"})
    wide = {"type": "rule", "color": Css.POSTERIOR, "opacity": 0.22, "strokeWidth": 5}
    spread = vega.mark(wide, x=x, y=vega.number("lower", **y), y2={"field": "upper"})
    spread["transform"] = [{"filter": "stage === 1"}]
    titles = {"reference_percent": "reference (%)", "measured": "as measured (%)"}
    titles |= {"adjusted": "at the same selection frequency (%)"}
    titles |= vega.ENDS if estimates.has_intervals else {}
    titles |= {"truth_percent": "truth (%)"} if estimates.knows_truth else {}
    tooltip = vega.tooltip(titles, ".1f", classifier=estimates.words.classifier)
    empty = {"type": "point", "color": Css.GREY, "size": 30, "strokeWidth": 1.3, "opacity": 1}
    ring = vega.mark(empty, x=x, y=measured, tooltip=tooltip)
    color, size = vega.found(Css.RAW, Css.POSTERIOR), vega.found(140, 34)
    full = {"type": "circle", "opacity": 0.9}
    dot = vega.mark(full, x=x, y=place, color=color, size=size, tooltip=tooltip)
    return [spread, shift, ring, dot]


def posterior_figure(fitted: Fitted, study: Study) -> Figure:
    """The figure of a posterior alone, with the mean drop as it divides it."""
    drop = drop_of(gaps(fitted), measured_drop(study))
    return accuracies_figure(join_tables(study, [accuracies(fitted)]), drop)


def figure(study: Study, posterior: Posterior) -> vega.Spec:
    """Draw every classifier's accuracy as measured, and at the same selection frequencies."""
    return on_paper(posterior_figure(Fitted(study, posterior), study))


def name_found(x: vega.Spec, y: vega.Spec) -> vega.Spec:
    """Names beside the points that are looked for, unless these are many."""
    text = {"type": "text", "align": "left", "dx": 8, "fontSize": 12, "fontWeight": 600}
    names = vega.mark({**text, "color": Css.INK}, x=x, y=y, text=vega.name("classifier"))
    names["transform"] = [
        {"filter": "datum.found"},
        {"joinaggregate": [{"op": "count", "as": "matches"}]},
        {"filter": f"datum.matches <= {MAX_POINT_LABELS}"},
    ]
    return names


def in_percent(**fields: str) -> list[vega.Spec]:
    """Fields of fractions, in percent; what is not known stays so."""
    return [
        vega.calculate(name, f"isValid({field}) ? 100 * {field} : null")
        for name, field in fields.items()
    ]
