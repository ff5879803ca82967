"""Stand-ins for the constructors of a pickled pandas frame, of pandas 0.2x to 3.

Blocks are in a state marked "0.14.1" up to pandas 1.2, and arguments since 1.3.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.sources.pickles.pickled_arrays import RecordedCall, StandIn, Values, as_array, objects
from bayesrep.types import Bools

# Arrow's text types, and how wide the offsets into the text are.
_OFFSET_DTYPES = {"large_string": "<i8", "large_utf8": "<i8", "string": "<i4", "utf8": "<i4"}


class Index(Values):
    """A pandas index; its state is the mapping that its constructor would get."""

    def array(self) -> NDArray[Any]:
        """Build the labels."""
        if not isinstance(self.state, dict) or "data" not in self.state:
            raise ValueError("column names in several levels or of an unknown kind")
        return as_array(self.state["data"])


class RangeIndex(Values):
    """The labels start, start + step, ... before stop."""

    def labels(self) -> range:
        """The labels, without an array of a length that the file chose."""
        return range(*(int(self.state[bound]) for bound in ("start", "stop", "step")))


class NewIndex(StandIn):
    """`pandas.core.indexes.base._new_Index(kind, state)`."""

    def __new__(cls, kind: Any, state: Any) -> Any:
        """A recorded index of the kind."""
        return _make_plain_object(kind, (Index, RangeIndex), state)


class Backed(Values):
    """A pandas array around one ndarray: texts, times."""

    def parts(self) -> tuple[Any, NDArray[Any]]:
        """The data type as recorded, and the ndarray."""
        if isinstance(self.state, tuple):
            one, other = self.state[:2]
            return (other, as_array(one)) if isinstance(one, Values) else (one, as_array(other))
        key = next(key for key in ("_ndarray", "_codes", "_data") if key in self.state)
        return self.state.get("_dtype"), as_array(self.state[key])

    def array(self) -> NDArray[Any]:
        """Build the values; a missing text is None or NaN, as it was written."""
        return self.parts()[1]


class Categorical(Backed):
    """Codes into categories."""

    def array(self) -> NDArray[Any]:
        """Build the categories' values; missing ones are NaN among numbers, else None."""
        dtype, codes = self.parts()
        if dtype is None:
            index = self.state["_categories"]
        else:
            index = dtype.state["categories"] if dtype.state else dtype.args[0]
        if isinstance(index, RangeIndex):  # of a range the labels that codes can reach
            reached = index.labels()[: int(codes.max(initial=-1)) + 1]
            categories = np.asarray(reached, dtype=np.int64)
        else:
            categories = as_array(index)
        if codes.size and not -1 <= codes.min() <= codes.max() < len(categories):
            raise ValueError("a category code out of range")
        return _take_with_missing(categories, codes, codes < 0)


class NewBacked(StandIn):
    """`pandas._libs.arrays.__pyx_unpickle_NDArrayBacked(kind, checksum, state)`."""

    def __new__(cls, kind: Any, _: Any, state: Any) -> Any:
        """A recorded array of the kind."""
        return _make_plain_object(kind, (Backed, Categorical), state)


class Masked(Values):
    """A pandas array of integers, floats or booleans with a mask of the missing ones."""

    def array(self) -> NDArray[Any]:
        """Build the values; missing ones are NaN among numbers, None among booleans."""
        values, mask = as_array(self.state["_data"]), as_array(self.state["_mask"])
        if values.ndim != 1 or values.shape != mask.shape or mask.dtype.kind != "b":
            raise ValueError("a mask that does not fit its values")
        return _take_with_missing(values, np.arange(len(values)), mask)


class ArrowArray(RecordedCall):
    """An Arrow array of texts: one argument (type, length, nulls, offset, buffers, ...)."""

    def texts(self) -> list[str | None]:
        """Decode the texts; missing ones are None."""
        kind, length, _, offset, (valid, ends, data), *_ = self.args[0]
        if str(kind.args[0]) not in _OFFSET_DTYPES:
            raise ValueError(f"an Arrow array of type {kind.args[0]}")
        span = range(int(offset), int(offset) + int(length))
        stops: list[int] = np.frombuffer(
            ends or b"", dtype=_OFFSET_DTYPES[str(kind.args[0])]
        ).tolist()
        if length and not (0 <= span.start and span.stop < len(stops)):
            raise ValueError("an Arrow array shorter than its length")
        text = data or b""
        if valid is None:
            return [text[stops[i] : stops[i + 1]].decode() for i in span]
        is_valid = np.unpackbits(np.frombuffer(valid, dtype=np.uint8), bitorder="little")
        return [text[stops[i] : stops[i + 1]].decode() if is_valid[i] else None for i in span]


