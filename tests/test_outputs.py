"""What is written and printed: whole or not at all, on full disks, to any terminal, to none."""

import ast
import errno
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import zoo
from refusals import check, refusal, refused

import bayesrep
from bayesrep import atomic, cli, store
from bayesrep.atomic import PLACED_FILES, replaced_file, replaced_folder, writing_to
from bayesrep.commands import output
from bayesrep.commands.output import open_streams, write_table
from bayesrep.errors import BayesrepError, OptionError
from experiments.papers.page import write_paper

PACKAGE = Path(bayesrep.__file__).parent
SMALL = zoo.cut(zoo.study("tiny"), images=60, classifiers=2)


# --------------------------------------------------------------- names that are marks elsewhere

EVIL = (
    r"\input{/etc/passwd}",
    "[x](javascript:alert(1))",
    "<script>alert(1)</script>",
    "`a`_*b*_#%&$",
)
RAW = r"(?<!\\)(<script|\[x|`a|\*b|\$)|(?<!\\)\\input"


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """A study, and the folder of a sweep, whose names are marks of Markdown."""
    root, study = tmp_path_factory.mktemp("evil"), zoo.cut(zoo.study("tiny"), images=60)
    sets = {
        role: replace(data, name=name)
        for (role, data), name in zip(study.datasets.items(), EVIL, strict=False)
    }
    replace(study, name=EVIL[2], datasets=sets, classifiers=EVIL[1:]).write(root / "study")
    (root / "grid.toml").write_text(
        f"method = ['raw', 'jackknife']\nannotators = ['all', 99]\n"
        f"[[study]]\nname = {json.dumps(EVIL[0])}\nfolder = 'study'\n"
        f"[[study]]\nname = {json.dumps(EVIL[1])}\nsimulate = {{ images = 40, annotators = 8 }}\n"
    )
    return root


@pytest.mark.filterwarnings("ignore::bayesrep.errors.EstimateWarning")
@pytest.mark.parametrize(
    "command",
    [
        *("check STUDY", "estimate STUDY --bootstrap 2", "papers compare STUDY"),
        *("answers remeasure STUDY", "sweep GRID --out OUT"),
    ],
)
def test_no_name_is_a_mark_of_the_format_that_is_printed(evil, tmp_path, capsys, command):
    """In tables and in sentences; commands that read a posterior print by the same way."""
    places = {"STUDY": evil / "study", "GRID": evil / "grid.toml", "OUT": tmp_path / "out"}
    words = [str(places.get(word, word)) for word in command.split()]
    assert cli.main([*words, "--format", "markdown"]) in (0, 1)
    said = capsys.readouterr().out
    assert re.search(r"alert|passwd", said)
    assert not re.search(RAW, said)


# ------------------------------------------------------------------ one way to write a file

WRITERS = {
    *("write_csv", "write_text", "write_bytes", "write_parquet", "write_ipc", "write_json"),
    *("sink_csv", "sink_parquet", "savefig", "to_netcdf", "save", "savez", "savetxt", "tofile"),
}
ELSEWHERE = {
    "vision/prediction.py save": "a function of ours, which does it",
    "vision/run.py save": "the same",
    "report/notebook.py save": "the same",
    "report/sections/photographs.py save": "into memory",
    "collect/contains_tasks.py write_csv": "into memory, for a digest",
    "commands/output.py write_csv": "into memory, to be printed",
    "files/parquet.py write_parquet": "into memory, to be sealed",
    "files/netcdf.py open": "appends the seal to a file that has not taken its place yet",
    "files/sandbox.py open": "the digest of a file found sound; one cut short is no digest",
    "vision/gzipped.py open": "of a function that is given the partial file",
    "vision/meta_mat.py write_text": "in the sandbox, into its own folder",
    "vision/cache.py write_text": "says what a cache holds; nothing reads it",
    "studies/writing.py write_text": "of functions that are given the new folder",
}


