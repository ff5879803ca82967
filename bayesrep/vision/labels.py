"""Labels of images: folder names, ground-truth files, and their traps.

The challenge's own order is translated by its `meta.mat`; numbers are never sorted as text.
"""

import posixpath
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from bayesrep.errors import PredictionError, PredictionWarning, StudyError, listing, reason
from bayesrep.files import delimited, tables
from bayesrep.files.names import normalize_names
from bayesrep.types import Ints
from bayesrep.vision.classes import IMAGENET, Classes
from bayesrep.vision.meta_mat import read_wnids

DEVKIT_FILE = "ILSVRC2012_validation_ground_truth.txt"
KNOWN_LABEL_FILES = (  # as published, the most explicit first
    "LOC_val_solution.csv",
    "imagenet_2012_validation_synset_labels.txt",
    "val.txt",
    "labels.csv",
    "labels.txt",
    DEVKIT_FILE,
)
_NUMBERED_NAME = re.compile(r"ILSVRC2012_val_(\d{8})\b")
_IMAGE_COLUMNS = ("path", "image", "ImageId", "filename", "file", "name")
_LABEL_HEADINGS = ("label", "wnid", "synset", "class", "PredictionString")


def class_numbers(
    labels: Sequence[str],
    images: Sequence[str],
    where: str,
    classes: Classes,
    all_labels: Sequence[str] = (),
) -> Ints:
    """Turn names of classes (ImageNet's wnids), or numbers from 0, into class numbers."""
    named = [classes.index.get(label, -1) for label in labels]
    numbers = [_number(label) for label in labels]
    # Names win over numbers: one name among the labels settles it.
    labels_of_classes = named if max(named) >= 0 else numbers
    result = np.array(labels_of_classes, dtype=np.int64)
    bad = (result < 0) | (result >= len(classes))
    if bad.any():
        # Labels 1 to K without a 0 count from one, which is named as such.
        first_bad = int(np.flatnonzero(bad)[0])
        from_one = max(numbers) == len(classes) and 0 not in numbers
        raise PredictionError(
            "image-labels-count-from-one" if from_one else "image-label-not-a-class",
            where=where,
            label=labels[first_bad][:40],
            known_classes=classes.description,
            images=listing(np.asarray(images)[bad]),
            label_kind=classes.kind,
            example=classes.folders[0],
            largest_number=str(len(classes) - 1),
        )
    # Numbers without any 0 may count from one without showing it.
    if (
        labels_of_classes is numbers
        and 0 not in numbers
        and not any(_number(label) == 0 for label in all_labels)
    ):
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
    """Class numbers [N] by the folders of images; None where no folder is named by a class."""
    folders = [posixpath.basename(posixpath.dirname(name)) for name in names]
    distinct = list(dict.fromkeys(folders))
    by_name = [folder for folder in distinct if folder in classes.index]
    like = by_name or [folder for folder in distinct if folder.isdecimal()]
    if not like:
        return None
    if "" in distinct:
        strays = listing(name for name in names if "/" not in name)
        raise PredictionError("images-beside-class-folders", where=where, images=strays)
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
            known_classes=classes.description,
        )
    return class_numbers(folders, names, where, classes)


def labels_of_flat(names: Sequence[str], folder: Path, classes: Classes) -> Ints:
    """Find the ground-truth file of a flat folder, in it or beside it, and read it."""
    for place in (folder, folder.parent):
        for name in KNOWN_LABEL_FILES:
            if (place / name).is_file():
                return read_labels(place / name, names, classes)
    choices = ", ".join(KNOWN_LABEL_FILES)
    if classes.file is None:
        raise PredictionError("flat-images-without-labels", folder=folder, known_files=choices)
    raise PredictionError(
        "flat-images-without-labels-of-classes",
        folder=folder,
        known_classes=classes.description,
        known_files=choices,
    )


def read_labels(path: Path, names: Sequence[str], classes: Classes = IMAGENET) -> Ints:
    """Read class numbers [N] of the images `names` (relative paths) from a ground-truth file."""
    if not path.is_file():
        raise PredictionError("image-labels-file-missing", path=path)
    rows = _rows(path, classes)
    if not rows:
        raise PredictionError("image-labels-file-empty", path=path)
    # A file of labels alone names the images by their order.
    if all(len(row) == 1 for row in rows):
        return _positional([row[0] for row in rows], names, path, classes)
    if short := [row for row in rows if len(row) < 2]:
        raise PredictionError(
            "lines-without-label", path=path, lines=listing([row[0] for row in short], "line")
        )
    # Otherwise each line names its image, which has one label.
    labels: dict[str, str] = {}
    for named, label, *_ in rows:
        image = named.replace("\\", "/")
        if labels.setdefault(image, label) != label:
            raise PredictionError(
                "image-labelled-twice", path=path, image=image, labels=f"{labels[image]}, {label}"
            )
    return _labels_by_name(labels, names, path, classes)


