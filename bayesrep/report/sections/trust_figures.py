"""Figures of the checks: p-values, chains, energies, and the gap by how dependent answers are."""

from typing import Any

import numpy as np
import polars as pl

from bayesrep.checks.finding import p_text
from bayesrep.checks.predictions import check_predictions
from bayesrep.errors import OptionError
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior
from bayesrep.report import vega
from bayesrep.report.figure import Figure, on_paper
from bayesrep.report.sections.section import rows_of
from bayesrep.report.vega import Css
from bayesrep.studies.study import Study
from bayesrep.studies.vocabulary import Words, words_of
from bayesrep.types import Floats

RANK_BINS = 20
P_BINS = np.linspace(0, 1, 11)
P_SCALE = {"domain": [-0.02, 1.02], "nice": False}
"""The scale begins below 0, so that the worst value is not hidden by the axis."""


def checks_figure(predictions: pl.DataFrame, words: Words) -> Figure:
    """P-values of the classifiers' answers and of each data set's counts."""
    # The answers' p-values are nearly uniform where the model holds.
    counts = np.histogram(predictions.filter(kind="answers")["p"].to_numpy(), P_BINS)[0]
    # The p-value of each data set's counts is None where they could not be tested.
    of_counts = predictions.filter(kind="counts").select("name", "p").rows()
    names = [name for name, _ in of_counts]
    texts = [f"{p_text(p)} for the counts of the {name}" for name, p in of_counts]
    mixtures = [{"p": p, "name": n, "told": p_text(p)} for n, p in of_counts if p is not None]
    titled = vega.number("classifiers", title=words.classifiers)
    whole = {"tickCount": int(min(counts.max(), 5)), "format": "d"}
    scale = {"domain": [0, 1.06 * max(int(counts.max()), 1)], "nice": False}
    bars = vega.mark(
        {"type": "bar", "color": Css.POSTERIOR, "opacity": 0.6},
        x=vega.number("low", title=f"p-value of a {words.classifier}'s answers", scale=P_SCALE),
        x2={"field": "high"},
        y=vega.number("classifiers", title=words.classifiers, axis=whole, scale=scale),
        y2={"datum": 0},
        tooltip=[vega.number("low"), vega.number("high"), titled],
    )
    rules = {
        "data": {"values": mixtures},
        "mark": {"type": "rule", "strokeDash": [5, 4], "strokeWidth": 2},
        "encoding": {
            "x": vega.number("p", scale=P_SCALE),
            "color": vega.colors("name", names, vega.DATASET_COLORS[: len(names)], title=None),
            "tooltip": [vega.name("name"), vega.name("told", title="counts")],
        },
    }
    return Figure(
        "pvalues",
        f"Histogram of p-values of the {words.classifiers}' answers",
        vega.chart("pvalues", bars, rules),
        "Posterior predictive checks of the answers: flat where the curves fit; a heap at the left "
        f"would be {words.classifiers} that they do not fit. Dashed lines are the mixtures' own: "
        + ", ".join(texts)
        + ". Each p-value is of one test alone; the table's are adjusted for their number.",
        {"pvalues": rows_of({"low": P_BINS[:-1], "high": P_BINS[1:], "classifiers": counts})},
    )


def chains_figure(chains: Floats) -> Figure:
    """Histograms of the ranks of each chain's mean accuracy [chain, draw] among all draws'."""
    order = np.argsort(np.argsort(chains, axis=None)).reshape(chains.shape)
    edges = np.linspace(0, chains.size, RANK_BINS + 1)
    rank = (np.arange(RANK_BINS) + 0.5) * 100 / RANK_BINS
    title, whole = "rank among the draws of all chains (%)", {"domain": [0, 100]}
    lines = vega.mark(
        {"type": "line", "interpolate": "step"},
        x=vega.number("rank", title=title, scale=whole),
        y=vega.number("draws", title="draws", scale={"zero": True}),
        color=vega.name("chain", scale={"scheme": "viridis"}, title=None),
        tooltip=[vega.name("chain"), vega.number("draws")],
    )
    rows: list[dict[str, Any]] = []
    for number, each in enumerate(order, start=1):
        draws = np.histogram(each, edges)[0]
        rows += rows_of({"rank": rank, "draws": draws}, chain=f"chain {number}")
    return Figure(
        "chains",
        "Rank histograms of the mean adjusted accuracy by chain",
        vega.chart("chains", lines),
        "Chains that agree have flat lines that lie over each other.",
        {"chains": rows},
    )


