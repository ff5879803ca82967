"""Superclasses taken for each other by people and by a classifier, and found together in images.

    python -m experiments.confusion DIR --labels real.json --classes superclasses.npy \
        --humans annotations_classify_task.pkl --images image_info.pkl [--classifier resnet50]

After figure 12 of Tsipras et al. (2020). People's answer is the label that most annotators of the
Classify task took for that of the main object; where an image was clear without it, the data set's
own (`bayesrep collect read --table objects`). What occurs together is from the label sets of Beyer
et al. (2020).
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from bayesrep.protocols import (
    co_occurrence,
    confusion,
    confusion_difference,
    read_groups,
    read_label_sets,
    read_people,
)
from bayesrep.protocols.people import people_beside
from bayesrep.report.table_format import columns, percent
from bayesrep.sources.imagenetv2 import VALIDATION_SET, read_test_set
from experiments.multilabel import imported, objects_file
from experiments.papers.matrices import matrices_figure
from experiments.results import save

PEOPLE = "people, choosing"


def off_diagonal(rows: pl.DataFrame, names: Sequence[str], value: str) -> np.ndarray:
    """The cells of a matrix whose label and answer differ, as one vector."""
    place = {name: number for number, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)))
    for row in rows.iter_rows(named=True):
        matrix[place[row["label"]], place[row["answer"]]] = row[value]
    return matrix[~np.eye(len(names), dtype=bool)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/papers.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.confusion", description=__doc__)
    parser.add_argument("data", type=Path, metavar="DIR")
    for name in ("labels", "classes", "humans", "images"):
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="FILE")
    parser.add_argument("--classifier", default="resnet50", metavar="NAME")
    arguments = parser.parse_args(argv)
    alone = read_test_set(arguments.data, VALIDATION_SET, classifiers=[arguments.classifier])
    groups = read_groups(arguments.classes, alone.classes)["superclass"]
    names = [name for name in dict.fromkeys(groups.tolist()) if name]
    with TemporaryDirectory() as folder:
        file, study = Path(folder) / "objects.csv", imported(arguments.data, Path(folder))
        fates = objects_file(arguments.humans, arguments.images, study, file)
        people = read_people(alone, objects=file)
    both = people_beside(alone, people)
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
    of_superclass = {
        name: float(
            (groups[both.first[number]] == groups[both.labels])[both.answered[number]].mean()
        )
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
    assert people.first is not None
    row, asked = both.classifiers.index(PEOPLE), fates["classified"]
    count = int(both.answered[row].sum())
    hard = np.isin(both.images, alone.images[np.unique(people.first.image)])
    of_hard = percent(float((both.first[row] == both.labels)[hard].mean()))
    remarks = (
        f"{count:,} images: {asked:,} of the Classify task, half of the published, and as large a "
        "part of those that were clear, whose label people are taken to see. "
        "Correlation over the pairs of different superclasses: "
        + ", ".join(f"{name} {value:.2f}" for name, value in correlations.items())
        + f". People name the data set's label on {percent(right[PEOPLE])} % of these images (on "
        f"{of_hard} % of those of the task, which were chosen for having more than one plausible "
        f"label; {fates['ambiguous'] + fates['own label never selected']} of all 10,000, ambiguous "
        "or never selected, are left out), and a label of its superclass on "
        f"{percent(of_superclass[PEOPLE])} %; {arguments.classifier} the label on "
        f"{percent(right[arguments.classifier])} %, one of its superclass on "
        f"{percent(of_superclass[arguments.classifier])} %. Superclasses that share images are "
        "taken for each other, by people and classifiers alike. Diagonals are left out of the "
        "pictures."
    )
    numbers = {
        "correlations": correlations,
        "right": right,
        "right_by_superclass": of_superclass,
        "matrices": {title: each.to_dicts() for title, each in matrices.items()},
    }
    command = (
        "python -m experiments.confusion DIR --labels real.json --classes superclasses.npy "
        "--humans annotations_classify_task.pkl --images image_info.pkl"
    )
    save("confusion", command, numbers, text, matrices_figure(matrices, names), remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
