"""Can I trust this: the verdict, what it rests on, and how to do it again."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from bayesrep.checks.dependence import AGAINST
from bayesrep.checks.diagnosis import examine
from bayesrep.checks.predictions import check_predictions
from bayesrep.posterior.files import arviz
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior, find_group
from bayesrep.report import vega
from bayesrep.report.figures import BLUE, GREY, ROLE_COLORS, legend_below, panels
from bayesrep.report.sections.section import Block, Figure, Section, Source, Table, rows_of
from bayesrep.studies.rules import REQUIRED_ROLES
from bayesrep.studies.study import Study
from bayesrep.types import Floats

RANK_BINS = 20
P_BINS = np.linspace(0, 1, 11)
VERDICTS = {
    "yes": ("verdict-yes", "Yes, if {assumption}: every check is fine."),
    "with care": ("verdict-care", "With care: something is not as it should be."),
    "no": ("verdict-no", "No: do not use this fit."),
}
CHECKED = ("check", "value", "wanted", "trust")
RECORDED = (
    *("model", "method", "options", "schedule", "feedback", "groups", "datasets", "seed"),
    *("precision", "device", "machine", "versions", "study_fingerprint", "statistics_digest"),
)
AGREEMENT = (
    "How far classifiers agree beyond what selection explains takes longer to check: "
    "bayesrep diagnose posterior.nc --study STUDY."
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Trust(Section):
    """Whether to believe the fit.

    Attributes
    ----------
    verdict
        "yes", "with care" or "no", as `bayesrep.diagnose` has it.
    assumption
        What no check can see, as a clause.
    sentences
        What is not as it should be, or cannot be seen.
    checks
        check, value, wanted, trust.
    figures
        Of p-values, ranks and energies, as far as the posterior has them.
    settings
        Name and value of everything that is needed to do it again.
    commands
        That make the posterior and the page again.
    """

    verdict: str
    assumption: str
    sentences: tuple[str, ...]
    checks: pl.DataFrame
    figures: Sequence[Figure]
    settings: Mapping[str, str]
    commands: str

    id, short, title, takes = "trust", "Trust", "Can I trust this?", "trust"

    @classmethod
    def of(cls, source: Source) -> Self:
        """Diagnose the posterior, but for the classifiers' agreement, which takes longer."""
        fitted = source.fitted
        found = examine(fitted.posterior, fitted, with_agreement=False)
        stats = find_group(fitted.posterior, "sample_stats")
        figures: list[Figure] = []
        if found.predictions is not None:
            figures.append(_of_p_values(_answers(found.predictions)))
        if len(fitted.adjusted) > 1:
            figures.append(_of_ranks(fitted.adjusted.mean(axis=2)))
        if found.dependence is not None:
            possible = found.dependence.filter(pl.col("support") > AGAINST)
            if len(possible) > 1 and np.isfinite(possible.to_numpy()).all():
                gap = fitted.group["bias_corrected_gap"].values.mean(axis=2)
                figures.append(_of_dependence(possible, np.asarray(gap, dtype=float)))
        if stats is not None and "energy" in stats:
            figures.append(_of_energies(np.asarray(stats["energy"].values, dtype=float)))
        return cls(
            verdict=found.trust,
            assumption=found.assumption,
            sentences=found.sentences,
            checks=found.checks,
            figures=figures,
            settings=_settings(fitted.group.attrs),
            commands=_commands(fitted),
        )

    def blocks(self) -> Iterator[Block]:
        """Verdict, figures, checks, sentences, settings."""
        style, lead = VERDICTS.get(self.verdict, VERDICTS["with care"])
        checks = [[_cell(value) for value in row] for row in self.checks.select(CHECKED).rows()]
        yield self.block(
            lead=lead.format(assumption=self.assumption),
            lead_class=f"answer {style}",
            long=True,
            figures=self.figures,
            table=Table("checks", "Checks", CHECKED, checks),
            sentences=[*self.sentences, AGREEMENT],
            settings=self.settings,
            repeat=self.commands,
        )


