"""Tables of a sweep by method and axis: errors, coverage where truth is known, and time."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from bayesrep.report.table_format import MISSING_TEXT, Cell, list_rows

NOT_AXES = ("run", "seed", "study_seed")
SCORE_COLUMNS = (
    *("runs", "failed", "converged", "max_rhat", "divergences", "mean_gap", "gap_change"),
    *("gap_spread", "gap_error", "gap_rms", "single_rms", "gap_held", "single_held", "gap_width"),
    *("single_width", "seconds", "ess_per_second"),
)
"""Columns of `scores` after the axes."""
DEFAULT_TEXTS = ("default", "all", MISSING_TEXT)  # a setting or answers left to the library; no use


def varying_axes(runs: pl.DataFrame) -> list[str]:
    """The method, and the axes that vary where they are used; seeds are repeats, and no axis."""
    axes = ["method"]
    for name in runs.columns[: runs.columns.index("fingerprint")]:
        owners = _owners(runs, name)
        # Of an owner with several values there are more pairs than owners.
        pairs = {*zip(owners, map(_word, runs[name].to_list()), strict=True)}
        if name not in (*NOT_AXES, "method") and len(pairs) > len({*owners}):
            axes.append(name)
    return axes


def _owners(runs: pl.DataFrame, axis: str) -> list[str]:
    """Return which part of every run has an axis: its study, its method, or the sweep."""
    if axis in ("study", "annotators"):
        return [""] * len(runs)
    return runs["study" if axis.startswith("study_") else "method"].to_list()


def _words(runs: pl.DataFrame, axis: str) -> list[str]:
    values, owners = runs[axis].to_list(), _owners(runs, axis)
    having = {owner for owner, value in zip(owners, values, strict=True) if value is not None}
    default, absent = DEFAULT_TEXTS[axis == "annotators"], DEFAULT_TEXTS[-1]
    return [
        _word(value) if value is not None else default if owner in having else absent
        for owner, value in zip(owners, values, strict=True)
    ]


def _word(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_word, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def scores(runs: pl.DataFrame, estimates: pl.DataFrame) -> pl.DataFrame:
    """A row for each method and combination of the axes that vary, in the grid's order."""
    axes = varying_axes(runs)
    table = runs.with_columns(*(pl.Series(name, _words(runs, name)) for name in axes))
    gaps, singles = (
        estimates.filter(quantity=name).select(
            "run",
            "estimate",
            error=pl.col("estimate") - pl.col("truth"),
            held=pl.col("truth").is_between("lower", "upper").cast(pl.Float64),
            width=pl.col("upper") - pl.col("lower"),
        )
        for name in ("mean_gap", "adjusted_accuracy")
    )
    gaps = gaps.select(
        "run", mean_gap="estimate", gap_error="error", gap_held="held", gap_width="width"
    )
    # Classifiers are averaged within a run first, so that each run counts once.
    of_singles = singles.group_by("run").agg(
        square=pl.col("error").pow(2).mean(),
        single_held=pl.col("held").mean(),
        single_width=pl.col("width").mean(),
    )
    # Methods without convergence have none; failed runs have no times.
    is_fit, succeeded = pl.col("converged").count() > 0, pl.col("error").is_null()
    has_chains, gap = pl.col("divergences").count() > 0, pl.col("mean_gap")
    # The row of a method where every axis is left to the library, from which the others differ.
    is_default = pl.all_horizontal(
        pl.lit(value=True), *(pl.col(each).is_in(DEFAULT_TEXTS) for each in axes[1:])
    )
    default_gap = gap.filter(is_default).first().over("method")
    means = (
        *("mean_gap", "gap_spread", "gap_error", "gap_held", "gap_width"),
        *("single_held", "single_width"),
    )
    return (
        table.join(gaps, on="run", how="left", maintain_order="left")
        .join(of_singles, on="run", how="left", maintain_order="left")
        .with_columns(gap_spread=gap.std().over(*axes, "fingerprint"))  # over seeds of a fit
        .group_by(axes, maintain_order=True)
        .agg(
            *(pl.col(name).mean() for name in means),
            *(pl.col(name).filter(succeeded).median() for name in ("seconds", "ess_per_second")),
            runs=pl.len().cast(pl.Int64),
            failed=pl.col("error").count().cast(pl.Int64),
            converged=pl.when(is_fit).then(pl.col("converged").cast(pl.Int64).sum()),
            max_rhat=pl.col("rhat_max").max(),
            divergences=pl.when(has_chains).then(pl.col("divergences").sum()),
            gap_rms=pl.col("gap_error").pow(2).mean().sqrt(),
            single_rms=pl.col("square").mean().sqrt(),
        )
        .with_columns(gap_change=pl.when(~is_default).then(gap - default_gap))
        .select(*axes, *SCORE_COLUMNS)
    )


