"""Figures of the other evaluation protocols (`bayesrep.protocols`)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from bayesrep.errors import StudyError
from bayesrep.protocols.intervals import proportion_interval
from bayesrep.protocols.lines import line_band
from bayesrep.report.figures import BLUE, GREEN, GREY, INK, PURPLE, RED, legend_below, panels
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.rules import REQUIRED_ROLES
from bayesrep.studies.study import Study
from bayesrep.types import Floats

_SUBSETS = (("all", "-", INK), ("matched", "--", BLUE), ("unmatched", ":", RED))
FEWEST = 3  # classifiers, for a line with a band
_FITS = {"linear": (BLUE, "-"), "probit": (RED, "-.")}


def robustness_figure(
    tables: Mapping[str, pl.DataFrame], *, fitted: pl.DataFrame, metric: str = "top-1"
) -> Any:
    """Reference against replication accuracy with y = x, linear and probit fits.

    Parameters
    ----------
    tables
        Name of a group of participants to rows with the columns reference_accuracy and
        replication_accuracy and, where there are intervals, reference_lower ...
        replication_upper.
    fitted
        Rows through which the lines go.
    metric
        What the accuracies are, for the axes.
    """
    figure, (axes,) = panels(1)
    roles = [f"{role}_accuracy" for role in REQUIRED_ROLES]
    every = pl.concat([rows.select(roles) for rows in tables.values()]).to_numpy()
    margin = 0.04 * np.ptp(every)
    low, high = max(every.min() - margin, 1e-3), min(every.max() + margin, 1 - 1e-3)
    ends = np.array([100 * low, 100 * high])
    axes.plot(ends, ends, color=GREY, lw=1, ls="--", label="y = x")
    x, y = (fitted[name].to_numpy() for name in roles)
    at = np.linspace(max(x.min() - margin, low), min(x.max() + margin, high), 200)
    for scale, (color, style) in _FITS.items():
        line, lower, upper = (100 * values for values in line_band(x, y, at, scale))
        axes.plot(100 * at, line, color=color, ls=style, lw=1.2, label=f"{scale} fit", zorder=5)
        axes.fill_between(100 * at, lower, upper, color=color, alpha=0.18, lw=0)
    for (name, rows), color in zip(tables.items(), (INK, GREEN, PURPLE), strict=False):
        _participants(axes, rows, name, color)
    left, right = every[:, 0].min() - margin, every[:, 0].max() + margin
    axes.set_xlim(100 * left, 100 * min(right, 1))
    axes.set(
        xlabel=f"{metric} accuracy on the reference (%)".strip(),
        ylabel=f"{metric} accuracy on the replication (%)".strip(),
    )
    legend_below(figure, columns=3 if len(tables) > 1 else 4)
    return figure


def robustness(study: Study | Sequence[Predictions]) -> Any:
    """The accuracies of classifiers as measured, with 95 % intervals and fits.

    Parameters
    ----------
    study
        A study, or the answers to its reference and to its replication: counts are not needed.
    """
    correct = (
        [study.datasets[role].correct for role in REQUIRED_ROLES]  # [N, C] each
        if isinstance(study, Study)
        else [answers.correct.T for answers in study]
    )
    if correct[0].shape[1] < FEWEST:
        raise StudyError(f"a line takes at least {FEWEST} classifiers; this study has fewer")
    columns: dict[str, Any] = {}
    for role, values in zip(REQUIRED_ROLES, correct, strict=True):
        right, images = values.sum(axis=0), len(values)
        lower, upper = proportion_interval(right, images)
        columns |= {f"{role}_accuracy": right / images}
        columns |= {f"{role}_lower": lower, f"{role}_upper": upper}
    rows = pl.DataFrame(columns)
    return robustness_figure({"classifiers": rows}, fitted=rows)


def _participants(axes: Any, rows: pl.DataFrame, name: str, color: str) -> None:
    x, y = (100 * rows[f"{role}_accuracy"].to_numpy() for role in REQUIRED_ROLES)
    if "reference_lower" in rows.columns:
        low, high = (
            {role: 100 * rows[f"{role}_{end}"].to_numpy() for role in REQUIRED_ROLES}
            for end in ("lower", "upper")
        )
        style = {"color": color, "lw": 0.6, "alpha": 0.6}
        axes.hlines(y, low["reference"], high["reference"], **style)
        axes.vlines(x, low["replication"], high["replication"], **style)
    size = 3.5 if len(rows) < 200 else 2
    axes.plot(x, y, "o", ms=size, color=color, label=name, zorder=4)


def matched_accuracy_figure(accuracies: pl.DataFrame, criterion: str) -> Any:
    """Accuracies on all and on matched images, and their differences, over classifiers.

    Parameters
    ----------
    accuracies
        Of `bayesrep.protocols.MatchedAccuracy`.
    criterion
        Which to show.
    """
    rows = accuracies.filter(pl.col("criterion") == criterion)
    wide = rows.pivot("quantity", index="classifier", values=["estimate", "lower", "upper"])
    wide = wide.sort("estimate_reference_accuracy")
    figure, (left, right) = panels(2)
    place = np.arange(len(wide))

    def column(name: str) -> Floats:
        return 100 * wide[name].to_numpy().astype(float)

    for role, color in (("reference", BLUE), ("replication", RED)):
        left.plot(place, column(f"estimate_{role}_accuracy"), color=color, label=role)
        matched = column(f"estimate_matched_{role}_accuracy")
        left.plot(place, matched, color=color, ls="--", label=f"{role}, matched")
    left.set_ylabel("accuracy (%)")
    for name, color, label in (("gap", INK, "gap"), ("matched_gap", GREEN, "matched gap")):
        right.plot(place, column(f"estimate_{name}"), color=color, label=label)
        ends = column(f"lower_{name}"), column(f"upper_{name}")
        right.fill_between(place, *ends, color=color, alpha=0.18, lw=0)
    right.axhline(0, color=GREY, lw=0.8)
    right.set_ylabel("difference of accuracies (%)")
    twin = right.twinx()
    twin.plot(place, column("estimate_fraction_unmatched"), color=PURPLE, ls=":", label="unmatched")
    twin.set_ylabel("images without a match (%)")
    twin.set_ylim(0, None)
    twin.spines[["top"]].set_visible(False)
    for axes in (left, right):
        axes.set_xlabel("classifiers by accuracy on the reference")
    legend_below(figure)
    return figure


def confidence_figure(curves: pl.DataFrame, classifier: str, criterion: str) -> Any:
    """Accuracy and density by confidence, on all, matched and unmatched images of both data sets.

    Parameters
    ----------
    curves
        Of `bayesrep.protocols.MatchedAccuracy`.
    classifier, criterion
        Which to show.
    """
    chosen = curves.filter(pl.col("classifier") == classifier, pl.col("criterion") == criterion)
    figure, axes = panels(2)
    axes[0].plot([0, 1], [0, 100], color=GREY, lw=1, ls="--", label="calibrated")
    for role, marker in (("reference", "o"), ("replication", "s")):
        for subset, style, color in _SUBSETS:
            rows = chosen.filter(pl.col("dataset") == role, pl.col("subset") == subset)
            label = f"{role}, {subset}"
            shown = {"marker": marker, "ms": 3, "ls": style, "color": color, "lw": 1.2}
            shown["mfc"] = color if role == "reference" else "white"
            axes[0].plot(rows["confidence"], 100 * rows["accuracy"], label=label, **shown)
            middle = (rows["low"] + rows["high"]) / 2
            axes[1].plot(middle, rows["density"], label=label, **shown)
    for each in axes:
        each.set_xlabel("confidence")
    axes[0].set_ylabel("accuracy (%)")
    axes[1].set_ylabel("density")
    axes[1].set_yscale("log")
    legend_below(figure, columns=4)
    return figure


def confidence_scatter(confidence: pl.DataFrame) -> Any:
    """Accuracy against mean confidence, a point for each classifier and data set.

    Parameters
    ----------
    confidence
        Of `bayesrep.protocols.MatchedAccuracy`.
    """
    figure, (axes,) = panels(1)
    for role, color in (("reference", BLUE), ("replication", RED)):
        rows = confidence.filter(pl.col("dataset") == role)
        x, y = 100 * rows["confidence"].to_numpy(), 100 * rows["accuracy"].to_numpy()
        axes.plot(x, y, "o", ms=4, color=color, label=role)
    ends = np.array(axes.get_xlim())
    axes.plot(ends, ends, color=GREY, lw=1, ls="--", label="calibrated", zorder=1)
    axes.set(xlabel="mean confidence (%)", ylabel="accuracy (%)")
    legend_below(figure)
    return figure


def multilabel_figure(table: pl.DataFrame) -> Any:
    """Multi-label against top-1 accuracy, and both on images with one and with several labels.

    Parameters
    ----------
    table
        Of `bayesrep.protocols.multilabel`.
    """
    wide = table.pivot("metric", index=["classifier", "subset"], values="accuracy")
    every = wide.filter(pl.col("subset") == "all").sort("top-1")
    figure, (left, right) = panels(2)
    x = 100 * every["top-1"].to_numpy()
    left.plot(x, x, color=GREY, lw=1, ls="--", label="y = x")
    for metric, color in (("multi-label", BLUE), ("top-5", RED)):
        if metric in every.columns:
            left.plot(x, 100 * every[metric].to_numpy(), "o", ms=3.5, color=color, label=metric)
    left.set_ylabel("accuracy (%)")
    order = every.select("classifier")
    for subset, fill in (("one label", "full"), ("several labels", "none")):
        rows = order.join(wide.filter(pl.col("subset") == subset), on="classifier", how="left")
        for metric, color in (("top-1", INK), ("multi-label", BLUE)):
            right.plot(
                x,
                100 * rows[metric].to_numpy(),
                "o",
                ms=3.5,
                fillstyle=fill,
                color=color,
                label=f"{metric}, {subset}",
            )
    right.set_ylabel("accuracy (%)")
    for axes in (left, right):
        axes.set_xlabel("top-1 accuracy on all images (%)")
    legend_below(figure, columns=4)
    return figure


def matrices_figure(
    matrices: Mapping[str, pl.DataFrame], names: Sequence[str], value: str = "rate"
) -> Any:
    """Matrices of label and answer side by side, without their diagonals.

    Parameters
    ----------
    matrices
        Title to cells, as of `bayesrep.protocols.confusion`; a column difference, where there is
        one, is shown from blue to red.
    names
        The classes or superclasses in order.
    value
        The column to show.
    """
    figure, axes = panels(len(matrices), rows=2)
    place = {name: number for number, name in enumerate(names)}
    for panel, (title, rows) in zip(axes, matrices.items(), strict=True):
        signed = "difference" in rows.columns
        shown = np.zeros((len(names), len(names)))
        for row in rows.iter_rows(named=True):
            shown[place[row["label"]], place[row["answer"]]] = row[
                "difference" if signed else value
            ]
        np.fill_diagonal(shown, np.nan)
        limit = np.nanmax(np.abs(shown)) or 1.0
        image = panel.imshow(
            100 * shown,
            cmap="RdBu_r" if signed else "Blues",
            vmin=-100 * limit if signed else 0,
            vmax=100 * limit,
        )
        panel.grid(visible=False)
        panel.set_title(title, fontsize=10)
        panel.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
        panel.set_yticks(range(len(names)), names, fontsize=7)
        figure.colorbar(image, ax=panel, shrink=0.7, label="%")
        panel.label_outer()
    return figure
