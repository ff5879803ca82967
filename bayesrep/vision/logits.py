"""Logits: every output of a network on every image, kept for later answers without inference.

STUDY/logits/DATASET/CLASSIFIER: logits.npy [N, K], contents.npy [N] (0: no row), images.parquet.
"""

import json
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.errors import PredictionError, StudyError, reason
from bayesrep.files import npy, parquet, strict_json
from bayesrep.store import find_other
from bayesrep.studies import layout
from bayesrep.types import Bools, Ints
from bayesrep.vision.architectures import Architecture
from bayesrep.vision.classes import IMAGENET, Classes
from bayesrep.vision.devices import Device
from bayesrep.vision.forward import identity_of
from bayesrep.vision.image_digests import UNKNOWN_CONTENT, Contents, write
from bayesrep.vision.images import ImageSet

LOGITS_FORMAT = 1
VALUES_FILE, _CONTENTS_FILE, _IMAGES_FILE = "logits.npy", "contents.npy", "images.parquet"
_METADATA_KEY = "bayesrep"


def logits_folder(study: Path, dataset: str, classifier: str = "") -> Path:
    """Return the folder of logits: of a data set, or of one classifier on it."""
    place = study / layout.LOGITS_FOLDER / layout.prediction_folder(dataset).name
    return place / layout.prediction_file(dataset, classifier).stem if classifier else place


def _dtype_of(device: Device) -> np.dtype[Any]:
    """The type in which a device's outputs are kept without being rounded."""
    return np.dtype(np.float16 if device.precision == "float16" else np.float32)


class KeptLogits:
    """The outputs of one classifier on one data set, to be completed; rows are marked last."""

    def __init__(
        self,
        place: Path,
        images: ImageSet,
        contents: Contents,
        identity: Mapping[str, Any],
        classes: Classes,
        dtype: np.dtype[Any],
    ) -> None:
        self._place = place
        names_of = {"outputs": list(classes.names), "folders": list(classes.folders)}
        facts = json.loads(
            json.dumps({"logits": LOGITS_FORMAT, **identity, **classes.identity, **names_of})
        )
        labels = np.asarray(images.classes.names)[images.labels]
        table = pl.DataFrame({"image": images.names, "label": labels.tolist()})
        metadata = {_METADATA_KEY: json.dumps(facts)}
        earlier = read_logits(place) if place.exists() else None
        if earlier is not None and (name := find_other(earlier.facts, facts)) is not None:
            raise PredictionError(
                "logits-made-otherwise", folder=place, setting=name, advice=_REMOVE_ADVICE
            )
        if earlier is None or not earlier.table["image"].equals(table["image"]):
            _make_files(place, table, metadata, (len(images), len(classes)), dtype, earlier)
        elif not earlier.table.equals(table):
            write(table, place / _IMAGES_FILE, metadata)
        self._values = np.load(place / VALUES_FILE, mmap_mode="r+", allow_pickle=False)
        self._marks = np.load(place / _CONTENTS_FILE, mmap_mode="r+", allow_pickle=False)
        self._known = np.array(self._marks)
        contents.contents_of(np.flatnonzero(self._known != UNKNOWN_CONTENT))
        self._known[self._known != contents.known] = UNKNOWN_CONTENT
        self._pending: list[Ints] = []

    @property
    def byte_count(self) -> int:
        """The bytes that they take."""
        return int(self._values.nbytes)

    @property
    def kept_rows(self) -> Bools:
        """Mask of the images that have a row [N]."""
        return self._known != UNKNOWN_CONTENT

    def put(self, rows: Ints, contents: NDArray[np.uint64], values: NDArray[Any]) -> None:
        """Keep the outputs [n, K] on some images (rows of the set), and what these held."""
        self._values[rows] = values
        self._known[rows] = contents
        self._pending.append(rows)

    def flush(self) -> None:
        """Bring all rows to the disk, then mark them as complete."""
        if not self._pending:
            return
        rows, self._pending = np.concatenate(self._pending), []
        self._values.flush()  # type: ignore[attr-defined]
        self._marks[rows] = self._known[rows]
        self._marks.flush()  # type: ignore[attr-defined]


def open_logits(
    study: Path,
    dataset: str,
    images: ImageSet,
    contents: Contents,
    architectures: Sequence[Architecture],
    device: Device,
    *,
    force: bool,
) -> dict[str, KeptLogits]:
    """Open the files of every classifier, and make missing ones; see `KeptLogits`."""
    files: dict[str, KeptLogits] = {}
    for each in architectures:
        place = logits_folder(study, dataset, each.name)
        if force:
            shutil.rmtree(place, ignore_errors=True)
        identity, dtype = identity_of(each, device), _dtype_of(device)
        files[each.name] = KeptLogits(place, images, contents, identity, each.classes, dtype)
    return files


def check_room(
    study: Path, counts: Mapping[str, int], architectures: Sequence[Architecture], device: Device
) -> None:
    """Refuse logits that the disk has no room for, allowing for existing files."""
    size, need = _dtype_of(device).itemsize, 0
    for dataset, count in counts.items():
        for each in architectures:
            file = logits_folder(study, dataset, each.name) / VALUES_FILE
            existing = file.stat().st_size if file.exists() else 0
            need += max(0, count * len(each.classes) * size - existing)
    above = next(path for path in (study, *study.absolute().parents) if path.exists())
    free = shutil.disk_usage(above).free
    if need > free:
        raise PredictionError(
            "no-room-for-logits",
            folder=study / layout.LOGITS_FOLDER,
            gigabytes=need / 1e9,
            free_gigabytes=free / 1e9,
        )


