"""pass@k in words, as a table and as curves."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bayesrep.errors import plain_text
from bayesrep.report import vega
from bayesrep.report.figure import Figure, beside, on_paper
from bayesrep.report.table_format import Cell, Row, ends, list_rows, percent
from bayesrep.report.vega import Css

if TYPE_CHECKING:
    from bayesrep.estimators.pass_at_k import PassAtK

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444", "#a05a2c")
"""After Okabe and Ito (2008); so many models a panel."""
CURVE_POINTS = 60
_WORTH_SAYING = 0.2  # share of the prior from which the last line speaks of it

TARGET_WORDS: Mapping[str, str] = {
    "population": "items like these (the benchmark as a sample of a population of items)",
    "items": "these very items (intervals allow for other attempts, not for other items)",
}


def pass_at_k_text(result: "PassAtK", differences: pl.DataFrame | None) -> str:
    """The tables, and an answer in words."""
    cells: dict[str, Cell] = {
        **_names(result.table),
        "model": "{model}",
        "k": "{k:,}",
        "pass@k": "{estimate:1p}",
        "95 % interval": lambda row: ends(row["lower"], row["upper"]),
        "unbiased": "{unbiased:1p}",
        "its interval": lambda row: ends(row["unbiased_lower"], row["unbiased_upper"]),
        "prior's share": lambda row: percent(row["prior_share"], 0),
    }
    counted: dict[str, Cell] = {
        **_names(result.models),
        "model": "{model}",
        "items": "{items:,}",
        "attempts each": _attempts,
        "solved": "{solved:1p}",
        "never solved": "{never:1p}",
        "95 % interval": lambda row: ends(row["never_lower"], row["never_upper"]),
    }
    heading = f"pass@k of {TARGET_WORDS[result.target]}, in percent"
    parts = [list_rows(result.models, counted), f"{heading}\n\n{list_rows(result.table, cells)}"]
    if differences is not None:
        compared: dict[str, Cell] = {
            **_names(differences),
            "model": "{model}",
            "minus": "{other}",
            "k": "{k:,}",
            "points": "{difference:1p}",
            "95 % interval": lambda row: ends(row["lower"], row["upper"]),
            "P(better)": "{probability:.2f}",
            "unbiased": "{unbiased:1p}",
            "its interval": lambda row: ends(row["unbiased_lower"], row["unbiased_upper"]),
        }
        parts.append(list_rows(differences, compared))
    return "\n\n".join([*parts, plain_text(answer(result, differences))])


def answer(result: "PassAtK", differences: pl.DataFrame | None) -> str:
    """State the result for the largest k in words, and how much of it the prior decides."""
    return " ".join(
        _answer(
            result.table.filter(pl.col("dataset") == dataset),
            result.models.filter(pl.col("dataset") == dataset),
            None if differences is None else differences.filter(pl.col("dataset") == dataset),
            result.target,
        )
        for dataset in result.models["dataset"].unique(maintain_order=True)
    )


def _answer(
    table: pl.DataFrame, models: pl.DataFrame, differences: pl.DataFrame | None, target: str
) -> str:
    k = int(table["k"].max())  # type: ignore[arg-type]
    rows = table.filter(pl.col("k") == k).sort("estimate", descending=True)
    best = rows.row(0, named=True)
    item_text = "items like these" if target == "population" else "these items"
    attempts = f"{k:,} attempt{'s' if k > 1 else ''}"
    text = (
        f"{best['dataset']}: with {attempts} at each, {best['model']} solves "
        f"{percent(best['estimate'])} % of {item_text} at least once "
        f"({ends(best['lower'], best['upper'])})"
    )
    text += f", the most of {len(rows)} models." if len(rows) > 1 else "."
    if differences is not None and len(differences):
        text += _difference(differences.filter(pl.col("k") == k).row(0, named=True), k)
    most = {row["model"]: row["most"] for row in models.to_dicts()}
    prior = [row for row in rows.to_dicts() if row["prior_share"] > _WORTH_SAYING]
    if prior:
        worst = max(prior, key=lambda row: row["prior_share"])
        tried = most[worst["model"]]
        few = f"{tried:,} attempt{'s' if tried > 1 else ''}"
        text += (
            f" {percent(worst['prior_share'], 0)} % of what is uncertain in pass@{k} of "
            f"{worst['model']} is the prior's, not the items': {few} at an item cannot tell one "
            "that is never solved from one that is solved seldom. More attempts at unsolved items "
            "would tell; more items would not."
        )
    return text


def _difference(row: Row, k: int) -> str:
    verdict = f"{row['model' if row['difference'] > 0 else 'other']} is better"
    if row["lower"] <= 0 <= row["upper"]:
        verdict = "which of the two is better is open"
    return (
        f" {row['model']} minus {row['other']} at k = {k:,}: {percent(row['difference'])} points "
        f"({ends(row['lower'], row['upper'])}); {verdict}."
    )


def _names(table: pl.DataFrame) -> dict[str, Cell]:
    """The data set's column, where there are several."""
    return {"data set": "{dataset}"} if table["dataset"].n_unique() > 1 else {}