def _answers(predictions: pl.DataFrame) -> Floats:
    """The p-value of every classifier's answers, nearly uniform where the model holds."""
    return predictions.filter(pl.col("kind") == "answers")["p"].to_numpy()


def _of_p_values(p_values: Floats) -> Figure:
    counts = np.histogram(p_values, P_BINS)[0]
    bars = vega.mark(
        {"type": "bar", "color": vega.POSTERIOR, "opacity": 0.6},
        x=vega.number("low", title="p-value of a classifier's answers", scale={"nice": False}),
        x2={"field": "high"},
        y=vega.number("classifiers", title="classifiers"),
        y2={"datum": 0},
    )
    return Figure(
        "pvalues",
        "Histogram of p-values of the classifiers' answers",
        vega.chart(bars),
        "Posterior predictive checks of the answers: flat where the curves fit; a heap at the left "
        "would be classifiers that they do not fit.",
        rows_of({"low": P_BINS[:-1], "high": P_BINS[1:], "classifiers": counts}),
    )


def _of_ranks(chains: Floats) -> Figure:
    """Histograms of the ranks of each chain's mean accuracy [chain, draw] among all draws'."""
    order = np.argsort(np.argsort(chains, axis=None)).reshape(chains.shape)
    edges = np.linspace(0, chains.size, RANK_BINS + 1)
    rank = (np.arange(RANK_BINS) + 0.5) * 100 / RANK_BINS
    lines = vega.mark(
        {"type": "line", "interpolate": "step"},
        x=vega.number("rank", title="rank among the draws of all chains (%)"),
        y=vega.number("draws", title="draws", scale={"zero": True}),
        color=vega.name("chain", scale={"scheme": "viridis"}, legend=None),
        tooltip=[vega.name("chain"), vega.number("draws")],
    )
    return Figure(
        "ranks",
        "Rank histograms of the mean adjusted accuracy by chain",
        vega.chart(lines),
        "Chains that agree have flat lines that lie over each other.",
        [
            row
            for number, ranks in enumerate(order, start=1)
            for row in rows_of(
                {"rank": rank, "draws": np.histogram(ranks, edges)[0]}, chain=f"chain {number}"
            )
        ],
    )


def _of_energies(energy: Floats) -> Figure:
    """Energies [chain, draw] less their chain's mean, and their changes from draw to draw."""
    series = {
        "energy": (energy - energy.mean(axis=1, keepdims=True)).ravel(),
        "change from draw to draw": np.diff(energy, axis=1).ravel(),
    }
    edges = np.histogram_bin_edges(np.concatenate(list(series.values())), 40)
    middle = (edges[1:] + edges[:-1]) / 2
    areas = vega.mark(
        {"type": "area", "opacity": 0.2, "line": {"strokeWidth": 2}, "interpolate": "step"},
        x=vega.number("energy", title="energy less its mean"),
        y=vega.number("density", title="density", stack=None),
        color=vega.colors("which", list(series), [vega.POSTERIOR, vega.RAW]),
    )
    return Figure(
        "energy",
        "Energy of the chains and its changes",
        vega.chart(areas),
        "A change as wide as the energy itself means that the sampler moves freely.",
        [
            row
            for which, values in series.items()
            for density in [np.histogram(values, edges, density=True)[0]]
            for row in rows_of({"energy": middle, "density": density}, which=which)
        ],
    )


