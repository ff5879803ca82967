"""CIFAR-10H, the counts of Peterson et al. (2019), read into a placebo study.

github.com/jcpeterson/cifar-10h, data/cifar10h-counts.npy: non-commercial, share alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bayesrep.errors import StudyError
from bayesrep.sources.cifar10_1 import (
    PREDICTIONS_SUFFIX,
    check_range,
    json_files,
    read_predicted_classes,
    whole_array,
)
from bayesrep.sources.pickles.safe_pickle import read_array
from bayesrep.sources.placebo import placebo_replication
from bayesrep.studies.draft import StudyContents
from bayesrep.types import Bools, Ints

CIFAR10H_COUNTS_FILE = "cifar10h-counts.npy"


@dataclass(frozen=True, eq=False)
class Cifar10H:
    """The human answers, the labels and the classifiers' correctness, image by image.

    Attributes
    ----------
    counts : int64 [N, L]
        Number of annotators who gave each of the L labels.
    labels : int64 [N]
        The true labels.
    correct : bool [N, C]
        True if a classifier is right.
    classifiers : tuple of C str
        Their names.
    """

    counts: Ints
    labels: Ints
    correct: Bools
    classifiers: tuple[str, ...]


def read(paths: Sequence[str | Path], *, seed: int = 0) -> StudyContents:
    """Make the placebo study from the counts, the labels and the predictions, in any order.

    Parameters
    ----------
    paths
        One `.npy` matrix (the counts), one `.npy` vector (the labels), and JSON files of
        predictions or a folder of them; or the folders as they are published, in which these are
        found by their names.
    seed
        Seed of `placebo_replication`.

    Returns
    -------
    StudyContents
        The study of `placebo_replication`.

    Raises
    ------
    StudyError
        Naming the file that is missing, cannot be read or does not fit the others.
    """
    files = [file for path in paths for file in _list_published_files(Path(path))]
    vectors = {path: read_array(path) for path in files if path.suffix == ".npy"}
    counts = [path for path, values in vectors.items() if values.ndim == 2]
    labels = [path for path, values in vectors.items() if values.ndim == 1]
    predictions = [path for path in files if path not in vectors]
    if len(counts) != 1 or len(labels) != 1 or not predictions:
        raise StudyError(
            "cifar10h-file-counts-wrong",
            matrix_count=len(counts),
            vector_count=len(labels),
            prediction_count=len(predictions),
        )
    data = read_cifar10h(counts[0], labels[0], *predictions)
    parts = data.counts, data.labels, data.correct, data.classifiers
    return StudyContents.from_study(placebo_replication(*parts, seed=seed))


def _list_published_files(path: Path) -> list[Path]:
    """List a published folder's files of the three kinds; any other path is one file."""
    if not path.is_dir() or any(path.glob("*.json")):
        return [path]
    names = (
        CIFAR10H_COUNTS_FILE,
        f"data/{CIFAR10H_COUNTS_FILE}",
        "*labels.npy",
        "data/*labels.npy",
        "model_predictions/original_predictions",
    )
    return [file for name in names for file in sorted(path.glob(name))]


def read_cifar10h(
    counts_path: str | Path, labels_path: str | Path, *predictions: str | Path
) -> Cifar10H:
    """Read the published files.

    Parameters
    ----------
    counts_path
        `cifar10h-counts.npy`: whole numbers [N, L].
    labels_path
        The true labels, `.npy` whole numbers [N].
    predictions
        JSON files, each one list of N predicted labels, or folders of such files. A classifier is
        called as its file, without `_predictions.json`.

    Returns
    -------
    Cifar10H

    Raises
    ------
    StudyError
        Naming the file that cannot be read or does not fit the others.
    """
    counts = whole_array(counts_path, read_array(counts_path), dimensions=2)
    labels = whole_array(labels_path, read_array(labels_path), dimensions=1)
    if len(labels) != len(counts):
        raise StudyError(
            "label-count-mismatch",
            labels_path=labels_path,
            label_count=len(labels),
            image_count=len(counts),
            counts_path=counts_path,
        )
    check_range(labels_path, labels, counts.shape[1])
    files = json_files(predictions)
    columns = [read_predicted_classes(path, len(labels)) == labels for path in files]
    return Cifar10H(
        counts=counts,
        labels=labels,
        correct=np.column_stack(columns),
        classifiers=tuple(path.stem.removesuffix(PREDICTIONS_SUFFIX) for path in files),
    )
