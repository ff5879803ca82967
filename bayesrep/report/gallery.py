"""Figures of photographs: which images, and a grid of them.

Pictures are the user's: a folder in which an image of the study lies by its name, or by its file
name (with or without the suffix) anywhere below, where that is distinct. They are decoded by
Pillow, within its limit of pixels, and shown small.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import OptionError, StudyError, kind_and_reason, listing
from bayesrep.protocols.by_subset import missed_by_all as by_all
from bayesrep.protocols.label_sets import LabelSets
from bayesrep.protocols.people import People
from bayesrep.report.style import panels
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.study import Study
from bayesrep.types import Bools

IMAGE_SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".webp"})
GALLERY_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "WEBP")
GRID_COLUMNS, MAX_GRID_IMAGES, THUMBNAIL_PIXELS = 5, 15, 160  # of a grid; pixels of a thumbnail


@dataclass(frozen=True)
class Pictures:
    """Image files in a folder, found by path or by name."""

    folder: Path  # as the user names it
    files: dict[str, Path]  # every picture by its path below the folder
    # And by its file name, with and without the suffix, where only one has it
    by_name: dict[str, Path]

    @classmethod
    def in_folder(cls, folder: Path) -> "Pictures":
        """Find all pictures below a folder; links are not followed."""
        if not folder.is_dir():
            raise StudyError("picture-folder-missing", folder=folder)
        files: dict[str, Path] = {}
        for root, folders, names in os.walk(folder):
            folders[:] = sorted(each for each in folders if not each.startswith("."))
            for name in sorted(names):
                if Path(name).suffix.lower() in IMAGE_SUFFIXES:
                    path = Path(root) / name
                    files[path.relative_to(folder).as_posix()] = path
        if not files:
            raise StudyError(
                "no-pictures-in-folder", folder=folder, endings=", ".join(sorted(IMAGE_SUFFIXES))
            )
        times: dict[str, list[Path]] = {}
        for path in files.values():
            for name in {path.name, path.stem}:
                times.setdefault(name, []).append(path)
        return cls(folder, files, {k: v[0] for k, v in times.items() if len(v) == 1})

    def has(self, image: str) -> bool:
        """Return whether the folder holds a picture of an image."""
        return image in self.files or image.rsplit("/", 1)[-1] in self.by_name

    def thumbnail(self, image: str) -> NDArray[np.uint8]:
        """An image as RGB [height, width, 3], small."""
        import warnings

        from PIL import Image, ImageOps

        path = self.files.get(image) or self.by_name[image.rsplit("/", 1)[-1]]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", Image.DecompressionBombWarning)
                with Image.open(path, formats=GALLERY_FORMATS) as picture:
                    picture.draft("RGB", (2 * THUMBNAIL_PIXELS, 2 * THUMBNAIL_PIXELS))
                    upright = ImageOps.exif_transpose(picture).convert("RGB")
                    upright.thumbnail((THUMBNAIL_PIXELS, THUMBNAIL_PIXELS))
                    return np.asarray(upright)
        except Exception as error:  # whatever a stranger's picture makes Pillow say
            raise StudyError(
                "picture-not-decodable", path=path, reason=kind_and_reason(error)
            ) from None


def grid(pictures: Pictures, images: Sequence[str], texts: Sequence[str], *, title: str) -> Any:
    """Pictures in rows with a text below each."""
    columns = min(GRID_COLUMNS, len(images))
    figure, every = panels(len(images), rows=-(-len(images) // columns))
    figure.set_size_inches(2.0 * columns + 0.4, 2.3 * -(-len(images) // columns) + 0.4)
    for axes, image, text in zip(every, images, texts, strict=True):
        axes.imshow(pictures.thumbnail(image))
        axes.set_axis_off()
        axes.set_title(text.replace("$", r"\$"), fontsize=7)
    figure.suptitle(title.replace("$", r"\$"), fontsize=10)
    return figure


def _find_available(pictures: Pictures, images: NDArray[np.str_], mask: Bools, what: str) -> Any:
    """Numbers of the wanted images of which there are pictures; none of them is refused."""
    numbers = np.flatnonzero(mask)
    if not len(numbers):
        raise StudyError("no-images-of-kind", kind=what)
    available = [int(n) for n in numbers if pictures.has(str(images[n]))]
    if not available:
        names = listing(images[numbers].tolist())
        raise StudyError("folder-lacks-pictures", folder=pictures.folder, images=names, kind=what)
    return available


def three_of_a_class(
    study: Study, pictures: Pictures, *, classes: Sequence[str] = (), seed: int = 0
) -> Any:
    """Figure 1 of Engstrom et al. (2020): least, median and most often selected of a class."""
    data = study.reference
    labels = _labels_of(data)
    images = _find_available(
        pictures, data.images, np.ones(len(data.images), np.bool_), "of the reference"
    )
    names = sorted({labels[n] for n in images})
    if len(classes) > 1:
        raise OptionError("figure-of-one-class", class_count=len(classes))
    if classes and names == [""]:
        raise StudyError("study-without-image-labels")
    if classes and classes[0] not in names:
        raise StudyError(
            "no-picture-of-class", wanted_class=classes[0], known_classes=listing(names, "class")
        )
    chosen = classes[0] if classes else names[int(np.random.default_rng(seed).integers(len(names)))]
    mine = [n for n in images if labels[n] == chosen]
    frequency = data.selected / data.shown
    order = sorted(mine, key=lambda n: (frequency[n], str(data.images[n])))
    picked = list(dict.fromkeys([order[0], order[(len(order) - 1) // 2], order[-1]]))
    texts = [f"selected by {100 * frequency[n]:.0f} %" for n in picked]
    title = f"{chosen}: least, median, most often selected" if chosen else "by selection frequency"
    return grid(pictures, [str(data.images[n]) for n in picked], texts, title=title)


def _labels_of(data: AnnotatedSet) -> list[str]:
    return [""] * len(data.images) if data.labels is None else [str(x) for x in data.labels]


def of_all_frequencies(study: Study, pictures: Pictures, *, seed: int = 0) -> Any:
    """Figure 8 of Engstrom et al. (2020): images drawn at random, by selection frequency."""
    images = by_frequency(study, pictures, seed=seed)
    return grid(pictures, *zip(*images, strict=True), title="images by selection frequency")


def by_frequency(study: Study, pictures: Pictures, *, seed: int = 0) -> list[tuple[str, str]]:
    """Images of the reference, some of every fifth of selection frequencies, and what they are."""
    data = study.reference
    images = _find_available(
        pictures, data.images, np.ones(len(data.images), np.bool_), "of the reference"
    )
    frequency, labels = data.selected / data.shown, _labels_of(data)
    rng = np.random.default_rng(seed)
    edges = np.linspace(0, 1, 6)
    picked: list[int] = []
    for number, (low, high) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
        inside = [n for n in images if low <= frequency[n] and (frequency[n] < high or number == 4)]
        picked += rng.permutation(inside)[: MAX_GRID_IMAGES // 5].astype(int).tolist()
    picked.sort(key=lambda n: frequency[n])
    texts = [f"{labels[n]} {100 * frequency[n]:.0f} %".strip() for n in picked]
    return [(str(data.images[n]), text) for n, text in zip(picked, texts, strict=True)]


def _random_grid(
    data: Predictions,
    pictures: Pictures,
    mask: Bools,
    what: str,
    seed: int,
    values: NDArray[Any] | None = None,
) -> Any:
    """Some of the wanted images at random, with their labels and what is said instead."""
    images = _find_available(pictures, data.images, mask, what)
    picked = np.random.default_rng(seed).permutation(images)[:MAX_GRID_IMAGES]
    classes = data.classes
    texts = [classes[data.labels[n]] for n in picked]
    if values is not None:
        texts = [
            f"label {classes[data.labels[n]]}"
            + (f"\nseen as {classes[values[n]]}" if values[n] >= 0 else "")
            for n in picked
        ]
    title = f"images {what} ({int(mask.sum()):,} in all)"
    return grid(pictures, [str(data.images[n]) for n in picked], texts, title=title)


def several_labels(data: Predictions, sets: LabelSets, pictures: Pictures, *, seed: int = 0) -> Any:
    """Figure 3 of Shankar et al. (2020): images of several right labels."""
    return _random_grid(data, pictures, sets.sizes > 1, "with several right labels", seed)


def draw_missed_images(
    data: Predictions, sets: LabelSets, pictures: Pictures, *, seed: int = 0
) -> Any:
    """Figure 5 of Shankar et al. (2020): images that no classifier gets right."""
    return _random_grid(
        data, pictures, by_all(data, sets), "that every classifier gets wrong", seed
    )


def another_main(data: Predictions, people: People, pictures: Pictures, *, seed: int = 0) -> Any:
    """Figures 1 and 19 of Tsipras et al. (2020): the main object's label is another."""
    number, main = _require_objects(people)
    differs = (number > 0) & (main != data.labels)
    return _random_grid(data, pictures, differs, "with another main label", seed, main)