def test_files_take_their_place_whole_or_not_at_all():
    """Whatever writes does so inside `replaced_file` or `replaced_folder`, but for the listed."""
    found = {
        f"{file.relative_to(PACKAGE).as_posix()} {way}"
        for file in PACKAGE.rglob("*.py")
        for way in written(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert found == set(ELSEWHERE)


def written(tree):
    """With what a module writes in its own way."""
    blocks = (block for block in ast.walk(tree) if isinstance(block, ast.With))
    ours = [block for block in blocks if any(map(replaces, block.items))]
    inside = {id(node) for block in ours for node in ast.walk(block)}
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {way for call in calls if id(call) not in inside and (way := writes(call))}


def replaces(item):
    call = item.context_expr
    return isinstance(call, ast.Call) and ast.unparse(call.func).startswith("replaced_f")


def writes(call):
    """The function that writes, where a call does."""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else None
    texts = {a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)}
    mode = any(set(text) <= set("wxabt+") and set(text) & set("wxa+") for text in texts)
    if mode and (method == "open" or ast.unparse(call.func) == "open"):
        return "open"
    return method if method in WRITERS else None


def test_the_look_for_writers_finds_them():
    text = "open(p, 'wb'); p.open('a'); open(p); open(p, 'rb'); t.write_csv(p); write_table(t, p)"
    inside = "with replaced_file(p) as q, open(q, 'w') as f:\n    t.write_csv(q)"
    assert written(ast.parse(text)) == {"open", "write_csv"}
    assert written(ast.parse(inside)) == set()


def test_an_older_table_stays_where_the_new_one_has_no_room(tmp_path, monkeypatch):
    """As polars says it, without the name of a file."""
    study, table = tmp_path / "study", tmp_path / "table.csv"
    zoo.study("workers").write(study)
    table.write_text("precious")

    def full(self, file):
        Path(file).write_text("cut")
        raise pl.exceptions.ComputeError("No space left on device (os error 28)")

    monkeypatch.setattr(pl.DataFrame, "write_csv", full)
    told = io.StringIO()
    monkeypatch.setattr(sys, "stderr", told)
    assert cli.main(["answers", "crowd", str(study), "--workers", str(table), "--force"]) == 1
    assert told.getvalue().splitlines()[-1] == f"bayesrep: {table}: No space left on device"
    assert table.read_text() == "precious"
    assert {path.name for path in tmp_path.iterdir()} == {"study", "table.csv"}


@pytest.mark.parametrize(
    ("said", "number"),
    [
        (pl.exceptions.ComputeError("write: No space left on device (os error 28)"), 28),
        (OSError("[Errno 28] Can't write data (errno = 28, error message = 'No space')"), 28),
        (RuntimeError("Unable to flush file (errno = 28, error message = 'x')"), 28),
        (OSError(errno.ENOSPC, "No space left on device"), 28),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), errno.EDQUOT),
    ],
)
def test_what_a_full_disk_keeps_from_being_written_is_named(tmp_path, said, number):
    target = tmp_path / "x.parquet"
    with pytest.raises(OSError, match=str(target)) as found, replaced_file(target):
        raise said
    assert (found.value.errno, found.value.filename) == (number, str(target))
    with pytest.raises(OSError, match="b.csv") as found, replaced_folder(tmp_path / "a") as folder:
        raise OSError(errno.EACCES, "Permission denied", str(folder / "b.csv"))
    assert found.value.filename == str(tmp_path / "a" / "b.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("other", [ValueError("(os error 2)"), OSError(2, "none", "elsewhere.csv")])
def test_other_errors_stay_what_they_are(tmp_path, other):
    with pytest.raises(type(other)) as found, writing_to(tmp_path / "x"):
        raise other
    assert found.value is other


def test_work_that_is_kept_never_loses_what_it_has(tmp_path, monkeypatch):
    """A result that was cut is made again, and what is there before stays whole meanwhile."""
    folder, facts = store.open_store(tmp_path / "kept", {"seed": 1}), {"1": ["X"], "2": 0.5}
    for key, result in facts.items():
        store.keep(folder, key, result)
    (folder / "3.json").write_text("[0.")
    (folder / ".4.json.0123abcd.partial").write_text("[")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}

    def full(self, text, encoding):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        with pytest.raises(OSError, match=str(folder / "2.json")):
            store.keep(folder, "2", 0.7)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert store.open_store(folder, {"seed": 1}) == folder
    assert store.read_kept(folder, "1234") == facts
    with refused(OptionError, "kept-work-of-another", {"setting": "seed", "kept_value": "1"}):
        store.open_store(folder, {"seed": 2})
    with refused(OptionError, "kept-work-of-another", {"setting": "more", "kept_value": "null"}):
        store.open_store(folder, {"seed": 1, "more": 0})


