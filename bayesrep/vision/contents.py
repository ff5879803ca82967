"""What images hold, as digests, remembered so that unchanged files are not read again.

    STUDY/.contents/<dataset>.parquet    stamp, content

An image's content is a digest of its encoded bytes. Its stamp is a digest of where these bytes are
and of their file's size and times of change (see `bayesrep.vision.images.ImageSet.stamps`): while
it stays the same, the content is taken to be what it was; otherwise the bytes are read and digested
again.
"""

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.errors import PredictionError, StudyError, reason
from bayesrep.files import parquet
from bayesrep.machine import cores
from bayesrep.studies import folder
from bayesrep.types import Ints
from bayesrep.vision.images import ImageSet

UNKNOWN_CONTENT = 0  # the content of an image that has not been read, or cannot be
_COLUMNS = {"stamp": pl.UInt64, "content": pl.UInt64}
_IMAGES_AT_ONCE = 256  # images digested between two chances to be interrupted


def digest(data: bytes) -> int:
    """64 bits that tell images apart; never `UNKNOWN_CONTENT`."""
    number = int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
    return number or UNKNOWN_CONTENT + 1


def write(table: pl.DataFrame, file: Path, facts: Mapping[str, str] | None = None) -> None:
    """Write what a run has found so far, or say in one line that it cannot be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        parquet.write(table, file, facts)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise PredictionError(
            "results-file-not-writable", file=file, reason=reason(error)
        ) from error


class Contents:
    """What the images of a data set hold, as far as it is known.

    Parameters
    ----------
    images
        All images.
    study, dataset
        Where their contents are remembered.

    Attributes
    ----------
    known : uint64 [N]
        The content of each image, `UNKNOWN_CONTENT` where nobody has needed it.
    """

    def __init__(self, images: ImageSet, study: Path, dataset: str) -> None:
        self._images, self._stamps = images, images.stamps()
        self._file = study / ".contents" / f"{folder.prediction_folder(dataset).name}.parquet"
        self.known = self._recall_contents()
        self._written = self.known.copy()

    def contents_of(self, rows: Ints) -> NDArray[np.uint64]:
        """The contents of some images, reading those that are not known."""
        unknown = rows[self.known[rows] == UNKNOWN_CONTENT]
        with ThreadPoolExecutor(cores(), "bayesrep-digest") as pool:
            for first in range(0, len(unknown), _IMAGES_AT_ONCE):
                some = unknown[first : first + _IMAGES_AT_ONCE]
                self.known[some] = list(pool.map(self._digest, some.tolist()))
        return self.known[rows]

    def note(self, rows: Ints, contents: NDArray[np.uint64]) -> None:
        """Take in what images held when they were decoded."""
        self.known[rows] = contents

    def save(self) -> None:
        """Remember what is known for later runs."""
        if np.array_equal(self.known, self._written):
            return
        rows = np.flatnonzero(self.known != UNKNOWN_CONTENT)
        table = pl.DataFrame(
            {"stamp": self._stamps[rows], "content": self.known[rows]}, schema=_COLUMNS
        )
        write(table, self._file)
        self._written = self.known.copy()

    def _digest(self, row: int) -> int:
        try:
            return digest(self._images.read(row))
        except (OSError, PredictionError):  # decoding will stumble over it too, and say so
            return UNKNOWN_CONTENT

    def _recall_contents(self) -> NDArray[np.uint64]:
        """The contents of images whose stamp is that of an earlier run."""
        known = np.full(len(self._images), UNKNOWN_CONTENT, dtype=np.uint64)
        try:
            table = parquet.read(self._file, self._file.name, list(_COLUMNS))
        except StudyError:  # without it, images are read again
            return known
        if table.schema != _COLUMNS:
            return known
        now = pl.DataFrame({"stamp": self._stamps}).with_row_index("row")
        same = now.join(table.unique("stamp"), on="stamp", how="inner").drop_nulls()
        known[same["row"].to_numpy()] = same["content"].to_numpy()
        return known
