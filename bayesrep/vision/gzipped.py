"""Archives packed by gzip, read from any place of what they hold without being unpacked.

What gzip packs can only be read from its beginning, or from a place where somebody has kept the
state of who read up to there. Whoever passes leaves such a state every megabyte or so, so that the
archive is gone through once, when its files are listed, and an image costs the inflating of at most
what lies between two of them.
"""

import os
import zlib
from bisect import bisect_right
from functools import lru_cache
from threading import Lock, local
from typing import Any, BinaryIO, NamedTuple

ENDINGS = (".tar.gz", ".tgz")
_CHUNK = 2**16  # bytes read, and inflated, at once
_SPACING = 2**20  # bytes between two states, to begin with
_MOST_STATES = 2_000  # some 45 kB each
_ALWAYS, _MOST_TIMES = 2**28, 100  # bytes that are inflated of any file; of larger ones, their size


class _InflaterState(NamedTuple):
    """How to go on from a place: where it is in what is held and in the file, and by whom."""

    place: int
    file_place: int
    inflater: Any


class _InflaterCursor:
    """A place in what an archive holds, and how to go on from there."""

    def __init__(self, stream: BinaryIO, state: _InflaterState) -> None:
        self._stream, self.place = stream, state.place
        self._inflater, self._packed = state.inflater.copy(), b""
        stream.seek(state.file_place)

    def state(self) -> _InflaterState:
        """The state at this place, for whoever goes on from here."""
        return _InflaterState(
            self.place, self._stream.tell() - len(self._packed), self._inflater.copy()
        )

    def take(self, most: int) -> bytes:
        """The bytes that follow, `most` or fewer; none at the end."""
        while True:
            packed = self._packed or self._stream.read(_CHUNK)
            if self._inflater.eof:  # another part may follow, or zeros
                if not packed.strip(b"\0"):
                    self._packed = b""
                    if packed:
                        continue
                    return b""
                self._inflater = zlib.decompressobj(31)
            elif not packed:
                raise ValueError("it is cut off: its packed data end too early")
            try:
                taken = self._inflater.decompress(packed, most)
            except zlib.error as error:
                raise ValueError(f"its packed data are damaged: {error}") from error
            ended = self._inflater.eof
            self._packed = self._inflater.unused_data if ended else self._inflater.unconsumed_tail
            if taken:
                self.place += len(taken)
                return taken


class Gzipped:
    """An archive packed by gzip; several threads may read it."""

    def __init__(self, file: str) -> None:
        self._file, self._lock = file, Lock()
        self._most = max(_ALWAYS, _MOST_TIMES * os.path.getsize(file))
        self._states = [_InflaterState(0, 0, zlib.decompressobj(31))]
        self._spacing = _SPACING
        self._mine = local()

    def read(self, offset: int, size: int) -> bytes:
        """The bytes at a place; fewer where the archive ends.

        Raises
        ------
        ValueError
            Where it is cut off or damaged up to there, or holds far more than any archive of
            images.
        """
        with open(self._file, "rb") as stream:
            cursor = self._nearest_cursor(stream, offset)
            while cursor.place < offset:
                if not self._advance(cursor, offset - cursor.place):
                    return b""
            parts, missing = list[bytes](), size
            while missing and (part := self._advance(cursor, missing)):
                parts.append(part)
                missing -= len(part)
            self._mine.state = cursor.state()  # the next image of this thread likely follows
        return b"".join(parts)

    def read_to_end(self) -> None:
        """Go through what no one has read yet: then the checksum of the whole is right."""
        with open(self._file, "rb") as stream:
            cursor = self._nearest_cursor(stream, 2**63)
            while self._advance(cursor, _CHUNK):
                pass

    def _nearest_cursor(self, stream: BinaryIO, offset: int) -> _InflaterCursor:
        """The nearest known place before another."""
        with self._lock:
            at = bisect_right(self._states, offset, key=lambda state: state.place) - 1
            state = self._states[at]
        last = getattr(self._mine, "state", state)
        return _InflaterCursor(stream, last if state.place < last.place <= offset else state)

    def _advance(self, cursor: _InflaterCursor, most: int) -> bytes:
        """Take what follows, and leave a state where none is near."""
        taken = cursor.take(min(most, _CHUNK))
        if cursor.place > self._most:
            raise ValueError(f"more than {self._most:,} bytes are packed in it")
        if cursor.place >= self._states[-1].place + self._spacing:
            with self._lock:
                if cursor.place >= self._states[-1].place + self._spacing:
                    self._states.append(cursor.state())
                if len(self._states) > _MOST_STATES:
                    self._states, self._spacing = self._states[::2], 2 * self._spacing
        return taken


class GzippedStream:
    """What an archive holds, as a stream of which the end is not known."""

    def __init__(self, archive: Gzipped) -> None:
        self._archive, self._place = archive, 0

    def seek(self, place: int) -> None:
        """Go to a place."""
        self._place = place

    def tell(self) -> int:
        """The place."""
        return self._place

    def read(self, size: int) -> bytes:
        """The bytes that follow."""
        data = self._archive.read(self._place, size)
        self._place += len(data)
        return data


def is_gzipped(file: str) -> bool:
    """Whether an archive is packed by gzip, by its name."""
    return file.lower().endswith(ENDINGS)


def open_gzipped(file: str) -> Gzipped:
    """An archive as it is now; what is known of its places is kept while it stays the same."""
    status = os.stat(file)
    return _open_archive(file, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=64)
def _open_archive(file: str, _size: int, _time: int) -> Gzipped:
    return Gzipped(file)
