"""`bayesrep run`: all of it in one folder, nothing made twice, a changed table noticed."""

import functools
import json
import re
import runpy
import shutil
import warnings
from collections import Counter
from pathlib import Path
from random import Random

import polars as pl
import pytest
from refusals import check, refusal

import bayesrep
from bayesrep import cli
from bayesrep.commands import run as command
from bayesrep.files.digests import seal_files

MADE = ("study", "posterior.nc", "tables", "figures", "report.html", "run.json")
TABLES = ("estimates", "estimated-gaps", "adjusted", "gaps", "ranks", "pairs")


README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
COMMAND, *PRINTED = re.search(r"^\$ bayesrep (run .*\n.*\n.*)$", README, re.M)[1].splitlines()


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The example's two tables, and nothing else."""
    folder, examples = tmp_path_factory.mktemp("run"), Path(__file__).parents[1] / "examples"
    for name, table in runpy.run_path(str(examples / "make.py"))["make_tables"]().items():
        shutil.copy(examples / name, folder)
        assert table.equals(pl.read_csv(folder / name)), "run python examples/make.py"
    return folder


@pytest.fixture(autouse=True)
def few_replicates(monkeypatch):
    monkeypatch.setattr(command, "FEW_REPLICATES", 5)


def typed(folder, *more, out="out"):
    """What README says, with files and the output in a folder."""
    words = [re.sub("^examples", str(folder), word) for word in COMMAND.split()]
    assert words[-2:] == ["--out", "my-folder"]
    return [*words[:-1], str(folder / out), *more]


