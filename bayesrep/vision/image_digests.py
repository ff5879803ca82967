"""Digests of images' contents, remembered in STUDY/.contents/DATASET.parquet (stamp, content).

While the stamp of an image's place and file (`ImageSet.stamps`) is the same, so is its content.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.errors import PredictionError, StudyError, reason
from bayesrep.files import parquet
from bayesrep.files.digests import short_digest
from bayesrep.machine import cores
from bayesrep.studies import layout
from bayesrep.types import Ints
from bayesrep.vision.images import ImageSet

UNKNOWN_CONTENT = 0  # content of an image that was not or cannot be read
_DIGEST_SCHEMA = {"stamp": pl.UInt64, "content": pl.UInt64}
_DIGEST_BATCH_IMAGES = 256  # images digested between two chances to be interrupted


def digest(data: bytes) -> int:
    """64 bits that tell images apart; never `UNKNOWN_CONTENT`."""
    number = int.from_bytes(short_digest(data), "little")
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
    """Digests of a data set's images, `UNKNOWN_CONTENT` before they are needed."""

    def __init__(self, images: ImageSet, study: Path, dataset: str) -> None:
        self._images, self._stamps = images, images.stamps()
        self._file = study / ".contents" / f"{layout.prediction_folder(dataset).name}.parquet"
        self.known = self._recall_contents()
        self._written = self.known.copy()

    def contents_of(self, rows: Ints) -> NDArray[np.uint64]:
        """The contents of some images, reading those that are not known."""
        unknown = rows[self.known[rows] == UNKNOWN_CONTENT]
        with ThreadPoolExecutor(cores(), "bayesrep-digest") as pool:
            for first in range(0, len(unknown), _DIGEST_BATCH_IMAGES):
                some = unknown[first : first + _DIGEST_BATCH_IMAGES]
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
            {"stamp": self._stamps[rows], "content": self.known[rows]}, schema=_DIGEST_SCHEMA
        )
        write(table, self._file)
        self._written = self.known.copy()

    def _digest(self, row: int) -> int:
        try:
            return digest(self._images.read(row))
        except (OSError, PredictionError):  # decoding will stumble over it too, and say so
            return UNKNOWN_CONTENT

    def _recall_contents(self) -> NDArray[np.uint64]:
        """Recall contents of images whose stamp is that of an earlier run."""
        contents = np.full(len(self._images), UNKNOWN_CONTENT, dtype=np.uint64)
        try:
            table = parquet.read(self._file, self._file.name, list(_DIGEST_SCHEMA))
        except StudyError:  # without it, images are read again
            return contents
        if table.schema != _DIGEST_SCHEMA:
            return contents
        now = pl.DataFrame({"stamp": self._stamps}).with_row_index("row")
        same = now.join(table.unique("stamp"), on="stamp", how="inner").drop_nulls()
        contents[same["row"].to_numpy()] = same["content"].to_numpy()
        return contents
