"""Photographs of a study's images: which files they are, and some by selection frequency."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import OptionError, StudyError, kind_and_reason, listing
from bayesrep.report.figure import has_pictures
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.study import Study
from bayesrep.types import Bools

IMAGE_SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".webp"})
GALLERY_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "WEBP")
MAX_GRID_IMAGES, THUMBNAIL_PIXELS = 15, 160  # of a grid; pixels of a thumbnail


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
        if not has_pictures():
            raise OptionError("pictures-not-installed")
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
            endings = ", ".join(sorted(IMAGE_SUFFIXES))
            raise StudyError("no-pictures-in-folder", folder=folder, endings=endings)
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
            why = kind_and_reason(error)
            raise StudyError("picture-not-decodable", path=path, reason=why) from None


def find_available(pictures: Pictures, images: NDArray[np.str_], mask: Bools, what: str) -> Any:
    """Numbers of the wanted images of which there are pictures; none of them is refused."""
    numbers = np.flatnonzero(mask)
    if not len(numbers):
        raise StudyError("no-images-of-kind", kind=what)
    available = [int(n) for n in numbers if pictures.has(str(images[n]))]
    if not available:
        names = listing(images[numbers].tolist())
        raise StudyError("folder-lacks-pictures", folder=pictures.folder, images=names, kind=what)
    return available


def labels_of(data: AnnotatedSet) -> list[str]:
    """Labels of a data set's images; empty where it has none."""
    return [""] * len(data.images) if data.labels is None else [str(x) for x in data.labels]


def by_frequency(study: Study, pictures: Pictures, *, seed: int = 0) -> list[tuple[str, str]]:
    """Images of the reference, some of every fifth of selection frequencies, and what they are."""
    data = study.reference
    every = np.ones(len(data.images), np.bool_)
    images = find_available(pictures, data.images, every, "of the reference")
    frequency, labels = data.selected / data.shown, labels_of(data)
    rng = np.random.default_rng(seed)
    fifth = np.clip(np.searchsorted(np.linspace(0, 1, 6), frequency, side="right") - 1, 0, 4)
    picked: list[int] = []
    for number in range(5):
        inside = [n for n in images if fifth[n] == number]
        picked += rng.permutation(inside)[: MAX_GRID_IMAGES // 5].astype(int).tolist()
    picked.sort(key=lambda n: frequency[n])
    texts = [f"{labels[n]} {100 * frequency[n]:.0f} %".strip() for n in picked]
    return [(str(data.images[n]), text) for n, text in zip(picked, texts, strict=True)]