def _attempts(row: Row) -> str:
    low, high = row["fewest"], row["most"]
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def draw_pass_at_k(result: "PassAtK") -> vega.Spec:
    """Curves of pass@k with 95 % bands, a panel a data set, and the unbiased estimates on them."""
    last = max(int(result.table["k"].max()), 2)  # type: ignore[arg-type]
    curves = result.evaluate_at(
        np.unique(np.geomspace(1, last, CURVE_POINTS).round().astype(int)).tolist()
    ).table
    datasets = result.models["dataset"].unique(maintain_order=True).to_list()
    figures = [_curves(result, curves, name, f"pass-{n}") for n, name in enumerate(datasets)]
    return on_paper(figures[0]) if len(figures) == 1 else beside(figures)


def _curves(result: "PassAtK", curves: pl.DataFrame, dataset: str, name: str) -> Figure:
    """Draw the models of one data set that solve the most at the largest k."""
    rows = result.table.filter(pl.col("dataset") == dataset, pl.col("k") == result.table["k"].max())
    models = rows.sort("estimate", descending=True)["model"].to_list()[: len(OKABE_ITO)]
    some = curves.filter(pl.col("dataset") == dataset, pl.col("model").is_in(models)).select(
        "k",
        pl.col("model").map_elements(plain_text, return_dtype=pl.String),
        pl.col("estimate", "lower", "upper", "unbiased") * 100,
    )
    x = vega.number("k", title="attempts k", scale={"type": "log", "nice": False})
    color = vega.colors("model", [*map(plain_text, models)], OKABE_ITO[: len(models)])
    scale = {"domain": [0, 102], "nice": False}
    y = {
        column: vega.number(column, title="pass@k (%)", scale=scale)
        for column in ("estimate", "lower", "unbiased")
    }
    area: vega.Spec = {"type": "area", "opacity": 0.15}
    layers = [
        vega.mark(area, x=x, y=y["lower"], y2={"field": "upper"}, color=color),
        vega.mark({"type": "line", "strokeWidth": 1.6}, x=x, y=y["estimate"], color=color),
        vega.mark("point", x=x, y=y["unbiased"], color=color),
    ]
    key = [("ring", "unbiased estimate")]
    most = int(result.models.filter(pl.col("dataset") == dataset)["most"].max())  # type: ignore[arg-type]
    if most < some["k"].max():  # type: ignore[operator]
        dashes: vega.Spec = {"type": "rule", "color": Css.INK, "strokeDash": [4, 3]}
        layers.append(vega.at_value(dashes, "x", most, {}))
        key.append(("upright", "most attempts made"))
    spec = vega.chart(name, *layers, title=plain_text(dataset))
    label = f"Curves of pass@k by model on {plain_text(dataset)}, with 95 % bands"
    return Figure(name, label, spec, data={name: some.to_dicts()}, key=key)
