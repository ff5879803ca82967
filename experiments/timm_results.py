"""The published accuracies of timm's classifiers: ImageNet, ImageNet-v2 and reassessed labels.

    python -m experiments.timm_results DIR

DIR is the ``results`` folder of github.com/huggingface/pytorch-image-models, with
results-imagenet.csv, results-imagenetv2-matched-frequency.csv and results-imagenet-real.csv. Rows
are joined on the model, the image size and the crop: a model occurs at several of them.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import t as student

from bayesrep.errors import StudyError
from bayesrep.files.tables import read_only, require
from bayesrep.files.values import numbers
from bayesrep.numerics.estimands import accuracy_line
from bayesrep.protocols import fit_lines
from bayesrep.report.robustness_figures import robustness_figure
from bayesrep.report.table_format import columns, percent, rows_table
from experiments.results import save

FILES = {
    "reference": "results-imagenet.csv",
    "replication": "results-imagenetv2-matched-frequency.csv",
    "real": "results-imagenet-real.csv",
}
KEY = ["model", "img_size", "crop_pct"]
_PREFIXES = re.compile(r"^(tf_|gluon_|legacy_|ssl_|swsl_|ig_)+")
_FAMILY = re.compile(r"([a-z]+?)(v\d)?(?=\d|_|$)")
_MORE = re.compile(r"in2[12]k|in12k|clip|laion|openai|jft|ig1b|ig_|_ns|swsl|dfn|dino|lvd|m38m")


def family(model: str) -> str:
    """The architecture's family: how its name begins, with its version (convnextv2)."""
    name = _PREFIXES.sub("", model.split(".")[0])
    found = _FAMILY.match(name)
    return name if found is None else "".join(part or "" for part in found.groups())


def trained_on_more(model: str) -> bool:
    """Whether the tag of the weights, or an old name, tells of more data than ImageNet's."""
    return bool(_MORE.search(model))


def read_results(folder: Path) -> pl.DataFrame:
    """One row for each model, image size and crop: the three accuracies as fractions."""
    joined: pl.DataFrame | None = None
    for name, file in FILES.items():
        where = str(folder / file)
        table = read_only(where).frame
        require(table, [*KEY, "top1"], where)
        table = table.with_columns(numbers(table[each], where) for each in (*KEY[1:], "top1"))
        if table.select(KEY).is_duplicated().any():
            again = "a model at one size and crop is given twice"
            raise StudyError("file-unreadable", path=folder / file, reason=again)
        mine = table.select(*KEY, (pl.col("top1") / 100).alias(f"{name}_accuracy"))
        joined = mine if joined is None else joined.join(mine, on=KEY, how="inner")
    assert joined is not None
    return joined


def by_family(table: pl.DataFrame, least: int) -> pl.DataFrame:
    """Mean residual about the line and its 95 % interval, of families with enough rows."""
    groups = table.group_by("family").agg(
        pl.len().alias("rows"),
        pl.col("residual").mean(),
        (pl.col("residual").std() / pl.len().sqrt()).alias("error"),
        (pl.col("reference_accuracy") - pl.col("replication_accuracy")).mean().alias("gap"),
    )
    groups = groups.filter(pl.col("rows") >= least).sort("residual", descending=True)
    half = student.ppf(0.975, groups["rows"].to_numpy() - 1) * groups["error"].to_numpy()
    return groups.drop("error").with_columns(
        (pl.col("residual") - half).alias("lower"), (pl.col("residual") + half).alias("upper")
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/published.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.timm_results", description=__doc__)
    parser.add_argument("results", type=Path, metavar="DIR")
    parser.add_argument("--least", type=int, default=20, help="rows of a family shown (20)")
    arguments = parser.parse_args(argv)
    table = read_results(arguments.results)
    x, y = (table[f"{role}_accuracy"].to_numpy() for role in ("reference", "replication"))
    lines = fit_lines(x, y)
    slope, intercept = accuracy_line(x, y)
    names = table["model"].to_list()
    table = table.with_columns(
        pl.Series("residual", y - slope * x - intercept),
        pl.Series("family", [family(name) for name in names]),
        pl.Series("more_data", [trained_on_more(name) for name in names]),
    )
    families = by_family(table, arguments.least)
    more = table.group_by("more_data").agg(pl.len().alias("rows"), pl.col("residual").mean())
    rows = [
        [
            row["family"],
            str(row["rows"]),
            percent(row["gap"], 2),
            percent(row["residual"], 2),
            f"{percent(row['lower'], 2)} to {percent(row['upper'], 2)}",
        ]
        for row in families.iter_rows(named=True)
    ]
    header = ["family", "rows", "gap", "residual", "95 % interval"]
    text = f"{rows_table(lines.drop('lower', 'upper'))}\n\n{columns(header, rows)}"
    print(text)
    plain = {bool(row["more_data"]): row for row in more.iter_rows(named=True)}
    gain = float(np.median(table["real_accuracy"] - table["reference_accuracy"]))
    remarks = (
        f"{len(table):,} rows of {table['model'].n_unique():,} models. Residuals, in points, are "
        "about the line through all rows; intervals take the rows of a family for independent, "
        "which sizes and weights of one architecture are not. Rows trained on more than ImageNet "
        f"({plain[True]['rows']:,}, by their names) lie {percent(plain[True]['residual'], 2)} "
        f"points off the line, the others {percent(plain[False]['residual'], 2)}. By the "
        f"reassessed labels accuracies are {percent(gain)} points higher in the median."
    )
    numbers = {
        "rows": len(table),
        "models": table["model"].n_unique(),
        "lines": lines.to_dicts(),
        "families": families.to_dicts(),
        "more_data": more.to_dicts(),
        "median_real_less_top1": gain,
    }
    groups = {
        "trained on ImageNet": table.filter(~pl.col("more_data")),
        "trained on more data": table.filter(pl.col("more_data")),
    }
    figure = robustness_figure(groups, fitted=table)
    command = "python -m experiments.timm_results DIR"
    save("timm-results", command, numbers, text, figure, remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
