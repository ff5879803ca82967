"""Read pickled data without executing anything.

Published annotation data come as pickled pandas frames, as `torch.save` files of them, and as
`.npy` files of Python objects. A pickle is a program: loading one with `pickle.load`,
`torch.load` or `allow_pickle=True` runs whatever its author put in. Here a pickle may name only
the constructors listed below, each mapped to a stand-in of ours that records its arguments. Neither
pandas nor torch is needed, and no function named by a file is ever called. What a hostile file can
still do is to make Python's unpickler reserve much memory: another process loads it first, within
limits (see `bayesrep.files.sandbox`).
"""

import collections
import datetime
import io
import os
import pickle
import zipfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from bayesrep.errors import StudyError, plain_text
from bayesrep.files import npy, sandbox
from bayesrep.sources.pickles import pickled_arrays as arrays
from bayesrep.sources.pickles import pickled_frames as frames

_TORCH_MAGIC = 0x1950A86A20F9469CFC6C  # first pickle of a torch.save file before torch 1.6

_NUMPY_CORES = ("numpy.core", "numpy._core")
_INDEX_MODULES = ("pandas.core.indexes", "pandas.indexes")
_MASKED_TYPES = ("integer", "floating", "boolean")
_NUMBER_TYPES = [f"{kind}{bits}Dtype" for kind in ("Int", "UInt") for bits in (8, 16, 32, 64)]


def _allowed_names() -> Iterator[tuple[str, str, Any]]:
    """Yield (module, name, stand-in) of everything that a pickle may name."""
    for core in _NUMPY_CORES:
        yield f"{core}.multiarray", "_reconstruct", arrays.Reconstruct
        yield f"{core}.multiarray", "scalar", arrays.Scalar
        yield f"{core}.numeric", "_frombuffer", arrays.FromBuffer
    yield "numpy", "ndarray", arrays.StandIn  # an argument of _reconstruct, never called
    yield "numpy", "dtype", arrays.Dtype
    yield from (("_codecs", "encode", arrays.Encode), ("codecs", "encode", arrays.Encode))
    yield "collections", "OrderedDict", collections.OrderedDict
    yield "collections", "Counter", arrays.Tally
    for builtins in ("builtins", "__builtin__"):
        yield from ((builtins, name, arrays.ByteArray) for name in ("bytes", "bytearray"))
        yield from ((builtins, kind.__name__, kind) for kind in (slice, set, frozenset))
    for kind in (datetime.date, datetime.datetime, datetime.time, datetime.timedelta):
        yield "datetime", kind.__name__, kind
    yield "datetime", "timezone", datetime.timezone
    yield from (("pytz", name, arrays.RecordedCall) for name in ("_UTC", "_p"))
    yield from _allowed_frames()
    yield from _allowed_columns()


def _allowed_frames() -> Iterator[tuple[str, str, Any]]:
    for module in ("pandas", "pandas.core.frame"):
        yield module, "DataFrame", frames.Frame
    for module in ("pandas.core.internals.managers", "pandas.core.internals"):
        yield module, "BlockManager", frames.BlockManager
    yield "pandas._libs.internals", "_unpickle_block", frames.BlockCall
    yield "pandas._libs.internals", "BlockPlacement", frames.Placement
    yield "pandas.core.internals.blocks", "new_block", frames.BlockCall
    yield "functools", "partial", frames.BlockMaker
    for module in (*(f"{base}.base" for base in _INDEX_MODULES), "pandas.core.index"):
        yield module, "_new_Index", frames.NewIndex
        yield module, "Index", frames.Index
    for base in _INDEX_MODULES:
        yield f"{base}.range", "RangeIndex", frames.RangeIndex
        yield f"{base}.datetimes", "_new_DatetimeIndex", frames.NewIndex
        yield f"{base}.datetimes", "DatetimeIndex", frames.Index
        yield f"{base}.category", "CategoricalIndex", frames.Index
        for name in ("Int64Index", "UInt64Index", "Float64Index"):
            yield f"{base}.numeric", name, frames.Index
    yield from (("pandas", name, frames.Index) for name in ("Index", "CategoricalIndex"))
    yield "pandas", "DatetimeIndex", frames.Index
    yield "pandas", "RangeIndex", frames.RangeIndex


def _allowed_columns() -> Iterator[tuple[str, str, Any]]:
    yield "pandas._libs.arrays", "__pyx_unpickle_NDArrayBacked", frames.NewBacked
    for module, name, stand_in in (
        ("categorical", "Categorical", frames.Categorical),
        ("string_", "StringArray", frames.Backed),
        ("datetimes", "DatetimeArray", frames.Backed),
        ("timedeltas", "TimedeltaArray", frames.Backed),
        ("integer", "IntegerArray", frames.Masked),
        ("floating", "FloatingArray", frames.Masked),
        ("boolean", "BooleanArray", frames.Masked),
        ("string_arrow", "ArrowStringArray", frames.ArrowString),
        ("string_arrow", "ArrowStringArrayNumpySemantics", frames.ArrowString),
    ):
        yield f"pandas.core.arrays.{module}", name, stand_in
        yield "pandas.arrays", name, stand_in
    yield "pandas", "Categorical", frames.Categorical
    yield "pandas.core.categorical", "Categorical", frames.Categorical
    for name in (*_NUMBER_TYPES, "Float32Dtype", "Float64Dtype", "BooleanDtype", "StringDtype"):
        yield "pandas", name, arrays.RecordedCall
        for module in (*_MASKED_TYPES, "string_"):
            yield f"pandas.core.arrays.{module}", name, arrays.RecordedCall
    for name in ("CategoricalDtype", "DatetimeTZDtype"):
        yield "pandas", name, arrays.RecordedCall
        yield "pandas.core.dtypes.dtypes", name, arrays.RecordedCall
    yield from (("pandas", "NA", None), ("pandas._libs.missing", "NA", None))
    yield "pandas._libs.tslibs.nattype", "_nat_unpickle", arrays.Missing
    yield "pyarrow.lib", "_restore_array", frames.ArrowArray
    yield "pyarrow.lib", "chunked_array", arrays.RecordedCall
    yield "pyarrow.lib", "type_for_alias", arrays.RecordedCall
    yield "pyarrow.lib", "py_buffer", arrays.ByteArray