SHOWN_COLUMNS: dict[str, tuple[str, Cell]] = {
    "runs": ("runs", "{runs}"),
    "failed": ("failed", "{failed}"),
    "converged": ("converged", "{converged}"),
    "max_rhat": ("R-hat", "{max_rhat:.3f}"),
    "divergences": ("divergent", "{divergences}"),
    "mean_gap": ("mean gap", "{mean_gap:2p}"),
    "gap_change": ("from default", "{gap_change:2p}"),
    "gap_spread": ("sd of seeds", "{gap_spread:2p}"),
    "gap_error": ("error", "{gap_error:2p}"),
    "gap_rms": ("rms", "{gap_rms:2p}"),
    "gap_held": ("inside %", "{gap_held:0p}"),
    "gap_width": ("width", "{gap_width:2p}"),
    "single_rms": ("single rms", "{single_rms:2p}"),
    "single_held": ("single inside %", "{single_held:0p}"),
    "single_width": ("single width", "{single_width:2p}"),
    "seconds": ("seconds", "{seconds:.1f}"),
    "ess_per_second": ("ESS/s", "{ess_per_second:.0f}"),
}


def scores_text(table: pl.DataFrame) -> str:
    """The table of `scores` in percent and points; cells without any value are left out."""
    axes = table.columns[: -len(SCORE_COLUMNS)]
    cells: dict[str, Cell] = {name.replace("_", " "): f"{{{name}}}" for name in axes}
    for name, (title, cell) in SHOWN_COLUMNS.items():
        empty = table[name].null_count() == len(table)
        if not empty and not (name == "failed" and table[name].sum() == 0):
            cells[title] = cell
    return list_rows(table, cells)


def scores_facts(table: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows of `scores`, the axes in a mapping of their own."""
    axes = table.columns[: -len(SCORE_COLUMNS)]
    return [
        {"axes": {name: row[name] for name in axes}, **{name: row[name] for name in SCORE_COLUMNS}}
        for row in table.iter_rows(named=True)
    ]


def remarks_text(runs: pl.DataFrame) -> Sequence[str]:
    """List remarks beside the scores: why runs failed, a reason a line, and the others' advice."""
    reasons = runs.filter(pl.col("error").is_not_null()).group_by("error", maintain_order=True)
    return [*(f"{len(rows)} failed: {why}" for (why,), rows in reasons), *advice_text(runs)]


def advice_text(runs: pl.DataFrame) -> Sequence[str]:
    """List the advice attached to runs of a method, a line each, from the first that has it."""
    advised = runs.filter(pl.col("advice").cast(pl.String).str.len_chars() > 0)
    return [
        f"{method}, {len(rows)} of {len(runs.filter(method=method))} runs: {rows['advice'][0]}"
        for (method,), rows in advised.group_by("method", maintain_order=True)
    ]


def count_runs(count: int) -> str:
    """1 run, 2 runs."""
    return f"{count:,} run{'s' if count != 1 else ''}"
