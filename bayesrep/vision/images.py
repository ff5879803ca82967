"""Image sets: class folders, flat folders, tar shards, or a table of paths and labels.

Nothing is decoded here; every file is evaluated, listed as failed or counted as passed over.
"""

import os
import posixpath
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import PredictionError, StudyError, listing, reason
from bayesrep.files import tables
from bayesrep.files.digests import digest_parts, short_digest
from bayesrep.files.names import normalize_name, normalize_names
from bayesrep.studies import validation
from bayesrep.types import Ints
from bayesrep.vision.classes import IMAGENET, Classes
from bayesrep.vision.gzipped import GZIPPED_ENDINGS as GZIPPED_ENDINGS
from bayesrep.vision.gzipped import unpack_archive
from bayesrep.vision.labels import class_numbers, labels_by_folder, labels_of_flat, read_labels
from bayesrep.vision.tars import members

_IMAGE_ENDINGS = frozenset(
    ".apng .avif .bmp .gif .jfif .jpe .jpeg .jpg .pbm .pgm .png .pnm .ppm .tif .tiff .webp".split()
)
_MAGIC_BYTES = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"RIFF", b"II*\0", b"MM\0*")  # without ending
_SPLIT_OF = {
    **{"train": 0, "training": 0, "val": 1, "valid": 1, "validation": 1},
    **{"test": 2, "testing": 2},
}
MAX_IMAGE_BYTES = 2**28  # bytes of one encoded image
MAX_LABEL_BYTES = 1024  # of a .cls file; labels are shorter
_SURROGATES = frozenset(map(chr, range(0xD800, 0xE000)))  # bytes of names that are not UTF-8
_ARCHIVE_ENDINGS = (".tar", *GZIPPED_ENDINGS)
_COMPRESSED_ENDINGS = (".tar.bz2", ".tar.xz", ".tar.zst")


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images to read one by one, and their labels."""

    # N unique paths relative to the folder or archive, or as the table of paths gives them.
    names: tuple[str, ...]
    labels: Ints  # int64 [N]: class numbers, of `classes`
    files: tuple[str, ...]  # on disk
    place: Ints  # int64 [N, 3]: number in `files`, offset, and size in bytes (-1: the whole file)
    classes: Classes = IMAGENET  # the classes
    # Files that are not images, by reason.
    passed_over: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    def __len__(self) -> int:
        return len(self.names)

    def read(self, image: int) -> bytes:
        """Read the encoded bytes of one image; refuse implausibly many."""
        file, offset, size = self.place[image].tolist()
        status = os.stat(self.files[file])
        if not stat.S_ISREG(status.st_mode):  # a pipe would wait
            raise PredictionError("image-not-a-file")
        length = status.st_size if size < 0 else size
        if length > MAX_IMAGE_BYTES:
            raise PredictionError(
                "image-file-too-large", byte_count=length, most_bytes=MAX_IMAGE_BYTES
            )
        return _read_at(self.files[file], offset, length)

    def take(self, images: Sequence[int]) -> "ImageSet":
        """Some of the images, in the order given."""
        return replace(
            self,
            names=tuple(self.names[image] for image in images),
            labels=self.labels[list(images)],
            place=self.place[list(images)],
        )

    def stamps(self) -> NDArray[np.uint64]:
        """Digests [N] of where each image is, and of its file's size and times of change."""
        files: list[str] = []
        for name in self.files:
            try:
                now = os.stat(name)
                facts = f"{now.st_size}\0{now.st_mtime_ns}\0{now.st_ctime_ns}"
            except OSError:
                facts = "missing"
            files.append(f"{os.path.abspath(name)}\0{facts}\0")
        states = (f"{files[file]}{offset}\0{size}" for file, offset, size in self.place.tolist())
        digests = b"".join(short_digest(state.encode()) for state in states)
        return np.frombuffer(digests, "<u8").astype(np.uint64)

    def fingerprint(self) -> str:
        """A hexadecimal digest of the images' names and stamps."""
        names = "\n".join(self.names).encode("utf-8", "surrogateescape")
        return digest_parts([names, self.stamps().tobytes()])


@dataclass(frozen=True)
class _ImageFile:
    """A file in a folder or an archive: its relative path, as a name, and where its bytes are."""

    name: str
    file: str
    offset: int = 0
    size: int = -1
    is_link: bool = False


