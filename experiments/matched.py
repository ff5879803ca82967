"""Matched accuracy on classifiers whose answers are simulated, so that the truth is known.

    python -m experiments.matched [--classifiers 40] [--studies 400]

No published predictions with probabilities are at hand. A classifier here has a probability p for
its answer, drawn from a beta distribution that lies lower on the replication, and is right with
probability p on the reference and p less one point on the replication: of a drop of many points,
one is left among images about which it is equally sure. Shown are the tables and figures of the
protocol, and how often its intervals hold the truth over many small studies.
"""

import argparse
import sys
from collections.abc import Sequence

import numpy as np
import polars as pl

from bayesrep.protocols import MatchedAccuracy, match
from bayesrep.protocols.matched import MATCH_ON
from bayesrep.report.table_format import columns, percent
from bayesrep.studies.predictions import Predictions
from experiments.papers.anzaku2022 import (
    confidence_figure,
    confidence_scatter,
    matched_accuracy_figure,
)
from experiments.results import save

CLASSES, LEFT = 1000, 0.01


def simulate(
    rng: np.random.Generator, name: str, images: int, shapes: np.ndarray, less: float, classes: int
) -> Predictions:
    """Answers with probabilities; ``shapes`` [C, 2] of each classifier's beta distribution."""
    labels = rng.integers(0, classes, images)
    p = rng.beta(shapes[:, :1], shapes[:, 1:], (len(shapes), images))
    right = rng.random(p.shape) < np.clip(p - less, 0, 1)
    wrong = (labels + rng.integers(1, classes, p.shape)) % classes
    return Predictions(
        name,
        np.arange(images).astype(str),
        tuple(f"class {number}" for number in range(classes)),
        labels,
        tuple(f"classifier {number:03}" for number in range(len(shapes))),
        np.where(right, labels, wrong).astype(np.int16)[:, :, None],
        p,
    )


def one_pair(
    seed: int, sizes: tuple[int, int], classifiers: int, classes: int = CLASSES
) -> tuple[Predictions, Predictions]:
    """Reference and replication of classifiers from weak to strong."""
    rng = np.random.default_rng(seed)
    strength = np.linspace(1.0, 4.0, classifiers)[:, None]
    easy, hard = (np.hstack([strength, np.full_like(strength, b)]) for b in (0.8, 1.1))
    return (
        simulate(rng, "reference", sizes[0], easy, 0.0, classes),
        simulate(rng, "replication", sizes[1], hard, LEFT, classes),
    )


def coverage(studies: int) -> pl.DataFrame:
    """How often intervals hold the mean of the estimates over studies of 5,000 + 1,000 images."""
    tables = [
        match(*one_pair(1000 + seed, (5000, 1000), 1, 100), seed=seed, progress=False).accuracies
        for seed in range(studies)
    ]
    every = pl.concat(tables).with_columns(
        pl.col("estimate").mean().over("criterion", "quantity").alias("truth")
    )
    return every.group_by("criterion", "quantity", maintain_order=True).agg(
        pl.col("truth").first(),
        pl.col("estimate").std().alias("sd"),
        pl.col("run_sd").mean(),
        ((pl.col("upper") - pl.col("lower")) / 2).mean().alias("half_width"),
        pl.col("truth").is_between(pl.col("lower"), pl.col("upper")).mean().alias("coverage"),
    )


def mean_table(found: MatchedAccuracy) -> str:
    """Means over classifiers by criterion."""
    means = found.accuracies.group_by("criterion", "quantity", maintain_order=True).agg(
        pl.col("estimate").mean()
    )
    wide = means.pivot("criterion", index="quantity", values="estimate")
    rows = [
        [row["quantity"], *(percent(row[name], 2) for name in MATCH_ON)]
        for row in wide.iter_rows(named=True)
    ]
    return columns(["mean over classifiers", *MATCH_ON], rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/papers.md and its figures."""
    parser = argparse.ArgumentParser(prog="python -m experiments.matched", description=__doc__)
    parser.add_argument("--classifiers", type=int, default=40)
    parser.add_argument("--studies", type=int, default=400)
    arguments = parser.parse_args(argv)
    found = match(*one_pair(0, (50_000, 10_000), arguments.classifiers))
    covered = coverage(arguments.studies)
    rows = [
        [
            row["quantity"],
            row["criterion"],
            *(percent(row[name], 2) for name in ("truth", "sd", "run_sd", "half_width")),
            percent(row["coverage"]),
        ]
        for row in covered.iter_rows(named=True)
    ]
    header = ["5,000 + 1,000 images", "criterion", "truth", "sd", "of runs", "half width"]
    text = f"{mean_table(found)}\n\n{columns([*header, 'coverage (%)'], rows)}"
    print(text)
    middle = found.confidence["classifier"][arguments.classifiers // 2]
    further = {
        "confidence": confidence_figure(found.curves, middle, MATCH_ON[0]),
        "scatter": confidence_scatter(found.confidence),
    }
    error = percent(float(np.sqrt(0.05 * 0.95 / arguments.studies)))
    remarks = (
        f"{arguments.classifiers} simulated classifiers on 50,000 + 10,000 images (means and "
        f"figures), and {arguments.studies} studies of one classifier (coverage of 95 % intervals, "
        f"s.e. {error} %). The gap that is true among images of equal confidence is one point. "
        "The scatter over runs is far smaller than over studies: averaging runs tells nothing of "
        "other images. The interval of fraction_unmatched speaks of other images of the smaller "
        "set only and holds the mean over studies less often where the larger one runs short. The "
        "figures: accuracies and gaps by criterion label+probability; accuracy and density by "
        "confidence, of one classifier; accuracy against mean confidence."
    )
    numbers = {
        "accuracies": found.accuracies.to_dicts(),
        "confidence": found.confidence.to_dicts(),
        "coverage": covered.to_dicts(),
    }
    figure = matched_accuracy_figure(found.accuracies, MATCH_ON[0])
    save("matched", "python -m experiments.matched", numbers, text, figure, remarks, further)
    return 0


if __name__ == "__main__":
    sys.exit(main())
