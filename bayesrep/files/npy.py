"""NumPy's own files: their headers read by a pattern, their sizes checked before anything is.

NumPy itself parses a header as Python source, and makes an array before it looks at the data.
"""

import math
import re
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# As NumPy writes it, "L" after lengths by Python 2: a plain type, never a record or a sub-array.
_HEADER_PATTERN = re.compile(
    r"\{'descr': '([<>|=]?[?biufcSUOmM]\d{0,9}(?:\[\d{0,9}[A-Za-z]{1,2}\])?)', "
    r"'fortran_order': (True|False), 'shape': \(((?:\d{1,18}L?, ?)*(?:\d{1,18}L?)?)\),? ?\}\s*"
)
_LENGTH_BYTES = {1: 2, 2: 4, 3: 4}  # bytes of the header's length, by version of the format
_HEADER_LIMIT = 10_000


class Header(NamedTuple):
    """Shape, order and type of the file's array."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """The number of values."""
        return math.prod(self.shape)


def read_header(stream: IO[bytes]) -> Header:
    """Read up to where the data begin; a ValueError where this is not a plain array of NumPy."""
    start = stream.read(8)
    if len(start) < 8 or start[:6] != b"\x93NUMPY":
        raise ValueError("it does not begin as NumPy's files do")
    if start[6] not in _LENGTH_BYTES:
        raise ValueError(f".npy format {start[6]}.{start[7]} is unknown; save the array anew")
    length = int.from_bytes(stream.read(_LENGTH_BYTES[start[6]]), "little")
    text = stream.read(length).decode("latin-1") if length <= _HEADER_LIMIT else ""
    match = _HEADER_PATTERN.fullmatch(text)
    if match is None:
        raise ValueError("its header is not that of a plain array")
    kind, fortran, lengths = match.groups()
    try:
        dtype = np.dtype(kind)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"its header names the type {kind!r}") from None
    shape = tuple(int(each.strip(" L")) for each in lengths.split(",") if each.strip())
    return Header(shape, fortran == "True", dtype)


def read(stream: IO[bytes], size: int) -> NDArray[Any]:
    """Read an array of anything but objects from a file of `size` bytes, as its header says."""
    header = read_header(stream)
    if header.dtype.hasobject:
        raise ValueError("it holds Python objects")
    length = size - stream.tell()
    if header.size * header.dtype.itemsize != length:
        raise ValueError(
            f"its header speaks of {list(header.shape)} values, it has {length:,} bytes"
        )
    data = bytearray(stream.read(length))  # an array that can be written to, as NumPy's own
    if len(data) != length:
        raise ValueError("it ends too early")
    if stream.read(1):  # also where the archives of arrays compare their checksums
        raise ValueError("it goes on after its end")
    flat = np.frombuffer(data, header.dtype) if length else np.empty(header.size, header.dtype)
    return flat.reshape(header.shape, order="F" if header.fortran else "C")
