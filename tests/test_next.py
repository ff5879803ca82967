"""Commands that are printed: whoever pastes one has a command that runs.

Those that are quick are run; of the others the real parser reads the options, and what they read is
there.
"""

import inspect
import re
import shlex
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import zoo

import bayesrep
from bayesrep import cli, process
from bayesrep.errors import sentences
from bayesrep.posterior.fitted import Fitted
from bayesrep.report.fits_text import remedies
from bayesrep.report.sections import trust

pytestmark = pytest.mark.filterwarnings("ignore::bayesrep.errors.EstimateWarning")

LINE = re.compile(r"^(?:[\w ]+: |\s*\$ |  )bayesrep (.+)$|(?<=: )bayesrep (collect read .+)$", re.M)
READ = ("study", "posterior", "paths", "files", "source", "grid")
"""Arguments that name what has to be there."""
PLACEHOLDERS = ("STUDY", "posterior.nc", "FILE", "PATH", "counts.csv")


def printed(text):
    """The commands of a text, as lists of words without the program's name."""
    return [shlex.split(one or other) for one, other in LINE.findall(text)]


def parsed(words):
    """What the real parser makes of a command, once all that it reads is there."""
    arguments = cli._parse(words)
    for name in READ:
        given = getattr(arguments, name, None)
        for each in given if isinstance(given, list) else [given]:
            if isinstance(each, Path) and str(each) not in PLACEHOLDERS:
                assert each.exists(), (words, each)
    return arguments