def _rows(path: Path, classes: Classes) -> list[list[str]]:
    """Name and label of every image, or the label alone."""
    kind = path.name.lower()
    if kind.endswith(tables.TABLE_ENDINGS) and not kind.endswith(".txt"):
        return _table_rows(path, classes)
    lines = read_lines(path)
    head = [word.strip().lower() for word in re.split(r"[,;|\t]", lines[0])] if lines else []
    if _column(head, _IMAGE_COLUMNS) and _column(head, _LABEL_HEADINGS):
        return _table_rows(path, classes)
    parts = -1 if classes.file is None else 1
    return [line.split(maxsplit=parts) for line in lines]


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, in whatever encoding; `PredictionError` where it cannot be read."""
    try:
        return delimited.read_lines(path)
    except StudyError as error:
        raise PredictionError(error.violation) from error
    except OSError as error:
        raise PredictionError("file-unreadable", path=path, reason=reason(error)) from error


def _table_rows(path: Path, classes: Classes) -> list[list[str]]:
    try:
        frame = tables.read_only(path, (*_IMAGE_COLUMNS, *_LABEL_HEADINGS)).frame
    except StudyError as error:
        raise PredictionError(error.violation) from error
    image, label = (_column(frame.columns, known) for known in (_IMAGE_COLUMNS, _LABEL_HEADINGS))
    if image is None or label is None:
        raise PredictionError(
            "label-table-lacks-columns",
            path=path,
            columns=", ".join(frame.columns),
            image_columns=", ".join(_IMAGE_COLUMNS),
            label_columns=", ".join(_LABEL_HEADINGS),
        )
    # A prediction string is a wnid and the boxes of the objects.
    parts = -1 if classes.file is None else 0
    columns = (normalize_names(frame[name]).fill_null("").to_list() for name in (image, label))
    return [
        [name, *text.split(maxsplit=parts)[:1]] for name, text in zip(*columns, strict=True) if name
    ]


def _column(columns: Sequence[str], names: Sequence[str]) -> str | None:
    called = {name.strip().lower(): name for name in columns}
    return next((called[name.lower()] for name in names if name.lower() in called), None)


def _positional(labels: list[str], names: Sequence[str], path: Path, classes: Classes) -> Ints:
    lines = _lines(names, len(labels), path)
    if lines is None:
        raise PredictionError(
            "unnamed-labels-count-mismatch",
            path=path,
            label_count=len(labels),
            image_count=len(names),
        )
    challenge = path.name == DEVKIT_FILE or ("1000" in labels and "0" not in labels)
    if challenge and classes.file is None:
        places = (path.parent / "meta.mat", path.parent.parent / "meta.mat")
        meta = next((place for place in places if place.is_file()), None)
        if meta is None:
            raise PredictionError("challenge-numbers-without-devkit", path=path)
        wnids = {str(number): wnid for number, wnid in read_wnids(meta).items()}
        labels = [wnids.get(label, label) for label in labels]
    return class_numbers([labels[line] for line in lines], names, str(path), classes, labels)


def _lines(names: Sequence[str], count: int, path: Path) -> list[int] | None:
    """Find the line of each image among `count`, from 0, or None if unknown."""
    files = [PurePosixPath(name).name for name in names]
    numbers = [int(match[1]) if (match := _NUMBERED_NAME.match(name)) else 0 for name in files]
    if all(0 < number <= count for number in numbers):
        return [number - 1 for number in numbers]
    if len(names) != count:
        return None

    def order_of(key: Callable[[int], object]) -> list[int]:
        return sorted(range(count), key=key)  # type: ignore[arg-type]

    order = order_of(lambda row: files[row])
    for other in (order_of(lambda row: _natural(files[row])), order_of(lambda row: names[row])):
        place = next((row for row in range(count) if order[row] != other[row]), None)
        if place is not None:
            raise PredictionError(
                "unnamed-labels-order-open",
                path=path,
                image=names[order[place]],
                other_image=names[other[place]],
            )
    places = dict(zip(order, range(count), strict=True))
    return [places[row] for row in range(count)]


def _natural(name: str) -> list[tuple[int, str]]:
    """Return the natural sort key of a name: numbers as numbers, regardless of case."""
    parts = re.split(r"(\d+)", name.lower())
    return [(int(part), "") if row % 2 else (0, part) for row, part in enumerate(parts)]


def _labels_by_name(
    labels: Mapping[str, str], names: Sequence[str], path: Path, classes: Classes
) -> Ints:
    def key(name: str) -> str | None:
        pure = PurePosixPath(whole := name.replace("\\", "/"))
        return next((called for called in (whole, pure.name, pure.stem) if called in labels), None)

    owner: dict[str, str] = {}
    for name in names:
        if (called := key(name)) is not None and owner.setdefault(called, name) != name:
            raise PredictionError(
                "label-of-several-images",
                path=path,
                label_name=called,
                image=owner[called],
                other_image=name,
            )
    if missing := [name for name in names if key(name) is None]:
        raise PredictionError("images-missing-from-labels-file", path=path, images=listing(missing))
    labelled = [labels[called] for name in names if (called := key(name)) is not None]
    return class_numbers(labelled, names, str(path), classes, list(labels.values()))
