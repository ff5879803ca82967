"""Files of strangers: what is damaged, forged or merely strange is one line and nothing else."""

import io
import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_tables import read_tables
from refusals import check, refused

from bayesrep import Study, StudyError, read_study
from bayesrep.errors import Violation, reason
from bayesrep.files import netcdf, npy, parquet, sandbox, strict_json
from bayesrep.protocols.label_sets import read_label_sets
from bayesrep.sources.cifar10_1 import read_predicted_classes
from bayesrep.sources.imagenetv2 import read_test_set
from bayesrep.sources.pickles.safe_pickle import read_array, read_frame
from bayesrep.studies.answers import read_predictions
from bayesrep.studies.reading import check_study
from experiments.fuzzing import samples
from experiments.fuzzing.mutations import ODD_HEADERS, ODD_JSON
from experiments.fuzzing.worker import write

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone limits memory")


@pytest.fixture(scope="module")
def files():
    return samples.answered_files()


@pytest.fixture
def folder(tmp_path, files):
    write(tmp_path, files)
    return tmp_path / "study"


def only_line(study):
    (line,) = check_study(study)
    assert "\n" not in line
    return line


# --- what an exception says ---------------------------------------------------------------------


class Silent(Exception):
    def __str__(self):
        raise RuntimeError("cannot say")


@given(st.one_of(st.none(), st.integers(), st.text(), st.lists(st.text()), st.just(KeyError("x"))))
def test_the_reason_of_any_exception_is_one_line(said):
    error = OSError(2, "text")
    error.strerror = said
    for each in (error, ValueError(said), Silent(), KeyError(said), OSError(said), OSError()):
        text = reason(each)
        assert text
        assert text == text.strip()
        assert "\n" not in text


# --- JSON ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 200_000, "more than 100 deep"),
        ("[" * 101 + "]" * 101, "more than 100 deep"),
        ('{"a":' * 50_000 + "1" + "}" * 50_000, "more than 100 deep"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' is given twice"),
        ("[NaN]", "NaN is not a number"),
        ("-Infinity", "-Infinity is not a number"),
        ("[1e999]", "a number is too large"),
        ("9" * 100, "a whole number is too large"),
        ("9" * 5000, "."),
        (r'"\ud800"', "surrogates not allowed"),
        (r'{"\ud800": 1}', "surrogates not allowed"),
        ("", "Expecting value"),
    ],
)
def test_json_that_is_refused(text, message):
    with pytest.raises(ValueError, match=message) as error:
        strict_json.parse(text)
    assert "\n" not in str(error.value)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**127), 2**127)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
)


@given(json_values)
def test_other_json_is_what_json_reads(value):
    try:
        text = json.dumps(value, ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError:
        return
    assert strict_json.parse(text) == json.loads(text)


def test_large_json_is_refused_before_it_is_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr(strict_json, "MAX_BYTES", 2**20)
    (tmp_path / "large.json").write_text("[" + "0," * 2**19 + "0]")
    with refused(StudyError, "file-not-json", {"reason": "more than 1 MB"}):
        strict_json.read(tmp_path / "large.json")


@pytest.mark.parametrize("odd", ODD_JSON, ids=lambda odd: odd[:12])
def test_odd_json_in_every_reader_is_one_line(tmp_path, folder, odd):
    (first,) = read_predictions(folder, ["reference"])
    write(tmp_path, samples.imagenetv2_files())
    text = (folder / "study.json").read_text().replace('"reference"', odd, 1)
    (folder / "study.json").write_text(text)
    (tmp_path / "odd.json").write_text(odd)
    (tmp_path / "data/metadata/class_info.json").write_text(odd)
    for read in (
        lambda: read_study(folder),
        lambda: read_predicted_classes(tmp_path / "odd.json", 3),
        lambda: read_test_set(tmp_path / "data", "old"),
        lambda: read_label_sets([tmp_path / "odd.json"], first),
    ):
        with pytest.raises(StudyError) as error:
            read()
        assert "\n" not in str(error.value)


# --- NumPy's files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4),
        np.asfortranarray(np.arange(6, dtype=">i2").reshape(2, 3)),
        np.array(7, dtype="?"),
        np.zeros((0, 3), dtype="c16"),
        np.array(["a", "bc"]),
        np.array(["2020-01-01"], dtype="M8[ns]"),
    ],
    ids=lambda array: array.dtype.str,
)
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_arrays_are_what_numpy_reads(array, version):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version)
    stream.seek(0)
    found = npy.read(stream, len(stream.getvalue()))
    np.testing.assert_array_equal(found, array)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.flags.writeable


