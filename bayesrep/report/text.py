"""Tables for a terminal: plain text, percent, one line a row."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from bayesrep.errors import plain
from bayesrep.estimators.annotators import Linearity
from bayesrep.report.answer import Estimate, is_share
from bayesrep.studies.study import Study

MISSING = "-"


def percent(value: float | None, digits: int = 1) -> str:
    """A fraction as percent, '-' where there is none."""
    if value is None or not np.isfinite(value):
        return MISSING
    return f"{100 * value:.{digits}f}"


def columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows aligned under their header; the first column to the left, the others to the right."""
    table = [[plain(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        return "  ".join(cells).rstrip()

    return "\n".join([line(table[0]), "  ".join("-" * w for w in widths), *map(line, table[1:])])


def describe_study(study: Study) -> str:
    """What a study holds, a line for each data set and the raw gap."""
    lines = [f"{plain(study.name)}: {len(study.classifiers)} classifiers"]
    for role, data in study.datasets.items():
        low, high = data.shown.min(), data.shown.max()
        shown = f"{low}" if low == high else f"{low} to {high}"
        frequency = percent(float((data.selected / data.shown).mean()), 2)
        lines.append(
            f"  {role} ({plain(data.name)}): {len(data.images):,} images, "
            f"{shown} annotators each, mean selection frequency {frequency} %"
        )
    if study.classifiers:
        gap = study.reference.correct.mean() - study.replication.correct.mean()
        lines.append(f"  mean accuracy drop, reference to replication: {percent(float(gap), 2)} %")
    return "\n".join(lines)


def left_out_lines(left_out: Mapping[str, Mapping[str, str]]) -> list[str]:
    """How many images each data set is left without, a line each; see `images_left_out`."""
    return [
        f"{plain(dataset)}: {len(images):,} image{'s' * (len(images) != 1)} left out, which could "
        "not be decoded"
        for dataset, images in left_out.items()
    ]


def spread(count: int, wanted: int = 10) -> list[int]:
    """At most ``wanted`` positions spread evenly over ``count``."""
    return sorted(set(np.linspace(0, count - 1, min(count, wanted)).round().astype(int).tolist()))


def _slope(value: float | None) -> str:
    return MISSING if value is None else f"{value:.3f}"


def _effective(bulk: float | None, tail: float | None) -> str:
    return MISSING if bulk is None or tail is None else f"{min(bulk, tail):.0f}"


def estimates_table(table: pl.DataFrame) -> str:
    """Rows of :func:`bayesrep.estimate` or :func:`bayesrep.summarize`, accuracies in percent."""
    header = [
        "classifier",
        "method",
        "reference",
        "replication",
        "adjusted",
        "95 % interval",
        "gap",
    ]
    diagnosed = "rhat" in table.columns
    rows: list[list[str]] = []
    for row in table.iter_rows(named=True):
        interval = MISSING
        if row["lower"] is not None:
            interval = f"{percent(row['lower'])} to {percent(row['upper'])}"
        names = ("reference_accuracy", "replication_accuracy", "adjusted_accuracy")
        cells = [row["classifier"], row["method"], *(percent(row[name]) for name in names)]
        cells += [interval, percent(row["bias_corrected_gap"])]
        if diagnosed:
            cells += [_slope(row["rhat"]), _effective(row["ess_bulk"], row["ess_tail"])]
        rows.append(cells)
    return columns(header + (["R-hat", "ESS"] if diagnosed else []), rows)


def predictions_table(table: pl.DataFrame) -> str:
    """Rows of :func:`bayesrep.predict`; accuracies in percent."""
    header = ["classifier", "images", "top-1", "top-5", "seconds", "failures", "status"]
    rows = [
        [
            row["classifier"],
            f"{row['images']:,}",
            percent(row["top1"], 2),
            percent(row["top5"], 2),
            f"{row['seconds']:.1f}",
            MISSING if row["failures"] is None else f"{row['failures']:,}",
            row["status"],
        ]
        for row in table.iter_rows(named=True)
    ]
    return columns(header, rows)


def gaps_table(table: pl.DataFrame, *, clear: bool) -> str:
    """Rows of :func:`bayesrep.estimate_gaps`, one line a method; gaps and shares in percent.

    Without a ``clear`` drop there is nothing to take a share of, and beyond 0 and 1 it is none.
    """
    header = ["method", "bias-corrected gap", "selection gap", "share explained (%)", "slope"]
    lines: list[list[str]] = []
    for (method,), rows in table.group_by(["method"], maintain_order=True):
        by = {row["quantity"]: row for row in rows.iter_rows(named=True)}
        cells = [
            _with_interval(by["bias_corrected_gap"], lambda x: percent(x, 2)),
            _with_interval(by["selection_gap"], lambda x: percent(x, 2)),
            _share(by["share_explained"]) if clear else MISSING,
            _with_interval(by["slope"], _slope),
        ]
        lines.append([str(method), *cells])
    return columns(header, lines)


def _share(row: Mapping[str, Any]) -> str:
    if row["estimate"] is None or not is_share(
        Estimate(row["estimate"], row["lower"], row["upper"])
    ):
        return MISSING
    return _with_interval(row, lambda x: percent(x, 0))


def _with_interval(row: Mapping[str, Any], show: Callable[[float | None], str]) -> str:
    if row["lower"] is None:
        return show(row["estimate"])
    return f"{show(row['estimate'])} ({show(row['lower'])} to {show(row['upper'])})"


def populations_text(table: pl.DataFrame) -> str:
    """What :func:`bayesrep.summarize_gaps` says of the reference's population, in one line."""
    by = {row["quantity"]: row for row in table.iter_rows(named=True)}
    gap = _with_interval(by["population_gap"], lambda x: percent(x, 2))
    told = f"For other images of the same populations: gap {gap}"
    if by["population_slope"]["estimate"] is None:
        return f"{told}."
    return f"{told}, slope {_with_interval(by['population_slope'], _slope)}."


def ranks_table(table: pl.DataFrame) -> str:
    """Rows of :func:`bayesrep.rank_classifiers`; of a single classifier, that there are none."""
    if len(table) == 1:
        return _alone(str(table["classifier"][0]))
    header = ["classifier", "adjusted", "rank", "95 % interval", "on reference", "on replication"]
    rows = [
        [
            row["classifier"],
            percent(row["adjusted_accuracy"]),
            f"{row['rank']:.1f}",
            f"{row['lower']:g} to {row['upper']:g}",
            *(f"{row[name]:g}" for name in ("reference_rank", "replication_rank")),
            percent(row["best"], 0),
        ]
        for row in table.iter_rows(named=True)
    ]
    return columns([*header, "first (%)"], rows)


def _alone(classifier: str) -> str:
    return f"{plain(classifier)} is the only classifier: there is none to compare it with."


def pairs_table(table: pl.DataFrame, classifiers: Sequence[str]) -> str:
    """Rows of :func:`bayesrep.compare_classifiers`, differences in percent points."""
    if len(classifiers) == 1:
        return _alone(classifiers[0])
    header = ["classifier", "other", "as measured", "adjusted", "95 % interval", "better (%)"]
    rows = [
        [
            row["classifier"],
            row["other"],
            *(percent(row[name], 2) for name in ("raw_difference", "difference")),
            f"{percent(row['lower'], 2)} to {percent(row['upper'], 2)}",
            percent(row["probability"], 1),
        ]
        for row in table.iter_rows(named=True)
    ]
    return columns(header, rows)


def images_table(table: pl.DataFrame, shown: int = 10) -> str:
    """The images of :func:`bayesrep.describe_images` hardest for classifiers, and for people."""
    header = ["image", "data set", "selected", "frequency", "classifiers right", "difficulty"]

    def rows(part: pl.DataFrame) -> list[list[str]]:
        return [
            [
                row["image"],
                row["dataset"],
                f"{row['selected']}/{row['shown']}",
                f"{percent(row['selection_frequency'])} ± {percent(row['selection_frequency_sd'])}",
                percent(row["right"], 0),
                f"{row['difficulty']:.2f} ± {row['difficulty_sd']:.2f}",
            ]
            for row in part.iter_rows(named=True)
        ]

    machines = table.sort("difficulty", descending=True).head(shown)
    people = table.sort("selection_frequency").head(shown)
    return (
        f"Hardest for classifiers, given how people see them:\n\n{columns(header, rows(machines))}"
        f"\n\nHardest for people:\n\n{columns(header, rows(people))}"
    )


def components_table(table: pl.DataFrame) -> str:
    """Rows of `compare_components`; the best of each criterion and data set has a star."""
    best: dict[tuple[str, str], float] = {}
    for (dataset,), rows in table.group_by(["dataset"]):
        for name, smallest in (("aic", True), ("bic", True), ("held_out_log_likelihood", False)):
            values = rows[name].to_list()
            best[str(dataset), name] = min(values) if smallest else max(values)
    lines: list[list[str]] = []
    for row in table.iter_rows(named=True):
        cells = [str(row["dataset"]), str(row["components"]), f"{row['log_likelihood']:.2f}"]
        for name in ("aic", "bic", "held_out_log_likelihood"):
            star = "*" if row[name] == best[row["dataset"], name] else " "
            cells.append(f"{row[name]:.2f}{star}")
        cells += [str(row["degenerate"]), "yes" if row["converged"] else "no"]
        lines.append(cells)
    header = ["data set", "K", "log likelihood", "AIC ", "BIC ", "held out "]
    return columns([*header, "degenerate", "converged"], lines)


def annotators_table(table: pl.DataFrame, line: Linearity | None) -> str:
    """Rows of `compare_annotators` as mean gaps, one line a number of annotators; the verdict."""
    gaps = [
        (pl.col("reference_accuracy") - pl.col(name)).mean().alias(name)
        for name in ("naive", "jackknife")
    ]
    means = table.group_by("annotators", maintain_order=True).agg(*gaps)
    rows = [
        [str(row["annotators"]), percent(row["naive"], 2), percent(row["jackknife"], 2)]
        for row in means.iter_rows(named=True)
    ]
    head = "Mean bias-corrected gap over classifiers, in percent:"
    text = [head, columns(["annotators", "naive", "jackknife"], rows)]
    if line is not None:
        reference = float(table["reference_accuracy"].mean())  # type: ignore[arg-type]
        from_half, from_all = (
            percent(reference - accuracy, 2)
            for accuracy in (line.jackknife_from_half, line.jackknife)
        )
        text += [
            "",
            f"From {line.half} annotators on, the naive estimates follow a line in 1/annotators "
            f"with R² = {line.r_squared:.4f}.",
            f"The jackknife from {line.half} annotators leaves a gap of {from_half} %, from "
            f"{line.annotators} one of {from_all} %.",
            f"If the rest is quadratic in 1/annotators, that is {percent(abs(line.left), 2)} "
            f"points too {'much' if line.left > 0 else 'little'}.",
        ]
    return "\n".join(text)


def method_table(methods: pl.DataFrame) -> str:
    """One row per method of the demo: mean gap beside the truth, in percent."""
    header = [
        "method",
        "mean gap",
        "95 % interval",
        "error",
        "share of drop explained (%)",
        "truth inside (%)",
    ]
    rows = [
        [
            row["method"],
            percent(row["mean_gap"], 2),
            MISSING
            if row["lower"] is None
            else f"{percent(row['lower'], 2)} to {percent(row['upper'], 2)}",
            MISSING if row["mean_error"] is None else f"{100 * row['mean_error']:+.2f}",
            percent(row["share_explained"], 0),
            percent(row["coverage"], 0),
        ]
        for row in methods.iter_rows(named=True)
    ]
    return columns(header, rows)


def ends(lower: float | None, upper: float | None, digits: int = 1, *, none: str = MISSING) -> str:
    """An interval as percent."""
    return none if lower is None else f"{percent(lower, digits)} to {percent(upper, digits)}"


def matched_table(table: pl.DataFrame) -> str:
    """Accuracies of :func:`bayesrep.protocols.match`, a line for each classifier and criterion."""
    header = ["classifier", "matched by", "gap", "reference", "replication", "matched gap"]
    header += ["95 % interval", "unmatched (%)", "accuracy"]
    lines: list[list[str]] = []
    for (criterion, classifier), rows in table.group_by(
        ["criterion", "classifier"], maintain_order=True
    ):
        by = {row["quantity"]: row for row in rows.iter_rows(named=True)}
        gap = by["matched_gap"]
        names = ("gap", "matched_reference_accuracy", "matched_replication_accuracy", "matched_gap")
        lines.append(
            [
                str(classifier),
                str(criterion),
                *(percent(by[name]["estimate"], 2) for name in names),
                ends(gap["lower"], gap["upper"], 2),
                *(
                    percent(by[name]["estimate"])
                    for name in ("fraction_unmatched", "unmatched_accuracy")
                ),
            ]
        )
    return columns(header, lines)


def rows_table(table: pl.DataFrame, digits: int = 3) -> str:
    """Any table as it is, numbers to some digits."""

    def cell(value: Any) -> str:
        if value is None:
            return MISSING
        return f"{value:.{digits}f}" if isinstance(value, float) else str(value)

    return columns(table.columns, [[cell(value) for value in row] for row in table.iter_rows()])


def multilabel_table(table: pl.DataFrame) -> str:
    """Rows of :func:`bayesrep.protocols.multilabel`: every classifier, then every subset."""
    metrics = [name for name in table["metric"].unique(maintain_order=True) if " " not in name]
    parts = table["subset"].unique(maintain_order=True).to_list()
    by = {
        (row["classifier"], row["subset"], row["metric"]): row
        for row in table.iter_rows(named=True)
    }
    lines: list[list[str]] = []
    for classifier in table["classifier"].unique(maintain_order=True):
        cells = [by[classifier, "all", metric] for metric in metrics]
        best = cells[-1]
        several = [by[classifier, part, "multi-label"] for part in ("one label", "several labels")]
        lines.append(
            [
                classifier,
                f"{best['images']:,}",
                *(percent(cell["accuracy"], 2) for cell in cells),
                ends(best["lower"], best["upper"], 2),
                *(percent(cell["accuracy"], 2) for cell in several),
            ]
        )
    header = ["classifier", "images", *metrics, "95 % interval", "one label", "several"]
    means = table.group_by("subset", "metric").agg(
        pl.col("accuracy", "change").mean(), (pl.col("p_value") < 0.05).sum().alias("beyond")
    )
    mean = {(row["subset"], row["metric"]): row for row in means.iter_rows(named=True)}
    subsets = [
        [
            part,
            f"{by[lines[0][0], part, 'multi-label']['images']:,}",
            *(percent(mean[part, metric]["accuracy"], 2) for metric in metrics),
            percent(mean[part, "multi-label"]["change"], 2),
            str(mean[part, "multi-label"]["beyond"]) if number > 2 else MISSING,
        ]
        for number, part in enumerate(parts)
    ]
    second = ["mean over classifiers", "images", *metrics, "change", "beyond chance"]
    remark = (
        "Change: of multi-label accuracy against all images. Beyond chance: for how many of the "
        f"{len(lines)} classifiers fewer than 5 % of as many random classes change it as much."
    )
    return f"{columns(header, lines)}\n\n{columns(second, subsets)}\n\n{remark}"


def comparison_table(table: pl.DataFrame, lines: pl.DataFrame) -> str:
    """Accuracies and lines of :func:`bayesrep.protocols.compare`."""
    header = ["participant", "kind", "reference", "95 %", "replication", "95 %", "gap", "95 %"]
    rows = [
        [
            row["participant"],
            row["kind"],
            *(
                cell
                for name in ("reference", "replication", "gap")
                for cell in (
                    percent(row["gap" if name == "gap" else f"{name}_accuracy"], 2),
                    ends(row[f"{name}_lower"], row[f"{name}_upper"], 2),
                )
            ),
        ]
        for row in table.iter_rows(named=True)
    ]
    text = columns(header, rows)
    return f"{text}\n\n{rows_table(lines)}" if len(lines) else text
