"""Every output of a network on every image, kept so that other questions need no inference.

    STUDY/logits/<dataset>/<classifier>/logits.npy      [N, K], as the network gave them
    STUDY/logits/<dataset>/<classifier>/contents.npy    uint64 [N], what each image held (see
                                                        `bayesrep.vision.contents`); 0 where there
                                                        is no row
    STUDY/logits/<dataset>/<classifier>/images.parquet  image, label; how they were made, as JSON
                                                        in its metadata under the key bayesrep

Rows are in the order of the images in images.parquet. Outputs of float16 networks are kept as
float16, all others as float32: nothing is rounded, so that answers made of them are those of the
network to the bit. Rows reach the disk before the content that says so, and the room for all of
them is taken before the first.
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
from bayesrep.studies import folder
from bayesrep.types import Bools, Ints
from bayesrep.vision.architectures import Architecture
from bayesrep.vision.classes import IMAGENET, Classes
from bayesrep.vision.contents import UNKNOWN_CONTENT, Contents, write
from bayesrep.vision.devices import Device
from bayesrep.vision.evaluate import identity_of
from bayesrep.vision.images import ImageSet

FORMAT = 1
VALUES, _CONTENTS, _IMAGES = "logits.npy", "contents.npy", "images.parquet"
_KEY = "bayesrep"


def logits_folder(study: Path, dataset: str, classifier: str = "") -> Path:
    """Where logits are kept: of a data set, or of one classifier on it."""
    place = study / folder.LOGITS / folder.prediction_folder(dataset).name
    return place / folder.prediction_file(dataset, classifier).stem if classifier else place


def _dtype_of(device: Device) -> np.dtype[Any]:
    """The type in which a device's outputs are kept without being rounded."""
    return np.dtype(np.float16 if device.precision == "float16" else np.float32)


class KeptLogits:
    """The outputs of one classifier on one data set, on their way to being complete.

    Parameters
    ----------
    place
        Their folder.
    images, contents
        All images they should cover, and what these hold.
    identity
        What must agree before rows of two runs may stand in one file.
    classes, dtype
        What the outputs mean, and their type.

    Raises
    ------
    PredictionError
        Where rows are there that were made otherwise or cannot be read, or the disk has no room.
    """

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
        shown = {"outputs": list(classes.names), "folders": list(classes.folders)}
        facts = json.loads(json.dumps({"logits": FORMAT, **identity, **classes.identity, **shown}))
        labels = np.asarray(images.classes.names)[images.labels]
        table = pl.DataFrame({"image": images.names, "label": labels.tolist()})
        told = {_KEY: json.dumps(facts)}
        earlier = read_logits(place) if place.exists() else None
        if earlier is not None:
            earlier.check_same(facts)
        if earlier is None or not earlier.table["image"].equals(table["image"]):
            _make_files(place, table, told, (len(images), len(classes)), dtype, earlier)
        elif not earlier.table.equals(table):
            write(table, place / _IMAGES, told)
        self._values = np.load(place / VALUES, mmap_mode="r+", allow_pickle=False)
        self._marks = np.load(place / _CONTENTS, mmap_mode="r+", allow_pickle=False)
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
        """Whether there is a row [N] for each image."""
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
    known: Sequence[Architecture],
    device: Device,
    *,
    force: bool,
) -> dict[str, KeptLogits]:
    """The files of every classifier, made where they are not there; see `KeptLogits`."""
    kept: dict[str, KeptLogits] = {}
    for each in known:
        place = logits_folder(study, dataset, each.name)
        if force:
            shutil.rmtree(place, ignore_errors=True)
        identity, dtype = identity_of(each, device), _dtype_of(device)
        kept[each.name] = KeptLogits(place, images, contents, identity, each.classes, dtype)
    return kept


def check_room(
    study: Path,
    counts: Mapping[str, int],
    known: Sequence[Architecture],
    device: Device,
) -> None:
    """Refuse logits that the disk has no room for, beside what is there already."""
    size, need = _dtype_of(device).itemsize, 0
    for dataset, count in counts.items():
        for each in known:
            file = logits_folder(study, dataset, each.name) / VALUES
            there = file.stat().st_size if file.exists() else 0
            need += max(0, count * len(each.classes) * size - there)
    above = next(path for path in (study, *study.absolute().parents) if path.exists())
    free = shutil.disk_usage(above).free
    if need > free:
        raise PredictionError(
            "no-room-for-logits",
            folder=study / folder.LOGITS,
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
    """Make all files, with what an earlier run left of images that are still there."""
    new = place.with_name(f".{place.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    try:
        new.mkdir(parents=True)
        values = _new_array(new / VALUES, shape, dtype)
        marks = _new_array(new / _CONTENTS, shape[:1], np.dtype(np.uint64))
        if earlier is not None:
            rows = {name: row for row, name in enumerate(earlier.table["image"])}
            both = [(row, rows[name]) for row, name in enumerate(table["image"]) if name in rows]
            for row, old in both:
                values[row], marks[row] = earlier.values[old], earlier.contents[old]
        values.flush()
        marks.flush()
        write(table, new / _IMAGES, facts)
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
    """What is kept of one classifier on one data set.

    Attributes
    ----------
    place
        Its folder.
    table
        image, label: a row for each of the array's.
    values : [N, K]
        The outputs, mapped into memory.
    contents : uint64 [N]
        What each image held; 0 where there is no row.
    facts
        How they were made.
    """

    place: Path
    table: pl.DataFrame
    values: NDArray[Any]
    contents: NDArray[np.uint64]
    facts: Mapping[str, Any]

    @property
    def identity(self) -> dict[str, Any]:
        """What answers of these outputs say of how they were made."""
        ours = ("logits", "outputs", "folders", "classes")
        return {name: value for name, value in self.facts.items() if name not in ours}

    @property
    def classes(self) -> Classes:
        """What the outputs mean."""
        names, folders = tuple(self.facts["outputs"]), tuple(self.facts["folders"])
        same = (names, folders) == (IMAGENET.names, IMAGENET.folders)
        return IMAGENET if same else Classes(names, folders, self.place / _IMAGES)

    def check_same(self, facts: Mapping[str, Any]) -> None:
        """Refuse rows that were made otherwise."""
        for name, value in facts.items():
            if self.facts.get(name) != value:
                raise PredictionError(
                    "logits-made-otherwise", folder=self.place, setting=name, advice=_ADVICE
                )


_ADVICE = "remove the folder, or replace it by predict with --keep logits and --force"


def read_logits(place: Path) -> LogitsFile:
    """Read what is kept of one classifier on one data set."""
    try:
        table = parquet.read(place / _IMAGES, str(place / _IMAGES), ["image", "label"])
        facts = strict_json.parse(pl.read_parquet_metadata(place / _IMAGES).get(_KEY) or "null")
        values, contents = (_map_array(place / name) for name in (VALUES, _CONTENTS))
    except StudyError as error:
        raise PredictionError(error.violation) from error
    except (OSError, ValueError) as error:
        raise PredictionError(
            "logits-unreadable", folder=place, reason=reason(error), advice=_ADVICE
        ) from error
    if not isinstance(facts, dict) or facts.get("logits") != FORMAT:
        raise PredictionError("logits-of-another-version", folder=place, advice=_ADVICE)
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
            advice=_ADVICE,
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
