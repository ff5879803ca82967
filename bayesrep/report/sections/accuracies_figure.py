"""The figure of all classifiers: where each was measured, and where it stands without selection."""

from collections.abc import Mapping
from typing import Any

from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior
from bayesrep.report import vega
from bayesrep.report.answer import Drop, drop_of, measured_drop
from bayesrep.report.methods import label_of
from bayesrep.report.picture import Figure, on_paper
from bayesrep.report.sections.accuracy_estimates import (
    AccuracyEstimates,
    classifier_rows,
    interval_text,
    join_tables,
)
from bayesrep.report.text import percent
from bayesrep.studies.study import Study
from bayesrep.summary.tables import accuracies, gaps

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
IS_FOUND = (
    "datum.number === chosen || (search !== '' && indexof(lower(datum.classifier), search) >= 0)"
)
"""Whether a classifier is the chosen one, or is looked for."""
CHOICE: Mapping[str, Any] = {"chosen": -1, "search": ""}


def accuracies_figure(found: AccuracyEstimates, drop: Drop | None = None) -> Figure:
    """Every classifier where it was measured and where it stands at the same frequencies.

    Both axes have the same ends and the same length, whatever the method and the screen.
    """
    own = found.methods[-1]
    told = ", with 95 % intervals" if found.has_intervals else ""
    key = [("ring", "as measured"), ("dot", "at the same selection frequency")]
    key += [("truth", "truth, known of a simulation")] if found.knows_truth else []
    label = (
        f"Every {found.words.classifier}'s accuracy on the replication against that on the "
        "reference, as measured and at the same selection frequency, on equal axes; below the "
        "diagonal is a drop."
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
        f"Each ring is a {found.words.classifier} as measured; its dot is where it would stand if "
        f"the replication's {found.words.images} were selected as often as the reference's "
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
        (drop.selection, (level + bottom) / 2, "selection"),
    )
    # Texts at nearly the same height would cover each other: each is told how far away the other is
    # and on which side of it to stand.
    apart, up = abs(parts[0][1] - parts[1][1]), 1 if parts[0][1] >= parts[1][1] else -1
    told = [
        {"y": round(y, 4), "apart": round(apart, 4), "up": side, "adjusted": True}
        | {"text": f"{interval_text(part)} {what}"}
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


def _accuracies_chart(found: AccuracyEstimates) -> vega.Spec:
    low, high = found.range()
    scale = {"domain": [low, high], "nice": False, "zero": False}
    axis = {"tickCount": 6, "format": ".0f" if high - low > 8 else ".1f"}
    title = "accuracy on the reference (%)"
    x = vega.number("reference_percent", title=title, scale=scale, axis={**axis, "grid": False})
    y = {"title": "accuracy on the replication (%)", "scale": scale, "axis": axis}
    own = found.methods[-1]
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
    layers = [*_no_drop(x, y, high), guides, *_points(found, x, y)]
    if found.knows_truth:
        layers.append(vega.mark(TICK, x=x, y=vega.number("truth_percent", **y)))
    layers += [*bracket, name_found(x, vega.number("place", **y))]
    spec = vega.chart("classifiers", *layers, transform=transform, params={"stage": 1, **CHOICE})
    return vega.square(spec, side=600)


def _no_drop(x: vega.Spec, y: vega.Spec, high: float) -> list[vega.Spec]:
    """The diagonal of no drop, and what names it."""
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
    return [line, no_drop]


def _bracket(x: vega.Spec, y: vega.Spec, height: float) -> list[vega.Spec]:
    """Guides, bracket and texts that divide the mean drop into selection and what remains."""
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
    room = f"(19 * {height} / height - datum.apart) / 2"
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
    return [guides, bracket, *({**each, "transform": shifted} for each in told)]


def _points(found: AccuracyEstimates, x: vega.Spec, y: vega.Spec) -> list[vega.Spec]:
    """For each classifier: from the ring as measured to the dot adjusted, with its interval."""
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
    return [spread, shift, ring, dot]


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
    return [vega.name("classifier", title=found.words.classifier), *numbers]


def posterior_figure(fitted: Fitted, study: Study) -> Figure:
    """The figure of a posterior alone, with the mean drop as it divides it."""
    drop = drop_of(gaps(fitted), measured_drop(study))
    return accuracies_figure(join_tables(study, [accuracies(fitted)]), drop)


def figure(study: Study, posterior: Posterior) -> vega.Spec:
    """Every classifier's accuracy as measured, and at the same selection frequencies."""
    return on_paper(posterior_figure(Fitted(study, posterior), study))


def name_found(x: vega.Spec, y: vega.Spec) -> vega.Spec:
    """Names beside the points that are looked for, unless these are many."""
    text = {"type": "text", "align": "left", "dx": 8, "fontSize": 12, "fontWeight": 600}
    names = vega.mark({**text, "color": vega.INK}, x=x, y=y, text=vega.name("classifier"))
    names["transform"] = [
        {"filter": "datum.found"},
        {"joinaggregate": [{"op": "count", "as": "matches"}]},
        {"filter": f"datum.matches <= {MOST_NAMES}"},
    ]
    return names


def in_percent(**fields: str) -> list[vega.Spec]:
    """Fields of fractions, in percent; what is not known stays so."""
    return [
        vega.calculate(name, f"isValid({field}) ? 100 * {field} : null")
        for name, field in fields.items()
    ]