@pytest.mark.parametrize("header", ODD_HEADERS, ids=lambda header: repr(header[:20]))
def test_odd_headers_are_one_line(tmp_path, header):
    whole = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(24)
    (tmp_path / "odd.npy").write_bytes(whole)
    with refused(StudyError, "pickle-or-array-damaged"):
        read_array(tmp_path / "odd.npy")


def test_an_array_shorter_or_longer_than_it_says_is_refused(tmp_path):
    whole = samples.npy(np.arange(5))
    for data in (whole[:-8], whole + b"12345678"):
        (tmp_path / "odd.npy").write_bytes(data)
        with refused(StudyError, "pickle-or-array-damaged"):
            read_array(tmp_path / "odd.npy")


# --- the process that reads first ---------------------------------------------------------------

BAD = """
import os, time
from bayesrep.errors import Violation

def sound(file, where): return None
def wrong(file, where, word): return Violation("file-not-readable", where=where, reason=word)
def dies(file, where): os.abort()
def ends(file, where): os._exit(3)
def computes(file, where): sum(iter(int, 1))
def sleeps(file, where): time.sleep(60)
def fills(file, where): return len(bytearray(2**40)) and None
def raises(file, where): raise BaseException("odd\\nlines")
def prints(file, where): os.write(1, b"noise\\n"); print("noise")
"""


@pytest.fixture(scope="module")
def bad_readers(tmp_path_factory):
    """Functions that the helper can import."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "bad_readers.py").write_text(BAD)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        sandbox._helper.stop()  # the next one knows the path
        yield __import__("bad_readers")
        sandbox._helper.stop()
    sys.modules.pop("bad_readers")


@pytest.fixture
def bad(bad_readers, monkeypatch):
    """Those, and short limits."""
    monkeypatch.setattr(sandbox, "BASE_SECONDS", 0.3)
    return bad_readers


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("dies", ("file-kills-its-reader", {"signal": "SIGABRT"})),
        ("ends", ("file-ends-its-reader",)),
        ("computes", ("file-takes-too-much-time", {"seconds": pytest.approx(0.3, abs=1e-3)})),
        ("sleeps", ("file-takes-too-much-time", {"seconds": pytest.approx(3, abs=1e-2)})),
        ("fills", ("file-takes-too-much-memory", {"gigabytes": pytest.approx(0.5, abs=1e-3)})),
        ("raises", ("file-not-readable", {"reason": "BaseException: odd"})),
    ],
)
@on_linux
def test_what_kills_a_reader_is_one_line(tmp_path, bad, name, broken):
    file = tmp_path / "file"
    file.write_bytes(b"contents")
    fault = sandbox.fault(getattr(bad, name), file, "file")
    check(fault, *broken)
    assert fault.facts["where"] == "file"
    assert sandbox.fault(bad.prints, file, "file") is None  # and the next file is read
    odd = sandbox.fault(bad.wrong, file, "file", "odd")
    check(odd, "file-not-readable", {"where": "file", "reason": "odd"})


@pytest.fixture
def own_record(tmp_path, monkeypatch):
    """A cache of the test's own, and a process that has read nothing; made anew when called."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def begin():
        monkeypatch.setattr(sandbox, "_sound", sandbox._SoundFiles())

    begin()
    return begin


def test_a_sound_file_is_tried_once_until_it_changes(tmp_path, monkeypatch, own_record):
    file, tried = tmp_path / "file", []
    monkeypatch.setattr(
        sandbox._helper, "ask", lambda request: tried.append(request["function"][1])
    )

    def ask(examine=netcdf.examine, *arguments):
        assert sandbox.fault(examine, file, "file", *arguments) is None
        return len(tried)

    file.write_bytes(b"old")
    assert (ask(), ask()) == (1, 1)
    own_record()  # as in a later process
    assert ask() == 1
    assert ask(parquet.examine) == 2
    assert ask(netcdf.examine, "otherwise") == 3
    before = file.stat()
    file.write_bytes(b"new")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # as old as it was, it says
    assert (ask(), ask()) == (4, 4)
    file.rename(tmp_path / "other")
    file.write_bytes(b"new")  # what was tried are the contents
    assert ask() == 4
    monkeypatch.setattr(sandbox, "_digest_code", lambda _: "another version")
    assert (ask(), ask()) == (5, 5)


