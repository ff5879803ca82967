"""Where images lie: class folders, flat folders, tar shards, or a table of paths and labels.

Nothing is decoded or unpacked here. An `ImageSet` says where the bytes of every image are and which
class it is meant to show; it is small, whatever the images' number, and can be sent to other
machines that see the same files.
"""

import hashlib
import os
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import PredictionError, StudyError, listing
from bayesrep.files import tables
from bayesrep.files.names import normalize_name, normalize_names
from bayesrep.studies import rules
from bayesrep.types import Ints
from bayesrep.vision.classes import IMAGENET, Classes
from bayesrep.vision.gzipped import ENDINGS as GZIPPED_ENDINGS
from bayesrep.vision.gzipped import is_gzipped, open_gzipped
from bayesrep.vision.labels import class_numbers, labels_by_folder, labels_of_flat, read_labels
from bayesrep.vision.tars import members

_SUFFIXES = frozenset(
    {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
)
LARGEST_BYTES = 2**28  # bytes of one encoded image
LABEL_BYTES = 1024  # of a .cls file, more than any label has
_SURROGATES = frozenset(map(chr, range(0xD800, 0xE000)))  # bytes of names that are not UTF-8
_ARCHIVE_ENDINGS = (".tar", *GZIPPED_ENDINGS)
_COMPRESSED_ENDINGS = (".tar.bz2", ".tar.xz", ".tar.zst")


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images that can be read one by one, and the classes they are meant to show.

    Attributes
    ----------
    names : tuple of N str
        Unique: paths relative to the folder or archive, or as the table of paths gives them; as
        `bayesrep.files.names` has names, whatever the files themselves are called.
    labels : int64 [N]
        Class numbers, of `classes`.
    files : tuple of str
        Files on disk.
    place : int64 [N, 3]
        Number in `files` of each image's file, where the image begins, and how many bytes it has
        (-1: the whole file).
    classes
        Which there are.
    """

    names: tuple[str, ...]
    labels: Ints
    files: tuple[str, ...]
    place: Ints
    classes: Classes = IMAGENET

    def __len__(self) -> int:
        return len(self.names)

    def read(self, image: int) -> bytes:
        """The encoded bytes of one image, unless they are more than any image has."""
        file, offset, size = self.place[image].tolist()
        held = os.path.getsize(self.files[file]) if size < 0 else size
        if held > LARGEST_BYTES:
            raise PredictionError("image-file-too-large", byte_count=held, most_bytes=LARGEST_BYTES)
        return _read_at(self.files[file], offset, held)

    def take(self, images: Sequence[int]) -> "ImageSet":
        """Some of the images, in the order given."""
        return replace(
            self,
            names=tuple(self.names[image] for image in images),
            labels=self.labels[list(images)],
            place=self.place[list(images)],
        )

    def stamps(self) -> NDArray[np.uint64]:
        """Digests [N] of where each image is, and of its file's size and times of change.

        The time of change is the system's own beside that of modification, which anybody can set.
        """
        files = [hashlib.blake2b(_status(name).encode(), digest_size=8) for name in self.files]
        stamps = np.empty(len(self), dtype=np.uint64)
        for image, (file, offset, size) in enumerate(self.place.tolist()):
            state = files[file].copy()
            state.update(f"{offset}\0{size}".encode())
            stamps[image] = int.from_bytes(state.digest(), "little")
        return stamps

    def fingerprint(self) -> str:
        """A hexadecimal digest of the images' names and stamps."""
        digest = hashlib.sha256("\n".join(self.names).encode("utf-8", "surrogateescape"))
        digest.update(self.stamps().tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class _ImageFile:
    """A file in a folder or an archive: its relative path, as a name, and where its bytes are."""

    name: str
    file: str
    offset: int = 0
    size: int = -1


def list_images(
    path: str | Path, *, labels: str | Path | None = None, classes: Classes = IMAGENET
) -> ImageSet:
    """List the images under a path and the class of each.

    Parameters
    ----------
    path
        One of

        - a folder of class folders, named by class (ImageNet's by wnid) or number;
        - a flat folder of images, with `labels` or a ground-truth file beside them;
        - a `.tar` or `.tar.gz` file, or a folder of them, holding any of these or WebDataset
          samples (each image with a `.cls` file of the same name); read in place, never unpacked;
        - a table (CSV, TSV, a workbook, Parquet) with the columns path (relative to the table) and
          label.
    labels
        A ground-truth file for a flat folder; see `bayesrep.vision.labels.read_labels`.
    classes
        Which there are.

    Returns
    -------
    ImageSet
        Sorted by class and name; images of a table or of WebDataset shards in their own order.

    Raises
    ------
    PredictionError
        Naming the file, folders or images, and what was expected.
    """
    path = Path(path)
    if not path.exists():
        raise PredictionError("images-path-missing", path=path)
    if path.is_file() and path.name.lower().endswith(tables.ENDINGS):
        return _from_table(path, classes)
    # Archives first: a folder of shards is not a folder of images.
    archives = _archives(path)
    entries = list(_archived_files(archives) if archives else _in_folder(path))
    images = [entry for entry in entries if PurePosixPath(entry.name).suffix.lower() in _SUFFIXES]
    if not images:
        kinds = ", ".join(sorted(_SUFFIXES))
        raise PredictionError("no-images-at-path", path=path, endings=kinds)
    names = [entry.name for entry in images]
    # Where a class stands: a file that is given, .cls files in shards, folders, or names.
    beside = [entry for entry in entries if entry.name.endswith(".cls")]
    if labels is not None:
        numbers = read_labels(Path(labels), names, classes)
    elif beside:
        numbers = _labels_beside(images, beside, classes)
        return _image_set(images, numbers, classes)
    else:
        numbers = labels_by_folder(names, str(path), classes)
        if numbers is None:
            numbers = labels_of_flat(names, path if path.is_dir() else path.parent, classes)
    # Images in the order of their classes, as ImageNet's own lists have them.
    order = sorted(range(len(images)), key=lambda at: (int(numbers[at]), names[at]))
    return _image_set([images[at] for at in order], numbers[order], classes)


def _read_at(file: str, offset: int, size: int) -> bytes:
    """Some bytes of a file or, where it is packed, of what it holds."""
    if is_gzipped(file):
        return open_gzipped(file).read(offset, size)
    with open(file, "rb") as stream:
        stream.seek(offset)
        return stream.read(size)


def _status(file: str) -> str:
    place = os.path.abspath(file)
    try:
        status = os.stat(file)
    except OSError:
        return f"{place}\0missing\0"
    return f"{place}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ctime_ns}\0"


def select(images: ImageSet, names: Sequence[str], dataset: str) -> ImageSet:
    """The images that a study counts, under the names it gives them.

    Those are relative paths, file names, file names without their suffix, or paths that begin in
    another folder.

    Raises
    ------
    PredictionError
        Where an image of the study is not found, or a name fits several.
    """
    wanted = [normalize_name(name).replace("\\", "/") for name in names]
    paths = [PurePosixPath(name) for name in images.names]
    best = wanted
    for called in (images.names, [path.name for path in paths], [path.stem for path in paths]):
        rows = _rows_of(called)
        missing = [name for name in wanted if name not in rows]
        if not missing:
            if several := [name for name in wanted if len(rows[name]) > 1]:
                raise PredictionError(
                    "image-name-of-several-files", dataset=dataset, images=listing(several)
                )
            return replace(images.take([rows[name][0] for name in wanted]), names=tuple(names))
        best = min(best, missing, key=len)
    for folders in (1, 2, 3, 0):
        rows = _rows_of([_last_folders(name, folders) for name in images.names])
        keys = [_last_folders(name, folders) for name in wanted]
        if len(set(keys)) == len(keys) and all(len(rows.get(key, ())) == 1 for key in keys):
            return replace(images.take([rows[key][0] for key in keys]), names=tuple(names))
    raise PredictionError(
        "no-file-for-study-image",
        dataset=dataset,
        images=listing(best),
        image_count=len(images),
        example=images.names[0],
    )


def _rows_of(called: Sequence[str]) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(called):
        rows.setdefault(name, []).append(row)
    return rows


def _last_folders(name: str, folders: int) -> str:
    """A path's name with its last folders."""
    return "/".join(name.split("/")[-folders - 1 :])


def _image_set(entries: Sequence[_ImageFile], labels: Ints, classes: Classes) -> ImageSet:
    names = tuple(entry.name for entry in entries)
    if strange := [name for name in names if _SURROGATES & set(name)]:
        raise PredictionError("image-names-not-utf8", images=listing(strange))
    for violation in rules.image_violations("the images", names):
        raise PredictionError(violation)
    files = {name: number for number, name in enumerate(dict.fromkeys(e.file for e in entries))}
    place = np.array([(files[e.file], e.offset, e.size) for e in entries], dtype=np.int64)
    return ImageSet(names, labels, tuple(files), place, classes)


def _archives(path: Path) -> list[Path]:
    """The tar files meant by a path, none where it is a folder of images."""
    if path.is_dir():
        return sorted(
            file
            for file in path.iterdir()
            if file.name.lower().endswith(_ARCHIVE_ENDINGS)
            and not file.name.startswith(".")
            and file.is_file()
        )
    if path.name.lower().endswith(_COMPRESSED_ENDINGS):
        raise PredictionError("image-archive-compressed", path=path)
    if not path.name.lower().endswith(_ARCHIVE_ENDINGS) or not path.is_file():
        raise PredictionError("images-source-kind-unknown", path=path)
    return [path]


def _archived_files(archives: Sequence[Path]) -> Iterator[_ImageFile]:
    for archive in archives:
        stem = next(
            archive.name[: -len(e)] for e in _ARCHIVE_ENDINGS if archive.name.lower().endswith(e)
        )
        for member in members(archive):
            name = PurePosixPath(member.name)
            if not name.name.startswith("."):
                shown = f"{stem}/{name}" if len(archives) > 1 else str(name)
                yield _ImageFile(normalize_name(shown), str(archive), member.offset, member.size)


def _in_folder(path: Path) -> Iterator[_ImageFile]:
    above: dict[str, frozenset[str]] = {str(path): frozenset()}
    for folder, inside, files in os.walk(path, followlinks=True):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        here = os.path.realpath(folder)
        if here in (before := above.pop(folder)):
            raise PredictionError("folder-link-into-itself", folder=folder)
        above |= dict.fromkeys((os.path.join(folder, name) for name in inside), before | {here})
        relative = PurePosixPath(Path(folder).relative_to(path).as_posix())
        for name in sorted(files):
            file = os.path.join(folder, name)
            if not name.startswith(".") and os.path.isfile(file):  # no pipe, which would wait
                yield _ImageFile(normalize_name(str(relative / name)), file)


def _labels_beside(
    images: Sequence[_ImageFile], beside: Sequence[_ImageFile], classes: Classes
) -> Ints:
    """Read the `.cls` file of every WebDataset sample.

    It has the image's name with other endings, as much of it as any has: to `flickr.100.png`
    belongs `flickr.100.cls`, or else `flickr.cls`, which then may belong to no other image.
    """
    stems: dict[str, _ImageFile] = {}
    for entry in beside:
        if stems.setdefault(entry.name.removesuffix(".cls"), entry) is not entry:
            raise PredictionError("cls-file-repeated", archive=entry.file, cls_file=entry.name)
    label_of = {image.name: _stem_of(image.name, stems) for image in images}
    if missing := [name for name, stem in label_of.items() if stem is None]:
        raise PredictionError("images-without-cls-file", images=listing(missing))
    owner: dict[str, str] = {}
    labels: list[str] = []
    for image in images:
        stem = str(label_of[image.name])
        entry = stems[stem]
        if owner.setdefault(stem, image.name) != image.name:
            raise PredictionError(
                "images-share-cls-file",
                cls_file=entry.name,
                image=owner[stem],
                other_image=image.name,
            )
        size = min(entry.size, LABEL_BYTES) if entry.size >= 0 else LABEL_BYTES
        text = _read_at(entry.file, entry.offset, size)
        labels.append(normalize_name(text.decode("utf-8-sig", "replace")))
    return class_numbers(labels, [entry.name for entry in images], "the .cls files", classes)


def _stem_of(name: str, stems: Collection[str]) -> str | None:
    """The longest beginning of a name, without one or several endings, that is among the stems."""
    path = PurePosixPath(name)
    parts = path.name.split(".")
    begins = (str(path.with_name(".".join(parts[:at]))) for at in range(len(parts) - 1, 0, -1))
    return next((begin for begin in begins if begin in stems), None)


def _from_table(path: Path, classes: Classes) -> ImageSet:
    try:
        table = tables.read_only(path, ("path", "label")).frame
    except StudyError as error:
        raise PredictionError(error.violation) from error
    if missing := [name for name in ("path", "label") if name not in table.columns]:
        columns = listing(missing, "column")
        raise PredictionError("image-table-lacks-columns", path=path, columns=columns)
    if not len(table):
        raise PredictionError("image-table-without-images", path=path)
    names, labels = (
        normalize_names(table[name]).fill_null("").to_list() for name in ("path", "label")
    )
    if not all(names) or not all(labels):
        raise PredictionError("image-table-cell-empty", path=path)
    entries = [_ImageFile(name, _existing_path(path.parent, name)) for name in names]
    if missing := [entry.name for entry in entries if not os.path.isfile(entry.file)]:
        raise PredictionError("image-table-names-missing-files", path=path, images=listing(missing))
    return _image_set(entries, class_numbers(labels, names, str(path), classes), classes)


def _existing_path(folder: Path, name: str) -> str:
    """The path of a file, in the form of Unicode in which it is there."""
    files = [str(folder / unicodedata.normalize(form, name)) for form in ("NFC", "NFD")]
    return next((file for file in files if os.path.isfile(file)), files[0])
