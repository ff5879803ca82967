"""Files of a tar archive, from its headers alone, which are not trusted.

A header is a block of 512 bytes; its declared sizes are checked against the archive's before
anything is read. The forms of POSIX (ustar, pax) and GNU (long names) are supported. Folders are
passed over; sparse files are refused, since their bytes are not stored as one piece.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from bayesrep.errors import PredictionError, reason
from bayesrep.vision.gzipped import unpack_archive

TAR_BLOCK_BYTES = 512
MAX_RECORD_BYTES = 2**20  # bytes of the records that lengthen a name; names have some thousands
MAX_EMPTY_FILES = 50_000  # files without a byte
_FILE_KINDS = (b"0", b"\0", b"7")
_FOLDER_KINDS = (b"5", b"D", b"V")  # also GNU's, and the name of the whole
_NO_DATA = (b"1", b"2", b"3", b"4", b"5", b"6")  # links, devices, folders: their size is not data's
_RECORD_KINDS = (b"x", b"g", b"L", b"K")


@dataclass(frozen=True)
class Member:
    """A file in an archive, or a link or device: its name, offset and size."""

    name: str
    offset: int
    size: int
    is_link: bool = False


def members(archive: Path) -> Iterator[Member]:
    """Yield the files in an archive, in order, unless it is damaged or goes on behind its end."""
    try:
        with open(unpack_archive(str(archive)), "rb") as stream:
            yield from _members(stream, os.fstat(stream.fileno()).st_size, archive)
    except PredictionError:
        raise
    except (ValueError, OSError) as error:
        raise PredictionError(
            "tar-file-unreadable", archive=archive, reason=reason(error)
        ) from error


def _members(stream: BinaryIO, end: int, archive: Path) -> Iterator[Member]:
    offset, empty, longer = 0, 0, dict[str, str]()
    while (header := _header_at(stream, offset, end, archive)) is not None:
        kind = header[156:157]
        size = int(longer.pop("size", 0)) or _number(header[124:136], offset, archive)
        begin = offset + TAR_BLOCK_BYTES
        empty += not size
        if empty > MAX_EMPTY_FILES:
            raise PredictionError("tar-of-empty-files", archive=archive, most=MAX_EMPTY_FILES)
        offset = begin + (0 if kind in _NO_DATA else -(-size // TAR_BLOCK_BYTES) * TAR_BLOCK_BYTES)
        if begin + (0 if kind in _NO_DATA else size) > end:
            raise PredictionError("tar-ends-within-file", archive=archive, at=begin)
        if kind in _RECORD_KINDS:
            if size > MAX_RECORD_BYTES:
                raise PredictionError(
                    "tar-name-too-long", archive=archive, byte_count=size, at=begin
                )
            stream.seek(begin)
            longer |= _records(kind, stream.read(size), archive)
            continue
        name = longer.pop("path", None) or _name(header)
        if kind == b"S" or any(key.startswith("GNU.sparse") for key in longer):
            raise PredictionError("tar-holds-sparse-file", archive=archive, name=name)
        longer = {}
        if not (kind in _FOLDER_KINDS or name.endswith("/")):
            yield Member(name, begin, size, kind not in _FILE_KINDS)
    _check_end(stream, offset, end, archive)


def _header_at(stream: BinaryIO, offset: int, end: int, archive: Path) -> bytes | None:
    """Read the header at an offset and check its checksum; None at the archive's end mark."""
    stream.seek(offset)
    header = stream.read(TAR_BLOCK_BYTES)
    if len(header) < TAR_BLOCK_BYTES:
        raise PredictionError("tar-without-end-mark", archive=archive, at=end)
    if not header.strip(b"\0"):
        return None
    declared = _number(header[148:156], offset, archive)
    rest = header[:148] + b" " * 8 + header[156:]
    # Some old programs add up signed bytes.
    if declared != sum(rest) and declared != sum(rest) - 256 * sum(b > 127 for b in rest):
        raise PredictionError("tar-header-checksum-wrong", archive=archive, at=offset)
    return header


def _check_end(stream: BinaryIO, offset: int, end: int, archive: Path) -> None:
    """Check that nothing follows the end mark: joined archives, a header turned to zeros."""
    stream.seek(offset)
    if stream.read(MAX_RECORD_BYTES).strip(b"\0"):
        raise PredictionError("tar-goes-on-behind-end", archive=archive, at=offset, byte_count=end)


def _name(header: bytes) -> str:
    name = _text(header[:100])
    prefix = _text(header[345:500]) if header[257:263] == b"ustar\0" else ""
    return f"{prefix}/{name}" if prefix else name


def _text(field: bytes) -> str:
    return field.split(b"\0")[0].decode("utf-8", "surrogateescape")


def _number(field: bytes, offset: int, archive: Path) -> int:
    """Read a number in octal digits or, where it is large, as GNU's tar writes it, in bytes."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.split(b"\0")[0].strip()
    if digits.strip(b"01234567"):
        raise PredictionError("tar-header-without-number", archive=archive, at=offset)
    return int(digits or b"0", 8)


def _records(kind: bytes, data: bytes, archive: Path) -> dict[str, str]:
    """Read what a record in front of a header changes about it."""
    if kind in (b"K", b"g"):  # the target of a link; what concerns all files: not their names
        return {}
    if not data.strip(b"\0"):
        raise PredictionError("tar-name-record-empty", archive=archive)
    if kind == b"L":
        return {"path": _text(data)}
    records: dict[str, str] = {}
    while data.strip(b"\0"):
        length, _, rest = data.partition(b" ")
        if not length.isdigit() or len(length) > 8 or not len(length) < int(length) <= len(data):
            raise PredictionError("tar-record-without-length", archive=archive)
        if data[int(length) - 1 : int(length)] != b"\n":
            raise PredictionError("tar-record-length-wrong", archive=archive)
        key, equals, value = rest[: int(length) - len(length) - 2].partition(b"=")
        if not equals:
            raise PredictionError("tar-record-without-value", archive=archive)
        records[key.decode("utf-8", "replace")] = value.decode("utf-8", "surrogateescape")
        data = data[int(length) :]
    if "size" in records and not (records["size"].isascii() and records["size"].isdigit()):
        raise PredictionError("tar-size-not-number", archive=archive)
    return records
