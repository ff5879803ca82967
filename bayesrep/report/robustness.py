"""Reference against replication accuracy with linear and probit fits."""

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
from bayesrep.studies.words import VOCABULARIES, words_of

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
        raise StudyError("line-needs-more-classifiers", fewest=FEWEST)
    columns: dict[str, Any] = {}
    for role, values in zip(REQUIRED_ROLES, correct, strict=True):
        right, images = values.sum(axis=0), len(values)
        lower, upper = proportion_interval(right, images)
        columns |= {f"{role}_accuracy": right / images}
        columns |= {f"{role}_lower": lower, f"{role}_upper": upper}
    rows = pl.DataFrame(columns)
    words = words_of(study) if isinstance(study, Study) else VOCABULARIES["images"]
    return robustness_figure({words.classifiers: rows}, fitted=rows)


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
