"""CIFAR-10 and CIFAR-10.1: predictions of twenty classifiers, of modestyachts/CIFAR-10.1 (MIT).

datasets/cifar10.1_VERSION_labels.npy; model_predictions/SET_predictions/NAME_predictions.json
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.files import strict_json
from bayesrep.sources.pickles.safe_pickle import read_array
from bayesrep.studies.class_order import refuse_mistake
from bayesrep.studies.draft import StudyContents
from bayesrep.studies.predictions import Predictions
from bayesrep.types import Ints

TEST_SET_VERSIONS = ("v4", "v6")
PREDICTIONS_SUFFIX = "_predictions"  # of the names of the JSON files
CIFAR10_CLASSES = tuple("airplane automobile bird cat deer dog frog horse ship truck".split())


def read_answers(
    repository: str | Path, labels_path: str | Path, *, version: str = "v4"
) -> tuple[Predictions, Predictions]:
    """Read the classifiers' answers.

    Parameters
    ----------
    repository
        The upstream repository's folder.
    labels_path
        The labels of CIFAR-10's test set.
    version
        Version of CIFAR-10.1: "v4" or "v6".

    Returns
    -------
    reference, replication : Predictions
        On "cifar-10" and "cifar-10.1-<version>"; images are called by their place.

    Raises
    ------
    StudyError
        Naming the file that is missing, cannot be read or does not fit the others.
    """
    root = Path(repository)
    one = _read("cifar-10", root / "model_predictions" / "original_predictions", labels_path)
    other = _read(
        f"cifar-10.1-{version}",
        root / "model_predictions" / f"{version}_predictions",
        root / "datasets" / f"cifar10.1_{version}_labels.npy",
    )
    if one.classifiers != other.classifiers:
        differing = sorted(set(one.classifiers) ^ set(other.classifiers))
        raise StudyError(
            "predictions-on-one-set-only", root=root, classifiers=listing(differing, "classifier")
        )
    return one, other


def read(paths: Sequence[str | Path], *, version: str = "v6") -> StudyContents:
    """Read the repository's folder and the labels of CIFAR-10, in any order: see `read_answers`.

    Parameters
    ----------
    paths
        The upstream repository's folder, and the labels of CIFAR-10's test set (.npy).
    version
        Version of CIFAR-10.1: "v4" or "v6".

    Returns
    -------
    StudyContents
        Without counts.

    Raises
    ------
    StudyError
        As `read_answers`, and where these are not given.
    """
    if version not in TEST_SET_VERSIONS:
        raise OptionError(
            "unknown-cifar-version", version=version, choices=" and ".join(TEST_SET_VERSIONS)
        )
    folders = [path for path in map(Path, paths) if path.is_dir()]
    files = [path for path in map(Path, paths) if not path.is_dir()]
    if len(folders) != 1 or len(files) != 1:
        raise StudyError("cifar-folder-or-labels-missing")
    return StudyContents(answers=read_answers(folders[0], files[0], version=version))


def _read(dataset: str, folder: Path, labels_path: str | Path) -> Predictions:
    labels = whole_array(labels_path, read_array(labels_path), dimensions=1)
    check_range(labels_path, labels, len(CIFAR10_CLASSES))
    files = json_files([folder])
    answers = np.stack([read_predicted_classes(path, len(labels)) for path in files]).astype(
        np.int16
    )
    refuse_mistake(labels, answers, where=f"{labels_path} and {folder}")
    return Predictions(
        dataset,
        np.arange(len(labels)).astype(np.str_),
        CIFAR10_CLASSES,
        labels,
        tuple(path.stem.removesuffix(PREDICTIONS_SUFFIX) for path in files),
        answers[:, :, None],
    )


def json_files(paths: Sequence[str | Path]) -> list[Path]:
    """The files given and those in the folders given, at least one."""
    files: list[Path] = []
    for path in map(Path, paths):
        inside = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not inside:
            raise StudyError("folder-without-json-predictions", path=path)
        files += inside
    if not files:
        raise StudyError("no-prediction-files")
    return files


def read_predicted_classes(path: Path, images: int) -> Ints:
    """One file's predictions [images]."""
    listed = strict_json.read(path)
    try:
        values = np.asarray(listed)
    except ValueError:  # lists of different lengths
        values = np.empty((0, 0))
    predicted = whole_array(path, values, dimensions=1)
    if len(predicted) != images:
        raise StudyError(
            "prediction-count-mismatch",
            path=path,
            prediction_count=len(predicted),
            image_count=images,
        )
    return predicted


def whole_array(path: str | Path, values: NDArray[Any], *, dimensions: int) -> Ints:
    """Whole numbers from 0 on; a file that holds anything else is named."""
    if values.ndim != dimensions or values.dtype.kind not in "iu" or values.size == 0:
        kind = {1: "list", 2: "matrix"}[dimensions]
        raise StudyError(
            "array-not-whole-numbers",
            path=path,
            dtype=values.dtype,
            shape=list(values.shape),
            expected_kind=kind,
        )
    numbers = values.astype(np.int64)
    if numbers.min() < 0:
        raise StudyError("array-numbers-negative", path=path)
    return numbers


def check_range(path: str | Path, labels: Ints, number: int) -> None:
    """Raise `StudyError` naming the images whose label is not below `number`."""
    wrong = np.flatnonzero(labels >= number)
    if wrong.size:
        raise StudyError(
            "label-beyond-counted-labels", path=path, label_count=number, images=listing(wrong)
        )
