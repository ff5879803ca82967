"""The development kit's `meta.mat`: the wnids of the challenge's own numbers.

A reader of just that much of MATLAB's version 5 files: the structure array `synsets` with its
fields ILSVRC2012_ID and WNID. Every declared size is checked against the existing bytes before
anything is read, and compressed data are decompressed up to a bound. (Readers of the whole format
follow such sizes; SciPy's ends the process on some damaged files.)

The format: elements of an 8-byte tag (type, size) and their data, or of 4 bytes and up to 4 of
data; a matrix is an element of elements: flags, dimensions, name, and what its class needs.
"""

import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import PredictionError, reason
from bayesrep.studies.imagenet import N_CLASSES, synsets

MAX_FILE_BYTES = (
    2**24
)  # bytes, of the file and of what it unpacks to; the kit's has some hundred thousand
_HEADER_BYTES, _TAG_BYTES = 128, 8
_MATRIX_TYPE, _COMPRESSED_TYPE = 14, 15
_STRUCT_CLASS, _CHAR_CLASS, _NUMERIC_CLASSES = 2, 4, range(6, 16)  # numeric: double to uint64
_DTYPE_OF_TYPE = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
    16: "u1",  # UTF-8, -16 and -32: wnids are ASCII
    17: "u2",
    18: "u4",
}


@dataclass(frozen=True)
class _Element:
    """A piece of the file: the type of its data, and the data."""

    type: int
    data: memoryview


def read_wnids(path: Path) -> dict[int, str]:
    """The wnid of every number in a `meta.mat`, once it is the development kit's and whole."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise ValueError(f"more than {MAX_FILE_BYTES:,} bytes")
        return _synsets(data, path)
    except PredictionError:
        raise
    except (OSError, ValueError, ArithmeticError, zlib.error, struct.error) as error:
        raise PredictionError("meta-mat-not-of-devkit", path=path, reason=reason(error)) from error


def _synsets(data: bytes, path: Path) -> dict[int, str]:
    order = {b"IM": "<", b"MI": ">"}.get(data[126:128])
    if order is None:
        raise ValueError("no MATLAB file of version 5")
    for element in _elements(memoryview(data)[_HEADER_BYTES:], order, padded=False):
        if element.type == _COMPRESSED_TYPE:
            (element,) = _elements(_unpack(element.data, path), order)
        if element.type == _MATRIX_TYPE:
            flags, shape, name, *rest = _elements(element.data, order)
            if _text(name, order) == "synsets" and _class(flags, order) == _STRUCT_CLASS:
                count = math.prod(int(size) for size in _numbers(shape, order))
                return _rows(count, rest, order, path)
    raise ValueError("it holds no structure called synsets")


def _elements(data: memoryview, order: str, *, padded: bool = True) -> Iterator[_Element]:
    """Yield the elements in some data; those in the file itself are not padded when compressed."""
    offset = 0
    while offset < len(data):
        first, size = struct.unpack_from(f"{order}II", data, offset)
        if first >> 16:  # the small form: size and type in four bytes, the data in four more
            kind, size, begin, end = first & 0xFFFF, first >> 16, offset + 4, offset + _TAG_BYTES
            if size > 4:
                raise ValueError("a small element of more than 4 bytes")
        else:
            kind, begin = first, offset + _TAG_BYTES
            end = begin + (size if kind == _COMPRESSED_TYPE and not padded else -(-size // 8) * 8)
        if begin + size > len(data):
            raise ValueError("an element is larger than what is left of the file")
        yield _Element(kind, data[begin : begin + size])
        offset = end


def _unpack(data: memoryview, path: Path) -> memoryview:
    unpacker = zlib.decompressobj()
    unpacked = unpacker.decompress(data, MAX_FILE_BYTES)
    if not unpacker.eof:  # which also means that its checksum was right
        raise PredictionError("meta-mat-unpacks-too-large", path=path, most_bytes=MAX_FILE_BYTES)
    return memoryview(unpacked)


def _rows(count: int, elements: list[_Element], order: str, path: Path) -> dict[int, str]:
    """Read WNID by ILSVRC2012_ID from the elements of a structure array behind its name."""
    width, names, *cells = elements
    longest = int(_numbers(width, order)[0])
    if longest < 1:
        raise ValueError("names of fields without a letter")
    packed = bytes(names.data)
    parts = (packed[offset : offset + longest] for offset in range(0, len(packed), longest))
    fields = [part.split(b"\0")[0].decode("latin-1") for part in parts]
    if len(cells) != count * len(fields):
        raise ValueError(f"{len(cells)} values in {count} rows of {len(fields)} fields")
    number, wnid = fields.index("ILSVRC2012_ID"), fields.index("WNID")
    wnid_of: dict[int, str] = {}
    for first in range(0, len(cells), len(fields)):
        key = _scalar(cells[first + number], order)
        if key in wnid_of:
            raise ValueError(f"the number {key} is there twice")
        wnid_of[key] = _characters(cells[first + wnid], order)
    if len(set(wnid_of.values())) < len(wnid_of):
        raise ValueError("a wnid is there twice")
    classes = {wnid_of.get(number) for number in range(1, N_CLASSES + 1)}
    if len(wnid_of) >= N_CLASSES and classes != set(synsets()):
        raise PredictionError("meta-mat-of-other-classes", path=path, class_count=N_CLASSES)
    return wnid_of


def _scalar(cell: _Element, order: str) -> int:
    flags, _, _, values, *_ = _elements(cell.data, order)
    numbers = _numbers(values, order)
    if (
        _class(flags, order) not in _NUMERIC_CLASSES
        or len(numbers) != 1
        or numbers[0] != int(numbers[0])
    ):
        raise ValueError("an ILSVRC2012_ID that is not a whole number")
    return int(numbers[0])


def _characters(cell: _Element, order: str) -> str:
    flags, _, _, values, *_ = _elements(cell.data, order)
    text = _text(values, order)
    if _class(flags, order) != _CHAR_CLASS or not (text[:1] == "n" and text[1:].isdecimal()):
        raise ValueError(f"a WNID {text[:20]!r} that is none")
    return text


def _class(flags: _Element, order: str) -> int:
    return int(_numbers(flags, order)[0]) & 0xFF


def _text(element: _Element, order: str) -> str:
    codes = _numbers(element, order)[:100] if len(element.data) else ()
    return "".join(chr(int(code)) for code in codes if 0 < code < 128)


def _numbers(element: _Element, order: str) -> NDArray[Any]:
    kind = _DTYPE_OF_TYPE.get(element.type)
    if kind is None:
        raise ValueError(f"numbers of an unknown type {element.type}")
    dtype = np.dtype(order + kind)
    if not len(element.data) or len(element.data) % dtype.itemsize:
        raise ValueError("an array that is cut off")
    return np.frombuffer(element.data, dtype=dtype)
