"""Stand-ins for the constructors of a pickled NumPy array, which only record their arguments.

NumPy's own are not called: a forged dtype state would let them read raw memory as objects.
"""

import math
import re
from collections import Counter, OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SIMPLE_DTYPE = re.compile(r"[biufcmMSUO]\d{0,9}")
_TIME_UNIT = re.compile(r"[A-Za-z]{1,2}")


class StandIn:
    """Something a pickle may name."""

    def __setstate__(self, state: Any) -> None:
        """Refuse a state: BUILD would else set attributes, on the class itself if it is pushed."""
        raise TypeError(f"a state for {type(self).__name__}")


class RecordedCall(StandIn):
    """A recorded call: its arguments, and the state set afterwards."""

    args: tuple[Any, ...]
    state: Any

    def __new__(cls, *args: Any) -> Any:
        """Record the arguments."""
        record = super().__new__(cls)
        record.args = args
        record.state = None
        return record

    def __setstate__(self, state: Any) -> None:
        """Record the state."""
        self.state = state


class Values(RecordedCall):
    """A record that stands for an array."""

    _built: NDArray[Any] | None = None

    def array(self) -> NDArray[Any]:
        """Build the array; call `as_array` instead, which builds it once."""
        raise ValueError(f"a {type(self).__name__} without values")


class Encode(StandIn):
    """`codecs.encode` as protocol 2 uses it to write bytes: into Latin-1 and nothing else."""

    def __new__(cls, text: str, encoding: str = "latin1") -> Any:
        """The bytes."""
        if encoding not in ("latin1", "latin-1"):
            raise ValueError(f"bytes written in the encoding {encoding!r}")
        return text.encode("latin-1")


class ByteArray(StandIn):
    """`bytes` and `bytearray` of given contents; a given length could fill the memory."""

    def __new__(cls, contents: bytes | str = b"", encoding: str = "latin1") -> Any:
        """The contents as bytes."""
        return _as_bytes(Encode(contents, encoding) if isinstance(contents, str) else contents)


class Tally(StandIn):
    """`collections.Counter`, a class that a pickle could change if it were handed over itself."""

    def __new__(cls, counts: Any = ()) -> Any:
        """A counter of given counts."""
        return Counter[Any](dict(counts))


class Missing(StandIn):
    """A missing value that is made by a call, such as `NaT`."""

    def __new__(cls, *_: Any) -> Any:
        """The missing value."""
        return None


class Dtype(RecordedCall):
    """`numpy.dtype`: a plain type, never a record or a sub-array."""

    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype."""
        code = _text(self.args[0])
        if not _SIMPLE_DTYPE.fullmatch(code):
            raise ValueError(f"the data type {code!r}")
        if code[0] == "O":
            return np.dtype(object)
        state = self.state or (3, "=", None, None, None)
        if any(part is not None for part in state[2:5]):
            raise ValueError("a structured data type")
        order = {"<": "<", ">": ">"}.get(_text(state[1]), "=")
        if code[0] in "mM" and len(state) > 8:
            unit, count, *_ = state[8][-1]
            if not _TIME_UNIT.fullmatch(_text(unit)):
                raise ValueError("a time without a unit")
            code += f"[{int(count)}{_text(unit)}]"
        return np.dtype(f"{order}{code}")


class Reconstruct(Values):
    """`numpy.core.multiarray._reconstruct`, followed by a state."""

    def array(self) -> NDArray[Any]:
        """Build the array; one of numbers is a read-only view of the file's bytes."""
        _, shape, dtype, fortran, data = self.state
        return _fill_array(data, dtype, shape).reshape(shape, order="F" if fortran else "C")


class FromBuffer(Values):
    """`numpy.core.numeric._frombuffer`, which protocol 5 uses."""

    def array(self) -> NDArray[Any]:
        """Build the array, a read-only view of the file's bytes."""
        data, dtype, shape, order, *axes = self.args
        flat = _fill_array(data, dtype, shape)
        if order == "K" and axes and axes[0] is not None:
            return flat.reshape(shape).transpose(axes[0])
        return flat.reshape(shape, order="F" if order == "F" else "C")


class Scalar(StandIn):
    """`numpy.core.multiarray.scalar`: one number, text or time."""

    def __new__(cls, dtype: Dtype, data: bytes | str) -> Any:
        """The NumPy scalar."""
        return _fill_array(data, dtype, (1,))[0]


def as_array(recorded: Any) -> NDArray[Any]:
    """The array that a record stands for, built once."""
    if not isinstance(recorded, Values):
        raise ValueError(f"a {type(recorded).__name__} where an array belongs")
    built = recorded.__dict__.get("_built")
    if built is None:
        built = recorded.__dict__["_built"] = recorded.array()
    return built


def resolve_records(value: Any, replaced: dict[int, Any]) -> Any:
    """Replace records inside lists, tuples and mappings by their values, kept in `replaced`."""
    if value is None or isinstance(value, str | int | float):
        return value
    if id(value) not in replaced:
        replaced[id(value)] = _replace_record(value, replaced)
    return replaced[id(value)]


def objects(values: list[Any]) -> NDArray[Any]:
    """The one-dimensional array of Python objects."""
    return np.fromiter(values, dtype=object, count=len(values))


def _replace_record(value: Any, earlier: dict[int, Any]) -> Any:
    if isinstance(value, Values):
        return as_array(value)
    if isinstance(value, list):
        return [resolve_records(item, earlier) for item in value]
    if isinstance(value, tuple):
        return tuple(resolve_records(item, earlier) for item in value)
    if isinstance(value, dict):
        replaced = {key: resolve_records(item, earlier) for key, item in value.items()}
        kinds = (kind for kind in (OrderedDict, Counter) if isinstance(value, kind))
        return next(kinds, dict)(replaced)
    if isinstance(value, StandIn):
        raise ValueError(f"a {type(value).__name__} where a value belongs")
    return value


def _fill_array(data: Any, recorded: Any, shape: Any) -> NDArray[Any]:
    """Build the flat array of `data`, of exactly a shape's size."""
    if not isinstance(recorded, Dtype):
        raise TypeError("an array without a data type")
    dtype = recorded.numpy()
    size = math.prod(int(length) for length in shape)
    if dtype.hasobject:
        if not isinstance(data, list) or len(data) != size:
            raise ValueError("an array of objects of another length than its shape")
        replaced: dict[int, Any] = {}
        return objects([resolve_records(item, replaced) for item in data])
    raw = _as_bytes(data)
    if len(raw) != size * dtype.itemsize:
        raise ValueError("an array of another length than its shape")
    return np.frombuffer(raw, dtype=dtype) if raw else np.empty(size, dtype=dtype)


def _as_bytes(data: Any) -> bytes:
    if isinstance(data, str):  # Python 2 wrote bytes as text
        return data.encode("latin-1")
    if not isinstance(data, bytes | bytearray):
        raise TypeError(f"a {type(data).__name__} where bytes belong")
    return bytes(data)  # no copy where they are bytes


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