class ArrowString(Values):
    """A pandas array around one Arrow array of texts, or several in a row."""

    def array(self) -> NDArray[Any]:
        """Build the texts; missing ones are None."""
        stored = self.state["_pa_array" if "_pa_array" in self.state else "_data"]
        chunks = [stored] if isinstance(stored, ArrowArray) else stored.args[0]
        return objects([text for chunk in chunks for text in chunk.texts()])


class BlockCall(RecordedCall):
    """`_unpickle_block(values, placement, ndim)`: some columns of one type."""


class BlockMaker(StandIn):
    """`functools.partial(new_block)`, by which pandas 1.3 and 1.4 write blocks; nothing else."""

    def __new__(cls, constructor: Any) -> Any:
        """Accept blocks as what is to be made."""
        if constructor is not BlockCall:
            raise TypeError("functools.partial of something else than a block of columns")
        return super().__new__(cls)

    def __setstate__(self, state: Any) -> None:
        """Accept the state, which repeats what is to be made."""

    def __call__(self, values: Any, placement: Any) -> Any:
        """A recorded block."""
        return BlockCall(values, placement)


class Placement(StandIn):
    """`BlockPlacement(places)`: which columns a block holds."""

    def __new__(cls, places: Any) -> Any:
        """The slice or the array of places."""
        return places


class BlockManager(RecordedCall):
    """All columns of a frame, in blocks."""

    def columns(self) -> dict[str, NDArray[Any]]:
        """All columns by name, and last a row index that does not only count."""
        if self.args:
            recorded, axes = self.args
            blocks = [(block.args[0], block.args[1]) for block in recorded]
        else:
            layout = self.state[3]["0.14.1"]
            axes = layout["axes"]
            blocks = [(block["values"], block["mgr_locs"]) for block in layout["blocks"]]
        names = axes[0].labels() if isinstance(axes[0], RangeIndex) else as_array(axes[0])
        column_of: dict[int, NDArray[Any]] = {}
        for values, placement in blocks:
            array = as_array(values)
            if array.ndim not in (1, 2):
                raise ValueError("a block of columns that is not a table")
            if isinstance(placement, slice):
                places = range(len(names))[placement]
            else:
                places = [int(place) for place in as_array(placement)]
            rows = [array] if array.ndim == 1 else list(array)
            column_of |= zip(places, rows, strict=True)
        if len(column_of) != len(names):
            raise ValueError(f"{len(column_of)} columns for {len(names)} column names")
        if len({str(name) for name in names}) != len(names):
            raise ValueError("two columns of one name")
        table = {str(name): column_of[place] for place, name in enumerate(names)}
        if isinstance(axes[1], Index):
            table.setdefault(str(axes[1].state.get("name") or "index"), as_array(axes[1]))
        if len({len(column) for column in table.values()}) > 1:
            raise ValueError("columns of different lengths")
        return table


class Frame(RecordedCall):
    """A pandas frame."""

    def columns(self) -> dict[str, NDArray[Any]]:
        """Build all columns, by name; see `BlockManager.columns`."""
        state: Any = self.state
        if isinstance(state, dict):
            state = state["_mgr" if "_mgr" in state else "_data"]
        if not isinstance(state, BlockManager):
            raise ValueError("a frame without columns")
        return state.columns()


def _make_plain_object(kind: Any, allowed: tuple[type[RecordedCall], ...], state: Any) -> Any:
    if kind not in allowed:  # the file says what kind is
        raise TypeError("a constructor used for something else")
    instance = kind()
    if state is not None:
        instance.__setstate__(state)
    return instance


def _take_with_missing(values: NDArray[Any], places: NDArray[Any], missing: Bools) -> NDArray[Any]:
    """Take `values[places]` with the missing ones as NaN among numbers, else None."""
    if not missing.any():
        return values[places]
    numeric = values.dtype.kind in "iuf"
    values_taken = np.full(
        places.shape, np.nan if numeric else None, dtype=float if numeric else object
    )
    values_taken[~missing] = values[places[~missing]]
    return values_taken
