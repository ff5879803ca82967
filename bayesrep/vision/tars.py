"""Files of a tar archive from its headers, by `tarfile`; damage it takes in silence is refused."""

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tarfile import TarError
from typing import BinaryIO, Self

from bayesrep.errors import PredictionError, reason
from bayesrep.vision.gzipped import unpack_archive

MAX_RECORD_BYTES = 2**20  # bytes of the records that lengthen a name; names have some thousands
MAX_EMPTY_FILES = 50_000  # files without a byte
_FOLDER_KINDS = (tarfile.DIRTYPE, b"D", b"V")  # also GNU's, and the name of the whole
_RECORD_KINDS = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)


class _TarHeader(tarfile.TarInfo):
    """A header whose size leads neither back nor, of a record, to more than names can have."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        header = super().frombuf(buf, encoding, errors)
        if header.size < 0 or (header.type in _RECORD_KINDS and header.size > MAX_RECORD_BYTES):
            raise ValueError(f"a header declares {header.size:,} bytes")
        return header


def members(archive: Path) -> Iterator[tarfile.TarInfo]:
    """Yield the files in an archive, in order, unless it is damaged or goes on behind its end."""
    try:
        with open(unpack_archive(str(archive)), "rb") as stream:
            yield from _members(stream, os.fstat(stream.fileno()).st_size, archive)
    except PredictionError:
        raise
    # Of forged headers tarfile raises nearly anything.
    except (ArithmeticError, LookupError, OSError, RecursionError, ValueError, TarError) as error:
        raise PredictionError(
            "tar-file-unreadable", archive=archive, reason=reason(error)
        ) from error


def _members(stream: BinaryIO, end: int, archive: Path) -> Iterator[tarfile.TarInfo]:
    empty = 0
    with tarfile.TarFile(fileobj=stream, tarinfo=_TarHeader, encoding="utf-8") as tar:
        while (each := tar.next()) is not None:
            empty += not each.size
            if empty > MAX_EMPTY_FILES:
                raise PredictionError("tar-of-empty-files", archive=archive, most=MAX_EMPTY_FILES)
            if each.issparse():
                raise PredictionError("tar-holds-sparse-file", archive=archive, name=each.name)
            if each.size < 0 or (each.isreg() and each.offset_data + each.size > end):
                raise ValueError(f"it ends within the file that begins at byte {each.offset_data}")
            _check_record(stream, each)
            if each.type not in _FOLDER_KINDS:
                yield each
            # Else all headers stay in memory.
            tar.members.clear()  # pyright: ignore[reportAttributeAccessIssue]
        # Behind the mark of the end are zeros alone; tarfile also ends at a header that is damaged.
        stream.seek(tar.offset)
        rest = stream.read(MAX_RECORD_BYTES)
        if len(rest) < tarfile.BLOCKSIZE or rest.strip(b"\0"):
            raise ValueError(f"it is cut off, damaged or goes on at byte {tar.offset} of {end}")


def _check_record(stream: BinaryIO, header: tarfile.TarInfo) -> None:
    """Check that a record in front of a header is "LENGTH NAME=VALUE" throughout."""
    stream.seek(header.offset)
    record = stream.read(header.offset_data - header.offset - tarfile.BLOCKSIZE)
    if record[156:157] != tarfile.XHDTYPE:
        return
    record = record[tarfile.BLOCKSIZE :]
    while record.strip(b"\0"):
        length = int(record.partition(b" ")[0])
        if not 0 < length <= len(record) or b"=" not in record[:length]:
            raise ValueError("a record of an extended header has no length or no value")
        record = record[length:]
