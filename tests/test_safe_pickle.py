"""Pickles are read without executing anything, and hold what pandas would have read."""

import os
import pickle
import struct
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path

import numpy as np
import pytest
from published import DATA
from refusals import refused

from bayesrep import StudyError
from bayesrep.sources.pickles import safe_pickle
from bayesrep.sources.pickles.safe_pickle import read_array, read_frame

FRAMES = Path(__file__).parent / "pickled_frames"
MULTILABEL = DATA / "imagenet-multilabel"
needs_multilabel = pytest.mark.skipif(
    not MULTILABEL.is_dir(), reason=f"no published files in {MULTILABEL}; set BAYESREP_DATA"
)


class Call:
    """Pickles into a call of a function."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def written(path, contents):
    path.write_bytes(contents)
    return path


def short(text):
    return pickle.SHORT_BINUNICODE + bytes([len(text)]) + text.encode()


def stack_global(module, name):
    return pickle.PROTO + b"\x04" + short(module) + short(name) + pickle.STACK_GLOBAL


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("function", "arguments", "named"),
    [
        (os.system, ("touch {marker}",), f"{os.system.__module__}.system"),
        (eval, ("open({marker!r}, 'w')",), "builtins.eval"),
        (exec, ("open({marker!r}, 'w')",), "builtins.exec"),
        (getattr, (np, "load"), "builtins.getattr"),
        (pickle.loads, (pickle.dumps(1),), "_pickle.loads"),
        (np.load, ("{marker}",), "numpy.load"),
        (np.save, ("{marker}", 1), "numpy.save"),
        (np.fromfile, ("{marker}",), "numpy.fromfile"),
        (np.testing.assert_equal, (1, 1), "numpy.testing"),
        (open, ("{marker}", "w"), "open"),
        (__import__, ("os",), "builtins.__import__"),
        (map, (abs, [1]), "builtins."),
        (np.frombuffer, (b"12345678",), "frombuffer"),
    ],
)
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_refuses_and_executes_nothing(tmp_path, function, arguments, named, protocol):
    marker = tmp_path / "executed"
    filled = [a.format(marker=str(marker)) if isinstance(a, str) else a for a in arguments]
    filled = ["numpy" if a is np else a for a in filled]  # a module cannot be pickled
    evil = written(tmp_path / "evil.pkl", pickle.dumps(Call(function, *filled), protocol))
    with refused(StudyError, "pickle-names-code", {"path": str(evil)}) as error:
        read_frame(evil)
    assert named.split(".")[-1] in error.value.facts["name"]
    assert isinstance(error.value.__cause__, pickle.UnpicklingError)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("numpy", "ndarray.tofile"),
        ("numpy.ndarray", "tofile"),
        ("numpy", "dtype.type"),
        ("collections", "OrderedDict.fromkeys"),
        ("pandas", "read_pickle"),
        ("pandas.io.common", "os.system"),
        ("pandas.core.frame", "DataFrame.eval"),
        ("bayesrep.sources.pickles.safe_pickle", "zipfile"),
        ("codecs", "open"),
        ("builtins", "type"),
        ("builtins", "print"),
        ("copyreg", "_reconstructor"),
        ("copyreg", "add_extension"),
        ("operator", "attrgetter"),
        ("functools", "reduce"),
        ("collections", "defaultdict"),
        ("torch._utils", "_rebuild_tensor_v2"),
    ],
)
def test_refuses_names_by_what_they_are(tmp_path, module, name):
    evil = written(tmp_path / "evil.pkl", stack_global(module, name) + pickle.STOP)
    with refused(StudyError, "pickle-names-code", {"name": f"{module}.{name}"}):
        read_frame(evil)


def test_refuses_partial_of_anything_but_blocks(tmp_path):
    contents = stack_global("functools", "partial") + short("x") + pickle.TUPLE1 + pickle.REDUCE
    with refused(StudyError, "pickle-or-array-damaged"):
        read_frame(written(tmp_path / "evil.pkl", contents + pickle.STOP))


@pytest.mark.parametrize("identifier", [b"P1\n.", short("storage") + pickle.BINPERSID + b"."])
def test_refuses_persistent_ids(tmp_path, identifier):
    with refused(StudyError, "pickle-refers-outside"):
        read_frame(written(tmp_path / "evil.pkl", identifier))


def test_refuses_tensors():
    tensor = {"name": "torch._utils._rebuild_tensor_v2"}
    with refused(StudyError, "pickle-names-code", tensor):
        read_frame(FRAMES / "tensor.pt")


@pytest.mark.parametrize("key", sorted(safe_pickle._ALLOWED_NAMES))
def test_no_allowed_name_can_be_changed_by_a_file(tmp_path, key):
    """BUILD with a slot state would set attributes on the class itself, for all later files."""
    state = pickle.NONE + pickle.EMPTY_DICT + short("planted") + short("x") + pickle.SETITEM
    contents = stack_global(*key) + state + pickle.TUPLE2 + pickle.BUILD + pickle.STOP
    with pytest.raises(StudyError):
        read_frame(written(tmp_path / "evil.pkl", contents))
    assert not hasattr(safe_pickle._ALLOWED_NAMES[key], "planted")


def test_refuses_an_object_array_in_a_npy_file(tmp_path):
    marker = tmp_path / "executed"
    array = np.array([Call(os.system, f"touch {marker}")], dtype=object)
    np.save(tmp_path / "evil.npy", array, allow_pickle=True)
    with refused(StudyError, "pickle-names-code", {"name": f"{os.system.__module__}.system"}):
        read_array(tmp_path / "evil.npy")
    assert not marker.exists()


def test_refuses_code_in_a_torch_file(tmp_path):
    marker = tmp_path / "executed"
    evil = pickle.dumps(Call(os.system, f"touch {marker}"), 2)
    with zipfile.ZipFile(tmp_path / "evil.pt", "w") as archive:
        archive.writestr("evil/data.pkl", evil)
    legacy = b"".join(pickle.dumps(part, 2) for part in (safe_pickle._TORCH_MAGIC, 1001, {}))
    written(tmp_path / "legacy.pt", legacy + evil)
    for name in ("evil.pt", "legacy.pt"):
        code = {"path": str(tmp_path / name), "name": f"{os.system.__module__}.system"}
        with refused(StudyError, "pickle-names-code", code):
            read_frame(tmp_path / name)
    assert not marker.exists()


class Forged:
    """An array of objects whose contents are bytes: NumPy would follow them as a pointer."""

    def __reduce__(self):
        state = (1, (1,), np.dtype(object), False, struct.pack("q", 1))
        return np._core.multiarray._reconstruct, (np.ndarray, (0,), b"b"), state


def test_raw_bytes_never_become_objects(tmp_path):
    with open(tmp_path / "forged.npy", "wb") as file:
        header = {"descr": "|O", "fortran_order": False, "shape": (1,)}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(pickle.dumps(Forged()))
    why = {"reason": "an array of objects of another length than its shape"}
    with refused(StudyError, "pickle-or-array-damaged", why):
        read_array(tmp_path / "forged.npy")


# ------------------------------------------------------------------ damage


def test_every_truncation_is_one_clear_error(tmp_path):
    whole = (FRAMES / "pandas-2.2.pkl").read_bytes()
    for length in range(0, len(whole) - 1, 37):
        with refused(StudyError, "pickle-or-array-damaged") as error:
            read_frame(written(tmp_path / "cut.pkl", whole[:length]))
        assert "\n" not in str(error.value)


def test_no_changed_byte_raises_anything_else(tmp_path):
    # Protocol 4: with a changed memo number of protocol 2 CPython's unpickler reserves gigabytes.
    whole = bytearray((FRAMES / "pandas-2.2.pkl").read_bytes())
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(whole), 400):
        changed = whole.copy()
        changed[place] = rng.integers(256)
        try:
            read_frame(written(tmp_path / "changed.pkl", changed))
        except StudyError as error:
            assert "\n" not in str(error)  # noqa: PT017 (many bytes may change without harm)


def test_a_small_file_cannot_ask_for_much_memory_or_time(tmp_path):
    shared: list = []
    for _ in range(60):
        shared = [shared, shared]
    array = np.empty(1, dtype=object)
    array[0] = shared
    np.save(tmp_path / "shared.npy", array, allow_pickle=True)
    assert read_array(tmp_path / "shared.npy").shape == (1,)
    huge = b"\x80\x02c__builtin__\nbytearray\n" + pickle.LONG1 + b"\x06" + b"\xff" * 5 + b"\x00"
    with refused(StudyError, "pickle-or-array-damaged"):
        read_frame(written(tmp_path / "huge.pkl", huge + pickle.TUPLE1 + pickle.REDUCE + b"."))


def test_missing_and_foreign_files(tmp_path):
    with refused(StudyError, "file-unreadable", {"reason": "No such file or directory"}):
        read_frame(tmp_path / "none.pkl")
    with refused(StudyError, "file-unreadable"):
        read_array(tmp_path / "none.npy")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.txt", "text")
    with refused(StudyError, "zip-not-of-torch"):
        read_frame(tmp_path / "a.zip")
    with refused(StudyError, "pickle-not-a-frame", {"type_name": "dict"}):
        read_frame(written(tmp_path / "dict.pkl", pickle.dumps({"a": 1})))
    with refused(StudyError, "pickle-or-array-damaged"):
        read_array(written(tmp_path / "text.npy", b"hello, this is text"))


# ------------------------------------------------------------------ frames

EXPECTED = {
    "url": ["a", "b", None],
    "n": [1, 2, 3],
    "f": [0.1, np.nan, 2.0],
    "b": [True, False, True],
    "c": ["x", None, "x"],
    "ci": [3, 1, 3],
    "i8": [1, 2, 3],
    "I": [1.0, np.nan, 3.0],
    "B": [True, None, False],
    "o": [1, "a", [2]],
    "s": ["a", "b", None],
    "m": [True, None, False],
    "arr": ["é", "b", None],
}


@pytest.mark.parametrize(
    "path",
    [p for p in sorted(FRAMES.glob("*.p[kt]*")) if p.name != "tensor.pt"],
    ids=lambda p: p.name,
)
def test_reads_frames_of_every_era(path):
    frame = read_frame(path)
    assert {"url", "n", "f", "b", "c", "ci", "i8", "o", "t", "m", "tz"} <= set(frame)
    for name in frame.keys() & EXPECTED.keys():
        assert repr(frame[name].tolist()) == repr(EXPECTED[name]), name
    for name in ("t", "tz"):
        assert (frame[name] == np.datetime64("2020-01-01")).all()
    types = [np.int64, np.float64, np.bool_, np.int8]
    assert [frame[name].dtype for name in ("n", "f", "b", "i8")] == types


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_reads_what_the_installed_pandas_writes(tmp_path, protocol):
    import pandas

    frame = pandas.DataFrame(
        {
            "url": [f"image {i}é" for i in range(50)],
            "selected": np.arange(50) % 3 == 0,
            "number": np.arange(50, dtype=np.int16)[::-1],
            "share": np.linspace(0, 1, 50),
            "kind": pandas.Categorical(["a", "b"] * 25),
            "rank": pandas.Categorical(np.arange(50) % 4),
            "maybe": pandas.array([True, None] * 25, dtype="boolean"),
            7: 1,
        },
        index=pandas.Index([f"row {i}" for i in range(50)], name="key"),
    )
    frame.to_pickle(tmp_path / "frame.pkl", protocol=protocol)
    read = read_frame(tmp_path / "frame.pkl")
    assert list(read) == [*map(str, frame.columns), "key"]
    for name in frame.columns:
        expected = frame[name].astype(object).where(frame[name].notna(), None).tolist()
        assert read[str(name)].tolist() == expected
    assert read["key"].tolist() == frame.index.tolist()
    assert read["number"].dtype == np.int16


def test_reads_frames_without_rows_or_with_many_blocks(tmp_path):
    import pandas

    frame = pandas.DataFrame({"a": np.zeros(0), "b": np.zeros(0, dtype=bool)})
    frame.to_pickle(tmp_path / "empty.pkl")
    empty = read_frame(tmp_path / "empty.pkl")
    assert {name: column.shape for name, column in empty.items()} == {"a": (0,), "b": (0,)}
    frame = pandas.DataFrame({f"c{i}": np.arange(4) * i for i in range(6)}).astype({"c3": float})
    frame["later"] = "x"
    frame = frame.iloc[::2]
    frame.to_pickle(tmp_path / "blocks.pkl")
    read = read_frame(tmp_path / "blocks.pkl")
    assert list(read) == list(frame.columns)
    assert all(read[name].tolist() == frame[name].tolist() for name in frame)


# ------------------------------------------------------------------ arrays


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=">i4").reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array(["a", "bc"]),
        np.array([["a", 1], [None, 2.5]], dtype=object),
        np.array({"a": [1, 2], 3: (4, {"b": None})}, dtype=object),
        np.array([OrderedDict(a=1), Counter("aab"), {1}, np.float32(2.5), b"x"], dtype=object),
        np.zeros(0, dtype=object),
        np.zeros(0),
    ],
    ids=repr,
)
def test_reads_npy_files(tmp_path, array):
    np.save(tmp_path / "array.npy", array, allow_pickle=True)
    read = read_array(tmp_path / "array.npy")
    assert read.dtype == array.dtype
    assert read.shape == array.shape
    assert repr(read.tolist()) == repr(array.tolist())


def test_reads_arrays_inside_objects(tmp_path):
    inside = np.arange(6).reshape(2, 3).T
    array = np.empty(2, dtype=object)
    array[:] = [inside, {"again": [inside, np.array("2020-01-02", dtype="M8[D]")]}]
    np.save(tmp_path / "nested.npy", array, allow_pickle=True)
    first, second = read_array(tmp_path / "nested.npy")
    assert (first == inside).all()
    assert second["again"][0] is first
    assert second["again"][1] == np.datetime64("2020-01-02")


# ------------------------------------------------------------------ published files


@needs_multilabel
@pytest.mark.parametrize("name", ["annotations_classify_task.pkl", "image_info.pkl"])
def test_reads_the_published_frames_as_pandas_does(name):
    import pandas

    read, expected = read_frame(MULTILABEL / name), pandas.read_pickle(MULTILABEL / name)
    index = expected.index.name or "index"
    assert list(read) == [*expected.columns, index]
    assert read[index].tolist() == expected.index.tolist()
    for column in expected.columns:
        assert read[column].dtype == expected[column].dtype
        # repr also tells apart lists, arrays, counters and the numbers' types inside them.
        assert repr(read[column][::50].tolist()) == repr(expected[column][::50].tolist())


@needs_multilabel
@pytest.mark.parametrize("path", sorted(MULTILABEL.glob("*.npy")), ids=lambda p: p.name)
def test_reads_the_published_object_arrays_as_numpy_does(path):
    read, expected = read_array(path), np.load(path, allow_pickle=True)
    assert read.shape == expected.shape == ()
    assert read.item() == expected.item()
    assert type(read.item()) is type(expected.item())