def several_objects(data: Predictions, people: People, pictures: Pictures, *, seed: int = 0) -> Any:
    """Figure 17 of Tsipras et al. (2020): images of several objects."""
    number, _ = _require_objects(people)
    return _random_grid(data, pictures, number > 1, "of several objects", seed)


def draw_unselected_labels(
    data: Predictions, people: People, pictures: Pictures, *, seed: int = 0
) -> Any:
    """Figure 25 of Tsipras et al. (2020): images whose own label nobody selects."""
    if people.frequency is None:
        raise StudyError("figure-needs-counts")
    unselected = people.frequency.values_of(data.labels, np.nan) == 0
    return _random_grid(data, pictures, unselected, "whose label nobody selects", seed)


def draw_unchosen_labels(
    data: Predictions, people: People, pictures: Pictures, *, seed: int = 0
) -> Any:
    """Figure 26 of Tsipras et al. (2020): images whose own label is chosen for no object."""
    number, main = _require_objects(people)
    assert people.chosen is not None
    unchosen = (number > 0) & (people.chosen.values_of(data.labels, 0) == 0)
    return _random_grid(data, pictures, unchosen, "whose label is chosen for no object", seed, main)


def _require_objects(people: People) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if people.number is None or people.main is None:
        raise StudyError("figure-needs-objects")
    return people.number, people.main
