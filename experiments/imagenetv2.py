"""ImageNet against ImageNet-v2: top-1 accuracies of the 45 classifiers with published answers.

    python -m experiments.imagenetv2 DIR

DIR is the ``data`` folder of github.com/modestyachts/ImageNetV2. The accuracies that Recht et al.
(2019) print in table 1 for classifiers among these are compared with what their files hold.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.protocols import compare
from bayesrep.report.protocols_text import comparison_table
from bayesrep.report.robustness_figures import robustness_figure
from bayesrep.report.table_format import columns, percent
from bayesrep.sources.imagenetv2 import read_answers
from experiments.results import save

# Recht et al. (2019), "Do ImageNet classifiers generalize to ImageNet?", table 1: percent on
# ImageNet and on ImageNet-v2 (MatchedFrequency).
PUBLISHED = {
    "resnet152": (78.3, 67.0),
    "inception_v3_tf": (78.0, 66.1),
    "densenet161": (77.1, 65.3),
    "vgg19_bn": (74.2, 61.9),
    "alexnet": (56.5, 44.0),
    "fv_64k": (35.1, 24.1),
}


def line_numbers(lines: pl.DataFrame) -> dict[str, Any]:
    """Estimates and intervals of the lines by scale and quantity, for JSON."""
    return {
        f"{row['scale']} {row['quantity']}": {
            name: row[name]
            for name in ("estimate", "lower", "upper", "classifiers_lower", "classifiers_upper")
        }
        for row in lines.iter_rows(named=True)
    }


def line_remark(lines: pl.DataFrame, classifiers: int) -> str:
    """Mean gap and slopes in a sentence."""
    by = {(row["scale"], row["quantity"]): row for row in lines.iter_rows(named=True)}
    gap = by["linear", "mean_gap"]
    parts = [
        f"Mean gap over {classifiers} classifiers: {percent(gap['estimate'], 2)} % "
        f"({percent(gap['lower'], 2)} to {percent(gap['upper'], 2)} on other images)."
    ]
    for scale in ("linear", "probit"):
        slope = by[scale, "slope"]
        parts.append(
            f"Slope on the {scale} scale: {slope['estimate']:.3f} ({slope['lower']:.3f} to "
            f"{slope['upper']:.3f} on other images; {slope['classifiers_lower']:.3f} to "
            f"{slope['classifiers_upper']:.3f} for other classifiers)."
        )
    return " ".join(parts)


def published_table(accuracies: pl.DataFrame) -> tuple[str, float]:
    """The printed accuracies beside ours, and the largest difference in percent points."""
    by = {row["participant"]: row for row in accuracies.iter_rows(named=True)}
    rows, largest = [], 0.0
    for name, printed in PUBLISHED.items():
        if name not in by:
            continue
        ours = [100 * by[name][f"{role}_accuracy"] for role in ("reference", "replication")]
        largest = max(largest, *(abs(a - b) for a, b in zip(ours, printed, strict=True)))
        pairs = zip(printed, ours, strict=True)
        rows.append([name, *(cell for a, b in pairs for cell in (f"{a:.1f}", f"{b:.2f}"))])
    header = ["published", "ImageNet", "here", "ImageNet-v2", "here"]
    return columns(header, rows), largest


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/published.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.imagenetv2", description=__doc__)
    parser.add_argument("data", type=Path, metavar="DIR")
    arguments = parser.parse_args(argv)
    reference, replication = read_answers(arguments.data)
    found = compare(reference, replication)
    printed, largest = published_table(found.accuracies)
    text = f"{comparison_table(found.accuracies, found.lines)}\n\n{printed}"
    print(text)
    numbers = {
        "lines": line_numbers(found.lines),
        "largest_difference_from_published_points": largest,
        "accuracies": found.accuracies.to_dicts(),
    }
    figure = robustness_figure({"classifiers": found.accuracies}, fitted=found.accuracies)
    remarks = (
        f"{line_remark(found.lines, len(reference.classifiers))} The accuracies that Recht et al. "
        f"(2019, table 1) print differ from these by at most {largest:.2f} points, which is "
        "rounding. The drop is as measured: how much of it selection explains, the annotators' "
        "counts would have to say."
    )
    save("imagenet-v2", "python -m experiments.imagenetv2 DIR", numbers, text, figure, remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