def test_in_a_folder_of_others_nothing_is_kept_or_taken(tmp_path, monkeypatch, own_record):
    file, tried = tmp_path / "file", []
    monkeypatch.setattr(sandbox._helper, "ask", tried.append)
    file.write_bytes(b"contents")
    assert sandbox.fault(netcdf.examine, file, "file") is None
    (tmp_path / "cache/bayesrep").chmod(0o777)
    for number in (2, 3):
        own_record()
        assert sandbox.fault(netcdf.examine, file, "file") is None
        assert len(tried) == number


@on_linux
def test_what_is_no_file_is_not_read_here(monkeypatch, own_record):
    """A device need not end: the helper alone, which has limits, reads it."""
    monkeypatch.setattr(sandbox._helper, "ask", lambda _: None)
    assert sandbox.fault(netcdf.examine, "/dev/zero", "it") is None
    assert sandbox._sound.trials == set()


def test_a_damaged_or_large_record_is_made_anew(tmp_path, monkeypatch, own_record):
    file, record = tmp_path / "file", tmp_path / "cache/bayesrep/sound-files"
    monkeypatch.setattr(sandbox._helper, "ask", lambda _: None)
    monkeypatch.setattr(sandbox, "MAX_RECORD_BYTES", 100)
    record.parent.mkdir(parents=True, mode=0o700)
    record.write_bytes(b"\xff\x00")
    sizes = []
    for number in range(3):
        own_record()
        file.write_text(str(number))
        assert sandbox.fault(netcdf.examine, file, "file") is None
        sizes.append(record.stat().st_size if record.exists() else 0)
    assert sizes == [67, 0, 65]


def test_a_file_with_a_fault_is_tried_again(tmp_path, monkeypatch):
    file, faults = tmp_path / "file", [Violation("no-posterior-given"), None]
    file.write_bytes(b"old")
    monkeypatch.setattr(sandbox._helper, "ask", lambda _: faults.pop(0))
    assert sandbox.fault(netcdf.examine, file, "file") is not None
    assert sandbox.fault(netcdf.examine, file, "file") is None
    assert faults == []


