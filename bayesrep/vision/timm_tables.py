"""Accuracies in the columns of timm's own results (`results/results-<dataset>.csv` in its code)."""

import re
from pathlib import Path

import polars as pl

from bayesrep.vision.networks import outline_network
from bayesrep.vision.prediction_store import read_facts
from bayesrep.vision.reports import Report

_PREPROCESSING = re.compile(
    r"Preprocessing\(size=\((\d+), \d+\), crop_pct=(\d{1,2}(?:\.\d+)?), "
    r"crop_mode='\w+', interpolation='(\w+)'.*\)"
)


def make_timm_table(report: Report, study: Path, dataset: str) -> pl.DataFrame:
    """A row for each classifier that is done, the best first, in timm's columns and digits.

    They are model, img_size, top1, top1_err, top5, top5_err (percent), param_count (millions),
    crop_pct and interpolation. Top-5 is empty among fewer than five classes, and param_count where
    the classifier cannot be built without its weights.
    """
    done = report.table.join(report.left_out, on="classifier", how="anti")
    rows: list[dict[str, str]] = []
    for row in done.sort("top1", descending=True, maintain_order=True).iter_rows(named=True):
        facts = read_facts(study, dataset, row["classifier"])
        module = outline_network(str(row["full_name"]))
        weights = None if module is None else sum(each.numel() for each in module.parameters())
        described = _PREPROCESSING.fullmatch(str(facts.get("preprocessing")))
        size, crop, interpolation = described.groups() if described else ("", "", "")
        rows.append(
            {
                "model": str(row["full_name"]),
                **_both_ways("top1", row["top1"]),
                **_both_ways("top5", row["top5"]),
                "param_count": "" if weights is None else f"{weights / 1e6:,.2f}",
                "img_size": size,
                "crop_pct": crop and f"{float(crop):.3f}",
                "interpolation": interpolation,
            }
        )
    # The schema puts the columns in timm's order.
    return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String))


COLUMNS = (
    *("model", "img_size", "top1", "top1_err", "top5", "top5_err"),
    *("param_count", "crop_pct", "interpolation"),
)


def _both_ways(name: str, right: float | None) -> dict[str, str]:
    """An accuracy and its error, in percent."""
    if right is None:
        return {name: "", f"{name}_err": ""}
    description = f"{100 * right:.3f}"
    return {name: description, f"{name}_err": f"{100 - float(description):.3f}"}
