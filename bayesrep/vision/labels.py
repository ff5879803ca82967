"""Which class an image is meant to show: folder names, ground-truth files, and their traps.

Class numbers are the outputs of the classifiers (`bayesrep.vision.classes`), by default those of
`bayesrep.studies.imagenet`: wnids sorted as text, from 0. Of the two other orders in circulation,
the development kit's is recognised and translated (it needs the kit's `meta.mat`), and numeric
folder names are read as numbers, never sorted as text. `likely_mistake` names the order that was
mistaken where a whole data set comes out at chance.
"""

import csv
import re
import warnings
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from bayesrep.errors import PredictionError, PredictionWarning, listing, reason
from bayesrep.types import Ints
from bayesrep.vision.classes import IMAGENET, Classes
from bayesrep.vision.meta_mat import read_wnids

DEVKIT = "ILSVRC2012_validation_ground_truth.txt"
KNOWN_FILES = (  # as published, the most explicit first
    "LOC_val_solution.csv",
    "imagenet_2012_validation_synset_labels.txt",
    "val.txt",
    "labels.csv",
    "labels.txt",
    DEVKIT,
)
_VALIDATION = re.compile(r"ILSVRC2012_val_(\d{8})\b")
_IMAGE_COLUMNS = ("path", "image", "ImageId", "filename", "file", "name")
_LABEL_COLUMNS = ("label", "wnid", "synset", "class", "PredictionString")


def class_numbers(
    labels: Sequence[str],
    images: Sequence[str],
    where: str,
    classes: Classes,
    among: Sequence[str] = (),
) -> Ints:
    """Turn names of classes (ImageNet's wnids), or numbers from 0, into class numbers.

    Parameters
    ----------
    labels, images : N str
        All names or all numbers, and the images they belong to, for messages.
    where
        Names the source of the labels.
    classes
        Which there are.
    among
        All labels of the source, where these are only some of them.

    Raises
    ------
    PredictionError
        Naming the images whose label is neither.

    Warns
    -----
    PredictionWarning
        Where the numbers do not show whether they count from 0 or from 1.
    """
    named = [classes.index.get(label, -1) for label in labels]
    numbers = [_number(label) for label in labels]
    found = named if max(named) >= 0 else numbers
    result = np.array(found, dtype=np.int64)
    bad = (result < 0) | (result >= len(classes))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        from_one = max(numbers) == len(classes) and 0 not in numbers
        raise PredictionError(
            "image-labels-count-from-one" if from_one else "image-label-not-a-class",
            where=where,
            label=labels[at][:40],
            known_classes=classes.called,
            images=listing(np.asarray(images)[bad]),
            label_kind=classes.kind,
            example=classes.folders[0],
            largest_number=str(len(classes) - 1),
        )
    if found is numbers and 0 not in numbers and not any(_number(label) == 0 for label in among):
        least = min(numbers)
        warnings.warn(
            f"{where}: the class numbers are read as counting from 0 ({least} is "
            f"{classes.names[least]}), but there is no 0 among them; where they count from 1, give "
            + classes.kind,
            PredictionWarning,
            stacklevel=2,
        )
    return result


def _number(label: str) -> int:
    """The number that a label writes, -1 where it is none or none of a class."""
    return int(label) if label.isdecimal() and len(label) < 10 else -1


def labels_by_folder(names: Sequence[str], where: str, classes: Classes) -> Ints | None:
    """Class numbers [N] by the folders of images; None where no folder is named by a class.

    Raises
    ------
    PredictionError
        Where some folders are named like classes and others are not.
    """
    folders = [PurePosixPath(name).parent.name for name in names]
    distinct = list(dict.fromkeys(folders))
    by_name = [folder for folder in distinct if folder in classes.index]
    by_number = [folder for folder in distinct if folder.isdecimal()]
    like = by_name or by_number
    if not like:
        return None
    if other := sorted(set(distinct) - set(like)):
        folders = listing(other, "folder")
        if not by_name:
            raise PredictionError(
                "folders-not-class-numbers",
                where=where,
                folders=folders,
                largest_number=len(classes) - 1,
            )
        raise PredictionError(
            "folders-not-named-by-class",
            where=where,
            folders=folders,
            label_kind=classes.kind,
            known_classes=classes.called,
        )
    return class_numbers(folders, names, where, classes)


def labels_of_flat(names: Sequence[str], folder: Path, classes: Classes) -> Ints:
    """Find the ground-truth file of a flat folder, in it or beside it, and read it."""
    for place in (folder, folder.parent):
        for name in KNOWN_FILES:
            if (place / name).is_file():
                return read_labels(place / name, names, classes)
    known = ", ".join(KNOWN_FILES)
    if classes.file is None:
        raise PredictionError("flat-images-without-labels", folder=folder, known_files=known)
    raise PredictionError(
        "flat-images-without-labels-of-classes",
        folder=folder,
        known_classes=classes.called,
        known_files=known,
    )