def test_the_helper_is_one_process_and_ends_with_its_parent(tmp_path):
    (tmp_path / "file").write_bytes(b"not a posterior")
    program = (
        "import sys; from bayesrep.files import netcdf, sandbox; "
        "assert sandbox.fault(netcdf.examine, sys.argv[1], 'it'); "
        "first = sandbox._helper.process.pid; "
        "assert sandbox.fault(netcdf.examine, sys.argv[1], 'it'); "
        "assert sandbox._helper.process.pid == first; print(first)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "file")]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stderr == b""
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def test_without_processes_files_are_read_here(folder, monkeypatch):
    sandbox._helper.stop()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert check_study(folder) == []
    (folder / "counts.parquet").write_bytes(b"PAR1")
    check(only_line(folder), "parquet-file-unreadable", {"where": "counts.parquet"})


@pytest.mark.parametrize(
    "program", ["raise SystemExit(1)", sandbox._HELPER_PROGRAM.replace("sys.argv[1]", "'[]'")]
)
def test_with_a_helper_that_cannot_import_files_are_read_here(folder, monkeypatch, program):
    sandbox._helper.stop()
    monkeypatch.setattr(sandbox, "_HELPER_PROGRAM", program)
    assert check_study(folder) == []
    (folder / "counts.parquet").write_bytes(b"PAR1")
    check(only_line(folder), "parquet-file-unreadable", {"where": "counts.parquet"})
    sandbox._helper.stop()


def test_ctrl_c_while_the_helper_works_leaves_no_answer_behind(tmp_path, bad):
    file = tmp_path / "file"
    file.write_bytes(b"contents")
    assert sandbox.fault(bad.wrong, file, "file", "any") is not None
    helper = sandbox._helper.process

    class Interrupted:
        def readline(self):
            raise KeyboardInterrupt

        def close(self):
            pass

    assert helper is not None
    stream, helper.stdout = helper.stdout, Interrupted()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        sandbox.fault(bad.wrong, file, "file", "the first")
    stream.close()
    assert helper.returncode == -signal.SIGKILL
    assert sandbox.fault(bad.wrong, file, "file", "the second").facts["reason"] == "the second"


# --- pickles ------------------------------------------------------------------------------------


@on_linux
def test_a_pickle_that_fills_the_memory_is_one_line(tmp_path):
    # The machine of the pickle makes room for two billion objects.
    (tmp_path / "memo.pkl").write_bytes(b"\x80\x02]r" + (2**31 - 1).to_bytes(4, "little") + b".")
    with refused(StudyError, "file-takes-too-much-memory"):
        read_frame(tmp_path / "memo.pkl")


# --- Parquet ------------------------------------------------------------------------------------

SIZE = 40
ODD = {
    "list": pl.Series([[1]] * SIZE),
    "struct": pl.Series([{"a": 1}] * SIZE),
    "array": pl.Series([[1, 2]] * SIZE, dtype=pl.Array(pl.Int64, 2)),
    "decimal": pl.Series(range(SIZE)).cast(pl.Decimal(38, 2)),
    "binary": pl.Series([b"\xff"] * SIZE),
    "duration": pl.Series([timedelta(1)] * SIZE),
    "date": pl.Series(range(SIZE)).cast(pl.Date),
    "128 bits": pl.Series(range(SIZE)).cast(pl.Int128),
    "nothing": pl.Series([None] * SIZE),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize(
    ("file", "columns"),
    [
        ("counts.parquet", ["dataset", "image", "selected", "shown"]),
        ("images.parquet", ["dataset", "image"]),
        ("predictions/reference/{}.parquet", ["image", "correct"]),
    ],
)
def test_odd_types_in_a_study_are_one_line(folder, file, columns, kind):
    place = folder / file.format(read_study(folder).classifiers[0])
    for column in columns:
        table = pl.read_parquet(place)
        rows = pl.Series(np.arange(len(table)) % SIZE)
        table.with_columns(ODD[kind].gather(rows).alias(column)).write_parquet(place)
        line = next(iter(check_study(folder)))
        told = (line.facts["where"], line.facts["column"])
        assert told == (str(place.relative_to(folder)), column)
        table.write_parquet(place)


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("column", ["image", "label", "label_1"])
def test_odd_types_in_answers_are_one_line(folder, column, kind):
    place = folder / f"predictions/reference/{read_study(folder).classifiers[0]}.parquet"
    table = pl.read_parquet(place)
    table.with_columns(ODD[kind].alias(column)).write_parquet(place)
    with pytest.raises(StudyError) as error:
        read_predictions(folder)
    assert error.value.facts["where"].endswith(place.name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", sorted({*ODD} - {"decimal"}))
def test_odd_types_in_tables_are_one_line(tmp_path, kind):
    files = samples.tables("parquet")
    write(tmp_path, files)
    paths = [tmp_path / name for name in files]
    for path in paths:
        sound = pl.read_parquet(path)
        for column in sound.columns:
            rows = pl.Series(np.arange(len(sound)) % SIZE)
            sound.with_columns(ODD[kind].gather(rows).alias(column)).write_parquet(path)
            with pytest.raises(StudyError) as error:
                read_tables(paths)
            assert path.name in str(error.value)
            assert "\n" not in str(error.value)
        sound.write_parquet(path)
    assert read_tables(paths).classifiers == ("one", "two")


@pytest.mark.parametrize("odd", [2**31, 2**62, 2**63 - 1, 2**64 - 1, 1e300, 1e19])
def test_counts_that_nobody_can_have_counted_are_too_large(tmp_path, folder, odd):
    counts = pl.read_parquet(folder / "counts.parquet")
    values = pl.Series([odd, *counts["shown"][1:].to_list()], dtype=pl.UInt64, strict=False)
    if isinstance(odd, float):
        values = pl.Series([odd, *counts["shown"][1:].to_list()], dtype=pl.Float64)
    counts.with_columns(values.alias("shown")).write_parquet(folder / "counts.parquet")
    check(only_line(folder), "count-too-large", {"column": "shown", "images": ["0"]})
    write(tmp_path, samples.tables("csv"))
    lines = (tmp_path / "counts.csv").read_text().splitlines()
    lines[1] = ",".join([*lines[1].split(",")[:3], str(odd)])
    (tmp_path / "counts.csv").write_text("\n".join(lines))
    with refused(StudyError, "count-too-large-in-rows", {"column": "shown"}):
        read_tables([tmp_path / f"{name}.csv" for name in ("counts", "predictions")])


def test_a_count_too_large_for_int64_is_not_called_negative():
    arrays = dict(shown=[2**64 - 1, 5], selected=[1, 2], correct=[[True], [False]])
    with refused(StudyError, "count-too-large", {"column": "shown", "images": ["0"]}):
        Study.from_arrays(reference=arrays, replication=arrays, classifiers=["one"])


def test_a_small_file_with_many_rows_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "BASE_SECONDS", 60.0)
    many = pl.select(pl.repeat("a", 4_000_000).alias("image"), pl.repeat(1, 4_000_000).alias("k"))
    many.write_parquet(tmp_path / "many.parquet")
    with refused(StudyError, "parquet-rows-implausible", {"where": "many", "rows": 4000000}):
        parquet.read(tmp_path / "many.parquet", "many", ["image", "k"])


def test_one_long_name_among_many_is_refused(tmp_path):
    names = pl.Series("image", ["x" * 100_000, *map(str, range(5_000))])
    names.to_frame().write_parquet(tmp_path / "long.parquet")
    with refused(StudyError, "text-implausibly-long", {"column": "image", "characters": 100000}):
        parquet.read(tmp_path / "long.parquet", "long", ["image"])


# --- seals --------------------------------------------------------------------------------------


def test_any_changed_bit_of_our_own_table_is_noticed(folder):
    place = folder / "counts.parquet"
    whole, sound = place.read_bytes(), read_study(folder).fingerprint()
    rng = np.random.default_rng(0)
    refused = 0
    for at in rng.integers(0, len(whole), 60).tolist():
        changed = bytearray(whole)
        changed[at] ^= 1 << int(rng.integers(8))
        place.write_bytes(changed)
        lines = check_study(folder)
        refused += bool(lines)
        assert lines or read_study(folder).fingerprint() == sound
    assert refused == 60


def test_half_a_seal_is_a_broken_one(folder):
    place = folder / "counts.parquet"
    whole = place.read_bytes()
    assert whole.count(parquet.SEAL_KEY.encode()) == 2
    for half in (whole.replace(b"bayesrep", b"bayesreq", 1), whole.replace(b"sha256:", b"sha255:")):
        place.write_bytes(half)
        check(only_line(folder), "parquet-file-altered", {"where": "counts.parquet"})


def test_a_table_that_somebody_rewrites_is_read(folder):
    place = folder / "counts.parquet"
    table = pl.read_parquet(place)
    assert parquet.SEAL_KEY in pl.read_parquet_metadata(place)
    table.with_columns(pl.lit(0).alias("selected")).write_parquet(place)
    assert check_study(folder) == []
    assert (read_study(folder).reference.selected == 0).all()


@given(
    st.lists(st.tuples(st.text(), st.integers(-(2**63), 2**63 - 1), st.floats()), max_size=20),
    st.dictionaries(st.text(st.characters(codec="ascii")), st.text(), max_size=2),
)
@settings(max_examples=30)
def test_whatever_is_written_is_sound(tmp_path_factory, rows, facts):
    file = tmp_path_factory.mktemp("sealed") / "file.parquet"
    schema = {"a": pl.String, "b": pl.Int64, "c": pl.Float64}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    parquet.write(table, file, facts)
    assert parquet.examine(str(file), "file", ["a", "b"], ["c"]) is None
    assert parquet.read(Path(file), "file", ["a"], further=None).equals(table)
    assert facts.items() <= pl.read_parquet_metadata(file).items()
