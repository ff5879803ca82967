"""Reference against replication accuracy with linear and probit fits."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from bayesrep.errors import StudyError, plain_text
from bayesrep.protocols.effective_robustness import CURVED_SCALES, FEWEST_ON_LINE
from bayesrep.protocols.intervals import proportion_interval
from bayesrep.protocols.lines import line_band
from bayesrep.report import vega
from bayesrep.report.figure import Figure, beside, on_paper
from bayesrep.report.protocols_text import lines_table
from bayesrep.report.table_format import Cell, Name, Row, list_rows
from bayesrep.report.vega import DATASET_COLORS, Css, Spec
from bayesrep.studies.answers import right_or_wrong
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.study import Study
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words, words_of
from bayesrep.types import Floats

EQUAL = "y = x"
FIT_COLORS = {"linear fit": Css.POSTERIOR, "probit fit": Css.RAW}
GROUP_COLORS = (Css.INK, *DATASET_COLORS[3:])


def robustness_figure(
    tables: Mapping[str, pl.DataFrame], *, fitted: pl.DataFrame, metric: str = "top-1"
) -> Spec:
    """Reference against replication accuracy with y = x, linear and probit fits."""
    titles = [f"{metric} accuracy on the {role} (%)".strip() for role in REQUIRED_ROLES]
    return on_paper(_scatter("robustness", tables, fitted, titles))


def _scatter(
    name: str, tables: Mapping[str, pl.DataFrame], fitted: pl.DataFrame, titles: Sequence[str]
) -> Figure:
    """Draw accuracies of groups of classifiers, and lines through those that are `fitted`."""
    roles = [f"{role}_accuracy" for role in REQUIRED_ROLES]
    every = pl.concat([rows.select(roles) for rows in tables.values()]).to_numpy()
    margin = 0.04 * np.ptp(every)
    # Probits of 0 and 1 are infinite.
    low, high = np.clip([every.min() - margin, every.max() + margin], 1e-3, 1 - 1e-3)
    x, y = (fitted[role].to_numpy() for role in roles)
    grid = np.linspace(max(x.min() - margin, low), min(x.max() + margin, high), 200)
    lines = [{"what": EQUAL, "x": 100 * end, "y": 100 * end} for end in (low, high)]
    for fit in FIT_COLORS:
        columns = 100 * np.stack([grid, *line_band(x, y, grid, fit.split()[0])], axis=1)
        fields = ("x", "y", "lower", "upper")
        lines += [{"what": fit, **dict(zip(fields, row, strict=True))} for row in columns.tolist()]
    ends = [f"{role}_{end}" for role in REQUIRED_ROLES for end in ("accuracy", "lower", "upper")]
    points = [
        {"what": group, **{field: 100 * value for field, value in row.items()}}
        for group, rows in tables.items()
        for row in rows.select(each for each in ends if each in rows.columns).to_dicts()
    ]
    looks = dict(zip(tables, GROUP_COLORS, strict=False)) | {EQUAL: Css.GREY} | FIT_COLORS
    color = vega.colors("what", [*looks], [*looks.values()], legend={"columns": 2})
    dashes: Spec = {"domain": [EQUAL, *FIT_COLORS], "range": [[4, 4], [1, 0], [8, 3, 2, 3]]}
    axes: Spec = {}
    for channel, title, values in zip("xy", titles, every.T, strict=True):
        domain = 100 * np.clip([values.min() - margin, values.max() + margin], 0, 1)
        axes[channel] = {"title": title, "scale": {"domain": domain.tolist(), "nice": False}}
    place = {axis: vega.number(role, **axes[axis]) for axis, role in zip("xy", roles, strict=True)}
    band: Spec = {"type": "area", "opacity": 0.18, "clip": True}
    line: Spec = {"type": "line", "strokeWidth": 1.2, "clip": True}
    rows, along = f"{name}-lines", vega.number("x", **axes["x"])
    rule: Spec = {"type": "rule", "strokeWidth": 0.6, "opacity": 0.6, "clip": True}
    dot: Spec = {"type": "circle", "size": 25 if len(points) < 200 else 10, "opacity": 1}
    layers = [
        vega.mark(
            band,
            data=rows,
            x=along,
            color=color,
            y=vega.number("lower", **axes["y"]),
            y2={"field": "upper"},
        ),
        vega.mark(
            line,
            data=rows,
            x=along,
            color=color,
            y=vega.number("y", **axes["y"]),
            strokeDash=vega.name("what", scale=dashes, legend=None),
        ),
    ]
    for channel, role in zip("xy", REQUIRED_ROLES, strict=True):
        lower = vega.number(f"{role}_lower", **axes[channel])
        span = {channel: lower, f"{channel}2": {"field": f"{role}_upper"}}
        layers.append({"mark": rule, "encoding": {**place, **span, "color": color}})
    layers.append({"mark": dot, "encoding": {**place, "color": color}})
    label = f"{titles[1]} against {titles[0]}, with a linear and a probit fit"
    data = {f"{name}-points": points, f"{name}-lines": lines}
    return Figure(name, label, vega.square(vega.chart(f"{name}-points", *layers), 400), data=data)


def robustness(study: Study | Sequence[Predictions]) -> Spec:
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
    figures = [
        _scatter(
            f"robustness-{number}",
            {words.classifiers: rows},
            rows,
            [f"accuracy on {plain_text(each.dataset)} (%)" for each in (reference, other)],
        )
        for number, (other, rows) in enumerate(zip(others, tables, strict=True))
    ]
    return beside(figures, columns=3)


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