_ALLOWED_NAMES: dict[tuple[str, str], Any] = {
    (module, name): kind for module, name, kind in _allowed_names()
}


def read_frame(path: str | Path) -> dict[str, NDArray[Any]]:
    """Read the columns of a pickled pandas frame, executing nothing.

    Reads what `DataFrame.to_pickle` (uncompressed) and `torch.save` of a frame write: pickle
    protocols 0 to 5 of pandas 0.2x to 3, and both formats of torch.
    """
    with _report_errors(path):
        if line := sandbox.fault(examine_frame, path, str(path)):
            raise StudyError(line)
        return _frame(Path(path))


def _frame(path: Path) -> dict[str, NDArray[Any]]:
    loaded = _load_frame(path)
    if not isinstance(loaded, frames.Frame):
        raise StudyError("pickle-not-a-frame", path=path, type_name=type(loaded).__name__)
    return loaded.columns()


def read_array(path: str | Path) -> NDArray[Any]:
    """Read a `.npy` file, also one of Python objects, executing nothing."""
    with _report_errors(path), open(path, "rb") as file:
        header = npy.read_header(file)
        if not header.dtype.hasobject:
            file.seek(0)
            return npy.read(file, os.fstat(file.fileno()).st_size)
        if line := sandbox.fault(examine_array, path, str(path)):
            raise StudyError(line)
        return _objects(file, header)


def examine_frame(file: str, where: str) -> None:
    """Load a frame in another process; what is wrong with it is said where it is loaded again."""
    del where
    _examine_pickle(lambda: _frame(Path(file)))


def examine_array(file: str, where: str) -> None:
    """Do the same with an array of Python objects."""
    del where

    def load() -> None:
        with open(file, "rb") as stream:
            _objects(stream, npy.read_header(stream))

    _examine_pickle(load)


def _examine_pickle(load: Callable[[], object]) -> None:
    try:
        with _report_errors("a pickle"):
            load()
    except StudyError as error:
        if isinstance(error.__cause__, MemoryError):
            raise error.__cause__ from None


def _objects(stream: IO[bytes], header: npy.Header) -> NDArray[Any]:
    return arrays.as_array(_RestrictedUnpickler(stream).load()).reshape(header.shape)


class _Refused(pickle.UnpicklingError):
    """A pickle asked for something that is not on the list, or that lies outside: no name."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.name = name


class _RestrictedUnpickler(pickle.Unpickler):
    """An unpickler that knows the names in `_ALLOWED_NAMES` and nothing else."""

    def __init__(self, file: IO[bytes]) -> None:
        # Latin-1 keeps the bytes of arrays that Python 2 wrote.
        super().__init__(file, encoding="latin1")

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """The stand-in for a constructor, or refuse it."""
        if (module_name, global_name) not in _ALLOWED_NAMES:
            raise _Refused(_one_line(f"{module_name}.{global_name}"))
        return _ALLOWED_NAMES[module_name, global_name]

    def persistent_load(self, pid: Any, /) -> Any:
        """Refuse objects stored outside the pickle, such as the numbers of a tensor."""
        raise _Refused


@contextmanager
def _report_errors(path: str | Path) -> Generator[None, None, None]:
    """Turn whatever goes wrong inside into one line naming the file."""
    try:
        yield
    except StudyError:
        raise
    except _Refused as error:
        if error.name is None:
            raise StudyError("pickle-refers-outside", path=path) from error
        raise StudyError("pickle-names-code", path=path, name=error.name) from error
    except OSError as error:
        raise StudyError("file-unreadable", path=path, reason=error.strerror or error) from error
    except Exception as error:  # a damaged pickle may raise nearly anything
        raise StudyError(
            "pickle-or-array-damaged",
            path=path,
            error_type=type(error).__name__,
            reason=_one_line(str(error)),
        ) from error


def _load_frame(path: Path) -> Any:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.split("/")[1:] == ["data.pkl"]]
            if len(names) != 1:
                raise StudyError("zip-not-of-torch", path=path)
            return _RestrictedUnpickler(io.BytesIO(archive.read(names[0]))).load()
    with open(path, "rb") as file:
        loaded = _RestrictedUnpickler(file).load()
        if loaded != _TORCH_MAGIC:
            return loaded
        for _ in ("protocol version", "system"):
            _RestrictedUnpickler(file).load()
        return _RestrictedUnpickler(file).load()


def _one_line(text: str) -> str:
    """Shorten a file's text to one line without control characters."""
    line = plain_text(text)
    return line if len(line) <= 200 else f"{line[:200]}..."