def test_a_device_is_not_replaced(tmp_path):
    study = tmp_path / "study"
    SMALL.write(study)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = refusal(["fit", study, "--out", pipe, "--force"])
    check(found, "output-not-a-file", {"path": str(pipe)})
    assert pipe.is_fifo()


# ---------------------------------------------------------------------------- interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["_swap", "rename", "rmtree"])
def test_a_signal_while_folders_are_exchanged_is_heard_afterwards(
    tmp_path, monkeypatch, number, moment
):
    """The new folder is in its place, nothing hidden is left, and what was written is known."""
    target = tmp_path / "study"
    (target / "old").mkdir(parents=True)
    where = {"_swap": atomic, "rename": Path, "rmtree": shutil}[moment]
    if moment == "rename":
        in_two_steps(monkeypatch)
    usual = getattr(where, moment)

    def interrupted(*arguments, **options):
        signal.raise_signal(number)
        return usual(*arguments, **options)

    def stop(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(number, stop)
    placed = PLACED_FILES.set([])
    try:
        with pytest.raises(KeyboardInterrupt):
            written_while(monkeypatch, target, where, moment, interrupted)
        assert PLACED_FILES.get() == [target]
        assert signal.getsignal(number) is stop
    finally:
        PLACED_FILES.reset(placed)
        signal.signal(number, before)
    left = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")]
    assert left == ["study", "study/new"]


def written_while(monkeypatch, target, where, moment, instead):
    with replaced_folder(target) as folder:
        (folder / "new").mkdir()
        monkeypatch.setattr(where, moment, instead)


def in_two_steps(monkeypatch):
    """As where the system or its files cannot exchange folders."""
    monkeypatch.setattr(atomic, "_swap", lambda one, other: False)


def killed_while_writing(target: Path, patch: str) -> None:
    """Another process replaces a study and is killed where the patch says."""
    lines = (
        "import os, signal",
        "from pathlib import Path",
        "import bayesrep",
        "from bayesrep import atomic",
        "def killed(*_): os.kill(os.getpid(), signal.SIGKILL)",
        patch,
        f"path = {str(target)!r}",
        "bayesrep.read_study(path).write(path, force=True)",
    )
    ended = subprocess.run([sys.executable, "-c", "\n".join(lines)], check=False)
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="folders are exchanged in one step on Linux")
@pytest.mark.parametrize("patch", ["atomic._swap = killed", "atomic._remove = killed"])
def test_a_kill_before_or_after_the_exchange_leaves_a_whole_folder(tmp_path, patch):
    study = tmp_path / "study"
    SMALL.write(study)
    killed_while_writing(study, patch)
    assert bayesrep.read_study(study).fingerprint() == SMALL.fingerprint()
    assert {path.suffix for path in tmp_path.iterdir()} == {"", ".partial"}


def test_a_kill_between_two_renames_leaves_a_folder_that_is_named(tmp_path):
    """Where folders cannot be exchanged in one step; the study is read and written again."""
    study = tmp_path / "study"
    SMALL.write(study)
    steps = "atomic._swap = lambda *_: False\nusual = Path.rename\n"
    ended = "Path.rename = lambda p, q: (p.suffix == '.partial' and killed()) or usual(p, q)"
    killed_while_writing(study, steps + ended)
    (older,) = tmp_path.glob(".study.*.previous")
    facts = {"path": str(study), "older": str(older)}
    check(refusal(["check", study]), "study-moved-aside", facts)
    assert bayesrep.read_study(older).fingerprint() == SMALL.fingerprint()
    SMALL.write(study)
    assert bayesrep.read_study(study).fingerprint() == SMALL.fingerprint()