def energy_figure(energy: Floats) -> Figure:
    """Energies [chain, draw] minus their chain's mean, and their changes from draw to draw."""
    series: dict[str, Floats] = {
        "energy": (energy - energy.mean(axis=1, keepdims=True)).ravel(),
        "change from draw to draw": np.diff(energy, axis=1).ravel(),
    }
    edges = np.histogram_bin_edges(np.concatenate(list(series.values())), 40)
    rows: list[dict[str, Any]] = []
    for which, values in series.items():
        density = np.histogram(values, edges, density=True)[0]
        rows += rows_of({"energy": (edges[1:] + edges[:-1]) / 2, "density": density}, which=which)
    areas = vega.mark(
        {"type": "area", "opacity": 0.2, "line": {"strokeWidth": 2}, "interpolate": "step"},
        x=vega.number("energy", title="energy minus its mean"),
        y=vega.number("density", title="density", stack=None),
        color=vega.colors("which", list(series), [Css.POSTERIOR, Css.RAW]),
    )
    return Figure(
        "energy",
        "Energy of the chains and its changes",
        vega.chart("energy", areas),
        "A change as wide as the energy itself means that the sampler moves freely.",
        {"energy": rows},
    )


def dependence_figure(table: pl.DataFrame, words: Words) -> Figure:
    """The mean gap along the correlation of an image's answers, and the correlation's posterior."""
    x = vega.number("dependence", title=f"intraclass correlation of an {words.image}'s answers")
    title = "mean gap at equal selection frequencies (points)"
    lower = vega.number("lower", title=title, scale={"zero": False})
    look = {"type": "area", "color": Css.POSTERIOR, "opacity": 0.2}
    area = vega.mark(look, x=x, y=lower, y2={"field": "upper"})
    names = ("dependence", "probability", "gap", "lower", "upper")
    line = vega.mark({"type": "line", "color": Css.POSTERIOR}, x=x, y=vega.number("gap"))
    size = vega.number("probability", legend=None, scale={"range": [10, 400]})
    tooltip = list(map(vega.number, names))
    circle = {"type": "circle", "color": Css.POSTERIOR, "opacity": 1}
    points = vega.mark(circle, x=x, y=vega.number("gap"), size=size, tooltip=tooltip)
    in_points = pl.col("gap", "lower", "upper") * 100
    rounded = table.with_columns(in_points.round(3), pl.col("probability").round(4))
    return Figure(
        "dependence",
        f"The mean gap by the correlation of an {words.image}'s answers",
        vega.chart("dependence", area, line, points),
        f"How far {words.annotators} of an {words.image} answered alike because they saw it in the "
        "same grid or context. Larger points are more probable; the band is the 95 % interval, "
        "were the correlation known.",
        {"dependence": rows_of({name: rounded[name].to_numpy() for name in names})},
    )


def draw_checks(study: Study, posterior: Posterior) -> vega.Spec:
    """Posterior predictive checks: p-values of the classifiers' answers and of the counts."""
    predictions = check_predictions(Fitted(study, posterior).posterior)
    return on_paper(checks_figure(predictions, words_of(study)))


def _of_chains(study: Study, posterior: Posterior) -> Fitted:
    """A posterior that chains have drawn."""
    fitted = Fitted(study, posterior)
    if not fitted.record.is_mcmc:
        raise OptionError("figure-of-chains", method=fitted.record.method)
    return fitted


def draw_chains(study: Study, posterior: Posterior) -> vega.Spec:
    """Ranks of each chain's mean adjusted accuracy among all draws'."""
    return on_paper(chains_figure(_of_chains(study, posterior).adjusted_draws.mean(axis=2)))


def draw_energy(study: Study, posterior: Posterior) -> vega.Spec:
    """Energies of the chains minus their means, and their changes from draw to draw."""
    stats = _of_chains(study, posterior).need("sample_stats", "energy")
    return on_paper(energy_figure(np.asarray(stats["energy"].values, dtype=float)))
