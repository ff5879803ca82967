"""Accuracies in the columns of timm's own results (`results/results-<dataset>.csv` in its code)."""

import ast
from pathlib import Path

import polars as pl

from bayesrep.vision.networks import outline_network
from bayesrep.vision.pixels import Preprocessing
from bayesrep.vision.prediction_store import read_facts
from bayesrep.vision.reports import Report

LONGEST_TEXT = 1_000  # characters of a preprocessing; Python is not asked to parse more
LARGEST_CROP = 100  # timm's are about 1


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
        count = _count_parameters(str(row["full_name"]))
        rows.append(
            {
                "model": str(row["full_name"]),
                **_both_ways("top1", row["top1"]),
                **_both_ways("top5", row["top5"]),
                "param_count": "" if count is None else f"{count / 1e6:,.2f}",
                **_describe_preprocessing(str(facts.get("preprocessing"))),
            }
        )
    # The schema puts the columns in timm's order.
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
    description = f"{100 * right:.3f}"
    return {name: description, f"{name}_err": f"{100 - float(description):.3f}"}


def _describe_preprocessing(text: str) -> dict[str, str]:
    """Size, crop and interpolation of what a file of predictions names; empty where unknown."""
    match _read_arguments(text):
        case {
            "size": (int(height), int()),
            "crop_pct": float() | int() as crop,
            "interpolation": str(interpolation),
        } if 0 < crop < LARGEST_CROP:
            description = str(height), f"{crop:.3f}", interpolation
        case _:
            description = "", "", ""
    return dict(zip(("img_size", "crop_pct", "interpolation"), description, strict=True))


def _read_arguments(text: str) -> dict[str | None, object]:
    """The arguments that a written `Preprocessing` was made of; nothing where it is not one."""
    if len(text) > LONGEST_TEXT:
        return {}
    try:
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call) or ast.unparse(call.func) != Preprocessing.__name__:
            return {}
        return {each.arg: ast.literal_eval(each.value) for each in call.keywords}
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return {}


def _count_parameters(full_name: str) -> int | None:
    """Count a classifier's parameters, without any memory for them; None if unknown."""
    module = outline_network(full_name)
    return None if module is None else sum(each.numel() for each in module.parameters())
