"""Figures of a study and its posterior for notebooks and papers: `bayesrep.plot_*`.

Where a figure is interactive, its Vega-Lite and its drawing show the rows of one public table. All
are in the words of the study.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.estimators import estimate_gaps
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior
from bayesrep.report import methods, vega
from bayesrep.report.figures import (
    GREY,
    INK,
    accuracy_axes,
    interval_points,
    legend_below,
    panels,
    say_in,
)
from bayesrep.report.methods import color_of, label_of, title_of
from bayesrep.report.notebook import Plot
from bayesrep.report.pairs import closest_pairs, pairs_between
from bayesrep.report.sections import curves, frequencies
from bayesrep.report.sections.section import quiet
from bayesrep.report.text import SHOWN_ROWS
from bayesrep.report.wording import translate_titles
from bayesrep.studies.study import Study, need_study
from bayesrep.studies.words import Voice
from bayesrep.summary import compare_classifiers, rank_classifiers, summarize, summarize_gaps

MEASURED_LABEL, ADJUSTED_LABEL = "as measured", "at equal selection frequencies"
RANK, LEAD_LABEL = "rank (1 is the best)", "by how much the first is better (points)"
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"


def plot_accuracies(study: Study, posterior: Posterior, *, allow_unconverged: bool = False) -> Plot:
    """Every classifier's accuracy on the replication, as measured and adjusted.

    Parameters
    ----------
    study, posterior, allow_unconverged
        As `bayesrep.summarize`, whose table is shown.

    Raises
    ------
    ConvergenceError, PosteriorError, StudyError
        As `bayesrep.summarize`.
    """
    table = summarize(need_study(study), posterior, allow_unconverged=allow_unconverged)
    columns = ("reference_accuracy", "replication_accuracy", "adjusted_accuracy", "lower", "upper")
    rows = table.select("classifier", pl.col(columns) * 100)
    return _plot("accuracies", study, partial(_draw_accuracies, rows), _accuracies(rows))


def _accuracies(rows: pl.DataFrame) -> vega.Spec:
    values = [column for column in rows.columns if column not in ("classifier",)]
    low, high = float(rows[values].to_numpy().min()), float(rows[values].to_numpy().max())
    # Both axes have the same range, so that the diagonal means no drop.
    ends = [np.floor(low), np.ceil(high)]
    scale = {"domain": ends, "nice": False}
    x = vega.number("reference_accuracy", title="accuracy on the reference (%)", scale=scale)
    title = "accuracy on the replication (%)"
    tooltip = [
        vega.name("classifier", title="classifier"),
        vega.number("reference_accuracy", format=".1f", title="reference (%)"),
        vega.number("replication_accuracy", format=".1f", title="replication (%)"),
        vega.number("adjusted_accuracy", format=".1f", title="adjusted (%)"),
        vega.number("lower", format=".1f", title="95 % from"),
        vega.number("upper", format=".1f", title="to"),
    ]

    def y(field: str) -> vega.Spec:
        return vega.number(field, title=title, scale=scale)

    same = {
        "data": {"values": [{"x": end} for end in ends]},
        "mark": {"type": "line", "strokeDash": [5, 4], "color": GREY},
        "encoding": {"x": vega.number("x", scale=scale), "y": vega.number("x", scale=scale)},
    }
    shades = [methods.RAW_LOOK.paper, methods.POSTERIOR.paper]
    color = {"scale": {"domain": [MEASURED_LABEL, ADJUSTED_LABEL], "range": shades}, "title": None}
    moved: vega.Spec = {"type": "rule", "color": "#bbbbbb"}
    interval: vega.Spec = {"type": "rule", "color": methods.POSTERIOR.paper, "opacity": 0.5}
    return _chart(
        "Accuracy of every classifier on the replication against that on the reference, as "
        "measured and at equal selection frequencies",
        rows,
        same,
        _mark(moved, x=x, y=y("replication_accuracy"), y2={"field": "adjusted_accuracy"}),
        _mark(interval, x=x, y=y("lower"), y2={"field": "upper"}),
        _mark(
            {"type": "point", "size": 30},
            x=x,
            y=y("replication_accuracy"),
            color={"datum": MEASURED_LABEL, **color},
            tooltip=tooltip,
        ),
        _mark(
            {"type": "circle", "size": 40},
            x=x,
            y=y("adjusted_accuracy"),
            color={"datum": ADJUSTED_LABEL, **color},
            tooltip=tooltip,
        ),
        width=440,
        height=440,
    )


def _draw_accuracies(rows: pl.DataFrame) -> Any:
    figure, (axes,) = panels(1)
    reference, measured, adjusted, low, high = rows[:, 1:].to_numpy().T
    accuracy_axes(axes, reference / 100)
    axes.vlines(reference, measured, adjusted, color="#cccccc", lw=0.8, zorder=1)
    style = {"ms": 3.5, "mfc": "none", "color": methods.RAW_LOOK.paper, "label": MEASURED_LABEL}
    axes.plot(reference, measured, "o", **style)
    style: dict[str, Any] = {"color": methods.POSTERIOR.paper, "ms": 3.5, "label": ADJUSTED_LABEL}
    interval_points(axes, reference, adjusted, low, high, **style)
    legend_below(figure)
    return figure


@quiet()
def plot_gaps(
    study: Study,
    posterior: Posterior,
    *,
    bootstrap: int = 50,
    seed: int = 0,
    progress: bool = False,
    allow_unconverged: bool = False,
) -> Plot:
    """The mean accuracy drop: as measured, and what every method leaves of it.

    Parameters
    ----------
    study, posterior, allow_unconverged
        As `bayesrep.summarize_gaps`.
    bootstrap, seed
        Replicates for the intervals of the point estimates, and their seed, as
        `bayesrep.estimate_gaps` takes them; 0 leaves these intervals out.
    progress
        Show a bar on standard error.

    Raises
    ------
    ConvergenceError, OptionError, PosteriorError, StudyError
        As `bayesrep.summarize_gaps` and `bayesrep.estimate_gaps`.
    """
    options: dict[str, Any] = {"seed": seed, "allow_unconverged": allow_unconverged}
    gaps = summarize_gaps(need_study(study), posterior, **options)
    points = estimate_gaps(study, bootstrap=bootstrap, seed=seed, progress=progress)
    columns = ("method", "quantity", "estimate", "lower", "upper")
    table = pl.concat([points.select(columns), gaps.select(columns)], how="vertical_relaxed")
    rows = table.filter(quantity="bias_corrected_gap").select(
        "method", pl.col("estimate", "lower", "upper") * 100
    )
    return _plot("gaps", study, partial(_draw_gaps, rows), _gaps(rows))


def _gaps(rows: pl.DataFrame) -> vega.Spec:
    titles = [title_of(method) for method in rows["method"]]
    shades = [color_of(method) for method in rows["method"]]
    rows = rows.with_columns(method=pl.Series(titles))
    y = vega.name("method", sort=titles, title=None)
    color = vega.colors("method", titles, shades, legend=None)
    title = "mean accuracy gap (points)"
    tooltip = [
        vega.name("method"),
        *(vega.number(name, format=".2f") for name in ("estimate", "lower", "upper")),
    ]
    interval = {"x": vega.number("lower", title=title), "x2": {"field": "upper"}}
    return _chart(
        "Mean accuracy gap over classifiers, as measured and as every method leaves it",
        rows,
        _zero(title),
        _mark({"type": "rule", "strokeWidth": 2}, y=y, color=color, **interval),
        _mark(
            {"type": "circle", "size": 90, "opacity": 1},
            y=y,
            x=vega.number("estimate", title=title),
            color=color,
            tooltip=tooltip,
        ),
        width=440,
        height={"step": 28},
    )


def _draw_gaps(rows: pl.DataFrame) -> Any:
    figure, (axes,) = panels(1)
    figure.set_size_inches(7.2, 0.4 * len(rows) + 1)
    place = _forest(axes, rows, [label_of(name) for name in rows["method"]], "estimate")
    axes.scatter(
        rows["estimate"], place, s=36, c=[color_of(name) for name in rows["method"]], zorder=3
    )
    axes.axvline(0, color=GREY, lw=1)
    axes.set_xlabel("mean accuracy gap (points)")
    return figure


def plot_ranks(
    study: Study,
    posterior: Posterior,
    *,
    top: int = 40,
    seed: int = 0,
    allow_unconverged: bool = False,
) -> Plot:
    """Ranks of classifiers at equal selection frequencies, with 95 % intervals.

    Parameters
    ----------
    study, posterior, seed, allow_unconverged
        As `bayesrep.rank_classifiers`, whose table is shown.
    top
        How many classifiers, from the best, a figure shows.

    Raises
    ------
    ConvergenceError, OptionError, PosteriorError, StudyError
        As `bayesrep.rank_classifiers`.
    """
    if top < 1:
        raise OptionError("ranks-shown-below-one", top=top)
    options: dict[str, Any] = {"seed": seed, "allow_unconverged": allow_unconverged}
    rows = rank_classifiers(need_study(study), posterior, **options).head(top)
    return _plot("ranks", study, partial(_draw_ranks, rows), _ranks(rows))


def _ranks(rows: pl.DataFrame) -> vega.Spec:
    y = vega.name("classifier", sort=rows["classifier"].to_list(), title=None)
    tooltip = [
        vega.name("classifier", title="classifier"),
        *(vega.number(name, format=".1f") for name in ("rank", "lower", "upper")),
        vega.number("replication_rank", title="as measured"),
        vega.number("best", format=".0%", title="probability to be the best"),
    ]
    return _chart(
        "Ranks of classifiers, as measured and at equal selection frequencies",
        rows,
        *_rows_of(y, RANK, "rank", "replication_rank", tooltip),
        width=440,
        height={"step": 18},
    )


def _draw_ranks(rows: pl.DataFrame) -> Any:
    return _drawn_rows(rows, "classifier", RANK, "rank", "replication_rank")


def plot_pairs(
    study: Study,
    posterior: Posterior,
    *,
    between: Sequence[str] = (),
    top: int | None = None,
    seed: int = 0,
    allow_unconverged: bool = False,
) -> Plot:
    """Differences of two classifiers at equal selection frequencies, with 95 % intervals.

    Parameters
    ----------
    study, posterior, seed, allow_unconverged
        As `bayesrep.compare_classifiers`, whose table is shown.
    between
        Names of two classifiers or more: all pairs of these; without names, of all.
    top
        How many pairs, from the closest, a figure shows; None for all between some names, and for
        ten of all.

    Raises
    ------
    OptionError
        If a name is not a classifier's, or `top` shows nothing.
    StudyError
        If there is only one classifier.
    ConvergenceError, PosteriorError
        As `bayesrep.compare_classifiers`.
    """
    if top is not None and top < 1:
        raise OptionError("pairs-shown-below-one", top=top)
    options: dict[str, Any] = {"seed": seed, "allow_unconverged": allow_unconverged}
    table = compare_classifiers(need_study(study), posterior, **options)
    if table.is_empty():
        raise StudyError("pair-needs-two-classifiers", classifier=study.classifiers[0])
    # Pairs between two sets are all shown unless a number is asked for.
    if between:
        table = pairs_between(table, between, study.classifiers)
        top = len(table) if top is None else top
    columns = ("raw_difference", "difference", "lower", "upper")
    rows = closest_pairs(table, SHOWN_ROWS if top is None else top).select(
        pl.format("{} \N{MINUS SIGN} {}", "classifier", "other").alias("pair"),
        *("classifier", "other"),
        pl.col(columns) * 100,
        "probability",
    )
    return _plot("pairs", study, partial(_draw_pairs, rows), _pairs(rows))


def _pairs(rows: pl.DataFrame) -> vega.Spec:
    y = vega.name("pair", sort=rows["pair"].to_list(), title=None, axis={"labelLimit": 0})
    tooltip = [
        vega.name("classifier", title="classifier"),
        vega.name("other", title="compared with"),
        vega.number("difference", format=".2f"),
        vega.number("lower", format=".2f", title="95 % from"),
        vega.number("upper", format=".2f", title="to"),
        vega.number("raw_difference", format=".2f", title="as measured"),
        vega.number("probability", format=".1%", title="probability to be better"),
    ]
    return _chart(
        "Differences of classifiers' accuracies, two by two, as measured and at equal selection "
        "frequencies",
        rows,
        _zero(LEAD_LABEL),
        *_rows_of(y, LEAD_LABEL, "difference", "raw_difference", tooltip),
        width=440,
        height={"step": 18},
    )


def _draw_pairs(rows: pl.DataFrame) -> Any:
    figure = _drawn_rows(rows, "pair", LEAD_LABEL, "difference", "raw_difference")
    figure.axes[0].axvline(0, color=GREY, lw=1)
    return figure


def plot_curves(
    study: Study, posterior: Posterior, classifiers: Sequence[str] | None = None
) -> Plot:
    """Accuracy by selection frequency: curves with 95 % bands, and what was observed.

    Parameters
    ----------
    study, posterior
        As `bayesrep.summarize`.
    classifiers
        Names of those to show; None for a few over the whole range.

    Raises
    ------
    OptionError
        If the study has no classifier of some name.
    PosteriorError, StudyError
        As `bayesrep.summarize`.
    """
    known = Fitted(need_study(study), posterior).statistics.classifiers
    if strange := [name for name in classifiers or () if name not in known]:
        raise OptionError("study-lacks-classifiers", classifiers=listing(strange, "classifier"))
    options = {} if classifiers is None else {"classifiers": list(classifiers)}
    return _plot("curves", study, partial(curves.figure, study, posterior, **options))


def plot_frequencies(study: Study, posterior: Posterior) -> Plot:
    """Selection frequencies of both data sets: observed, expected by the fit, and the true ones.

    Parameters
    ----------
    study, posterior
        As `bayesrep.summarize`.

    Raises
    ------
    PosteriorError, StudyError
        As `bayesrep.summarize`.
    """
    Fitted(need_study(study), posterior)
    return _plot("frequencies", study, partial(frequencies.figure, study, posterior))


def _plot(name: str, study: Study, draw: Callable[[], Any], spec: vega.Spec | None = None) -> Plot:
    """A figure in the words of its study."""
    say = Voice.of(study)

    def draw_in_words() -> Any:
        figure = draw()
        say_in(figure, say)
        return figure

    if spec is None:
        return Plot(name, draw_in_words)
    return Plot(
        name,
        draw_in_words,
        {**translate_titles(spec, say), "description": say(spec["description"])},
    )


def _rows_of(
    y: vega.Spec, title: str, adjusted: str, measured: str, tooltip: list[vega.Spec]
) -> list[vega.Spec]:
    """Layers with a row for each name: the interval, the point as measured, and the adjusted."""
    return [
        _mark(
            {"type": "rule", "color": methods.POSTERIOR.paper},
            y=y,
            x=vega.number("lower", title=title, scale={"zero": False}),
            x2={"field": "upper"},
        ),
        _mark(
            {"type": "point", "color": methods.RAW_LOOK.paper},
            y=y,
            x=vega.number(measured, title=title),
            tooltip=tooltip,
        ),
        _mark(
            {"type": "circle", "size": 50, "color": methods.POSTERIOR.paper},
            y=y,
            x=vega.number(adjusted, title=title),
            tooltip=tooltip,
        ),
    ]


def _drawn_rows(rows: pl.DataFrame, name: str, title: str, adjusted: str, measured: str) -> Any:
    """The same as a drawing."""
    figure, (axes,) = panels(1)
    figure.set_size_inches(7.2, max(2.5, 0.2 * len(rows) + 1.2))
    place = _forest(axes, rows, rows[name].to_list(), adjusted, label=ADJUSTED_LABEL)
    style = {"mfc": "none", "ms": 5, "color": methods.RAW_LOOK.paper, "label": MEASURED_LABEL}
    axes.plot(rows[measured], place, "o", **style)
    axes.set_xlabel(title)
    legend_below(figure)
    return figure


def _forest(axes: Any, rows: pl.DataFrame, labels: Sequence[str], value: str, **style: Any) -> Any:
    """Points and intervals, one row each, the first on top; returns their places."""
    place = np.arange(len(rows))[::-1]
    low, high, at = (rows[name].to_numpy().astype(float) for name in ("lower", "upper", value))
    axes.hlines(place, low, high, color=INK, lw=1.2)
    axes.plot(at, place, "o", **{"color": methods.POSTERIOR.paper, "ms": 5, **style})
    axes.set_yticks(place, labels)
    axes.grid(visible=False, axis="y")
    return place


def _mark(kind: vega.Spec, **encoding: Any) -> vega.Spec:
    return {"mark": kind, "encoding": encoding}


def _zero(title: str) -> vega.Spec:
    """A line where there is no difference."""
    return {
        "data": {"values": [{"at": 0}]},
        "mark": {"type": "rule", "color": GREY},
        "encoding": {"x": vega.number("at", title=title)},
    }


def _chart(
    description: str, rows: pl.DataFrame, *layers: Mapping[str, Any], **more: Any
) -> vega.Spec:
    """A figure with its data, rounded, which needs nothing else, and what is said in its place."""
    rounded = rows.with_columns(pl.selectors.float().round(4)).fill_nan(None)
    return {
        "$schema": SCHEMA,
        "description": description,
        "data": {"values": rounded.to_dicts()},
        "layer": list(layers),
        **more,
    }