def test_folders_change_places_in_one_step_where_the_system_can(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").write_text("b")
    assert atomic._swap(tmp_path / "a", tmp_path / "b") == (sys.platform == "linux")
    assert (tmp_path / "b").is_dir() == (sys.platform == "linux")
    assert not atomic._swap(tmp_path / "nothing", tmp_path / "b")
    monkeypatch.setattr(atomic, "_IS_LINUX", False)
    assert not atomic._swap(tmp_path / "a", tmp_path / "b")


def test_an_exchange_that_fails_leaves_the_older_folder(tmp_path, monkeypatch):
    target = tmp_path / "study"
    (target / "old").mkdir(parents=True)
    usual = Path.rename

    def refused(path, other):
        if path.name.endswith(".partial"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return usual(path, other)

    in_two_steps(monkeypatch)
    monkeypatch.setattr(Path, "rename", refused)
    with pytest.raises(PermissionError, match=str(target)), replaced_folder(target):
        pass
    assert [path.name for path in target.iterdir()] == ["old"]
    assert [path.name for path in tmp_path.iterdir()] == ["study"]


def test_a_link_is_replaced_and_what_it_leads_to_is_not_touched(tmp_path):
    (tmp_path / "elsewhere" / "old").mkdir(parents=True)
    (tmp_path / "study").symlink_to(tmp_path / "elsewhere")
    with replaced_folder(tmp_path / "study") as folder:
        (folder / "new").mkdir()
    assert [path.name for path in (tmp_path / "study").iterdir()] == ["new"]
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["old"]
    assert {path.name for path in tmp_path.iterdir()} == {"study", "elsewhere"}


def test_an_interrupt_after_the_last_step_says_what_was_written(tmp_path, capsys, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    out = tmp_path / "study"
    words = ["simulate", str(out), "--images", "60", "--classifiers", "2"]
    with monkeypatch.context() as patched:
        patched.setattr("bayesrep.commands.simulate.emit", stopped)
        assert cli.main(words) == 130
    assert capsys.readouterr().err == f"bayesrep: interrupted; {out} had been written\n"
    assert bayesrep.read_study(out).classifiers
    monkeypatch.setattr(bayesrep.Study, "write", stopped)
    assert cli.main([*words, "--force"]) == 130
    assert capsys.readouterr().err == "bayesrep: interrupted; nothing was written\n"


# ---------------------------------------------------------------------- streams and encodings


@pytest.fixture(scope="module")
def odd_study(tmp_path_factory):
    """A study whose classifier has a name that few encodings know."""
    path = tmp_path_factory.mktemp("streams") / "study"
    replace(SMALL, classifiers=("café-ネット", "b")).write(path)
    return path


def printed_in(encoding, words, monkeypatch):
    """What a command prints in UTF-8 and in another encoding."""
    texts = {}
    for each in ("utf-8", encoding):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=each, errors="strict")
        monkeypatch.setattr(sys, "stdout", stream)
        open_streams()
        assert cli.main(words) == 0
        texts[each] = stream.buffer.getvalue().decode(each)
    return texts


@pytest.mark.filterwarnings("ignore::bayesrep.errors.EstimateWarning")
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
@pytest.mark.parametrize("command", ["check", "estimate"])
def test_nothing_is_lost_in_an_encoding_that_lacks_characters(
    odd_study, monkeypatch, encoding, command
):
    more = ["--methods", "naive,raw"] if command == "estimate" else []
    texts = printed_in(encoding, [command, str(odd_study), *more], monkeypatch)
    wanted = texts["utf-8"]
    assert len(texts[encoding].splitlines()) == len(wanted.splitlines())
    if command == "check":
        assert ("by +/- " if encoding == "ascii" else "by ± ") in texts[encoding]
    else:
        assert "\N{MINUS SIGN}" in wanted
        assert r"\u30cd\u30c3\u30c8" in texts[encoding]
        assert ("caf\\xe9" if encoding == "ascii" else "café") in texts[encoding]
        numbers = wanted.splitlines()[-1].replace("\N{MINUS SIGN}", "-")
        assert texts[encoding].splitlines()[-1] == numbers


@pytest.mark.filterwarnings("ignore::bayesrep.errors.EstimateWarning")
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_nothing_of_a_summary_is_lost_either(tmp_path, monkeypatch, encoding):
    zoo.study("tiny").write(tmp_path / "study")
    fit = zoo.posterior_path("tiny", **zoo.SHORT)
    words = ["summarize", str(tmp_path / "study"), str(fit), "--allow-unconverged"]
    texts = printed_in(encoding, words, monkeypatch)
    plain = texts["utf-8"].replace("\N{MINUS SIGN}", "-")
    assert texts[encoding] == (plain.replace("±", "+/-") if encoding == "ascii" else plain)


def test_every_character_of_a_sentence_has_what_is_typed_for_it():
    codecs_error = UnicodeEncodeError("ascii", "a−b ± é𝄞\udcff", 0, 9, "lacks it")
    assert output._escape_unencodable(codecs_error) == ("a-b +/- \\xe9\\U0001d11e\\udcff", 9)


START = [sys.executable, "-m", "bayesrep"]


def shell(words, redirected, **environment):
    told = ["sh", "-c", " ".join([*START, *map(str, words), redirected])]
    environment = {**os.environ, **environment}
    return subprocess.run(told, capture_output=True, env=environment, timeout=60, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a compiler: of shell scripts")
def test_streams_that_are_closed_or_full(odd_study):
    words = ("check", odd_study)
    done = shell(words, ">&-")
    assert (done.returncode, done.stderr) == (0, b"")
    done = shell(words, "2>&-")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, b"No rule is broken.")
    if Path("/dev/full").is_char_device():
        done = shell(words, ">/dev/full")
        assert done.returncode == 1
        assert done.stderr == b"bayesrep: standard output: No space left on device\n"
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = shell(words, "", **plain)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"by +/- " in done.stdout


def test_a_table_is_written_with_the_numbers_that_are_printed(tmp_path):
    write_table(pl.DataFrame({"a": ["−1"]}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text(encoding="utf-8") == "a\n−1\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a compiler: of shell scripts")
def test_who_stops_reading_results_has_them_and_who_stops_reading_errors_loses_none(odd_study):
    """A pipe to `head` ends well; a command that could not go on does not say that it did."""
    done = shell(("check", odd_study), "| head -n 1")
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (0, 1, b"")
    assert cli._report_refusal(BrokenPipeError(errno.EPIPE, "Broken pipe", "standard output")) == 0
    assert cli._report_refusal(BrokenPipeError(errno.EPIPE, "Broken pipe")) == 1


def test_a_warning_that_nobody_reads_ends_nothing(monkeypatch):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(sys, "stderr", Closed())
    output.say("nobody hears this")


@pytest.mark.parametrize(
    "words",
    [
        "fit study --datasets a,b --out posterior.nc --checkpoint posterior.nc --force",
        "answers count answers.csv --out answers.csv --force",
        "answers import table a=answers.csv --out answers.csv --force",
        "collect match answers.csv --reference a --pool b --images 5 --out ./answers.csv --force",
        "collect read answers.csv --table labels --fates answers.csv --out labels.csv --force",
        "collect read answers.csv --table labels --fates new.csv --out ./new.csv",
        "answers import table a=answers.csv --out new.csv --counts new.csv",
        "fit study --out study/counts.parquet --force",
        "fit study --out study/predictions/v1/a.parquet --force",
    ],
)
def test_what_is_read_is_never_replaced(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    tables = ("study.json", "counts.parquet", "predictions/v1/a.parquet")
    names = ("posterior.nc", "answers.csv", *(f"study/{name}" for name in tables))
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("as it was", encoding="utf-8")
    check(refusal(words.split()), "output-is-input")
    assert [Path(name).read_text(encoding="utf-8") for name in names] == ["as it was"] * len(names)


@pytest.mark.parametrize(
    "words",
    [
        "import tables study/answers.csv study/right.csv --reference a --replication b --out study",
        "collect tasks study/ask.csv --images v1=study/v1 --out study",
        "collect tasks ask.csv --images v1=study/v1 --out study/v1",
    ],
)
def test_a_folder_that_holds_what_is_read_is_never_replaced(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    for name in ("answers.csv", "right.csv", "ask.csv", "v1/one.jpg"):
        place = Path("study", name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    Path("paper.nc").touch()
    Path("ask.csv").touch()
    check(refusal([*words.split(), "--force"]), "output-holds-input")
    assert {path.name for path in Path("study").iterdir()} > {"answers.csv", "ask.csv"}


def test_a_folder_with_files_of_others_is_never_replaced(tmp_path):
    written = {
        "study": lambda place: SMALL.write(place, force=True),
        "paper": lambda place: write_paper("engstrom2020", None, (), place, options={}),
    }
    for name, write in written.items():
        notes = tmp_path / name / "notes.txt"
        if name == "paper":
            notes.parent.mkdir()
        else:
            write(notes.parent)
            write(notes.parent)  # its own files are replaced
        notes.write_text("years of work", encoding="utf-8")
        with refused(BayesrepError, "folder-holds-other-files", {"names": ["notes.txt"]}):
            write(notes.parent)
        assert notes.read_text(encoding="utf-8") == "years of work"
