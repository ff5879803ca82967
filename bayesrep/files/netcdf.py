"""netCDF files of posteriors: sealed when they are written, tried before they are read.

A seal, a SHA-256 behind the end that HDF5 knows, is compared where there is one.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import Violation, reason
from bayesrep.files.digests import digest_parts

_TRAILER_MARK = b"bayesrep.sha256:"
_TRAILER_BYTES = 2 * len(_TRAILER_MARK) + 64  # marks on both sides, to detect a damaged seal
_PART_BYTES = 2**20
_MIN_MEMORY, _MAX_RATIO = 2**26, 1100  # bytes: at least, or times the file's (gzip's most)
_MAX_LEVELS = 3
# What would make a reader compute values, or look elsewhere for them.
_DECODED_ATTRIBUTES = frozenset(
    {"units", "calendar", "scale_factor", "add_offset", "missing_value", "bounds"}
    | {"grid_mapping", "compress", "_Unsigned", "_Encoding", "cell_measures", "ancillary_variables"}
)

_HDF5_ATTRIBUTES = frozenset(
    {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates"}
    | {"_NCProperties", "_nc3_strict"}
)
_ONLY_A_DIMENSION = "This is a netCDF dimension but not a netCDF variable"


@dataclass(frozen=True, eq=False)
class Variable:
    """An array whose dimensions have names."""

    dims: tuple[str, ...]
    values: NDArray[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.values.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of its values."""
        return self.values.dtype


@dataclass(frozen=True, eq=False)
class Group:
    """A group of a file, like a data set of xarray, whose import takes half a second."""

    # data_vars, coords: variables along dimensions, and the coordinates of the dimensions
    data_vars: Mapping[str, Variable]
    coords: Mapping[str, Variable]
    attrs: Mapping[str, Any]  # attributes

    def __post_init__(self) -> None:
        for name, each in (*self.data_vars.items(), *self.coords.items()):
            lengths = {dim: self.sizes[dim] for dim in each.dims}
            if tuple(lengths.values()) != each.shape or (name in lengths and len(lengths) > 1):
                raise ValueError(f"dimensions of {name} contradict themselves")

    def __getitem__(self, name: str) -> Variable:
        return self.coords[name] if name in self.coords else self.data_vars[name]

    def select(self, *names: str) -> "Group":
        """The group with some of its variables."""
        return Group({name: self.data_vars[name] for name in names}, self.coords, self.attrs)

    def take(self, dim: str, places: Sequence[int]) -> "Group":
        """The group with some places along a dimension, in their order."""
        data_vars, coords = (
            {
                name: Variable(each.dims, np.take(each.values, places, each.dims.index(dim)))
                if dim in each.dims
                else each
                for name, each in part.items()
            }
            for part in (self.data_vars, self.coords)
        )
        return Group(data_vars, coords, self.attrs)

    def __contains__(self, name: object) -> bool:
        return name in self.data_vars or name in self.coords

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Lengths of dimensions."""
        every = (*self.data_vars.values(), *self.coords.values())
        return dict(pair for each in every for pair in zip(each.dims, each.shape, strict=False))


def seal(file: Path) -> None:
    """Append the digest of a file to it."""
    digest = _digest(file, file.stat().st_size)
    with open(file, "ab") as stream:
        stream.write(_TRAILER_MARK + digest + _TRAILER_MARK)


def examine(file: str, where: str) -> Violation | None:
    """Say in one line why a posterior should not be read, or nothing; called in another process."""
    path = Path(file)
    if line := _broken_seal(path, where):
        return line
    # Only where a posterior is read: the import takes longer than all of the above.
    import h5py

    try:
        with h5py.File(path, "r") as opened:
            strange = next(_foreign_parts(h5py, opened, path.stat().st_size), None)
            for group in _groups(h5py, opened).values() if strange is None else ():
                _read_group(h5py, group)
    except MemoryError:
        raise
    except Exception as error:  # these libraries raise nearly anything
        strange = Violation("posterior-file-unreadable", reason=reason(error))
    return strange and describe_foreign_file(strange, where)


def read(file: Path) -> dict[str, Group]:
    """Groups of a file that `examine` has let through, wholly in memory; "/" is the file itself."""
    import h5py

    with h5py.File(file, "r") as opened:
        return {name: _read_group(h5py, each) for name, each in _groups(h5py, opened).items()}


def _groups(h5py: Any, opened: Any) -> dict[str, Any]:
    groups = {name: each for name, each in opened.items() if isinstance(each, h5py.Group)}
    return {"/": opened, **groups}


def _read_group(h5py: Any, group: Any) -> Group:
    """Read a group by netCDF's conventions, whose attributes list the coordinates."""
    attributes = _attributes(h5py, group)
    coordinate_texts, variables = [attributes.pop("coordinates", "")], dict[str, Variable]()
    for name, item in group.items():
        if not isinstance(item, h5py.Dataset) or _read_text(item, "NAME").startswith(
            _ONLY_A_DIMENSION
        ):
            continue
        item_attributes = _attributes(h5py, item)
        texts = h5py.check_string_dtype(item.dtype) is not None
        values = item.asstr(errors="surrogateescape")[...] if texts else item[...]
        own = _read_text(item, "CLASS") == "DIMENSION_SCALE" and item.ndim == 1
        dims = (name,) if own else tuple(each[0].name.rpartition("/")[2] for each in item.dims)
        coordinate_texts.append(item_attributes.pop("coordinates", ""))
        variables[name] = Variable(
            dims, values.astype(bool) if item_attributes.get("dtype") == "bool" else values
        )
    named = {name for text in coordinate_texts for name in str(text).split()}
    along = {name: each for name, each in variables.items() if name in named or name in each.dims}
    rest = {name: each for name, each in variables.items() if name not in along}
    return Group(rest, along, attributes)