def read_labels(path: Path, names: Sequence[str], classes: Classes = IMAGENET) -> Ints:
    """Read a ground-truth file.

    Parameters
    ----------
    path
        A table (`.csv`) of image and label; or text with a line per image that holds its name and
        its label, or the label alone, in the order of the sorted file names. Labels are wnids or
        class numbers from 0; bare numbers in a file named like the development kit's, or with a
        1000 and no 0 among them, are taken for the challenge's own, from 1, and translated by the
        `meta.mat` beside it. Of labels alone, more than there are images, an image called
        ILSVRC2012_val_000NNNNN takes the line of its number.
    names : N str
        Relative paths of the images.
    classes
        Which there are. Of other classes than ImageNet's a label is the rest of its line, or its
        whole cell, and numbers are always those of the outputs.

    Raises
    ------
    PredictionError
        Naming the file and the images it does not label.
    """
    if not path.is_file():
        raise PredictionError("image-labels-file-missing", path=path)
    try:
        if path.suffix.lower() == ".csv":
            rows = _table_rows(path, classes)
        else:
            lines = path.read_text(encoding="utf-8").splitlines()
            parts = -1 if classes.file is None else 1
            rows = [t for line in lines if (t := line.strip().split(maxsplit=parts))]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PredictionError(
            "image-labels-file-not-text", path=path, reason=reason(error)
        ) from error
    if not rows:
        raise PredictionError("image-labels-file-empty", path=path)
    if all(len(row) == 1 for row in rows):
        return _positional([row[0] for row in rows], names, path, classes)
    if short := [row for row in rows if len(row) < 2]:
        raise PredictionError(
            "lines-without-label", path=path, lines=listing([row[0] for row in short], "line")
        )
    return _named({row[0]: row[1] for row in rows}, names, path, classes)


def likely_mistake(
    labels: Ints, predicted: Ints, count: int = len(IMAGENET)
) -> tuple[str, float] | None:
    """Find the order of classes that would explain an accuracy at chance.

    From class numbers [N] as they were read and a classifier's answers [N] among `count` classes:
    what went wrong and the accuracy under that reading, or None where no known mistake fits.
    """
    as_text = np.array([int(name) for name in sorted(str(number) for number in range(count))])
    readings = {
        "the labels are positions of the folder names sorted as text (0, 1, 10, 100, ...)": as_text,
        "the folder names were sorted as text (0, 1, 10, 100, ...) when they were numbered": (
            np.argsort(as_text)
        ),
        "the labels count from 1": np.arange(count) - 1,
        "the labels are one too low": np.arange(count) + 1,
    }
    accuracy = {name: float(np.mean(m[labels] == predicted)) for name, m in readings.items()}
    name = max(accuracy, key=lambda name: accuracy[name])
    return (name, accuracy[name]) if accuracy[name] > max(0.05, 3 / count) else None


def _table_rows(path: Path, classes: Classes) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        header, *rows = list(csv.reader(stream)) or [[]]
    image = next((header.index(name) for name in _IMAGE_COLUMNS if name in header), None)
    label = next((header.index(name) for name in _LABEL_COLUMNS if name in header), None)
    if image is None or label is None:
        raise PredictionError(
            "label-table-lacks-columns",
            path=path,
            columns=", ".join(header),
            image_columns=", ".join(_IMAGE_COLUMNS),
            label_columns=", ".join(_LABEL_COLUMNS),
        )
    # A prediction string is a wnid and the boxes of the objects.
    parts = -1 if classes.file is None else 0
    cells = [
        [row[image], *row[label].strip().split(maxsplit=parts)[:1]]
        for row in rows
        if len(row) > max(image, label)
    ]
    return [cell for cell in cells if cell[0]]


def _positional(labels: list[str], names: Sequence[str], path: Path, classes: Classes) -> Ints:
    lines = _lines(names, len(labels))
    if lines is None:
        raise PredictionError(
            "unnamed-labels-count-mismatch",
            path=path,
            label_count=len(labels),
            image_count=len(names),
        )
    challenge = path.name == DEVKIT or ("1000" in labels and "0" not in labels)
    if challenge and classes.file is None:
        labels = _translated(labels, path)
    return class_numbers([labels[line] for line in lines], names, str(path), classes, labels)


def _lines(names: Sequence[str], count: int) -> list[int] | None:
    """The line of each image among `count`, from 0, or None where that is not known."""
    shown = [PurePosixPath(name).name for name in names]
    if len(names) == count:
        order = sorted(range(count), key=lambda at: shown[at])
        places = dict(zip(order, range(count), strict=True))
        return [places[at] for at in range(count)]
    numbers = [int(found[1]) if (found := _VALIDATION.match(name)) else 0 for name in shown]
    return [n - 1 for n in numbers] if all(0 < n <= count for n in numbers) else None


def _named(labels: dict[str, str], names: Sequence[str], path: Path, classes: Classes) -> Ints:
    def of(name: str) -> str | None:
        pure = PurePosixPath(name)
        return next((labels[key] for key in (name, pure.name, pure.stem) if key in labels), None)

    found = [of(name) for name in names]
    if missing := [name for name, label in zip(names, found, strict=True) if label is None]:
        raise PredictionError("images-missing-from-labels-file", path=path, images=listing(missing))
    return class_numbers(
        [str(label) for label in found], names, str(path), classes, list(labels.values())
    )


def _translated(labels: list[str], path: Path) -> list[str]:
    """Turn the challenge's own numbers, 1 to 1,000, into wnids."""
    places = (path.parent / "meta.mat", path.parent.parent / "meta.mat")
    meta = next((place for place in places if place.is_file()), None)
    if meta is None:
        raise PredictionError("challenge-numbers-without-devkit", path=path)
    wnids = {str(number): wnid for number, wnid in read_wnids(meta).items()}
    return [wnids.get(label, label) for label in labels]