def _of_dependence(band: pl.DataFrame, gap: Floats) -> Figure:
    """The mean gap along the correlation of an image's answers, from its draws at the fit's."""
    x = vega.number("dependence", title="intraclass correlation of an image's answers")
    title = "mean gap at equal selection frequencies (points)"
    area = vega.mark(
        {"type": "area", "color": vega.POSTERIOR, "opacity": 0.2},
        x=x,
        y=vega.number("lower", title=title, scale={"zero": False}),
        y2={"field": "upper"},
    )
    line = vega.mark(
        {"type": "line", "color": vega.POSTERIOR, "point": True},
        x=x,
        y=vega.number("gap", title=title),
        tooltip=[vega.number(name) for name in ("dependence", "gap", "lower", "upper")],
    )
    shift, widening = (band[name].to_numpy() for name in ("shift", "widening"))
    middle = gap.mean() + shift
    ends = (np.quantile(gap, end) - gap.mean() for end in (0.025, 0.975))
    lower, upper = (middle + end * widening for end in ends)
    shown = {"gap": middle, "lower": lower, "upper": upper}
    return Figure(
        "dependence",
        "The mean gap by the correlation of an image's answers",
        vega.chart(area, line),
        "What no check can see: how far annotators of an image answered alike because they saw it "
        "in the same grid or context. The band is the 95 % interval if they did so to that degree.",
        rows_of(
            {"dependence": band["dependence"].to_numpy()}
            | {name: np.round(100 * values, 3) for name, values in shown.items()}
        ),
    )


def _settings(attributes: Mapping[Any, Any]) -> dict[str, str]:
    """What the posterior records of how it was made, in words."""
    given = {name: str(attributes[name]) for name in RECORDED if str(attributes.get(name, ""))}
    return {name.replace("_", " "): _in_words(text) for name, text in given.items()}


def _in_words(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict):
        return ", ".join(f"{name} {each}" for name, each in value.items() if each is not None)
    return ", ".join(map(str, value)) if isinstance(value, list) else text


def _commands(fitted: Fitted) -> str:
    """The command lines that make this posterior and the page again."""
    attributes, made = fitted.group.attrs, fitted.recorded
    schedule = json.loads(str(attributes.get("schedule", "{}")))
    given = {
        "model": made.name,
        "method": attributes.get("method"),
        **{name: schedule.get(name) for name in ("chains", "warmup", "draws")},
        "seed": attributes.get("seed"),
        "feedback": "cut" if attributes.get("feedback") == "cut" else None,
        "groups": made.grouping,
    }
    words = [f"--{name} {value}" for name, value in given.items() if value is not None]
    usual = made.model.options()
    for name, value in vars(made.options).items():
        if value != getattr(usual, name):
            shown = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            words.append(f"--set {name}={shown}")
    assumed = f" --crowd-sd {fitted.crowd_sd:g}" if fitted.crowd_sd else ""
    return "\n".join(
        [
            " ".join(["bayesrep fit STUDY --out posterior.nc", *words]),
            f"bayesrep report STUDY posterior.nc --out report.html{assumed}",
        ]
    )


def _cell(value: str | float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def checks(study: Study, posterior: Posterior) -> Any:
    """Posterior predictive checks: p-values of the classifiers' answers and of the counts."""
    table = check_predictions(Fitted(study, posterior).posterior)
    figure, (axes,) = panels(1)
    axes.hist(_answers(table), P_BINS, color=BLUE, alpha=0.5, label="classifiers")
    for role in REQUIRED_ROLES:
        counts = table.filter(pl.col("kind") == "counts", pl.col("name") == role)
        if len(counts):
            label = f"counts of the {role}"
            axes.axvline(counts["p"][0], color=ROLE_COLORS[role], lw=1.6, ls="--", label=label)
    axes.axhline(len(study.classifiers) / 10, color=GREY, lw=1)
    axes.set(xlim=(0, 1), xlabel="p-value", ylabel="classifiers")
    legend_below(figure)
    return figure


def ranks(study: Study, posterior: Posterior) -> Any:
    """ArviZ's rank plot of the mean selection frequencies."""
    fitted = Fitted(study, posterior)
    return _of_arviz(arviz().plot_rank(fitted.posterior, var_names=["mean_selection_frequency"]))


def energy(study: Study, posterior: Posterior) -> Any:
    """ArviZ's plot of the energy and its changes from draw to draw."""
    return _of_arviz(arviz().plot_energy(Fitted(study, posterior).posterior))


def _of_arviz(plot: Any) -> Any:
    """The matplotlib figure of what ArviZ returns: axes in its old version, a plot in its new."""
    if hasattr(plot, "viz"):
        return plot.viz["figure"].item()
    return np.ravel(np.asarray(plot, dtype=object))[0].figure
