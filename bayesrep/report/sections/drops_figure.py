"""The figure of drops: what every classifier loses, by the method that a control chooses."""

from typing import Any

import numpy as np

from bayesrep.report import vega
from bayesrep.report.figure import Figure, Reading
from bayesrep.report.methods import look_of, title_of
from bayesrep.report.sections.accuracies_figure import (
    IS_FOUND,
    NO_CHOICE,
    TICK_MARK,
    in_percent,
    name_found,
    truth_key,
)
from bayesrep.report.sections.accuracy_estimates import AccuracyEstimates, classifier_rows
from bayesrep.report.sections.section import limits
from bayesrep.report.table_format import percent
from bayesrep.report.vega import Css
from bayesrep.studies.vocabulary import Words
from bayesrep.types import Floats


def drops_figure(estimates: AccuracyEstimates, naive: Floats) -> Figure:
    """Accuracy lost against accuracy on the reference; the axes are the same by every method."""
    return Figure(
        "drops",
        f"Dots of every {estimates.words.classifier}'s drop against its accuracy on the reference, "
        "as measured and adjusted, with intervals",
        _drops_chart(estimates, naive),
        data={"classifiers": classifier_rows(estimates, naive)},
        key=[
            ("ring", "drop as measured"),
            ("dot", "drop at the same selection frequency, 95 %"),
            *truth_key(estimates),
        ],
        readings=_read_drops(estimates, naive),
        columns=("classifier", "reference_percent", "measured_drop", "drop", "lower", "upper"),
    )


def _read_drops(estimates: AccuracyEstimates, naive: Floats) -> Reading:
    """Summarize the drops by each method, and by naive matching on so many annotators."""
    reference = estimates.classifiers["reference"].to_numpy()

    def say(method: str, adjusted: Floats) -> str:
        on_average = "on average " if len(reference) > 1 else ""
        gap = percent(float(np.mean(reference - adjusted)), 2)
        spread = reference - reference.mean()
        slope = ""
        if spread @ spread > 0:
            slope = f"; accuracies have slope {spread @ adjusted / (spread @ spread):.2f}"
        return f"{title_of(method)}: {on_average}{gap} points below the reference{slope}."

    texts: dict[str, Any] = {
        method: say(method, estimates.classifiers[method].to_numpy())
        for method in estimates.methods
    }
    texts["naive"] = [say("naive", each) for each in naive]
    return Reading(("method", "annotators"), texts)


def _drops_chart(estimates: AccuracyEstimates, naive: Floats) -> vega.Spec:
    table, own, most = estimates.classifiers, estimates.methods[-1], len(naive) - 1
    reference = table["reference"].to_numpy()
    across = {"domain": limits(reference), "nice": False}
    # The drops have the same ends, whatever method and number of annotators are chosen.
    columns = [*estimates.methods, f"{own}_lower", f"{own}_upper"]
    columns += ["truth"] if estimates.knows_truth else []
    lost = [reference - table[name].to_numpy() for name in columns]
    scale = {"domain": limits(*lost, reference - naive[0], [0.0]), "nice": True}
    x = vega.number("reference_percent", title="accuracy on the reference (%)", scale=across)
    y = {"title": "points lost on the replication", "scale": scale}
    # From below to above: the line of no drop, the trend, intervals, rings and dots.
    zero = vega.at_value({"type": "rule", "color": Css.SOFT}, "y", 0, y)
    dashes = {"type": "line", "color": Css.SOFT, "strokeDash": [5, 4], "clip": True}
    line = vega.mark(dashes, x={**x, "field": "at"}, y=vega.number("trend", **y))
    line["transform"] = [{"regression": "drop", "on": "reference_percent", "as": ["at", "trend"]}]
    layers = [zero, *([line] if len(table) > 1 else []), *_drop_points(x, y, estimates.words)]
    if estimates.knows_truth:
        layers.append(vega.mark(TICK_MARK, x=x, y=vega.number("truth_drop", **y)))
    shades = {method: f"var({look_of(method).css})" for method in estimates.methods}
    return vega.chart(
        "classifiers",
        *layers,
        name_found(x, vega.number("drop", **y)),
        transform=_calculate_drops(most, knows_truth=estimates.knows_truth),
        params={"method": own, "annotators": most, **NO_CHOICE, "shades": shades},
        height=380,
    )


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
    """Build each classifier's marks: its interval, the measured ring and the adjusted dot."""
    own_color = {"expr": "shades[method]"}
    rule = {"type": "rule", "opacity": 0.45, "clip": True, "color": own_color}
    rules = vega.mark(rule, x=x, y=vega.number("lower", **y), y2={"field": "upper"})
    titles = {"reference_percent": "reference (%)", "measured_drop": "points lost as measured"}
    titles |= {"drop": "points lost at the same selection frequency", **vega.ENDS}
    tooltip = vega.tooltip(titles, ".1f", classifier=words.classifier)
    empty = {"type": "point", "color": Css.GREY, "size": 26, "strokeWidth": 1.2, "opacity": 1}
    ring = vega.mark(empty, x=x, y=vega.number("measured_drop", **y), tooltip=tooltip)
    full = {"type": "circle", "opacity": 0.9, "clip": True, "color": own_color}
    size = vega.found(150, 38)
    dot = vega.mark(full, x=x, y=vega.number("drop", **y), size=size, tooltip=tooltip)
    return [rules, ring, dot]
