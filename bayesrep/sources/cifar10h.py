"""CIFAR-10H: human answers to CIFAR-10 test images, read into a placebo study.

The counts are those of Peterson et al. (2019), "Human uncertainty makes classification more
robust" (github.com/jcpeterson/cifar-10h, ``data/cifar10h-counts.npy``; its licence allows
non-commercial use and asks to share alike). The predictions are the JSON lists of the CIFAR-10.1
release of Recht et al. (github.com/modestyachts/CIFAR-10.1, ``model_predictions/
original_predictions``; MIT). The true labels are a ``.npy`` vector in the order of the test set.

Nobody annotated a replication of CIFAR-10 in this way, so the study made here is a placebo: both of
its data sets are random parts of one (see `bayesrep.sources.placebo`). Its true bias-corrected gap
is zero for every classifier, whatever an estimator says.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep import rules
from bayesrep.errors import StudyError
from bayesrep.sources.placebo import placebo_replication
from bayesrep.sources.safe_pickle import read_array
from bayesrep.study import Study

__all__ = ["Cifar10H", "placebo_replication", "read", "read_cifar10h"]

_SUFFIX = "_predictions"  # of the names of the JSON files


@dataclass(frozen=True, eq=False)
class Cifar10H:
    """The human answers, the labels and the classifiers' correctness, image by image.

    Attributes
    ----------
    counts : int64 [N, L]
        How many annotators gave each of the L labels.
    labels : int64 [N]
        The true labels.
    correct : bool [N, C]
        Whether each classifier is right.
    classifiers : tuple of C str
        Their names.
    """

    counts: NDArray[np.int64]
    labels: NDArray[np.int64]
    correct: NDArray[np.bool_]
    classifiers: tuple[str, ...]


def read(paths: Sequence[str | Path], *, seed: int = 0) -> Study:
    """Make the placebo study from the counts, the labels and the predictions, in any order.

    Parameters
    ----------
    paths
        One ``.npy`` matrix (the counts), one ``.npy`` vector (the labels), and JSON files of
        predictions or a folder of them.
    seed
        Of `placebo_replication`.

    Returns
    -------
    Study
        See `placebo_replication`.

    Raises
    ------
    StudyError
        Naming the file that is missing, cannot be read or does not fit the others.
    """
    vectors = {Path(path): read_array(path) for path in paths if Path(path).suffix == ".npy"}
    counts = [path for path, values in vectors.items() if values.ndim == 2]
    labels = [path for path, values in vectors.items() if values.ndim == 1]
    predictions = [Path(path) for path in paths if Path(path) not in vectors]
    if len(counts) != 1 or len(labels) != 1 or not predictions:
        raise StudyError(
            f"cifar10h: found {len(counts)} .npy matrices of counts, {len(labels)} .npy vectors of "
            f"labels and {len(predictions)} paths of predictions; give one, one and at least one"
        )
    data = read_cifar10h(counts[0], labels[0], *predictions)
    return placebo_replication(data.counts, data.labels, data.correct, data.classifiers, seed=seed)


def read_cifar10h(
    counts_path: str | Path, labels_path: str | Path, *predictions: str | Path
) -> Cifar10H:
    """Read the published files.

    Parameters
    ----------
    counts_path
        ``cifar10h-counts.npy``: whole numbers [N, L].
    labels_path
        The true labels, ``.npy`` whole numbers [N].
    predictions
        JSON files, each one list of N predicted labels, or folders of such files. A classifier is
        called as its file, without ``_predictions.json``.

    Returns
    -------
    Cifar10H

    Raises
    ------
    StudyError
        Naming the file that cannot be read or does not fit the others.
    """
    counts = _whole_numbers(counts_path, read_array(counts_path), dimensions=2)
    labels = _whole_numbers(labels_path, read_array(labels_path), dimensions=1)
    if len(labels) != len(counts):
        raise StudyError(
            f"{labels_path}: {len(labels)} labels for the {len(counts)} images of {counts_path}; "
            "give the labels of the same images"
        )
    _check_range(labels_path, labels, counts.shape[1])
    files = _json_files(predictions)
    columns = [_predicted(path, len(labels)) == labels for path in files]
    return Cifar10H(
        counts=counts,
        labels=labels,
        correct=np.column_stack(columns),
        classifiers=tuple(path.stem.removesuffix(_SUFFIX) for path in files),
    )


def _json_files(paths: Sequence[str | Path]) -> list[Path]:
    files: list[Path] = []
    for path in map(Path, paths):
        inside = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not inside:
            raise StudyError(f"{path}: a folder without .json files; give a folder of predictions")
        files += inside
    if not files:
        raise StudyError("cifar10h: no predictions; give JSON files or a folder of them")
    return files


def _predicted(path: Path, images: int) -> NDArray[np.int64]:
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:  # not JSON, or not text
        raise StudyError(f"{path}: is not JSON ({error}); give a list of labels") from error
    try:
        values = np.asarray(listed)
    except ValueError:  # lists of different lengths
        values = np.empty((0, 0))
    predicted = _whole_numbers(path, values, dimensions=1)
    if len(predicted) != images:
        raise StudyError(
            f"{path}: {len(predicted)} predictions for {images} images; give one per image, in the "
            "order of the counts"
        )
    return predicted


def _whole_numbers(path: str | Path, values: NDArray[Any], *, dimensions: int) -> NDArray[np.int64]:
    if values.ndim != dimensions or values.dtype.kind not in "iu" or values.size == 0:
        kind = {1: "list", 2: "matrix"}[dimensions]
        raise StudyError(
            f"{path}: holds {values.dtype} of shape {list(values.shape)}; expected a {kind} of "
            "whole numbers"
        )
    numbers = values.astype(np.int64)
    if numbers.min() < 0:
        raise StudyError(f"{path}: holds negative numbers; expected counts or labels from 0 on")
    return numbers


def _check_range(path: str | Path, labels: NDArray[np.int64], number: int) -> None:
    beyond = np.flatnonzero(labels >= number)
    if beyond.size:
        raise StudyError(
            f"{path}: label is {number} or more for {rules.listing(beyond)}, but there are counts "
            f"of {number} labels only; give labels from 0 on"
        )