def list_images(
    path: str | Path, *, labels: str | Path | None = None, classes: Classes = IMAGENET
) -> ImageSet:
    """List the images under a path and the class of each, as `bayesrep.predict` takes them."""
    path = Path(path)
    if not path.exists():
        raise PredictionError("images-path-missing", path=path)
    if path.is_file() and path.name.lower().endswith(tables.TABLE_ENDINGS):
        return _from_table(path, classes)
    entries, is_sharded = _list_files(path)
    reasons = [_reason_to_pass(entry) for entry in entries]
    images = [entry for entry, why in zip(entries, reasons, strict=True) if not why]
    if not images:
        others, endings = listing([e.name for e in entries], "file"), sorted(_IMAGE_ENDINGS)
        facts = {"path": path, "endings": ", ".join(endings), "others": others}
        raise PredictionError("no-images-at-path", **facts)
    names = [entry.name for entry in images]
    label_files = [e for e in entries if e.name.endswith(".cls") and labels is None]
    used, by_folder = set[str](), False
    if labels is not None:
        numbers = read_labels(Path(labels), names, classes)
    elif label_files:
        numbers, used = _labels_of_cls_files(images, label_files, classes)
    elif (numbers := labels_by_folder(names, str(path), classes)) is not None:
        by_folder = True
    else:
        numbers = labels_of_flat(names, path if path.is_dir() else path.parent, classes)
    _check_one_set(path, names, is_sharded=is_sharded, by_folder=by_folder)
    passed_over: dict[str, list[str]] = {}
    for entry, why in zip(entries, reasons, strict=True):
        if why and entry.name not in used:
            passed_over.setdefault(why, []).append(entry.name)
    # Images in the order of their classes, as ImageNet's own lists have them.
    order = range(len(images))
    if not label_files:
        order = sorted(order, key=lambda row: (int(numbers[row]), names[row]))
    listed = _image_set([images[row] for row in order], numbers[list(order)], classes)
    return replace(listed, passed_over=passed_over)


def _read_at(file: str, offset: int, size: int) -> bytes:
    """Some bytes of a file or, where it is packed, of what it holds."""
    with open(unpack_archive(file), "rb") as stream:
        stream.seek(offset)
        return stream.read(size)


def select(images: ImageSet, names: Sequence[str], dataset: str) -> ImageSet:
    """Select the images that a study counts, by paths, file names, stems or last folders."""
    requested = [normalize_name(name).replace("\\", "/") for name in names]
    paths = [PurePosixPath(name) for name in images.names]
    best = requested
    for called in (images.names, [path.name for path in paths], [path.stem for path in paths]):
        rows = _rows_of(called)
        missing = [name for name in requested if name not in rows]
        if not missing:
            if several := [name for name in requested if len(rows[name]) > 1]:
                raise PredictionError(
                    "image-name-of-several-files", dataset=dataset, images=listing(several)
                )
            return replace(images.take([rows[name][0] for name in requested]), names=tuple(names))
        best = min(best, missing, key=len)
    for folders in (1, 2, 3, 0):
        rows = _rows_of([_last_folders(name, folders) for name in images.names])
        keys = [_last_folders(name, folders) for name in requested]
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
    return "/".join(name.split("/")[-folders - 1 :])


def _image_set(entries: Sequence[_ImageFile], labels: Ints, classes: Classes) -> ImageSet:
    names = tuple(entry.name for entry in entries)
    if strange := [name for name in names if _SURROGATES & set(name)]:
        raise PredictionError("image-names-not-utf8", images=listing(strange))
    # Of a table of paths ./a.png and a.png are one file.
    for violation in validation.image_violations(
        "the images", list(map(posixpath.normpath, names))
    ):
        raise PredictionError(violation)
    files = {name: number for number, name in enumerate(dict.fromkeys(e.file for e in entries))}
    place = np.array([(files[e.file], e.offset, e.size) for e in entries], dtype=np.int64)
    return ImageSet(names, labels, tuple(files), place, classes)


def _list_files(path: Path) -> tuple[list[_ImageFile], bool]:
    """All files under a path, those in archives in place of these; and whether in several."""
    if path.is_dir():
        files = list(_in_folder(path))
        shards = [each for each in files if "/" not in each.name and _is_archive(each)]
        if shards and (images := [each.name for each in files if not _reason_to_pass(each)]):
            archives = listing([each.name for each in shards], "archive")
            raise PredictionError(
                "images-beside-archives", path=path, archives=archives, images=listing(images)
            )
    else:
        if path.name.lower().endswith(_COMPRESSED_ENDINGS):
            raise PredictionError("image-archive-compressed", path=path)
        files = shards = [_ImageFile(path.name, str(path))]
        if not _is_archive(files[0]):
            raise PredictionError("images-source-kind-unknown", path=path)
    archives = [Path(each.file) for each in shards]
    others = [each for each in files if each not in shards]
    return [*others, *_archived_files(archives)], len(archives) > 1


def _is_archive(entry: _ImageFile) -> bool:
    name = entry.name.lower()
    return name.endswith(_ARCHIVE_ENDINGS) and name[0] != "." and os.path.isfile(entry.file)


def _archived_files(archives: Sequence[Path]) -> Iterator[_ImageFile]:
    for archive in archives:
        file, called = str(archive), archive.name
        stem = next(called[: -len(e)] for e in _ARCHIVE_ENDINGS if called.lower().endswith(e))
        for member in members(archive):
            name = "/".join(part for part in member.name.split("/") if part not in ("", "."))
            image_name = normalize_name(f"{stem}/{name}" if len(archives) > 1 else name)
            place, is_link = (member.offset_data, member.size), not member.isreg()
            yield _ImageFile(image_name, file, *place, is_link)


