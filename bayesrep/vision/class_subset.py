"""Class subsets: answers are chosen among all outputs, or among those of some classes.

So ImageNet-A's published accuracy is; a class of ObjectNet has the largest of its outputs.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import numpy as np

from bayesrep.errors import PredictionError, PredictionWarning, StudyError, listing, reason
from bayesrep.files import strict_json
from bayesrep.files.names import normalize_name
from bayesrep.types import Ints
from bayesrep.vision.classes import IMAGENET, Classes
from bayesrep.vision.images import ImageSet
from bayesrep.vision.labels import read_lines

ALL_CLASSES = "all"
SUBSET_NAMES = ("imagenet-a", "imagenet-r")
MIN_SUBSET_IMAGES = 200  # fewer cannot separate a data set of few classes from a sample of many
_OBJECTNET_FILE = "objectnet_to_imagenet_1k.json"


@dataclass(frozen=True, eq=False)
class ClassSubset:
    """A subset of classes to choose answers among."""

    source: str  # the user's name for it
    labelled: Classes  # classes of the images' labels: those of the outputs, or ObjectNet's
    chosen: Classes  # classes of the answers, with their outputs
    numbers: Ints  # [len(labelled)]: number of each among the chosen classes, -1 if it is not one

    @property
    def description(self) -> str:
        """Description of the answers, in words."""
        return (
            f"argmax and softmax among the {len(self.chosen):,} classes of {self.source} "
            "(--among all: the argmax of all outputs)"
        )

    def take_chosen(self, images: ImageSet) -> ImageSet:
        """The images of the chosen classes, labelled by their numbers among these."""
        numbers = self.numbers[images.labels]
        rows = np.flatnonzero(numbers >= 0)
        if not len(rows):
            raise PredictionError("no-image-of-chosen-classes", among=self.source)
        return replace(images.take(rows.tolist()), labels=numbers[rows], classes=self.chosen)


def read_class_subset(subset: str | Path, classes: Classes = IMAGENET) -> ClassSubset | None:
    """Read the subset of classes that answers are chosen among; None for all of them."""
    source = str(subset)
    if source == ALL_CLASSES:
        return None
    if source in SUBSET_NAMES:
        if classes is not IMAGENET:
            raise PredictionError("built-in-classes-not-imagenet", among=source)
        return _choose(source, _built_in(source), classes)
    path = Path(subset)
    if (path / _OBJECTNET_FILE).is_file():
        return _read_objectnet(path, classes)
    if path.is_dir():
        inside = [each.name for each in path.iterdir() if each.is_dir() and each.name[:1] != "."]
        return _choose(source, [normalize_name(name) for name in sorted(inside)], classes)
    if not path.is_file():
        choices = ", ".join((ALL_CLASSES, *SUBSET_NAMES))
        raise PredictionError("chosen-classes-missing", among=source, choices=choices)
    names = (normalize_name(line.split("#")[0]) for line in read_lines(path))  # and comments
    return _choose(source, [name for name in names if name], classes)


def check_few_classes(images: ImageSet, path: str | Path) -> None:
    """Warn, or refuse, if images show few classes and answers are among all outputs."""
    classes, count = images.classes, len(images)
    distinct = np.unique(images.labels)
    names = {classes.names[number] for number in distinct.tolist()}
    sets = {name: set(_built_in(name)) for name in SUBSET_NAMES} if classes is IMAGENET else {}
    like = [name for name, own in sets.items() if names <= own and 2 * len(names) > len(own)]
    if like:
        raise PredictionError(
            "images-of-few-classes",
            path=path,
            image_count=count,
            seen_count=len(distinct),
            known_classes=classes.description,
            among=min(like, key=lambda name: len(sets[name] - names)),
        )
    expected = len(classes) * (1 - (1 - 1 / len(classes)) ** count)
    if count >= MIN_SUBSET_IMAGES and len(distinct) < expected / 2:
        warnings.warn(
            f"{path}: {count:,} images are of {len(distinct):,} of the {classes.description}, "
            "and answers are among all; --among FILE or FOLDER has them among some, --among all "
            "says that all are meant",
            PredictionWarning,
            stacklevel=2,
        )


def _built_in(name: str) -> list[str]:
    file = f"_info/{name.replace('-', '_')}_synsets.txt"
    try:
        return files("timm.data").joinpath(file).read_text(encoding="ascii").split()
    except OSError as error:
        raise PredictionError(
            "built-in-classes-not-in-timm", among=name, reason=reason(error)
        ) from error


def _choose(source: str, written: Sequence[str], classes: Classes) -> ClassSubset:
    named = any(name in classes.index for name in written)
    numbers = [
        classes.index.get(name, -1)
        if named
        else int(name)
        if name.isascii() and name.isdecimal() and len(name) < 10
        else -1
        for name in written
    ]
    if unknown := [
        name
        for name, number in zip(written, numbers, strict=True)
        if not 0 <= number < len(classes)
    ]:
        raise PredictionError(
            "chosen-class-unknown",
            among=source,
            classes=listing(unknown, "class"),
            known_classes=classes.description,
            label_kind=classes.kind,
            largest_number=len(classes) - 1,
        )
    order = sorted(set(numbers))
    if len(order) < len(numbers):
        twice = [name for i, name in enumerate(written) if numbers.index(numbers[i]) != i]
        raise PredictionError(
            "chosen-class-repeated", among=source, classes=listing(twice, "class")
        )
    if len(order) < 2:
        raise PredictionError("chosen-classes-too-few", among=source, class_count=len(order))
    names = tuple(classes.names[number] for number in order)
    folders = tuple(classes.folders[number] for number in order)
    outputs = tuple((number,) for number in order)
    places = np.full(len(classes), -1, dtype=np.int64)
    places[order] = np.arange(len(order))
    return ClassSubset(source, classes, Classes(names, folders, classes.file, outputs), places)


def _read_objectnet(folder: Path, classes: Classes) -> ClassSubset:
    """ObjectNet's classes that have outputs, by its map in words, of its lines from 0."""
    if classes is not IMAGENET:
        raise PredictionError("built-in-classes-not-imagenet", among=str(folder))
    outputs_of = _read_map(folder / _OBJECTNET_FILE)
    called = _read_map(folder / "folder_to_objectnet_label.json")
    lines = _read_map(folder / "pytorch_to_imagenet_2012_id.json")
    words_file = folder / "imagenet_to_label_2012_v2"
    try:
        words = words_file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise PredictionError("file-unreadable", path=words_file, reason=reason(error)) from error
    every = [str(number) for number in range(len(classes))]
    if len(words) != len(classes) or set(lines) != set(every) or set(lines.values()) != set(every):
        raise PredictionError("objectnet-lines-disagree", folder=folder, line_count=len(words))
    numbers = {normalize_name(words[int(line)]): int(number) for number, line in lines.items()}
    needed = {normalize_name(word) for each in outputs_of.values() for word in each.split(";")}
    unknown = sorted(needed - set(numbers)) + sorted(set(outputs_of) - set(called.values()))
    if unknown:
        raise PredictionError(
            "objectnet-map-incomplete", folder=folder, classes=listing(unknown, "class")
        )
    folders = tuple(sorted(called))
    file = folder / _OBJECTNET_FILE
    labelled = Classes(tuple(called[name] for name in folders), folders, file)
    chosen = [number for number, name in enumerate(labelled.names) if name in outputs_of]
    names = tuple(labelled.names[number] for number in chosen)
    outputs = tuple(
        tuple(sorted({numbers[normalize_name(word)] for word in outputs_of[name].split(";")}))
        for name in names
    )
    places = np.full(len(labelled), -1, dtype=np.int64)
    places[chosen] = np.arange(len(chosen))
    chosen_folders = tuple(folders[number] for number in chosen)
    return ClassSubset(str(folder), labelled, Classes(names, chosen_folders, file, outputs), places)


def _read_map(file: Path) -> dict[str, str]:
    """A JSON object of names, or of numbers, as text."""
    try:
        content = strict_json.read(file)
    except StudyError as error:
        raise PredictionError(error.violation) from error
    if not isinstance(content, dict):
        raise PredictionError("objectnet-file-not-map", file=file)
    return {normalize_name(key): normalize_name(str(value)) for key, value in content.items()}
