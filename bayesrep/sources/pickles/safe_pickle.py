"""Read pickled data without executing anything: a pickle may name only what is listed here.

Each name is a stand-in of ours; another process loads a file first, since it may fill memory.
"""

import collections
import datetime
import io
import os
import pickle
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from bayesrep.errors import StudyError, plain_text
from bayesrep.files import npy, sandbox
from bayesrep.sources.pickles import pickled_arrays as arrays
from bayesrep.sources.pickles import pickled_frames as frames

_TORCH_MAGIC = 0x1950A86A20F9469CFC6C  # first pickle of a torch.save file before torch 1.6

_CORES = "numpy.core", "numpy._core"
_INDEXES = "pandas.core.indexes", "pandas.indexes"
_BUILTINS = "builtins", "__builtin__"
_NUMBERS = [f"{kind}{bits}Dtype" for kind in ("Int", "UInt") for bits in (8, 16, 32, 64)]
_TYPES = " ".join([*_NUMBERS, "Float32Dtype Float64Dtype BooleanDtype StringDtype"])
_ALLOWED = (  # a stand-in, the modules where a pickle may look for it, and its names there
    (arrays.Reconstruct, [f"{core}.multiarray" for core in _CORES], "_reconstruct"),
    (arrays.Scalar, [f"{core}.multiarray" for core in _CORES], "scalar"),
    (arrays.FromBuffer, [f"{core}.numeric" for core in _CORES], "_frombuffer"),
    (arrays.StandIn, ["numpy"], "ndarray"),  # an argument of _reconstruct, never called
    (arrays.Dtype, ["numpy"], "dtype"),
    (arrays.Encode, ["_codecs", "codecs"], "encode"),
    (collections.OrderedDict, ["collections"], "OrderedDict"),
    (arrays.Tally, ["collections"], "Counter"),
    (arrays.ByteArray, _BUILTINS, "bytes bytearray"),
    *((kind, _BUILTINS, kind.__name__) for kind in (slice, set, frozenset)),
    *((getattr(datetime, name), ["datetime"], name) for name in "date datetime time".split()),
    *((getattr(datetime, name), ["datetime"], name) for name in "timedelta timezone".split()),
    (arrays.RecordedCall, ["pytz"], "_UTC _p"),
    (frames.Frame, ["pandas", "pandas.core.frame"], "DataFrame"),
    (
        frames.BlockManager,
        ["pandas.core.internals.managers", "pandas.core.internals"],
        "BlockManager",
    ),
    (frames.BlockCall, ["pandas._libs.internals"], "_unpickle_block"),
    (frames.Placement, ["pandas._libs.internals"], "BlockPlacement"),
    (frames.BlockCall, ["pandas.core.internals.blocks"], "new_block"),
    (frames.BlockMaker, ["functools"], "partial"),
    (frames.NewIndex, [*(f"{at}.base" for at in _INDEXES), "pandas.core.index"], "_new_Index"),
    (frames.NewIndex, [f"{at}.datetimes" for at in _INDEXES], "_new_DatetimeIndex"),
    (frames.Index, [*(f"{at}.base" for at in _INDEXES), "pandas.core.index", "pandas"], "Index"),
    (frames.Index, [*(f"{at}.datetimes" for at in _INDEXES), "pandas"], "DatetimeIndex"),
    (frames.Index, [*(f"{at}.category" for at in _INDEXES), "pandas"], "CategoricalIndex"),
    (frames.Index, [f"{at}.numeric" for at in _INDEXES], "Int64Index UInt64Index Float64Index"),
    (frames.RangeIndex, [*(f"{at}.range" for at in _INDEXES), "pandas"], "RangeIndex"),
    (frames.NewBacked, ["pandas._libs.arrays"], "__pyx_unpickle_NDArrayBacked"),
    (frames.Categorical, ["pandas", "pandas.core.categorical"], "Categorical"),
    *(
        (stand_in, ["pandas.arrays", f"pandas.core.arrays.{module}"], names)
        for stand_in, module, names in (
            (frames.Categorical, "categorical", "Categorical"),
            (frames.Backed, "string_", "StringArray"),
            (frames.Backed, "datetimes", "DatetimeArray"),
            (frames.Backed, "timedeltas", "TimedeltaArray"),
            (frames.Masked, "integer", "IntegerArray"),
            (frames.Masked, "floating", "FloatingArray"),
            (frames.Masked, "boolean", "BooleanArray"),
            (frames.ArrowString, "string_arrow", "ArrowStringArray ArrowStringArrayNumpySemantics"),
        )
    ),
    (arrays.RecordedCall, ["pandas"], f"{_TYPES} CategoricalDtype DatetimeTZDtype"),
    *(
        (arrays.RecordedCall, [f"pandas.core.arrays.{module}"], _TYPES)
        for module in ("integer", "floating", "boolean", "string_")
    ),
    (arrays.RecordedCall, ["pandas.core.dtypes.dtypes"], "CategoricalDtype DatetimeTZDtype"),
    (None, ["pandas", "pandas._libs.missing"], "NA"),
    (arrays.Missing, ["pandas._libs.tslibs.nattype"], "_nat_unpickle"),
    (frames.ArrowArray, ["pyarrow.lib"], "_restore_array"),
    (arrays.RecordedCall, ["pyarrow.lib"], "chunked_array type_for_alias"),
    (arrays.ByteArray, ["pyarrow.lib"], "py_buffer"),
)
_ALLOWED_NAMES: dict[tuple[str, str], Any] = {
    (module, name): kind
    for kind, modules, names in _ALLOWED
    for module in modules
    for name in names.split()
}


def read_frame(path: str | Path) -> dict[str, NDArray[Any]]:
    """Read a pickled pandas frame (of `to_pickle` or `torch.save`), running nothing of it."""
    with _report_errors(path):
        if line := sandbox.fault(examine, path, str(path), "frame"):
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
        if line := sandbox.fault(examine, path, str(path), "array"):
            raise StudyError(line)
        return _objects(file, header)


def examine(file: str, where: str, kind: str) -> None:
    """Load a pickle in another process; what is wrong with it is said where it is loaded again."""
    del where
    try:
        if kind == "frame":
            _frame(Path(file))
            return
        with open(file, "rb") as stream:
            _objects(stream, npy.read_header(stream))
    except MemoryError:
        raise
    except Exception:  # a damaged pickle may raise nearly anything
        return


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