def _read_text(item: Any, name: str) -> str:
    """A text among what HDF5 itself keeps of a variable."""
    text = item.attrs.get(name, "")
    return text.decode("ascii", "replace") if isinstance(text, bytes) else str(text)


def _attributes(h5py: Any, holder: Any) -> dict[str, Any]:
    """Read the attributes of a variable or a group, numbers as Python's."""
    attributes: dict[str, Any] = {}
    for name, value in holder.attrs.items():
        if name in _HDF5_ATTRIBUTES:
            continue
        if isinstance(value, h5py.Empty):
            value = ""
        elif isinstance(value, bytes):
            value = value.decode("utf-8", "surrogateescape")
        elif isinstance(value, np.ndarray | np.generic) and value.size == 1:
            value = value.item()
        attributes[name] = value
    return attributes


def describe_foreign_file(strange: Violation, where: object) -> Violation:
    """Complete the violation of a file that should hold a posterior."""
    sentence = f"{where} is not a posterior of bayesrep: {strange}; restore it or fit again"
    return strange.reword(sentence)


def _broken_seal(path: Path, where: str) -> Violation | None:
    size = path.stat().st_size
    with open(path, "rb") as stream:
        stream.seek(max(0, size - _TRAILER_BYTES - len(_TRAILER_MARK)))
        end = stream.read()
    if _TRAILER_MARK not in end:
        return None
    digest = _digest(path, size - _TRAILER_BYTES)
    if end[-_TRAILER_BYTES:] == _TRAILER_MARK + digest + _TRAILER_MARK:
        return None
    return Violation("posterior-file-altered", where=where)


def _digest(path: Path, size: int) -> bytes:
    with open(path, "rb") as stream:
        starts = range(0, size, _PART_BYTES)
        parts = (stream.read(min(_PART_BYTES, size - start)) for start in starts)
        return digest_parts(parts).encode()


def _foreign_parts(h5py: Any, opened: Any, size: int) -> Iterator[Violation]:
    """Yield parts that none of our files has; every link is checked before it is followed."""
    total, groups = 0, [("", opened)]
    for _ in range(_MAX_LEVELS):
        below: list[tuple[str, Any]] = []
        for path, group in groups:
            for name in group:
                place = f"{path}/{name}"
                if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                    yield Violation("posterior-part-kept-elsewhere", place=place)
                    return
                item = group[name]
                if isinstance(item, h5py.Group):
                    below.append((place, item))
                elif isinstance(item, h5py.Dataset):
                    yield from _strange_variable(item, place)
                    total += math.prod(item.shape or ()) * item.dtype.itemsize
        groups = below
    if groups:
        yield Violation("posterior-groups-nested")
    if total > max(_MIN_MEMORY, _MAX_RATIO * size):
        yield Violation(
            "posterior-file-implausibly-large", gigabytes=total / 2**30, file_bytes=size
        )


def _strange_variable(item: Any, place: str) -> Iterator[Violation]:
    if item.external or item.is_virtual:
        yield Violation("posterior-part-kept-elsewhere", place=place)
    elif item.shape is None:
        yield Violation("posterior-variable-empty", place=place)
    elif item.dtype.kind not in "biufSO" or item.dtype.itemsize > 8:
        # Dimensions without values are 16 zero bytes wide in some versions; texts are objects.
        yield Violation("posterior-variable-type-unknown", place=place, dtype=item.dtype)
    else:
        foreign = sorted(_DECODED_ATTRIBUTES & set(item.attrs))
        # The value that stands for none has to be the one that is none.
        fill = np.ravel(item.attrs.get("_FillValue", np.nan))
        if not (len(fill) == 1 and fill.dtype.kind == "f" and np.isnan(fill[0])):
            foreign.append("_FillValue")
        if foreign:
            yield Violation(
                "posterior-variable-attribute-foreign", place=place, attribute=foreign[0]
            )
