"""The command line: exit statuses, pure JSON, one clear line for every mistake."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl
import pytest
import zoo
from refusals import check, refusal, run

import bayesrep
from bayesrep import cli
from bayesrep.errors import plain_text
from bayesrep.estimators import components
from bayesrep.posterior import read_posterior
from bayesrep.report import demo as demo_room
from bayesrep.report.estimates_text import spread
from bayesrep.report.table_format import columns, percent
from bayesrep.studies.reading import check_study

# The options of zoo.SHORT, whose compiled programs these share.
OPTIONS = ("--set", "degree=8", "--set", "terms=3")
SHORT = (*OPTIONS, "--method", "nuts", "--chains", "2", "--set", "warmup=100")


@pytest.fixture(scope="module")
def study_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "study"
    zoo.study("tiny").write(path)
    return path


@pytest.fixture(scope="module")
def posterior_path():
    """Of a fit so short that it has not converged."""
    return zoo.posterior_path("tiny", **zoo.SHORT)


def as_evaluation(study, path):
    """The same study, of items, models and judges."""
    replace(study, provenance={**study.provenance, "words": "evaluation"}).write(path)
    return path


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory, posterior_path):
    """A study of items, models and judges, and a fit of it: the same but for the words."""
    folder = tmp_path_factory.mktemp("evaluation")
    path, fit = as_evaluation(zoo.study("tiny"), folder / "evaluation"), folder / "evaluation.nc"
    posterior = read_posterior(posterior_path)
    posterior["posterior"].attrs["words"] = "evaluation"
    bayesrep.write_posterior(posterior, fit)
    return path, fit


@pytest.fixture
def small_demo(monkeypatch):
    """The demo of the tiny study and of a fit that is kept, estimated once."""
    fitted = zoo.posterior("tiny", **{**zoo.SHORT, "warmup": 250, "draws": 1000})
    monkeypatch.setattr(demo_room, "PAPER_REPLICATES", REPLICATES)
    for name in ("analyse", "gather"):
        monkeypatch.setattr(demo_room, name, made_once(getattr(demo_room, name)))
    monkeypatch.setattr(demo_room, "simulate_study", lambda **_: zoo.study("tiny"))
    monkeypatch.setattr(demo_room, "fit", lambda *_, **__: fitted)


def made_once(function):
    """A function that returns again what it made first."""
    made = []

    def again(*arguments, **options):
        made or made.append(function(*arguments, **options))
        return made[0]

    return again


def printed_table(capsys, *arguments):
    """The table that a command prints as CSV, with nothing else."""
    status, text, _ = run(capsys, *arguments, "--format", "csv")
    assert status == 0
    return pl.read_csv(io.StringIO(text))


def test_help_and_version_are_quick_to_say(capsys):
    assert cli.main(["--version"]) == 0
    assert bayesrep.__version__ in capsys.readouterr().out
    for group in ([], ["papers"]):  # alone they say what there is
        assert cli.main(group) == 0
        assert capsys.readouterr().out.startswith(" ".join(["usage: bayesrep", *group]))
    assert cli.main(["nonsense"]) == 2
    capsys.readouterr()
    assert cli.main(["sumarize", "s", "p.nc"]) == 2
    assert capsys.readouterr().err == (
        "bayesrep: there is no command 'sumarize'; did you mean 'summarize'?\n"
    )
    for wrong, message in (("3:2", "runs backwards"), ("many", "is not N")):
        assert cli.main(["simulate", "x", "--annotators", wrong]) == 2
        assert message in capsys.readouterr().err


def test_simulate_check_estimate(capsys, tmp_path):
    out = tmp_path / "s"
    arguments = ("simulate", out, "--images", 200, "--annotators", "4:9", "--classifiers", 2)
    status, text, _ = run(capsys, *arguments)
    assert status == 0
    assert "2 classifiers" in text
    assert "truth is in study.json" in text
    assert len(bayesrep.read_study(out).truth.adjusted_accuracy) == 2
    status, text, _ = run(capsys, "check", out)
    assert status == 0
    assert "No rule is broken" in text
    check(refusal(arguments), "output-path-exists", {"path": str(out)})
    assert capsys.readouterr().out == ""
    assert run(capsys, *arguments, "--force")[0] == 0
    options = ("--methods", "raw,naive,jackknife", "--bootstrap", 20)  # nothing to compile
    status, text, _ = run(capsys, "estimate", out, *options)
    assert status == 0
    assert "naive" in text
    table = printed_table(capsys, "estimate", out, *options)
    assert table["lower"].null_count() == 0


# 8 annotators, or counts of 36 that few images have
FEW = pytest.mark.filterwarnings("ignore::bayesrep.errors.EstimateWarning")
# As many replicates as there are to leave one out: em-spline is compiled for every number anew.
REPLICATES = 24


@FEW
def test_methods_with_options(capsys, study_path):
    methods = "naive(annotators=4), em-spline(components=1, loss=binomial)"
    arguments = ("estimate", study_path, "--methods", methods, "--quiet")
    status, text, err = run(capsys, *arguments, "--bootstrap", REPLICATES, "--interval", "bca")
    assert (status, err) == (0, "")
    names = ["naive(annotators=4)", "em-spline(components=1, loss=binomial)"]
    table = printed_table(capsys, *arguments)
    assert table["method"].unique(maintain_order=True).to_list() == names
    assert all(name in text for name in names)
    assert "share explained" in text


@FEW
def test_a_bar_shows_on_standard_error_only(capsys, study_path):
    methods = "em-spline(components=1, loss=binomial)"
    status, out, err = run(
        capsys, "estimate", study_path, "--methods", methods, "--bootstrap", REPLICATES, "--json"
    )
    assert status == 0
    assert {row["quantity"] for row in json.loads(out)["gaps"]} >= {"slope", "selection_gap"}
    assert "em-spline" in err


METHODS = {"choices": ", ".join(bayesrep.estimators.METHODS)}
NAIVE = {"method_name": "naive", "option": "workers"}
FEW_SAID = {"option": "annotators", "value": "few"}
NO_COMPONENTS = {"components": 0, "starts": 10}
LOSS = {"option": "loss", "value": "huber", "choices": "least-squares, weighted, binomial"}


@pytest.mark.parametrize(
    ("methods", "rule", "facts"),
    [
        ("best", "unknown-method", {"method": "best", **METHODS}),
        ("naive(workers=3)", "unknown-method-option", {**NAIVE, "known_options": "annotators"}),
        ("naive(annotators=few)", "method-option-not-whole", FEW_SAID),
        ("naive(annotators=9)", "thinned-annotators-out-of-range", {"annotators": 9, "fewest": 8}),
        ("jackknife(delete=8)", "jackknife-delete-out-of-range", {"delete": 8, "most": 7}),
        ("em-spline(loss=huber)", "unknown-method-option-value", LOSS),
        ("em-spline(components=0)", "components-or-starts-below-one", NO_COMPONENTS),
        ("raw(x=1)", "method-without-options", {"method_name": "raw", "option": "x"}),
        ("naive(", "unknown-method", {"method": "naive("}),
        (",", "no-method-given", METHODS),
    ],
)
def test_wrong_methods_are_one_line(capsys, study_path, methods, rule, facts):
    check(refusal(["estimate", study_path, "--methods", methods]), rule, facts)
    assert capsys.readouterr().out == ""


@FEW
def test_mixtures_side_by_side(capsys, study_path, monkeypatch):
    small = made_once(partial(components.compare_components, components=(1, 2)))
    monkeypatch.setattr(components, "compare_components", small)
    arguments = ("estimate", study_path, "--table", "components")
    status, text, _ = run(capsys, *arguments)
    assert status == 0
    assert "held out" in text
    table_text = text.partition("\n\n")[0]
    assert table_text.count("*") == 6  # the best by each of three criteria in both data sets
    assert re.search(r"Components needed: reference [12], replication [12] ", text)
    assert printed_table(capsys, *arguments)["components"].to_list() == [1, 2, 1, 2]
    _, out, _ = run(capsys, *arguments, "--json")
    assert [row["components"] for row in json.loads(out)["rows"]] == [1, 2, 1, 2]


@FEW
def test_every_number_of_annotators(capsys, study_path):
    arguments = ("estimate", study_path, "--table", "annotators")
    status, text, _ = run(capsys, *arguments)
    assert status == 0
    assert "A line in 1/n through the naive estimates of n = " in text
    assert printed_table(capsys, *arguments)["annotators"].max() == 8
    status, out, _ = run(capsys, *arguments, "--json")
    facts = json.loads(out)
    assert facts["linearity"]["half"] == 4
    assert len(facts["rows"]) == 24


def test_summarize_refuses_what_did_not_converge(capsys, study_path, posterior_path):
    verdict = read_posterior(posterior_path)["posterior"].attrs["verdict"]
    found = refusal(["summarize", study_path, posterior_path])
    check(found, "not-converged", {"verdict": verdict})
    assert str(found) == verdict
    assert capsys.readouterr().out == ""
    status, text, _ = run(capsys, "summarize", study_path, posterior_path, "--allow-unconverged")
    assert status == 0
    assert "R-hat" in text
    assert "8 annotators per image" in text


def test_summarize_prints_some_classifiers_and_gives_programs_all(
    capsys, study_path, posterior_path
):
    command = ("summarize", study_path, posterior_path, "--allow-unconverged")
    status, text, _ = run(capsys, *command, "--top", "1")
    assert status == 0
    assert (
        text.splitlines()[3]
        == "1 of 3 classifiers; --top all shows them, --format csv prints them."
    )
    assert len(printed_table(capsys, *command, "--top", "1")) == 3
    _, text, _ = run(capsys, *command, "--top", "1", "--json")
    assert len(json.loads(text)["rows"]) == 3
    _, text, _ = run(capsys, *command, "--top", "1", "--format", "markdown")
    assert text.splitlines()[1].startswith("| --- | ---: |")
    assert text.splitlines()[3].startswith("1 of 3 classifiers")
    _, text, _ = run(capsys, *command, "--top", "all")
    assert "of 3 classifiers" not in text
    assert run(capsys, *command, "--top", "0")[0] == 2


def test_a_fit_that_has_not_converged_is_written_and_ends_with_one(capsys, study_path, tmp_path):
    out = tmp_path / "p.nc"
    arguments = ("fit", study_path, "--out", out, *SHORT, "--set", "draws=100", "--quiet")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert run(capsys, *arguments)[0] == 1
    attributes = read_posterior(out)["posterior"].attrs
    assert not attributes["converged"]
    assert attributes["words"] == "images"


def test_bad_paths_are_refused_before_the_work(study_path, tmp_path, monkeypatch):
    def worked(*_, **__):
        raise AssertionError("the work began")

    monkeypatch.setattr("bayesrep.fit", worked)
    existing = tmp_path / "there.nc"
    existing.write_text("precious")
    for out, rule in (
        (existing, "output-path-exists"),
        (tmp_path / "no" / "such" / "p.nc", "output-folder-not-writable"),
        (existing / "below.nc", "output-folder-not-writable"),
        (tmp_path, "output-is-folder"),
    ):
        check(refusal(["fit", study_path, "--out", out]), rule, {"path": str(out)})
    assert existing.read_text() == "precious"


def test_missing_and_broken_studies(capsys, tmp_path, study_path):
    for command in ("estimate", "check"):
        found = refusal([command, tmp_path / "nothing"])
        check(found, "study-path-missing", {"path": str(tmp_path / "nothing")})
    broken = tmp_path / "broken"
    shutil.copytree(study_path, broken)
    counts = pl.read_parquet(broken / "counts.parquet")
    counts.with_columns(selected=pl.col("shown") + 1).write_parquet(broken / "counts.parquet")
    status, text, err = run(capsys, "check", broken)
    assert status == 1
    assert "selected" in text
    assert "broken" in err
    assert {each.rule for each in check_study(broken)} == {"selected-exceeds-shown"}


def test_interruption_is_one_line(capsys, study_path, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("bayesrep.fit", interrupted)
    status, text, err = run(capsys, "fit", study_path, "--out", tmp_path / "p.nc")
    assert (status, text) == (130, "")
    assert err == "bayesrep: interrupted; nothing was written\n"
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_names_what_is_kept_only_where_it_is(capsys, tmp_path, monkeypatch):
    """An empty folder is nothing to go on from, of a fit, a plan and a run alike."""
    kept, out = tmp_path / "kept", tmp_path / "p.nc"

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    for module in ("fit", "collect.plan", "run"):
        monkeypatch.setattr(f"bayesrep.commands.{module}.run", interrupted)
    price = ("--cost-answer", 1, "--cost-image", 0)
    lines = (
        ("fit", "study", "--out", out, "--checkpoint", kept),
        ("collect", "plan", "--pilot", "study", *price, "--keep", kept),
        ("run", "counts.csv", "--out", kept),
    )
    nothing = "bayesrep: interrupted; nothing was written\n"
    for words in lines:
        assert run(capsys, *words) == (130, "", nothing)
    kept.mkdir()
    for words in lines:
        assert run(capsys, *words) == (130, "", nothing)
    (kept / "block").write_text("")
    for words in lines:
        told = f"bayesrep: interrupted; the same command resumes from {kept}\n"
        assert run(capsys, *words) == (130, "", told)


@pytest.mark.compiles
def test_ctrl_c_while_sampling_ends_the_process(study_path, tmp_path):
    """A real signal to a real fit, once its chains run in their threads."""
    out = tmp_path / "p.nc"
    command = [sys.executable, "-m", "bayesrep", "fit", study_path, "--out", out, *SHORT]
    with subprocess.Popen([*command, "--set", "draws=50000"], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        seen = b""
        while b"1%" not in seen:
            piece = process.stderr.read1(4096)
            assert piece, seen
            seen += piece
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"interrupted; nothing was written" in rest
    assert list(tmp_path.iterdir()) == []


def adds_up(folder):
    """The folder of a demo is whole, and so is its table."""
    wanted = {"study", "posterior.nc", "estimates.csv", "demo.json", "adjusted-accuracy.png"}
    assert wanted <= {path.name for path in folder.iterdir()}
    made = json.loads((folder / "demo.json").read_text())
    truth = made["methods"][-1]["mean_gap"]
    for row in made["methods"][:-1]:
        assert row["mean_gap"] - row["mean_error"] == pytest.approx(truth, abs=1e-12)
    return made


def says_what_is_true(text):
    for words in ("as measured", "naive matching", "posterior", "truth", "gap (points)"):
        assert words in text
    lines = [line for line in text.splitlines() if not line.startswith(("Creating", "Installing"))]
    assert "The simulation knows the truth: " in lines[1]
    assert "Trust, as `bayesrep diagnose` says: " in text


@pytest.mark.skipif("BAYESREP_DEMO" not in os.environ, reason="no demo has been run before")
def test_the_demo_that_the_gate_has_run():
    folder = Path(os.environ["BAYESREP_DEMO"])
    made = adds_up(folder)
    assert made["fitted_by"] == "laplace"
    assert min(made["min_ess_bulk"], made["min_ess_tail"]) >= 400
    says_what_is_true((folder.parent / "demo.txt").read_text(encoding="utf-8"))


@FEW
@pytest.mark.usefixtures("small_demo")
def test_demo_writes_whole_folders_and_spares_others(tmp_path, capsys):
    out = tmp_path / "demo"
    again = ("demo", "--quick", "--quiet", "--out", out)
    status, text, err = run(capsys, *again)
    assert status == 0, err
    says_what_is_true(text)
    adds_up(out)
    status, text, err = run(capsys, *again, "--json")  # into the same folder
    assert status == 0, err
    assert json.loads(text)["methods"][0]["method"] == "raw"
    adds_up(out)
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious.txt").write_text("x")
    check(refusal(["demo", "--out", other]), "out-not-earlier-demo", {"out": str(other)})
    assert [path.name for path in other.iterdir()] == ["precious.txt"]


def test_printed_text_cannot_steer_a_terminal():
    assert plain_text("a\x1b[31mb\n") == "a\\x1b[31mb\\n"
    assert "\x1b" not in columns(["n"], [["\x1b[2J"]])
    assert percent(None) == percent(float("nan")) == "-"
    assert percent(0.12345, 2) == "12.35"
    assert spread(3) == [0, 1, 2]
    assert spread(136)[0] == 0
    assert spread(136)[-1] == 135


def test_diagnose_and_loo_in_words_and_in_json(capsys, study_path, posterior_path):
    status, text, _ = run(capsys, "diagnose", posterior_path)
    assert "R-hat" in text or "ESS" in text
    status_json, text, _ = run(capsys, "diagnose", posterior_path, "--json")
    assert status == status_json
    found = json.loads(text)
    assert found["trust"] in ("yes", "with care", "no")
    assert {check["trust"] for check in found["checks"]} <= {"yes", "with care", "no"}
    compared = ("diagnose", posterior_path, "--against", posterior_path)
    status, text, _ = run(capsys, *compared)
    assert status == 0
    assert "elpd" in text
    check(refusal([*compared, "--study", study_path]), "against-with-study")
    found = refusal(["diagnose", study_path])
    check(found, "posterior-path-is-folder", {"path": str(study_path)})
    found = refusal(["summarize", posterior_path, study_path])
    check(found, "study-path-is-posterior", {"path": str(posterior_path)})
    assert found.count(str(posterior_path)) == 1
    found = refusal(["check", "nothing.csv"])
    check(found, "check-path-missing", {"path": "nothing.csv"})


def test_quick_methods_and_options_of_the_model(capsys, study_path, tmp_path, request):
    out = tmp_path / "quick.nc"
    quick = ("fit", study_path, "--out", out, "--method", "laplace", *OPTIONS, "--quiet")
    status, text, _ = run(capsys, *quick, "--set", "draws=50", "--json")
    assert status == 0
    seconds = json.loads(text)["seconds"]
    assert list(seconds)[:3] == ["reading", "importing", "posing"]
    assert {"finding the mode", "evaluating", "judging", "writing"} <= set(seconds)
    assert all(value >= 0 for value in seconds.values())
    fit = ("fit", study_path, "--out", tmp_path / "never.nc", "--quiet")
    hint, many = {"hint": "; did you mean 'degree'?"}, {"components": 9, "most_components": 6}
    lacking, uncut = {"data_sets": ["flickr"]}, {"method": "laplace"}
    for more, rule, facts in (
        ("--set degre=8", "unknown-model-option", {"model": "joint", "options": ["degre"], **hint}),
        ("--set components=9", "components-or-degree-out-of-range", many),
        ("--set draws=few", "setting-not-whole-number", {"option": "draws", "value": "few"}),
        ("--set slope=1", "prior-not-mean-and-sd", {"option": "slope", "value": 1}),
        ("--groups breed", "data-set-without-group-column", {"column": "breed"}),
        ("--datasets reference,replication,flickr", "study-lacks-data-sets", lacking),
        ("--method laplace --set feedback=cut", "cut-or-checkpoint-without-nuts", uncut),
        (f"--checkpoint {study_path}", "kept-work-folder-not-empty", {"path": str(study_path)}),
    ):
        check(refusal([*fit, *more.split()]), rule, facts)
    assert cli.main([str(part) for part in (*fit, "--set", "degree")]) == 2
    assert not (tmp_path / "never.nc").exists()
    request.getfixturevalue("kept_fits")
    status, text, _ = run(capsys, *quick, "--force")
    assert status == 0
    assert "the Pareto k of their importance weights is" in text


def test_ranks_pairs_and_images(capsys, study_path, posterior_path):
    fitted = ("summarize", study_path, posterior_path)
    check(refusal([*fitted, "--table", "ranks"]), "not-converged")
    ranks = (*fitted, "--allow-unconverged", "--table", "ranks")
    pairs = (*fitted, "--allow-unconverged", "--table", "pairs")
    status, text, _ = run(capsys, *pairs)
    assert status == 0
    assert "better (%)" in text
    table = printed_table(capsys, *pairs)
    assert len(table) == 3
    status, text, _ = run(capsys, *ranks)
    assert status == 0
    assert len(text.splitlines()) == 7
    assert "Removing selection" in text.splitlines()[-1]
    status, text, _ = run(capsys, *ranks, "--top", "1")
    assert "1 of 3 classifiers; --top all shows them" in text
    one, two = table.select("classifier", "other").row(0)
    status, text, _ = run(capsys, *pairs, "--between", f"{one},{two}")
    assert text.splitlines()[-1].startswith("Of 1 pair of classifiers, ")
    found = refusal([*pairs, "--between", f"{one},{two}x"])
    facts = {"classifier": f"{two}x", "hint": f"; did you mean {two!r}?"}
    check(found, "between-unknown-classifier", facts)
    status, text, _ = run(capsys, *ranks, "--format", "markdown")
    assert text.splitlines()[1] == "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    facts = {"option": "notes", "table": "accuracies"}
    check(refusal([*ranks, "--notes"]), "option-of-another-table", facts)
    _, text, _ = run(capsys, *fitted, "--allow-unconverged", "--table", "images")
    assert "Hardest for classifiers" in text
    status, text, _ = run(capsys, "diagnose", posterior_path, "--study", study_path)
    assert "classifiers agree as predicted" in text


OURS = re.compile(r"(?i)\b(images?|classifiers?|annotators?|annotations?|workers?|people)\b")
"""Of studies of images alone."""
FITTED = ("STUDY", "FIT", "--allow-unconverged")


@FEW
@pytest.mark.parametrize(
    ("command", "arguments", "words"),
    [
        ("summarize", (*FITTED, "--notes"), "8 judges per item"),
        ("summarize", (*FITTED, "--table", "ranks", "--top", "1"), "1 of 3 models"),
        ("summarize", (*FITTED, "--table", "pairs"), "have a better one"),
        ("estimate", ("STUDY", "--bootstrap", "2", "--quiet", "--top", "1"), "3 models;"),
        ("diagnose", ("FIT",), "curves fit the models"),
        ("diagnose", ("FIT", "--study", "STUDY"), "models agree as predicted"),
        ("diagnose", ("FIT", "--against", "FIT"), "the models' answers"),
        ("answers remeasure", ("STUDY",), "its items were kept"),
        ("answers remeasure", FITTED, "its items were kept"),
        ("estimate", ("STUDY", "--table", "annotators"), "judges"),
        ("estimate", ("STUDY", "--table", "components", "--quiet"), "predict items left out"),
        ("check", ("STUDY",), "for other items"),
        ("check", ("STUDY",), "8 answers per item"),
        ("papers compare", ("STUDY",), "participant"),
        ("papers compare", ("STUDY", "--table", "lines"), "95 %, other models"),
        ("papers compare", ("STUDY", "--table", "robustness"), "on the line"),
    ],
)
def test_what_is_printed_is_in_the_words_of_the_study(
    capsys, evaluation, command, arguments, words, monkeypatch
):
    one = partial(components.compare_components, components=(1,))
    monkeypatch.setattr(components, "compare_components", one)
    given = dict(zip(("STUDY", "FIT"), evaluation, strict=True))
    arguments = [given.get(each, each) for each in arguments]
    _, text, err = run(capsys, *command.split(), *arguments)
    for said in (text, err):
        assert not OURS.search(said), OURS.search(said)
        assert not re.search(r"(?i)\ba items?\b|\ban (model|judge)", said)
    assert words in text


@FEW
def test_names_of_columns_stay_for_programs_and_names_of_parts_in_any_form(capsys, evaluation):
    path, fit = evaluation
    ranks = ("summarize", path, fit, "--allow-unconverged", "--table", "ranks")
    _, out, _ = run(capsys, *ranks, "--json")
    assert "classifier" in json.loads(out)["rows"][0]
    _, out, _ = run(capsys, "estimate", path, "--table", "annotators", "--json")
    assert "annotators" in json.loads(out)["rows"][0]
    _, out, _ = run(capsys, "diagnose", fit, "--json")
    checks = [row["check"] for row in json.loads(out)["checks"]]
    assert "curves fit the classifiers" in checks
    _, text, _ = run(capsys, "papers", "compare", path, "--format", "markdown")
    assert "95 %" in text
    assert "| ---" in text
    assert not OURS.search(text)
    _, text, _ = run(capsys, *ranks, "--format", "markdown")
    assert "| model | adjusted" in text
    assert not OURS.search(text)


@FEW
def test_lines_are_even_in_either_words(capsys, study_path, evaluation):
    """A cell is put into words before its column is made as wide as it."""
    for path in (study_path, evaluation[0]):
        _, text, _ = run(capsys, "estimate", path, "--table", "annotators")
        rows = text.splitlines()[1:11]
        assert len({len(row) for row in rows}) == 1
        assert len(rows[1].split()[0]) == len(rows[0].split()[0])


def test_one_command_does_not_speak_for_the_next(capsys, study_path, evaluation):
    assert "judges" in run(capsys, "check", evaluation[0])[1]
    assert "annotators" in run(capsys, "check", study_path)[1]


@FEW
@pytest.mark.usefixtures("kept_fits")
def test_what_is_to_be_typed_is_no_sentence(capsys, evaluation, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(evaluation[0], "images")
    options = ("--method", "laplace", *OPTIONS, "--quiet")
    _, text, _ = run(capsys, "fit", "images", "--out", "people", *options)
    assert read_posterior("people")["posterior"].attrs["words"] == "evaluation"
    assert "\nWritten to people\n" in text
    assert text.rstrip().endswith("summarize images people")


def test_a_figure_is_in_the_words_of_the_study(capsys, evaluation, study_path, tmp_path):
    texts = []
    for path in (study_path, evaluation[0]):
        status, _, _ = run(capsys, "figure", "robustness", path, "--out", tmp_path / "r.svg")
        assert status == 0
        texts.append((tmp_path / "r.svg").read_text(encoding="utf-8"))
        (tmp_path / "r.svg").unlink()
    assert [">classifiers<" in text for text in texts] == [True, False]
    assert [">models<" in text for text in texts] == [False, True]


def test_images_are_items_where_the_study_is_an_evaluation(capsys, tmp_path):
    study, path = zoo.study("images"), zoo.posterior_path("images", **zoo.QUICK)
    other = as_evaluation(study, tmp_path / "other")
    status, text, _ = run(capsys, "summarize", other, path, "--table", "images")
    assert status == 0
    assert "Hardest for models, given how judges see them" in text
    assert not OURS.search(text)


@pytest.mark.parametrize(("before", "after"), [(None, "1"), ("4", "4")])
def test_a_command_multiplies_matrices_in_one_thread_unless_it_is_told(monkeypatch, before, after):
    seen = []
    monkeypatch.setattr(cli, "open_streams", lambda: None)
    monkeypatch.setattr(cli.process, "run", lambda _: seen.append(os.environ[THREADS]))
    if before is None:
        monkeypatch.delenv(THREADS, raising=False)
    else:
        monkeypatch.setenv(THREADS, before)
    cli.run_process()
    assert seen == [after]


THREADS = "OPENBLAS_NUM_THREADS"