def run(capsys, folder, *more, out="out"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        status = cli.main(typed(folder, *more, out=out))
    said = capsys.readouterr()
    return status, said.out, said.err


@pytest.mark.usefixtures("kept_fits")
def test_tables_in_report_out_and_nothing_twice(capsys, tables, monkeypatch):
    status, text, err = run(capsys, tables)
    out = tables / "out"
    assert status == 0
    assert {path.name for path in out.iterdir()} == {*MADE}
    assert {path.name for path in (out / "tables").iterdir()} == {f"{n}.csv" for n in TABLES}
    pictures = {f"{name}{kind}" for name in command.RUN_FIGURES for kind in (".pdf", ".png")}
    assert {path.name for path in (out / "figures").iterdir()} == pictures
    # The headline first, then whether to believe it; the stages are numbered.
    for said, told in zip(text.splitlines(), PRINTED, strict=False):  # as README has it
        numbers = [[float(n) for n in re.findall(r"\d+(?:\.\d+)?", line)] for line in (said, told)]
        assert numbers[0] == pytest.approx(numbers[1], abs=1)
        assert re.sub(r"[\d.]+", "", said) == re.sub(r"[\d.]+", "", told)
    for number in range(1, 6):
        assert f"[{number}/5] " in err
    study, posterior = (
        bayesrep.read_study(out / "study"),
        bayesrep.read_posterior(out / "posterior.nc"),
    )
    assert study.name == "out"
    table = pl.read_csv(out / "tables" / "adjusted.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = bayesrep.summarize(study, posterior)
    assert table["adjusted_accuracy"].to_list() == pytest.approx(
        expected["adjusted_accuracy"].to_list(), rel=1e-9
    )

    # The same again: nothing is made, and the same is said.
    def never(*_, **__):
        raise AssertionError("made again")

    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    monkeypatch.setattr(command._Work, "stage", never)
    again = run(capsys, tables)
    assert again[:2] == (0, text)
    assert "up to date" in again[2]
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    monkeypatch.undo()

    # What somebody removed is made again, and what it takes is not.
    whole = (out / "report.html").stat().st_size
    monkeypatch.setattr(command._Work, "fit", never)
    (out / "report.html").unlink()
    status, _, err = run(capsys, tables)
    assert status == 0
    assert "[2/5] fitting: done before" in err
    assert "up to date" not in err
    assert (out / "report.html").stat().st_size == pytest.approx(whole, rel=0.01)


@pytest.mark.parametrize("mistake", ["roles", "cell", "column", "missing", "killed"])
def test_a_first_mistake_leaves_nothing_in_the_way(capsys, tables, tmp_path, monkeypatch, mistake):
    for name in ("counts.csv", "predictions.csv"):
        shutil.copy(tables / name, tmp_path)
    counts, out, words = tmp_path / "counts.csv", tmp_path / "out", typed(tmp_path)
    sound = counts.read_text()
    changes = {"cell": (",8\n", ",x\n"), "column": ("selected", "slected"), "killed": (",8", ",9")}
    counts.write_text(sound.replace(*changes.get(mistake, ("", ""))))
    wrong = {
        "roles": [word for word in words if word not in ("--reference", "v1")],
        "missing": [word.replace("predictions", "nowhere") for word in words],
    }.get(mistake, words)
    if mistake == "killed":  # in the first stage
        arguments = cli._parse(words)
        command._begin_record(arguments, command._describe_request(arguments))
        (out / "study").mkdir()
    else:
        assert cli.main(wrong) == 2
        assert not out.exists()
    counts.write_text(sound)

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command._Work, "fit", stop)  # the first stage is done
    assert cli.main(words) == 130
    assert [*json.loads((out / "run.json").read_text())["seconds"]] == ["study"]
    counts.write_text(sound.replace(",8\n", ",9\n"))
    assert cli.main(words) == 2  # what got further keeps its protections
    assert "counts.csv has changed" in capsys.readouterr().err


@pytest.fixture
def finished(tables):
    """A folder in which all stages are done, though of fewer words than a real one."""
    out = tables / "finished"
    out.mkdir()
    for place in command.STAGE_FILES.values():
        file = out / place if "." in place else out / place / "part.csv"
        file.parent.mkdir(exist_ok=True)
        file.write_text(place)
    record = {
        "asked": command._describe_request(cli._parse(typed(tables))),
        "seconds": dict.fromkeys(command.STAGE_FILES, 0.5),
        "seals": {name: seal_files(out, place) for name, place in command.STAGE_FILES.items()},
        "found": {
            **dict.fromkeys(("verdict", "assumption", "components_choice", "tried"), ""),
            **{"answer": "Four points.", "sentences": ["Read on."], "matching": [], "trust": "yes"},
            "converged": True,
        },
    }
    command._write_record(out, record)
    yield out
    shutil.rmtree(out)


@pytest.mark.parametrize(
    ("place", "ruin", "made"),
    [
        ("report.html", "lost", ["report"]),
        ("report.html", "empty", ["report"]),
        ("figures/part.csv", "lost", ["figures", "report"]),
        ("tables/part.csv", "lost", ["tables", "figures", "report"]),
        ("tables/part.csv", "empty", ["tables", "figures", "report"]),
        ("posterior.nc", "empty", ["posterior", "tables", "figures", "report"]),
        ("study/part.csv", "empty", [*command.STAGE_FILES]),
        ("study", "lost", [*command.STAGE_FILES]),
        ("tables/part.csv", "changed", []),
        ("posterior.nc", "changed", []),
    ],
)
def test_what_is_ruined_is_made_again_and_what_is_changed_is_named(
    capsys, tables, finished, monkeypatch, place, ruin, made
):
    """A file that is gone or empty, with all that comes after it; one that was edited is kept."""
    heard = []

    def make(work, number, text, _):
        name = [*command.STAGE_FILES][number - 1]
        if name not in work.record["seconds"]:
            heard.append(name)
            work.record["seconds"][name] = 1.0

    monkeypatch.setattr(command._Work, "stage", make)
    path = finished / place
    if ruin == "changed":
        path.write_text("another")
    elif ruin == "empty":
        path.write_text("")
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    status, text, err = run(capsys, tables, out="finished")
    assert (status, heard) == (0, made)
    assert text.startswith("Four points.\n")
    assert ("nothing was made again" in err) == (made == [])
    assert "up to date" not in err
    assert (f"{path} has changed since it was made" in err) == (ruin == "changed")
    assert path.exists() == (ruin != "lost")


def test_a_change_is_not_overwritten_in_silence(capsys, tables, finished, monkeypatch):
    monkeypatch.setattr(command._Work, "stage", lambda *_: None)
    table = finished / "tables" / "part.csv"
    table.write_text("another")
    (finished / "study" / "part.csv").unlink()
    _, _, err = run(capsys, tables, out="finished")
    assert f"{table} has changed since it was made, and is made anew" in err


def nested(value, path=()):
    """Every place in a value of JSON."""
    inside = value.items() if isinstance(value, dict) else ()
    yield path
    for name, each in inside:
        yield from nested(each, (*path, name))


ODD = (None, 0, -1, 1e300, "", "-inf", [], {}, [1], True, {"study": "x"}, "../../x", ["a", None])


def test_a_record_that_is_not_ours_is_refused_in_one_line(capsys, tables, finished, monkeypatch):
    """150 changes of a sound one, of which none may be a traceback."""
    monkeypatch.setattr(command._Work, "stage", lambda *_: None)
    random, file = Random(7), finished / "run.json"
    sound = json.loads(file.read_text())
    places = [path for path in nested(sound) if path]
    outcomes = Counter()
    for _ in range(150):
        record = json.loads(json.dumps(sound))
        *way, name = random.choice(places)
        inside = functools.reduce(lambda value, step: value[step], way, record)
        act = random.randrange(4)
        if act == 0:
            del inside[name]
        elif act == 1:
            inside[random.choice(("more", "../x", "tables"))] = inside[name]
        else:
            inside[name] = random.choice(ODD)
        text = json.dumps(record)
        file.write_text(text[: random.randrange(len(text))] if random.random() < 0.1 else text)
        status, _, err = run(capsys, tables, out="finished")
        outcomes[status] += 1
        assert status in (0, 1, 2)
        assert len(err.splitlines()) == 1 or status != 2, err
    assert outcomes[2] > 100


@pytest.mark.parametrize(
    "change",
    [
        {"found": "-inf"},
        {"found": {"answer": ""}},
        {"found": {"answer": "No drop at all."}},
        {"found": {"trust": "with care"}},
        {"seconds": [1.0]},
        {"seconds": {"study": float("1e999")}},
        {"seals": {name: {"../counts.csv": ""} for name in command.STAGE_FILES}},
        {"seals": {"report": {}}},
        {"asked": {"contents": {}, "options": [], "version": "1"}},
        {"seal": None},
    ],
)
def test_a_record_that_somebody_changed_is_refused(tables, finished, change):
    record = json.loads((finished / "run.json").read_text())
    for name, value in change.items():
        both = isinstance(value, dict) and name in ("found", "seals")
        record[name] = record[name] | value if both else value
    (finished / "run.json").write_text(json.dumps(record))
    told = {"differences": "run.json is not as run left it"}
    check(refusal(typed(tables, out="finished")), "run-of-other-inputs", told)


def test_what_differs_is_refused_and_said(capsys, tables, monkeypatch):
    out = tables / "two"
    out.mkdir()
    for name in ("study", "tables", "figures"):
        (out / name).mkdir()
    for name in ("posterior.nc", "report.html"):
        (out / name).touch()

    def make_study(self, number, *_):
        if number == 1:
            (self.out / "study").mkdir(exist_ok=True)
            (self.out / "study" / "part").write_text("x")
            seals = {"study": seal_files(self.out, "study")}
            self.record |= {"seconds": {"study": 0.5}, "seals": seals}
            command._write_record(self.out, self.record)

    monkeypatch.setattr(command._Work, "stage", make_study)
    monkeypatch.setattr(command, "_print_answer", lambda arguments, record: 0)
    (out / "run.json").write_text("{}")
    differs = "run-of-other-inputs"
    unread = {"out": str(out), "differences": "run.json is not as run left it"}
    check(refusal(typed(tables, out="two")), differs, unread)
    status, _, err = run(capsys, tables, "--force", out="two")
    assert status == 0
    assert "is made anew" in err
    assert not (out / "report.html").exists()
    assert run(capsys, tables, out="two")[0] == 0
    found = refusal(typed(tables, "--seed", "3", out="two"))
    check(found, differs, {"differences": "--seed was not given and is 3"})
    counts = tables / "counts.csv"
    before = counts.read_text()
    try:
        counts.write_text(before.replace(",8\n", ",8 \n", 1))
        found = refusal(typed(tables, out="two"))
        check(found, differs, {"differences": "counts.csv has changed"})
    finally:
        counts.write_text(before)


def test_folders_of_others_and_tables_without_predictions(tables, tmp_path):
    other = tables / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("")
    for force in ((), ("--force",)):
        found = refusal(typed(tables, *force, out="other"))
        check(found, "out-not-earlier-run", {"out": str(other)})
    assert [path.name for path in other.iterdir()] == ["thesis.tex"]
    roles = ("--reference", "v1", "--replication", "v2")
    found = refusal(["run", tables / "counts.csv", *roles, "--out", tmp_path / "x"])
    check(found, "tables-without-predictions")
    found = refusal(["run", tmp_path / "none.csv", "--out", tmp_path / "y"])
    check(found, "input-file-unreadable", {"file": str(tmp_path / "none.csv")})
    assert not (tmp_path / "y").exists()


@pytest.mark.compiles
def test_the_record_is_json_that_says_what_was_asked(tables):
    record = json.loads((tables / "out" / "run.json").read_text())
    assert list(record["seconds"]) == list(command.STAGE_FILES)
    assert record["asked"]["options"]["reference"] == "v1"
    assert record["asked"]["version"] == bayesrep.__version__


def test_chains_are_kept_while_they_are_made(tables, monkeypatch):
    """Of whatever may come to chains; the method is the library's unless one is asked for."""
    from types import SimpleNamespace

    tried = []

    def fit(study, method="auto", **options):
        tried.append((method, "checkpoint" in options))

    monkeypatch.setattr(bayesrep, "fit", fit)
    for asked, expected in (
        (None, [("auto", True)]),
        ("laplace", [("laplace", False)]),
        ("nuts", [("nuts", True)]),
    ):
        arguments = SimpleNamespace(out=tables, method=asked, seed=None, quiet=True)
        tried.clear()
        command._Work(arguments, {}, watch=False)._fit_posterior(None)
        assert tried == expected


def test_what_is_no_table_and_what_logs_do_not_take(tmp_path):
    logs, counts = tmp_path / "logs", tmp_path / "counts.csv"
    logs.mkdir()
    counts.touch()
    out = ("--out", tmp_path / "out")
    for path in (logs, logs / "samples.jsonl"):
        check(refusal(["run", path, *out]), "run-of-no-table", {"path": str(path)})
    words = ["run", logs, "--counts", counts]
    check(refusal([*words, "--further", "candidates=v3", *out]), "further-set-of-logs")
    check(refusal([*words, "--out", logs / "out"]), "output-is-input")
    assert [*tmp_path.iterdir()] == [counts, logs]
