"""The figure of drops: what every classifier loses, by the method that a control chooses."""

from typing import Any

import numpy as np

from bayesrep.report import vega
from bayesrep.report.methods import look_of, title_of
from bayesrep.report.picture import Figure, Reading
from bayesrep.report.sections.accuracies_figure import (
    CHOICE,
    IS_FOUND,
    TICK,
    in_percent,
    name_found,
)
from bayesrep.report.sections.accuracy_estimates import AccuracyEstimates, classifier_rows
from bayesrep.report.sections.section import limits
from bayesrep.report.text import percent
from bayesrep.studies.vocabulary import Words
from bayesrep.types import Floats


def drops_figure(found: AccuracyEstimates, naive: Floats) -> Figure:
    """Accuracy lost against accuracy on the reference; the axes are the same by every method."""
    truth = [("truth", "truth, known of a simulation")] if found.knows_truth else []
    return Figure(
        "drops",
        f"Dots of every {found.words.classifier}'s drop against its accuracy on the reference, as "
        "measured and adjusted, with intervals",
        _drops_chart(found, naive),
        data={"classifiers": classifier_rows(found, naive)},
        key=[
            ("ring", "drop as measured"),
            ("dot", "drop at the same selection frequency, 95 %"),
            *truth,
        ],
        readings=_read_drops(found, naive),
        columns=("classifier", "reference_percent", "measured_drop", "drop", "lower", "upper"),
    )


def _read_drops(found: AccuracyEstimates, naive: Floats) -> Reading:
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
    texts["naive"] = [say("naive", each) for each in naive]
    return Reading(("method", "annotators"), texts)


def _drops_chart(found: AccuracyEstimates, naive: Floats) -> vega.Spec:
    most, alone = len(naive) - 1, len(found.classifiers) == 1
    across = {"domain": limits(found.classifiers["reference"].to_numpy()), "nice": False}
    scale = {"domain": _widest_drops(found, naive), "nice": True}
    x = vega.number("reference_percent", title="accuracy on the reference (%)", scale=across)
    y = {"title": "points lost on the replication", "scale": scale}
    # From below to above: the line of no drop, the trend, intervals, rings and dots.
    zero = vega.at_value({"type": "rule", "color": vega.SOFT}, "y", 0, y)
    line = vega.mark(
        {"type": "line", "color": vega.SOFT, "strokeDash": [5, 4], "clip": True},
        x={**x, "field": "at"},
        y=vega.number("trend", **y),
    )
    line["transform"] = [{"regression": "drop", "on": "reference_percent", "as": ["at", "trend"]}]
    layers = [zero, *([] if alone else [line]), *_drop_points(x, y, found.words)]
    if found.knows_truth:
        layers.append(vega.mark(TICK, x=x, y=vega.number("truth_drop", **y)))
    shades = {method: f"var({look_of(method).css})" for method in found.methods}
    return vega.chart(
        "classifiers",
        *layers,
        name_found(x, vega.number("drop", **y)),
        transform=_calculate_drops(most, knows_truth=found.knows_truth),
        params={"method": found.methods[-1], "annotators": most, **CHOICE, "shades": shades},
        height=380,
    )


def _widest_drops(found: AccuracyEstimates, naive: Floats) -> tuple[float, float]:
    """Ends of the drops, in percent, whatever method and number of annotators are chosen."""
    table, own = found.classifiers, found.methods[-1]
    shown = [*found.methods, f"{own}_lower", f"{own}_upper"]
    shown += ["truth"] if found.knows_truth else []
    reference = table["reference"].to_numpy()
    lost = [reference - table[name].to_numpy() for name in shown]
    return limits(*lost, reference - naive[0], [0.0])


def _calculate_drops(most: int, *, knows_truth: bool) -> list[vega.Spec]:
    """Drops in percent by the method, and the number of annotators, that controls choose."""
    fewer = f"method === 'naive' && annotators < {most}"
    no_interval = f"(method === 'raw' || {fewer})"
    return [
        vega.calculate(
            "adjusted",
            "method === 'raw' ? datum.replication : "
            f"({fewer}) ? datum.naive_by[annotators] : datum[method]",
        ),
        *in_percent(
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
        *(in_percent(truth_drop="(datum.reference - datum.truth)") if knows_truth else []),
        vega.calculate("found", IS_FOUND),
    ]


def _drop_points(x: vega.Spec, y: vega.Spec, words: Words) -> list[vega.Spec]:
    """For each classifier its interval, the ring as measured and the dot adjusted."""
    own_color = {"expr": "shades[method]"}
    rules = vega.mark(
        {"type": "rule", "opacity": 0.45, "clip": True, "color": own_color},
        x=x,
        y=vega.number("lower", **y),
        y2={"field": "upper"},
    )
    tooltip = [
        vega.name("classifier", title=words.classifier),
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
    return [rules, ring, dot]
