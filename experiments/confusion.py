"""Superclasses taken for each other by people and by a classifier, and found together in images.

    python -m experiments.confusion DIR --labels real.json --classes superclasses.npy \
        --humans annotations_classify_task.pkl [--classifier resnet50]

After figure 12 of Tsipras et al. (2020). People's answer is the label that most annotators of the
Classify task took for that of the main object (``main_top`` of the published frame, in which
nothing is executed); images are those that the frame holds. What occurs together is from the label
sets of Beyer et al. (2020).
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from bayesrep.protocols import (
    beside,
    co_occurrence,
    confusion,
    confusion_difference,
    read_groups,
    read_label_sets,
)
from bayesrep.report.matrices import matrices_figure
from bayesrep.report.text import columns, percent
from bayesrep.sources.imagenetv2 import VALIDATION, read_test_set
from bayesrep.sources.pickles.safe_pickle import read_frame
from bayesrep.studies.predictions import NO_ANSWER, Predictions
from experiments.results import save

PEOPLE = "people"


def read_people(path: Path, predictions: Predictions) -> Predictions:
    """The main label by most annotators, on the images of the Classify task."""
    frame = read_frame(path)
    answer = dict(zip(frame["image"].tolist(), frame["main_top"].tolist(), strict=True))
    answers = [int(answer.get(name, NO_ANSWER)) for name in predictions.images.tolist()]
    return Predictions(
        predictions.dataset,
        predictions.images,
        predictions.classes,
        predictions.labels,
        (PEOPLE,),
        np.array(answers, dtype=predictions.answers.dtype)[None, :, None],
    )


def off_diagonal(rows: pl.DataFrame, names: Sequence[str], value: str) -> np.ndarray:
    """The cells of a matrix whose label and answer differ, as one vector."""
    place = {name: number for number, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)))
    for row in rows.iter_rows(named=True):
        matrix[place[row["label"]], place[row["answer"]]] = row[value]
    return matrix[~np.eye(len(names), dtype=bool)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write docs/results/confusion.{md,json,png}."""
    parser = argparse.ArgumentParser(prog="python -m experiments.confusion", description=__doc__)
    parser.add_argument("data", type=Path, metavar="DIR")
    for name in ("labels", "classes", "humans"):
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="FILE")
    parser.add_argument("--classifier", default="resnet50", metavar="NAME")
    arguments = parser.parse_args(argv)
    alone = read_test_set(arguments.data, VALIDATION, classifiers=[arguments.classifier])
    groups = read_groups(arguments.classes, alone.classes)["superclass"]
    names = [name for name in dict.fromkeys(groups.tolist()) if name]
    both = beside(alone, read_people(arguments.humans, alone))
    cells = confusion(both, groups)
    matrices = {
        "people": cells.filter(pl.col("participant") == PEOPLE),
        arguments.classifier: cells.filter(pl.col("participant") == arguments.classifier),
        "people less classifier": confusion_difference(both, PEOPLE, arguments.classifier, groups),
        "also in the image": co_occurrence(
            alone, read_label_sets([arguments.labels], alone), groups
        ),
    }
    vectors = {
        title: off_diagonal(rows, names, "rate")
        for title, rows in matrices.items()
        if "difference" not in rows.columns
    }
    correlations = {
        f"{one} and {other}": float(np.corrcoef(vectors[one], vectors[other])[0, 1])
        for number, one in enumerate(vectors)
        for other in list(vectors)[number + 1 :]
    }
    right = {
        name: float(both.correct[number][both.answered[number]].mean())
        for number, name in enumerate(both.classifiers)
    }
    difference = matrices["people less classifier"].sort(
        pl.col("difference").abs(), descending=True
    )
    rows = [
        [
            f"{row['label']} as {row['answer']}",
            str(row["images"]),
            percent(row["rate"], 2),
            percent(row["other_rate"], 2),
            f"{percent(row['lower'], 2)} to {percent(row['upper'], 2)}",
        ]
        for row in difference.head(12).iter_rows(named=True)
    ]
    header = ["largest differences", "images", "people", arguments.classifier, "95 % of difference"]
    text = columns(header, rows)
    print(text)
    count = int(both.answered[0].sum())
    remarks = (
        f"{count:,} images of the Classify task. Correlation over the pairs of different "
        "superclasses: "
        + ", ".join(f"{name} {value:.2f}" for name, value in correlations.items())
        + f". People name the data set's label on {percent(right[PEOPLE])} % of these images, "
        f"{arguments.classifier} on {percent(right[arguments.classifier])} %: the images were "
        "chosen for having more than one plausible label. Superclasses that share images are taken "
        "for each other, by people and classifiers alike. Diagonals are left out of the pictures."
    )
    numbers = {
        "correlations": correlations,
        "right": right,
        "matrices": {title: each.to_dicts() for title, each in matrices.items()},
    }
    command = (
        "python -m experiments.confusion DIR --labels real.json --classes superclasses.npy "
        "--humans annotations_classify_task.pkl"
    )
    save("confusion", command, numbers, text, matrices_figure(matrices, names), remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
