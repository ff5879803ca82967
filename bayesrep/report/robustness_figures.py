"""Reference against replication accuracy with linear and probit fits."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from bayesrep.errors import StudyError, plain_text
from bayesrep.protocols.effective_robustness import CURVED_SCALES, FEWEST_ON_LINE
from bayesrep.protocols.intervals import proportion_interval
from bayesrep.protocols.lines import line_band
from bayesrep.report.protocols_text import lines_table
from bayesrep.report.style import Color, legend_below, panels
from bayesrep.report.table_format import Cell, Name, Row, list_rows
from bayesrep.studies.answers import right_or_wrong
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.study import Study
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words, words_of
from bayesrep.types import Floats

PANELS_ACROSS = 3
_FIT_STYLES = {"linear": (Color.BLUE, "-"), "probit": (Color.RED, "-.")}


def robustness_figure(
    tables: Mapping[str, pl.DataFrame], *, fitted: pl.DataFrame, metric: str = "top-1"
) -> Any:
    """Reference against replication accuracy with y = x, linear and probit fits."""
    figure, (axes,) = panels(1)
    _draw_panel(axes, tables, fitted)
    axes.set(
        xlabel=f"{metric} accuracy on the reference (%)".strip(),
        ylabel=f"{metric} accuracy on the replication (%)".strip(),
    )
    legend_below(figure, columns=3 if len(tables) > 1 else 4)
    return figure


def _draw_panel(axes: Any, tables: Mapping[str, pl.DataFrame], fitted: pl.DataFrame) -> None:
    roles = [f"{role}_accuracy" for role in REQUIRED_ROLES]
    every = pl.concat([rows.select(roles) for rows in tables.values()]).to_numpy()
    margin = 0.04 * np.ptp(every)
    low, high = max(every.min() - margin, 1e-3), min(every.max() + margin, 1 - 1e-3)
    ends = np.array([100 * low, 100 * high])
    axes.plot(ends, ends, color=Color.GREY, lw=1, ls="--", label="y = x")
    x, y = (fitted[name].to_numpy() for name in roles)
    grid = np.linspace(max(x.min() - margin, low), min(x.max() + margin, high), 200)
    for scale, (color, style) in _FIT_STYLES.items():
        line, lower, upper = (100 * values for values in line_band(x, y, grid, scale))
        axes.plot(100 * grid, line, color=color, ls=style, lw=1.2, label=f"{scale} fit", zorder=5)
        axes.fill_between(100 * grid, lower, upper, color=color, alpha=0.18, lw=0)
    colors = (Color.INK, Color.GREEN, Color.PURPLE)
    for (name, rows), color in zip(tables.items(), colors, strict=False):
        _participants(axes, rows, name, color)
    left_end, right = every[:, 0].min() - margin, every[:, 0].max() + margin
    axes.set_xlim(100 * left_end, 100 * min(right, 1))


def robustness(study: Study | Sequence[Predictions]) -> Any:
    """The accuracies of classifiers as measured, with 95 % intervals and fits."""
    reference, *others = right_or_wrong(study) if isinstance(study, Study) else study
    if len(reference.classifiers) < FEWEST_ON_LINE:
        raise StudyError("line-needs-more-classifiers", fewest=FEWEST_ON_LINE)
    tables = [
        pl.DataFrame(_accuracies_of("reference", reference) | _accuracies_of("replication", other))
        for other in others
    ]
    words = words_of(study) if isinstance(study, Study) else IMAGE_WORDS
    if len(tables) == 1:
        return robustness_figure({words.classifiers: tables[0]}, fitted=tables[0])
    figure, every = panels(len(tables), rows=-(-len(tables) // PANELS_ACROSS))
    for axes, other, rows in zip(every, others, tables, strict=True):
        _draw_panel(axes, {words.classifiers: rows}, rows)
        axes.set(
            xlabel=f"accuracy on {plain_text(reference.dataset)} (%)",
            ylabel=f"accuracy on {plain_text(other.dataset)} (%)",
        )
    legend_below(figure, columns=4)
    return figure


def _accuracies_of(role: str, answers: Predictions) -> dict[str, Floats]:
    right, images = answers.correct.sum(axis=1), len(answers.images)
    values = (right / images, *proportion_interval(right, images))
    return {f"{role}_{n}": v for n, v in zip(("accuracy", "lower", "upper"), values, strict=True)}


def robustness_table(table: pl.DataFrame, words: Words = IMAGE_WORDS) -> str:
    """Each classifier on each data set, the highest above its line first, in percent and points."""
    keys = ["dataset", "adjusted", "classifier", "baseline", "reference_accuracy", "accuracy"]
    wide = table.pivot("scale", index=keys, values=["robustness", "lower", "upper"])
    order = wide["dataset"].unique(maintain_order=True)
    wide = wide.sort(
        pl.col("dataset").replace_strict(order, range(len(order))),
        f"robustness_{CURVED_SCALES[0]}",
        descending=[False, True],
        nulls_last=True,
        maintain_order=True,
    )
    cells: dict[str, Cell] = {
        "data set": _name_dataset,
        words.classifier: "{classifier}",
        "on the line": lambda row: "yes" if row["baseline"] else "",
        "reference": "{reference_accuracy:2p}",
        "accuracy": "{accuracy:2p}",
    }
    for scale in CURVED_SCALES:
        cells[f"robustness, {scale}"] = f"{{robustness_{scale}:2p}}"
        cells[f"95 %, {scale}"] = f"{{lower_{scale}:2p}} to {{upper_{scale}:2p}}"
    return list_rows(wide, cells)


def baselines_table(lines: pl.DataFrame, words: Words = IMAGE_WORDS) -> str:
    """The line of each data set: its coefficients with both intervals."""
    return lines_table(lines, {"data set": _name_dataset}, words)


def _name_dataset(row: Row) -> str:
    return Name(f"{row['dataset']} (adjusted)" if row["adjusted"] else row["dataset"])


def _participants(axes: Any, rows: pl.DataFrame, name: str, color: str) -> None:
    x, y = (100 * rows[f"{role}_accuracy"].to_numpy() for role in REQUIRED_ROLES)
    if "reference_lower" in rows.columns:
        ends = [f"{role}_{end}" for role in REQUIRED_ROLES for end in ("lower", "upper")]
        left, right, low, high = (100 * rows[name].to_numpy() for name in ends)
        style = {"color": color, "lw": 0.6, "alpha": 0.6}
        axes.hlines(y, left, right, **style)
        axes.vlines(x, low, high, **style)
    size = 3.5 if len(rows) < 200 else 2
    axes.plot(x, y, "o", ms=size, color=color, label=name, zorder=4)
