"""Accuracies that timm publishes, beside those of published answers by the same weights.

    python -m experiments.timm_published RESULTS DIR

RESULTS is the ``results`` folder of github.com/huggingface/pytorch-image-models, and DIR the
``data`` folder of github.com/modestyachts/ImageNetV2, with the answers of 45 classifiers to the
validation images and to ImageNet-v2. Where timm has converted the same weights, both are of one
network on the same images, which each has preprocessed in its own way.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from bayesrep.report.table_format import columns
from bayesrep.sources.imagenetv2 import read_answers
from experiments.results import save
from experiments.timm_results import read_results

ROLES = ("reference", "replication")
WEIGHTS = {  # of the classifiers with answers, by timm's names of today
    **{name: f"{name}.tv_in1k" for name in ("densenet161", "densenet201", "resnet152", "resnet18")},
    **{name: f"{name}.tv_in1k" for name in ("vgg11_bn", "vgg13", "vgg16", "vgg16_bn", "vgg19_bn")},
    **{name: f"{name}.tv_in1k" for name in ("densenet121", "resnet50")},
    **{name: f"{name}.mx_in1k" for name in ("dpn107", "dpn68", "dpn68b", "dpn98")},
    "inceptionv3": "inception_v3.tv_in1k",
    "inception_v3_tf": "inception_v3.tf_in1k",
    "inceptionv4": "inception_v4.tf_in1k",
    "inception_v4_tf": "inception_v4.tf_in1k",
    "nasnet_large_tf": "nasnetalarge.tf_in1k",
    "pnasnet5large": "pnasnet5large.tf_in1k",
    "se_resnet101": "legacy_seresnet101.in1k",
    "se_resnet152": "legacy_seresnet152.in1k",
    "se_resnext101_32x4d": "legacy_seresnext101_32x4d.in1k",
    "se_resnext50_32x4d": "legacy_seresnext50_32x4d.in1k",
    "xception": "legacy_xception.tf_in1k",
}


def compare_accuracies(results: Path, data: Path) -> tuple[pl.DataFrame, list[str]]:
    """Both accuracies on both data sets where timm has the weights, and the others' names."""
    answers = read_answers(data)
    published = {row["model"]: row for row in read_results(results).iter_rows(named=True)}
    rows: list[dict[str, object]] = []
    for number, name in enumerate(answers[0].classifiers):
        row = published.get(WEIGHTS.get(name, ""))
        if row is not None:
            here = {
                f"{role}_here": float(each.correct[number].mean())
                for role, each in zip(ROLES, answers, strict=True)
            }
            timms = {f"{role}_timm": row[f"{role}_accuracy"] for role in ROLES}
            rows.append({"classifier": name, "timm": row["model"], **timms, **here})
    known = {str(row["classifier"]) for row in rows}
    return pl.DataFrame(rows), [name for name in answers[0].classifiers if name not in known]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/published.md."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.timm_published", description=__doc__
    )
    parser.add_argument("results", type=Path, metavar="RESULTS")
    parser.add_argument("data", type=Path, metavar="DIR")
    arguments = parser.parse_args(argv)
    table, others = compare_accuracies(arguments.results, arguments.data)
    apart = {
        role: 100 * (table[f"{role}_here"] - table[f"{role}_timm"]).to_numpy() for role in ROLES
    }
    shown = [
        [
            row["classifier"],
            row["timm"],
            *(f"{100 * row[f'{role}_{who}']:.2f}" for role in ROLES for who in ("timm", "here")),
        ]
        for row in table.iter_rows(named=True)
    ]
    header = ["classifier", "timm", "ImageNet, timm", "answers", "ImageNet-v2, timm", "answers"]
    text = columns(header, shown)
    print(text)
    largest = {role: float(np.abs(values).max()) for role, values in apart.items()}
    median = {role: float(np.median(np.abs(values))) for role, values in apart.items()}
    v1, v2 = (
        f"{median[role]:.2f} points in the median, {largest[role]:.2f} at most" for role in ROLES
    )
    remarks = (
        f"{len(table)} of {len(table) + len(others)} classifiers with published answers have "
        f"weights that timm has too. Accuracies differ on ImageNet by {v1}; on ImageNet-v2, whose "
        f"images are 10,000, by {v2}. Where both resize alike (VGG, ResNet, SE-ResNet) the first "
        "are the same to a few images. No row of timm's tables is of the weights of the others: "
        f"{', '.join(others)}."
    )
    numbers = {
        "classifiers": table.to_dicts(),
        "without": others,
        "median_points": median,
        "largest_points": largest,
    }
    command = "python -m experiments.timm_published RESULTS DIR"
    save("timm-published", command, numbers, text, remarks=remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