def _make_files(
    place: Path,
    table: pl.DataFrame,
    facts: Mapping[str, str],
    shape: tuple[int, int],
    dtype: np.dtype[Any],
    earlier: "LogitsFile | None",
) -> None:
    """Make all files, with an earlier run's rows of images that still exist."""
    new = place.with_name(f".{place.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    try:
        new.mkdir(parents=True)
        values = _new_array(new / VALUES_FILE, shape, dtype)
        marks = _new_array(new / _CONTENTS_FILE, shape[:1], np.dtype(np.uint64))
        if earlier is not None:
            rows = {name: row for row, name in enumerate(earlier.table["image"])}
            both = [(row, rows[name]) for row, name in enumerate(table["image"]) if name in rows]
            for row, old in both:
                values[row], marks[row] = earlier.values[old], earlier.contents[old]
        values.flush()
        marks.flush()
        write(table, new / _IMAGES_FILE, facts)
        shutil.rmtree(place, ignore_errors=True)
        new.rename(place)
    except OSError as error:
        shutil.rmtree(new, ignore_errors=True)
        raise PredictionError(
            "logits-not-writable",
            folder=place,
            gigabytes=math.prod(shape) * dtype.itemsize / 1e9,
            reason=reason(error),
        ) from error


def _new_array(file: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """An array of zeros in a file, with the disk's room reserved before anything is written."""
    array = np.lib.format.open_memmap(file, mode="w+", dtype=dtype, shape=shape)
    if hasattr(os, "posix_fallocate"):
        with file.open("r+b") as stream:
            os.posix_fallocate(stream.fileno(), 0, file.stat().st_size)
    return array


@dataclass(frozen=True, eq=False)
class LogitsFile:
    """Kept outputs of one classifier on one data set."""

    place: Path  # its folder
    table: pl.DataFrame  # image, label: a row for each of the array's
    values: NDArray[Any]  # [N, K]: the outputs, mapped into memory
    contents: NDArray[np.uint64]  # uint64 [N]: digest of each image; 0 if there is no row
    facts: Mapping[str, Any]  # facts on how they were made

    @property
    def identity(self) -> dict[str, Any]:
        """Facts that answers from these outputs record."""
        ours = ("logits", "outputs", "folders", "classes")
        return {name: value for name, value in self.facts.items() if name not in ours}

    @property
    def classes(self) -> Classes:
        """Classes of the outputs."""
        names, folders = tuple(self.facts["outputs"]), tuple(self.facts["folders"])
        same = (names, folders) == (IMAGENET.names, IMAGENET.folders)
        return IMAGENET if same else Classes(names, folders, self.place / _IMAGES_FILE)


_REMOVE_ADVICE = "remove the folder, or replace it by predict with --keep logits and --force"


def read_logits(place: Path) -> LogitsFile:
    """Read the kept outputs of one classifier on one data set."""
    try:
        table = parquet.read(place / _IMAGES_FILE, str(place / _IMAGES_FILE), ["image", "label"])
        facts = strict_json.parse(
            pl.read_parquet_metadata(place / _IMAGES_FILE).get(_METADATA_KEY) or "null"
        )
        values, contents = (_map_array(place / name) for name in (VALUES_FILE, _CONTENTS_FILE))
    except StudyError as error:
        raise PredictionError(error.violation) from error
    except (OSError, ValueError) as error:
        raise PredictionError(
            "logits-unreadable", folder=place, reason=reason(error), advice=_REMOVE_ADVICE
        ) from error
    if not isinstance(facts, dict) or facts.get("logits") != LOGITS_FORMAT:
        raise PredictionError("logits-of-another-version", folder=place, advice=_REMOVE_ADVICE)
    outputs = facts.get("outputs")
    count = len(outputs) if isinstance(outputs, list) else -1
    if (
        values.shape != (len(table), count)
        or values.dtype.name not in ("float16", "float32")
        or contents.shape != (len(table),)
        or contents.dtype != np.uint64
        or len(facts.get("folders") or ()) != count
    ):
        raise PredictionError(
            "logits-unreadable",
            folder=place,
            reason="its files are not of the same images and outputs",
            advice=_REMOVE_ADVICE,
        )
    return LogitsFile(place, table, values, contents, facts)


def _map_array(file: Path) -> NDArray[Any]:
    """An array of numbers in a file, of which only what is asked for is read."""
    with file.open("rb") as stream:
        header = npy.read_header(stream)
        begin, size = stream.tell(), os.fstat(stream.fileno()).st_size
    if header.fortran or header.dtype.kind not in "fu":
        raise ValueError("its array is not one of plain numbers in rows")
    if begin + header.size * header.dtype.itemsize != size:
        raise ValueError(f"{file.name} is not as long as its header says")
    return np.memmap(file, header.dtype, "r", begin, header.shape)
