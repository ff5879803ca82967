"""Answers of classifiers as NumPy arrays, a folder a data set: labels.npy, classes.txt, NAME.npy.

Images are called by their place in the labels, whose published order is

    CIFAR-10           test_batch: np.array(batch[b"labels"])
    CIFAR-10.1         cifar10.1_v6_labels.npy
    CIFAR-10.2         cifar102_test.npz: the array labels
    CINIC-10           test/CLASS/FILE, classes and then files sorted by name, as CIFAR-10's
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import StudyError, listing, reason
from bayesrep.files import delimited, npy
from bayesrep.sources.cifar10_1 import check_range, whole_array
from bayesrep.studies.class_order import refuse_mistake
from bayesrep.studies.draft import StudyContents
from bayesrep.studies.layout import MAX_RANKS
from bayesrep.studies.predictions import Predictions, code_type
from bayesrep.types import Floats

LABELS_FILE, CLASSES_FILE = "labels.npy", "classes.txt"
_SUM_TOLERANCE = 1e-3
_MAX_NAMES_BYTES = 1_000_000  # of the names of classes


def read(
    paths: Sequence[str | Path], *, reference: str | None = None, replication: str | None = None
) -> StudyContents:
    """Read classifiers' answers on two data sets.

    Parameters
    ----------
    paths
        The reference's folder, then the replication's.
    reference, replication
        Names of the data sets; by default those of the folders.

    Returns
    -------
    StudyContents
        Without counts; with probabilities, where all arrays are probabilities.

    Raises
    ------
    StudyError
        Naming the folder or file: one that is missing, cannot be read or does not fit the others,
        or numbers classes otherwise than the others.
    """
    folders = [Path(path) for path in paths]
    if len(folders) != 2:
        raise StudyError("arrays-folders-not-two", folder_count=len(folders))  # fmt: skip
    names = [
        option or folder.resolve().name
        for option, folder in zip((reference, replication), folders, strict=True)
    ]
    if names[0] == names[1]:
        raise StudyError("arrays-data-sets-share-name", dataset=names[0])
    both = [_read(name, folder) for name, folder in zip(names, folders, strict=True)]
    if both[0].classifiers != both[1].classifiers:
        differing = sorted(set(both[0].classifiers) ^ set(both[1].classifiers))
        raise StudyError(
            "classifier-in-one-folder-only",
            reference_folder=folders[0],
            replication_folder=folders[1],
            classifiers=listing(differing, "classifier"),
        )
    if both[0].classes != both[1].classes:
        raise StudyError(
            "folders-class-names-differ", reference_folder=folders[0], replication_folder=folders[1]
        )
    return StudyContents(answers=both)


def _read(dataset: str, folder: Path) -> Predictions:
    if not folder.is_dir():
        raise StudyError("arrays-folder-missing", folder=folder, labels_file=LABELS_FILE)
    labels = whole_array(folder / LABELS_FILE, _array(folder / LABELS_FILE), dimensions=1)
    files = sorted(path for path in folder.glob("*.npy") if path.name != LABELS_FILE)
    if not files:
        raise StudyError("folder-without-classifier-arrays", folder=folder, labels_file=LABELS_FILE)
    predictions = [_read_one_classifier(path, len(labels)) for path in files]
    columns = {scores.shape[1] for _, scores in predictions if scores is not None}
    classes = _classes(folder, columns, [labels, *(answers for answers, _ in predictions)])
    check_range(folder / LABELS_FILE, labels, len(classes))
    for path, (answers, _) in zip(files, predictions, strict=True):
        check_range(path, answers, len(classes))
        refuse_mistake(labels, answers[:, 0], where=f"{folder / LABELS_FILE} and {path.name}")
    ranks = min(answers.shape[1] for answers, _ in predictions)
    stacked = np.stack([answers[:, :ranks] for answers, _ in predictions])
    scores = [scores for _, scores in predictions if scores is not None]
    confidence = None
    if len(scores) == len(predictions):
        confidence = np.stack([each.max(axis=1) for each in scores]).clip(0, 1)
    return Predictions(
        dataset,
        np.arange(len(labels)).astype(np.str_),
        classes,
        labels,
        tuple(path.stem for path in files),
        stacked.astype(code_type(len(classes))),
        confidence,
    )


def _array(path: Path) -> NDArray[Any]:
    if not path.is_file():
        raise StudyError("array-file-missing", path=path)
    try:
        with path.open("rb") as stream:
            return npy.read(stream, path.stat().st_size)
    except (OSError, ValueError, MemoryError) as error:
        raise StudyError("array-unreadable", path=path, reason=reason(error)) from None


def _read_one_classifier(path: Path, images: int) -> tuple[NDArray[np.int64], Floats | None]:
    """The most probable classes [N, R] of one classifier, and its probabilities [N, K]."""
    values = _array(path)
    if values.ndim not in (1, 2) or len(values) != images or values.size == 0:
        raise StudyError(
            "array-shape-mismatch", path=path, shape=list(values.shape), image_count=images
        )
    if values.dtype.kind in "iu":
        numbers = whole_array(path, values, dimensions=values.ndim)
        return numbers.reshape(images, -1)[:, :MAX_RANKS], None
    if values.dtype.kind != "f" or values.ndim != 2:
        raise StudyError(
            "array-neither-probabilities-nor-classes",
            path=path,
            dtype=values.dtype,
            shape=list(values.shape),
        )
    scores = values.astype(np.float64)
    inside = np.isfinite(scores).all(axis=1) & (scores >= 0).all(axis=1)
    inside &= np.abs(np.where(np.isfinite(scores), scores, 0).sum(axis=1) - 1) <= _SUM_TOLERANCE
    if not inside.all():
        raise StudyError(
            "rows-not-probabilities",
            path=path,
            rows=listing(np.flatnonzero(~inside).tolist(), "row"),
        )
    return np.argsort(-scores, axis=1, kind="stable")[:, :MAX_RANKS].astype(np.int64), scores


def _classes(
    folder: Path, columns: set[int], numbers: Sequence[NDArray[np.integer[Any]]]
) -> tuple[str, ...]:
    if len(columns) > 1:
        counts = " and ".join(map(str, sorted(columns)))
        raise StudyError("arrays-class-counts-differ", folder=folder, class_counts=counts)
    path = folder / CLASSES_FILE
    if not path.exists():
        largest = max(int(each.max()) for each in numbers) + 1
        return tuple(map(str, range(next(iter(columns), largest))))
    try:
        if path.stat().st_size > _MAX_NAMES_BYTES:
            raise ValueError("too long")
        names = delimited.read_lines(path)
    except (OSError, ValueError) as error:
        raise StudyError("class-names-unreadable", path=path, reason=reason(error)) from None
    if columns and len(names) != next(iter(columns)):
        raise StudyError(
            "class-names-count-mismatch",
            path=path,
            name_count=len(names),
            probability_count=next(iter(columns)),
        )
    return tuple(names)