def run(capsys, *words):
    capsys.readouterr()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        status = cli.main([str(word) for word in words])
    return status, capsys.readouterr().out


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder whose name has a blank, where everything is typed by a relative path."""
    folder = tmp_path / "my data"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Path("of v2 & v1")


COUNTS = "dataset,image,selected,shown\nv1,a,3,4\nv1,b,4,4\nv2,c,2,4\nv2,d,4,4\n"
ROLES = ("--reference", "v1", "--replication", "v2")


def test_what_check_says_is_next_of_tables(here, capsys):
    here.mkdir()
    counts, predictions = here / "the counts.csv", here / "p.csv"
    counts.write_text(COUNTS)
    rows = "v1,a,m,1\nv1,b,m,1\nv2,c,m,0\nv2,d,m,1\n"
    predictions.write_text(f"dataset,image,classifier,correct\n{rows}")
    status, text = run(capsys, "check", counts, predictions, *ROLES)
    (following,) = printed(text)
    assert (status, following[0]) == (0, "run")
    assert parsed(following).files == [counts, predictions]
    status, text = run(capsys, "check", counts, *ROLES)
    (following,) = printed(text)
    assert (status, following[:2]) == (0, ["import", "tables"])
    status, text = run(capsys, *following)
    assert status == 0
    (following,) = printed(text)
    assert parsed(following).study == Path("FOLDER")
    assert following[0] == "predict"


def test_answers_without_counts_are_compared_and_given_counts(here, capsys):
    for name, right in (("one", [0, 1, 2, 3]), ("two", [0, 1, 2, 0])):
        (here / name).mkdir(parents=True)
        np.save(here / name / "labels.npy", np.array([0, 1, 2, 3]))
        np.save(here / name / "m.npy", np.array(right))
    status, text = run(capsys, "import", "arrays", here / "one", here / "two", "--out", here / "s")
    assert status == 0
    compare, multilabel, counts = printed(text)
    assert run(capsys, *compare)[0] == 0
    assert parsed(multilabel).study == here / "s"
    images = pl.concat(
        pl.read_parquet(path).select(
            pl.lit(path.parent.name).alias("dataset"), "image", selected=3, shown=4
        )
        for path in (here / "s").rglob("m.parquet")
    )
    images.write_csv("counts.csv")
    roles = ("--reference", "one", "--replication", "two")
    assert run(capsys, *counts, *roles)[0] == 0
    assert bayesrep.read_study(here / "s").classifiers == ("m",)


@pytest.mark.usefixtures("kept_fits")
def test_a_fit_leads_to_its_summary_and_one_that_has_not_converged_to_its_diagnosis(here, capsys):
    zoo.study("tiny").write(here)
    quick = ("--method", "laplace")
    status, text = run(capsys, "fit", here, "--out", "a fit.nc", *quick, "--quiet")
    (following,) = printed(text)
    assert (status, following[0]) == (0, "summarize")
    assert run(capsys, *following)[0] == 0
    options = {name: value for name, value in zoo.SHORT.items() if name not in ("progress",)}
    typed = ["--method", options["method"], "--chains", options["chains"]]
    typed += [w for n in ("warmup", "draws") for w in ("--set", f"{n}={options[n]}")]
    typed += ["--set", "degree=8", "--set", "terms=3", "--quiet"]
    status, text = run(capsys, "fit", here, "--out", "short.nc", *typed)
    (following,) = printed(text)
    assert (status, following[0]) == (1, "diagnose")
    status, text = run(capsys, *following)
    assert status in (0, 1)
    assert "Trust: " in text
    for command in printed(text):  # its remedies
        assert parsed(command).study == here


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("tiny", zoo.SHORT),
        ("tiny", zoo.QUICK),
        ("grouped", {**zoo.SHORT, "groups": "breed"}),
        ("workers", {**zoo.QUICK, "model": "workers"}),
    ],
)
def test_what_makes_a_page_again_makes_the_same_fit(name, options, here, monkeypatch):
    """With the model, the options and the lengths that the posterior was made with."""
    study = zoo.study(name)
    study.write("STUDY")
    fitted = Fitted(study, zoo.posterior(name, **options))
    fit, report = printed("\n".join(f"  {line}" for line in trust._commands(fitted).splitlines()))
    heard = {}

    def asked(study, **given):
        heard.update(given)
        raise KeyboardInterrupt

    asked.__signature__ = inspect.signature(bayesrep.fit)
    monkeypatch.setattr(bayesrep, "fit", asked)
    assert cli.main(fit) == 130
    for option, value in options.items():
        if option != "progress":
            assert heard[option] == value, option
    arguments = parsed(report)
    assert arguments.allow_unconverged == (not fitted.group.attrs["converged"])


def test_remedies_are_commands(here):
    zoo.study("tiny").write(here)
    said = [
        "Try components=3, or shared_components=False, and compare.",
        "Fit with method='nuts'.",
        "fit with dependence=0.1.",
    ]
    commands = printed("\n".join(remedies(said, str(here), "posterior.nc")))
    assert len(commands) == 3
    for command in commands:
        assert parsed(command).study == here


def test_a_stopped_sweep_and_written_tasks_name_their_command(here, capsys):
    here.mkdir()
    (here / "grid.toml").write_text("method = ['raw']\n[[study]]\nsimulate = { images = 40 }\n")
    words = ["sweep", str(here / "grid.toml"), "--out", str(here / "o"), "--jobs", "1"]
    arguments = cli._parse(words)
    (again,) = printed(arguments.module.describe_kept(arguments))
    assert again == words


def test_every_command_in_a_message_is_one_with_such_options():
    found = [
        words.split()
        for sentence in sentences().values()
        for words in re.findall(r"`bayesrep ([^`]+)`", sentence)
    ]
    assert len(found) > 5
    for words in found:
        name = cli._find_name(words)
        parser = cli._listing_parser(name) if name in cli.GROUPS else cli._command_parser(name)
        known = parser._option_string_actions
        assert [word for word in words if word.startswith("--") and word not in known] == []


def test_a_command_can_be_pasted_whatever_its_paths_are_called():
    for word in ("a b", "it's", "x\ny", "\x1b[31m", "é", "$HOME", "a\\b", "-1"):
        command = process.command("check", word)
        assert command.isprintable()
        assert command.startswith("bayesrep check ")
        if word.isprintable():
            assert shlex.split(command)[2] == word
