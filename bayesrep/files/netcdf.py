"""netCDF files of posteriors: sealed when they are written, tried before they are read.

A seal is the SHA-256 of the file, appended to it: HDF5 does not look beyond the end that it knows.
A file without one is read all the same, there is then nothing to compare its numbers with.
"""

import hashlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bayesrep.errors import Violation, reason

_MARK = b"bayesrep.sha256:"
_TRAILER = len(_MARK) + 64 + len(_MARK)  # marks on both sides: one that is damaged is still a seal
_PART = 2**20
_ALWAYS, _RATIO = 2**26, 1100  # memory may be so many bytes, or times the file's (gzip's most)
_DEPTH = 3
# What would make a reader compute values, or look elsewhere for them.
_DECODED = frozenset(
    {"units", "calendar", "scale_factor", "add_offset", "missing_value", "bounds"}
    | {"grid_mapping", "compress", "_Unsigned", "_Encoding", "cell_measures", "ancillary_variables"}
)


def seal(file: Path) -> None:
    """Append the digest of a file to it."""
    digest = _digest(file, file.stat().st_size)
    with open(file, "ab") as stream:
        stream.write(_MARK + digest + _MARK)


def examine(file: str, where: str) -> Violation | None:
    """Say in one line why a posterior should not be read, or nothing; called in another process.

    Everything in the file is read once.
    """
    path = Path(file)
    if line := _broken_seal(path, where):
        return line
    # Only where a posterior is read: an import of these takes longer than all of the above.
    import h5netcdf
    import h5py

    try:
        with h5py.File(path, "r") as opened:
            strange = next(_strange(h5py, opened, path.stat().st_size), None)
        if strange is None:
            with h5netcdf.File(path, "r") as opened:
                for group in (opened, *opened.groups.values()):
                    _read(group)
    except MemoryError:
        raise
    except Exception as error:  # these libraries raise nearly anything
        strange = Violation("posterior-file-unreadable", reason=reason(error))
    return strange and not_ours(strange, where)


def not_ours(strange: Violation, where: object) -> Violation:
    """What is wrong with a file that should hold a posterior, in a whole sentence."""
    sentence = f"{where} is not a posterior of bayesrep: {strange}; restore it or fit again"
    return strange.reword(sentence)


def _broken_seal(path: Path, where: str) -> Violation | None:
    size = path.stat().st_size
    with open(path, "rb") as stream:
        stream.seek(max(0, size - _TRAILER - len(_MARK)))
        end = stream.read()
    if _MARK not in end:
        return None
    whole = end[-_TRAILER:].startswith(_MARK) and end.endswith(_MARK)
    if whole and _digest(path, size - _TRAILER) == end[-_TRAILER:][len(_MARK) : -len(_MARK)]:
        return None
    return Violation("posterior-file-altered", where=where)


def _digest(path: Path, size: int) -> bytes:
    made = hashlib.sha256()
    with open(path, "rb") as stream:
        for start in range(0, size, _PART):
            made.update(stream.read(min(_PART, size - start)))
    return made.hexdigest().encode()


def _strange(h5py: Any, opened: Any, size: int) -> Iterator[Violation]:
    """Yield what none of our files has; every link is looked at before it is followed."""
    held, groups = 0, [("", opened)]
    for _ in range(_DEPTH):
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
                    held += math.prod(item.shape or ()) * item.dtype.itemsize
        groups = below
    if groups:
        yield Violation("posterior-groups-nested")
    if held > max(_ALWAYS, _RATIO * size):
        yield Violation("posterior-file-implausibly-large", gigabytes=held / 2**30, file_bytes=size)


def _strange_variable(item: Any, place: str) -> Iterator[Violation]:
    if item.external or item.is_virtual:
        yield Violation("posterior-part-kept-elsewhere", place=place)
    elif item.shape is None:
        yield Violation("posterior-variable-empty", place=place)
    elif item.dtype.kind not in "biufSO" or item.dtype.itemsize > 8:
        # Dimensions without values are 16 zero bytes wide in some versions; texts are objects.
        yield Violation("posterior-variable-type-unknown", place=place, dtype=item.dtype)
    elif found := sorted(_DECODED & set(item.attrs)):
        yield Violation("posterior-variable-attribute-foreign", place=place, attribute=found[0])


def _read(group: Any) -> None:
    """Read all values and attributes, as xarray does when the file is loaded."""
    for holder in (group, *group.variables.values()):
        for name in holder.attrs:
            _ = holder.attrs[name]
    for variable in group.variables.values():
        _ = variable.dimensions, variable[...]
