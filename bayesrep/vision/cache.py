"""Preprocessed images on disk, memory-mapped: decoded once, read by every later pass.

Pixels reach the disk before their content, so that no crash leaves a content without its pixels.
"""

import json
import math
import mmap
import os
from dataclasses import asdict
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import PredictionError, reason
from bayesrep.files.digests import digest_parts
from bayesrep.types import Ints
from bayesrep.vision.image_digests import UNKNOWN_CONTENT
from bayesrep.vision.pixels import KeptPixels, Preprocessing


class PixelCache:
    """The pixels of a set of images, by its fingerprint and preprocessing, in a shared folder."""

    def __init__(
        self, folder: Path, fingerprint: str, images: int, preprocessing: Preprocessing
    ) -> None:
        from PIL import __version__ as pillow  # resizing may change between versions

        key = f"{fingerprint}\n{preprocessing!r}\n{pillow}"
        self._folder = folder / digest_parts([key.encode()])[:24]
        shape = (images, *preprocessing.size, 3)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._map = _map_file(self._folder / "pixels.uint8", math.prod(shape))
            self._marks = _map_file(self._folder / "content.uint64", 8 * images)
            about = {"images": images, "pillow": pillow, **asdict(preprocessing)}
            (self._folder / "about.json").write_text(json.dumps(about, indent=2) + "\n")
        except OSError as error:
            raise PredictionError(
                "pixel-cache-not-writable",
                folder=folder,
                gigabytes=math.prod(shape) / 1000000000.0,
                reason=reason(error),
            ) from error
        self._pixels = np.frombuffer(self._map, dtype=np.uint8).reshape(shape)
        self._done = np.frombuffer(self._marks, dtype=np.uint64)
        self._known = self._done.copy()
        self._pending: list[int] = []
        self._lock = Lock()

    def get(self, rows: Ints) -> KeptPixels | None:
        """Return these images' pixels, or None if some are missing."""
        contents = self._known[rows]
        if not len(rows) or (contents == UNKNOWN_CONTENT).any():
            return None
        first, last = int(rows[0]), int(rows[-1])
        if last - first + 1 == len(rows) and (np.diff(rows) == 1).all():
            return KeptPixels(self._pixels[first : last + 1], contents)  # a view: nothing is copied
        return KeptPixels(self._pixels[rows], contents)

    def put(self, row: int, pixels: NDArray[np.uint8], content: int) -> None:
        """Keep the pixels [H, W, 3] of one image, and the content they were made from."""
        if self._known[row] != UNKNOWN_CONTENT:
            return
        self._pixels[row] = pixels
        with self._lock:
            self._known[row] = content
            self._pending.append(row)

    def flush(self) -> None:
        """Bring all pixels to the disk, then mark them as complete; let go of the memory."""
        with self._lock:
            pending, self._pending = self._pending, []
        if pending:
            self._map.flush()
            self._done[pending] = self._known[pending]
            self._marks.flush()
        if hasattr(mmap, "MADV_DONTNEED"):  # pages of the map would count as this process's own
            self._map.madvise(mmap.MADV_DONTNEED)


def _map_file(path: Path, size: int) -> mmap.mmap:
    """Map a file, with the disk's room reserved before anything is written."""
    with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b") as file:
        if os.fstat(file.fileno()).st_size != size:
            # Writing through a map to a full disk kills the process: better an error now.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            file.truncate(size)
        return mmap.mmap(file.fileno(), size)