def _in_folder(path: Path) -> Iterator[_ImageFile]:
    """Yield all files under a folder; hidden folders as one entry each."""

    def refuse(error: OSError) -> NoReturn:
        raise PredictionError(
            "images-folder-unreadable", folder=error.filename, reason=reason(error)
        ) from error

    above: dict[str, frozenset[str]] = {str(path): frozenset()}
    for folder, inside, files in os.walk(path, onerror=refuse, followlinks=True):
        hidden = [name for name in inside if name.startswith(".")]
        inside[:] = sorted(set(inside).difference(hidden))
        directory = os.path.realpath(folder)
        if directory in (before := above.pop(folder)):
            raise PredictionError("folder-link-into-itself", folder=folder)
        above |= dict.fromkeys(
            (os.path.join(folder, name) for name in inside), before | {directory}
        )
        relative = PurePosixPath(Path(folder).relative_to(path).as_posix())
        for name in sorted([*files, *hidden]):
            yield _ImageFile(normalize_name(str(relative / name)), os.path.join(folder, name))


def _reason_to_pass(entry: _ImageFile) -> str:
    """Why a file is none of the images; nothing where it is one, whether or not it can be read."""
    ending = posixpath.splitext(entry.name)[1].lower()
    if "/." in f"/{entry.name}":
        return "hidden"
    if entry.is_link:
        return "a link or device in an archive"
    if ending in _IMAGE_ENDINGS:
        return ""
    if not os.path.isfile(entry.file):
        if not ending and os.path.islink(entry.file) and not os.path.exists(entry.file):
            raise PredictionError("images-link-to-nothing", link=entry.file)
        return "no file"
    if ending:
        return f"ending in {ending}"
    is_readable = os.access(entry.file, os.R_OK)
    begins = _read_at(entry.file, entry.offset, 4) if is_readable else b""
    return "no image" if is_readable and not begins.startswith(_MAGIC_BYTES) else ""


def _check_one_set(path: Path, names: Iterable[str], *, is_sharded: bool, by_folder: bool) -> None:
    """Refuse several sets: a class in several places, equal archives, folders named by splits."""
    parts = [name.split("/") for name in names]
    end = -2 if by_folder else -1
    places = {"/".join(each[:end]) for each in parts}
    inside = {tuple(each[is_sharded:-1]) for each in parts} if by_folder else set()
    is_spread = len({each[-1:] for each in inside}) < len(inside) or len(set(map(len, inside))) > 1
    words = [set(re.findall("[a-z]+", place.lower())) for place in places]
    splits = {frozenset(_SPLIT_OF[word] for word in each if word in _SPLIT_OF) for each in words}
    is_twice = len(places) > 1 and len({"/".join(each[-2:]) for each in parts}) < len(parts)
    if by_folder and (is_spread or is_twice) or len(splits - {frozenset()}) > 1:
        sets = listing([place or "." for place in sorted(places)], "set")
        raise PredictionError("images-of-several-sets", path=path, sets=sets)


def _labels_of_cls_files(
    images: Sequence[_ImageFile], label_files: Sequence[_ImageFile], classes: Classes
) -> tuple[Ints, set[str]]:
    stems: dict[str, _ImageFile] = {}
    for entry in label_files:
        if stems.setdefault(entry.name.removesuffix(".cls"), entry) is not entry:
            raise PredictionError("cls-file-repeated", archive=entry.file, cls_file=entry.name)
    label_of: dict[str, str | None] = {}
    for image in images:
        path = PurePosixPath(image.name)
        parts = path.name.split(".")
        begins = (str(path.with_name(".".join(parts[:n]))) for n in range(len(parts) - 1, 0, -1))
        label_of[image.name] = next(filter(stems.__contains__, begins), None)
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
        size = min(entry.size, MAX_LABEL_BYTES) if entry.size >= 0 else MAX_LABEL_BYTES
        text = _read_at(entry.file, entry.offset, size)
        labels.append(normalize_name(text.decode("utf-8-sig", "replace")))
    numbers = class_numbers(labels, [entry.name for entry in images], "the .cls files", classes)
    return numbers, {stems[stem].name for stem in owner}


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
    names = [name.replace("\\", "/") for name in names]  # as in files of labels
    if not all(names) or not all(labels):
        raise PredictionError("image-table-cell-empty", path=path)
    entries: list[_ImageFile] = []
    for name in names:  # in the form of Unicode in which it is there
        forms = [str(path.parent / unicodedata.normalize(form, name)) for form in ("NFC", "NFD")]
        entries.append(_ImageFile(name, next(filter(os.path.isfile, forms), forms[0])))
    if missing := [entry.name for entry in entries if not os.path.isfile(entry.file)]:
        raise PredictionError("image-table-names-missing-files", path=path, images=listing(missing))
    return _image_set(entries, class_numbers(labels, names, str(path), classes), classes)
