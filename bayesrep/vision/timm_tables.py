"""Accuracies in the columns of timm's own results (`results/results-<dataset>.csv` in its code)."""

import re
import warnings
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.vision.imports import load_timm
from bayesrep.vision.prediction import Report
from bayesrep.vision.results import read_facts
from bayesrep.vision.torchvision_networks import build, is_torchvision

# What a file of predictions says of its images' preprocessing.
_PREPROCESSING = re.compile(
    r"Preprocessing\(size=\((\d+), \d+\), crop_pct=([\d.e-]+), .*interpolation='(\w+)'"
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
        match = _PREPROCESSING.match(str(facts.get("preprocessing")))
        size, crop, interpolation = match.groups() if match else ("", "", "")
        count = _count_parameters(str(row["full_name"]))
        rows.append(
            {
                "model": str(row["full_name"]),
                "img_size": size,
                **_both_ways("top1", row["top1"]),
                **_both_ways("top5", row["top5"]),
                "param_count": "" if count is None else f"{count / 1e6:,.2f}",
                "crop_pct": crop and f"{float(crop):.3f}",
                "interpolation": interpolation,
            }
        )
    return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String))


COLUMNS = (
    "model",
    "img_size",
    "top1",
    "top1_err",
    "top5",
    "top5_err",
    "param_count",
    "crop_pct",
    "interpolation",
)


def _both_ways(name: str, right: float | None) -> dict[str, str]:
    """An accuracy and its error, in percent."""
    if right is None:
        return {name: "", f"{name}_err": ""}
    shown = f"{100 * right:.3f}"
    return {name: shown, f"{name}_err": f"{100 - float(shown):.3f}"}


def _count_parameters(full_name: str) -> int | None:
    """How many parameters a classifier has, without any memory for them; None where unknown."""
    timm = load_timm()
    import torch

    try:
        with torch.device("meta"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module: Any = (
                build(full_name) if is_torchvision(full_name) else timm.create_model(full_name)
            )
    except Exception:  # the hub, names of a user's own, layers that compute while they are made
        return None
    return sum(each.numel() for each in module.parameters())
