"""The command line: exit statuses, pure JSON, one clear line for every mistake."""

import json
import re
import shutil
import signal
import subprocess
import sys
import warnings
from dataclasses import replace

import polars as pl
import pytest

import bayesrep
from bayesrep import cli
from bayesrep.posterior import read_posterior
from bayesrep.report.text import columns, percent, plain, spread

# The fits of test_fit.py, whose compiled programs these share.
OPTIONS = ("--set", "degree=8", "--set", "terms=3")
SHORT = (*OPTIONS, "--chains", "2", "--warmup", "100")


@pytest.fixture(scope="module")
def study_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "study"
    bayesrep.simulate_study(seed=1, images=300, annotators=8, classifiers=3).write(path)
    return path


@pytest.fixture(scope="module")
def posterior_path(study_path):
    path = study_path.parent / "posterior.nc"
    arguments = ["fit", str(study_path), "--out", str(path), *SHORT, "--no-progress"]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert cli.main([*arguments, "--draws", "100"]) == 1
    return path


def as_evaluation(study_path, path):
    """The same study, of items, models and judges."""
    study = bayesrep.read_study(study_path)
    replace(study, provenance={**study.provenance, "words": "evaluation"}).write(path)
    return path


@pytest.fixture(scope="module")
def evaluation(study_path, posterior_path):
    """A study of items, models and judges, and a fit of it."""
    path = as_evaluation(study_path, study_path.parent / "evaluation")
    fit = path.parent / "evaluation.nc"
    arguments = ["fit", str(path), "--out", str(fit), *SHORT, "--draws", "100", "--no-progress"]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert cli.main(arguments) == 1
    found = [read_posterior(each)["posterior"].attrs["words"] for each in (posterior_path, fit)]
    assert found == ["images", "evaluation"]
    return path, fit


def run(capsys, *arguments):
    status = cli.main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_help_and_version_are_quick_to_say(capsys):
    assert cli.main(["--version"]) == 0
    assert bayesrep.__version__ in capsys.readouterr().out
    assert cli.main([]) == 2
    assert cli.main(["nonsense"]) == 2
    capsys.readouterr()
    assert cli.main(["sumarize", "s", "p.nc"]) == 2
    assert capsys.readouterr().err == (
        "bayesrep: there is no command 'sumarize'; did you mean 'summarize'?\n"
    )
    assert cli.main(["simulate", "x", "--annotators", "many"]) == 2


def test_simulate_check_estimate(capsys, tmp_path):
    out = tmp_path / "s"
    arguments = ("simulate", out, "--images", 200, "--annotators", "4:9", "--classifiers", 2)
    status, text, _ = run(capsys, *arguments)
    assert status == 0
    assert "2 classifiers" in text
    status, text, _ = run(capsys, "check", out)
    assert status == 0
    assert "No rule is broken" in text
    status, text, err = run(capsys, *arguments)
    assert (status, text) == (2, "")
    assert "exists" in err
    assert run(capsys, *arguments, "--force")[0] == 0
    table = tmp_path / "t.csv"
    options = ("--methods", "raw,naive,jackknife", "--bootstrap", 20)  # nothing to compile
    status, text, _ = run(capsys, "estimate", out, *options, "--csv", table)
    assert status == 0
    assert "naive" in text
    assert pl.read_csv(table)["lower"].null_count() == 0


# 8 annotators, or counts of 36 that few images have
FEW = pytest.mark.filterwarnings("ignore::bayesrep.errors.EstimateWarning")
# As many replicates as there are to leave one out: em-spline is compiled for every number anew.
REPLICATES = 24


@FEW
def test_json_is_one_object_and_nothing_else(capsys, study_path, posterior_path):
    for arguments in (
        ("check", study_path),
        ("estimate", study_path),
        ("summarize", study_path, posterior_path, "--allow-unconverged"),
    ):
        status, text, _ = run(capsys, *arguments, "--json")
        assert status == 0
        assert isinstance(json.loads(text), dict)


@FEW
def test_methods_with_options(capsys, study_path, tmp_path):
    methods = "naive(annotators=4), em-spline(components=1, loss=binomial)"
    table = tmp_path / "t.csv"
    arguments = ("estimate", study_path, "--methods", methods, "--csv", table, "--no-progress")
    status, text, err = run(capsys, *arguments, "--bootstrap", REPLICATES, "--interval", "bca")
    assert (status, err) == (0, "")
    names = ["naive(annotators=4)", "em-spline(components=1, loss=binomial)"]
    assert pl.read_csv(table)["method"].unique(maintain_order=True).to_list() == names
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


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ("best", "unknown method 'best'; the methods are raw, naive, jackknife, em-spline"),
        ("naive(workers=3)", "naive has no option 'workers'; its options are annotators"),
        ("naive(annotators=few)", "annotators is 'few'; give a whole number"),
        ("naive(annotators=9)", "annotators is 9 but must lie between 1 and 8"),
        ("jackknife(delete=8)", "delete is 8 but must lie between 1 and 7"),
        ("em-spline(loss=huber)", "loss is 'huber'; choose from least-squares, weighted, binomial"),
        ("em-spline(components=0)", "components is 0 and starts is 10; both must be at least 1"),
        ("raw(x=1)", "raw has no option 'x'; it has none"),
        ("naive(", "unknown method 'naive('"),
        (",", "no method is given"),
    ],
)
def test_wrong_methods_are_one_line(capsys, study_path, methods, message):
    status, out, err = run(capsys, "estimate", study_path, "--methods", methods)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@FEW
def test_mixtures_side_by_side(capsys, study_path, tmp_path):
    table = tmp_path / "m.csv"
    arguments = ("mixtures", study_path, "--components", "1:2", "--csv", table)
    status, text, _ = run(capsys, *arguments)
    assert status == 0
    assert "held out" in text
    table_text = text.partition("\n\n")[0]
    assert table_text.count("*") == 6  # the best by each of three criteria in both data sets
    assert re.search(r"Components that are enough: reference [12], replication [12] ", text)
    assert pl.read_csv(table)["components"].to_list() == [1, 2, 1, 2]
    status, out, _ = run(capsys, "mixtures", study_path, "--components", "2", "--json")
    assert [row["components"] for row in json.loads(out)["rows"]] == [2, 2]
    for wrong, message in (("0", "at least 1"), ("3:2", "runs backwards"), ("x", "is not N")):
        status, _, err = run(capsys, "mixtures", study_path, "--components", wrong)
        assert status != 0
        assert message in err
    status, _, err = run(capsys, "mixtures", study_path, "--folds", 1)
    assert status == 2
    assert "folds is 1; give at least 2 and at most 300" in err


@FEW
def test_every_number_of_annotators(capsys, study_path, tmp_path):
    table = tmp_path / "a.csv"
    status, text, _ = run(capsys, "annotators", study_path, "--csv", table)
    assert status == 0
    assert "follow a line in 1/n, n their number" in text
    assert pl.read_csv(table)["annotators"].max() == 8
    status, out, _ = run(capsys, "annotators", study_path, "--json")
    facts = json.loads(out)
    assert facts["linearity"]["half"] == 4
    assert len(facts["rows"]) == 24


def test_summarize_refuses_what_did_not_converge(capsys, study_path, posterior_path):
    status, text, err = run(capsys, "summarize", study_path, posterior_path)
    assert (status, text) == (1, "")
    assert err.startswith("bayesrep: The fit has not converged")
    assert err.count("\n") == 1
    status, text, _ = run(capsys, "summarize", study_path, posterior_path, "--allow-unconverged")
    assert status == 0
    assert "R-hat" in text
    assert "8 annotators an image counts tell 8 moments" in text


def test_summarize_prints_some_classifiers_and_gives_programs_all(
    capsys, study_path, posterior_path, tmp_path
):
    command = ("summarize", study_path, posterior_path, "--allow-unconverged")
    table = tmp_path / "t.csv"
    status, text, _ = run(capsys, *command, "--top", "1", "--csv", table)
    assert status == 0
    assert text.splitlines()[3] == "1 of 3 classifiers; --all shows them, --csv writes them."
    assert len(pl.read_csv(table)) == 3
    _, text, _ = run(capsys, *command, "--top", "1", "--json")
    assert len(json.loads(text)["rows"]) == 3
    _, text, _ = run(capsys, *command, "--top", "1", "--format", "markdown")
    assert text.splitlines()[1].startswith("| --- | ---: |")
    assert text.splitlines()[3].startswith("1 of 3 classifiers")
    _, text, _ = run(capsys, *command, "--all")
    assert "of 3 classifiers" not in text
    status, _, err = run(capsys, *command, "--top", "0")
    assert (status, err) == (2, "bayesrep: --top is 0; give at least 1\n")


def test_bad_paths_are_refused_before_the_work(capsys, study_path, tmp_path, monkeypatch):
    def worked(*_, **__):
        raise AssertionError("the work began")

    monkeypatch.setattr("bayesrep.fit", worked)
    existing = tmp_path / "there.nc"
    existing.write_text("precious")
    for out in (existing, tmp_path / "no" / "such" / "p.nc", existing / "below.nc", tmp_path):
        status, text, err = run(capsys, "fit", study_path, "--out", out)
        assert (status, text) == (2, "")
        assert err.startswith("bayesrep: ")
        assert err.count("\n") == 1
    assert existing.read_text() == "precious"


def test_missing_and_broken_studies(capsys, tmp_path, study_path):
    for command in ("estimate", "check"):
        status, text, err = run(capsys, command, tmp_path / "nothing")
        assert (status, text) == (2, "")
        assert err.count("\n") == 1
    broken = tmp_path / "broken"
    shutil.copytree(study_path, broken)
    counts = pl.read_parquet(broken / "counts.parquet")
    counts.with_columns(selected=pl.col("shown") + 1).write_parquet(broken / "counts.parquet")
    status, text, err = run(capsys, "check", broken)
    assert status == 1
    assert "selected" in text
    assert "broken" in err


def test_interruption_is_one_line(capsys, study_path, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("bayesrep.fit", interrupted)
    status, text, err = run(capsys, "fit", study_path, "--out", tmp_path / "p.nc")
    assert (status, text) == (130, "")
    assert err == "bayesrep: interrupted; nothing was written\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.compiles
def test_ctrl_c_while_sampling_ends_the_process(study_path, tmp_path):
    """A real signal to a real fit, once its chains run in their threads."""
    out = tmp_path / "p.nc"
    command = [sys.executable, "-m", "bayesrep", "fit", study_path, "--out", out, *SHORT]
    with subprocess.Popen([*command, "--draws", "50000"], stderr=subprocess.PIPE) as process:
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


def test_import_tables(capsys, tmp_path):
    (tmp_path / "counts.csv").write_text(
        "dataset,image,selected,shown\nv1,a,3,4\nv1,b,4,4\nv2,c,2,4\nv2,d,4,4\n"
    )
    (tmp_path / "predictions.csv").write_text(
        "dataset,image,classifier,correct\nv1,a,m,1\nv1,b,m,1\nv2,c,m,0\nv2,d,m,1\n"
    )
    files = (tmp_path / "counts.csv", tmp_path / "predictions.csv")
    roles = ("--reference", "v1", "--replication", "v2")
    out = tmp_path / "study"
    assert run(capsys, "import", "tables", *files, *roles, "--out", out)[0] == 0
    assert bayesrep.read_study(out).classifiers == ("m",)
    arguments = ("import", "tables", *files, *roles, "--seed", 1, "--out", tmp_path / "x")
    status, _, err = run(capsys, *arguments)
    assert status == 2
    assert "takes no --seed" in err


@FEW
def test_demo_writes_whole_folders_and_spares_others(tmp_path, capsys, monkeypatch):
    """Fits of the size of the long one in test_fit.py, whose compiled programs they share."""
    from bayesrep.report import demo as room

    def small(**_):
        return bayesrep.simulate_study(seed=1, images=1_500, classifiers=6)

    monkeypatch.setattr(room, "simulate_study", small)
    monkeypatch.setattr(room, "BOOTSTRAP", 20)
    out = tmp_path / "demo"
    status, text, err = run(capsys, "demo", "--quick", "--no-progress", "--out", out)
    assert status == 0, err
    for words in ("as measured", "naive matching", "posterior", "truth", "gap (points)"):
        assert words in text
    assert "The simulation knows the truth: " in text.splitlines()[1]
    facts = json.loads((out / "demo.json").read_text())["methods"]
    truth = facts[-1]["mean_gap"]
    for row in facts[:-1]:  # the column adds up
        assert row["mean_gap"] - row["mean_error"] == pytest.approx(truth, abs=1e-12)
    assert "Trust, as `bayesrep diagnose` says: " in text
    names = {path.name for path in out.iterdir()}
    wanted = {"study", "posterior.nc", "estimates.csv", "demo.json", "adjusted-accuracy.png"}
    assert wanted <= names
    assert json.loads((out / "demo.json").read_text())["divergences"] == 0
    # Again into the same folder; what was sampled is as good as what would be.
    posterior = read_posterior(out / "posterior.nc")
    monkeypatch.setattr(room, "fit", lambda *_, **__: posterior)
    status, text, _ = run(capsys, "demo", "--quick", "--no-progress", "--out", out, "--json")
    assert status == 0
    assert json.loads(text)["methods"][0]["method"] == "raw"
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious.txt").write_text("x")
    status, _, err = run(capsys, "demo", "--out", other)
    assert status == 2
    assert "not an earlier demo" in err


def test_printed_text_cannot_steer_a_terminal():
    assert plain("a\x1b[31mb\n") == "a\\x1b[31mb\\n"
    assert "\x1b" not in columns(["n"], [["\x1b[2J"]])
    assert percent(None) == percent(float("nan")) == "-"
    assert percent(0.12345, 2) == "12.35"
    assert spread(3) == [0, 1, 2]
    assert spread(136)[0] == 0
    assert spread(136)[-1] == 135


@pytest.mark.compiles
def test_closed_pipe_is_quiet(study_path):
    command = f"{sys.executable} -m bayesrep estimate {study_path} | head -1"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr


def test_diagnose_and_loo_in_words_and_in_json(capsys, posterior_path):
    status, text, _ = run(capsys, "diagnose", posterior_path)
    assert "R-hat" in text or "ESS" in text
    status_json, text, _ = run(capsys, "diagnose", posterior_path, "--json")
    assert status == status_json
    found = json.loads(text)
    assert found["trust"] in ("yes", "with care", "no")
    assert {check["trust"] for check in found["checks"]} <= {"yes", "with care", "no"}
    status, text, _ = run(capsys, "loo", posterior_path)
    assert status == 0
    assert "elpd" in text
    status, _, error = run(capsys, "diagnose", posterior_path.parent / "study")
    assert status == 2
    assert error.count("\n") == 1


def test_quick_methods_and_options_of_the_model(capsys, study_path, tmp_path):
    out = tmp_path / "quick.nc"
    options = ("--method", "laplace", *OPTIONS, "--no-progress")
    status, text, _ = run(capsys, "fit", study_path, "--out", out, *options)
    assert status == 0
    assert "The weighted draws hold: weights with Pareto k" in text
    status, text, _ = run(
        capsys, "fit", study_path, "--out", out, *options, "--draws", 50, "--force", "--json"
    )
    seconds = json.loads(text)["seconds"]
    assert list(seconds)[:3] == ["reading", "importing", "posing"]
    assert {"finding the mode", "evaluating", "judging", "writing"} <= set(seconds)
    assert all(value >= 0 for value in seconds.values())
    fit = ("fit", study_path, "--out", tmp_path / "never.nc", "--no-progress")
    for more, words in (
        (("--set", "degre=8"), "has no option 'degre'"),
        (("--set", "components=9"), "components from 1 to 6"),
        (("--set", "slope=1"), "slope is (mean, sd)"),
        (("--groups", "breed"), "no column of groups 'breed'"),
        (("--datasets", "reference,replication,flickr"), "no data set 'flickr'"),
        (("--method", "laplace", "--feedback", "cut"), "are for method='nuts'"),
        (("--checkpoint", study_path), "neither empty nor a checkpoint"),
    ):
        status, _, error = run(capsys, *fit, *more)
        assert status == 2
        assert words in error
        assert error.count("\n") == 1
    assert cli.main([str(part) for part in (*fit, "--set", "degree")]) == 2
    assert not (tmp_path / "never.nc").exists()


def test_ranks_pairs_and_images(capsys, tmp_path, study_path, posterior_path):
    status, _, err = run(capsys, "ranks", study_path, posterior_path)
    assert (status, "not converged" in err) == (1, True)
    table = tmp_path / "pairs.csv"
    status, text, _ = run(
        capsys, "pairs", study_path, posterior_path, "--allow-unconverged", "--csv", table
    )
    assert status == 0
    assert "better (%)" in text
    assert len(table.read_text().splitlines()) == 4
    status, text, _ = run(capsys, "ranks", study_path, posterior_path, "--allow-unconverged")
    assert status == 0
    assert len(text.splitlines()) == 7
    assert "Removing selection" in text.splitlines()[-1]
    status, text, _ = run(
        capsys, "ranks", study_path, posterior_path, "--allow-unconverged", "--top", "1"
    )
    assert "1 of 3 classifiers; --all shows them" in text
    one, two = pl.read_csv(table).select("classifier", "other").row(0)
    options = ("--allow-unconverged", "--between", f"{one},{two}")
    status, text, _ = run(capsys, "pairs", study_path, posterior_path, *options)
    assert text.splitlines()[-1].startswith("Of 1 pair, ")
    status, _, err = run(capsys, "pairs", study_path, posterior_path, *options[:2], f"{one},{two}x")
    assert status == 2
    assert f"did you mean {two!r}?" in err
    options = ("--allow-unconverged", "--format", "markdown")
    status, text, _ = run(capsys, "ranks", study_path, posterior_path, *options)
    assert text.splitlines()[1] == "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    assert run(capsys, "ranks", study_path, posterior_path, "--top", "0")[0] == 2
    status, _, err = run(capsys, "images", study_path, posterior_path)
    assert status == 2
    assert err.strip().endswith("fit model='shared-difficulty'")
    status, text, _ = run(capsys, "diagnose", posterior_path, "--study", study_path)
    assert "classifiers agree as predicted" in text


OURS = re.compile(r"(?i)\b(images?|classifiers?|annotators?|annotations?|workers?|people)\b")
"""Of studies of images alone."""
FITTED = ("STUDY", "FIT", "--allow-unconverged")


@FEW
@pytest.mark.parametrize(
    ("command", "arguments", "words"),
    [
        ("summarize", FITTED, "8 judges an item"),
        ("ranks", (*FITTED, "--top", "1"), "1 of 3 models"),
        ("pairs", FITTED, "told apart"),
        ("estimate", ("STUDY", "--bootstrap", "2", "--no-progress", "--top", "1"), "3 models;"),
        ("diagnose", ("FIT",), "curves fit the models"),
        ("diagnose", ("FIT", "--study", "STUDY"), "models agree as predicted"),
        ("loo", ("FIT",), "the models' answers"),
        ("remeasure", ("STUDY",), "its items were kept"),
        ("remeasure", FITTED, "its items were kept"),
        ("annotators", ("STUDY", "--half"), "With half of the items"),
        ("mixtures", ("STUDY", "--components", "1", "--no-progress"), "predict items left out"),
        ("check", ("STUDY",), "for other items"),
        ("compare", ("STUDY",), "participant"),
    ],
)
def test_what_is_printed_is_in_the_words_of_the_study(
    capsys, evaluation, command, arguments, words
):
    given = dict(zip(("STUDY", "FIT"), evaluation, strict=True))
    arguments = [given.get(each, each) for each in arguments]
    _, text, err = run(capsys, command, *arguments)
    for said in (text, err):
        assert not OURS.search(said), OURS.search(said)
    assert words in text


@FEW
def test_names_of_columns_stay_for_programs_and_names_of_parts_in_any_form(capsys, evaluation):
    path, fit = evaluation
    _, out, _ = run(capsys, "ranks", path, fit, "--allow-unconverged", "--json")
    assert "classifier" in json.loads(out)["rows"][0]
    _, out, _ = run(capsys, "annotators", path, "--json")
    assert "annotators" in json.loads(out)["rows"][0]
    _, text, _ = run(capsys, "compare", path, "--format", "latex")
    assert r"classifiers\_lower" in text  # a table as it is
    _, text, _ = run(capsys, "ranks", path, fit, "--allow-unconverged", "--format", "latex")
    assert r"model & adjusted" in text
    assert not OURS.search(text)


@FEW
def test_lines_are_even_in_either_words(capsys, study_path, evaluation):
    """A cell is put into words before its column is made as wide as it."""
    for path in (study_path, evaluation[0]):
        _, text, _ = run(capsys, "annotators", path)
        rows = text.splitlines()[1:11]
        assert len({len(row) for row in rows}) == 1
        assert len(rows[1].split()[0]) == len(rows[0].split()[0])


def test_one_command_does_not_speak_for_the_next(capsys, study_path, evaluation):
    assert "judges" in run(capsys, "check", evaluation[0])[1]
    assert "annotators" in run(capsys, "check", study_path)[1]


@FEW
def test_what_is_to_be_typed_is_no_sentence(capsys, evaluation, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(evaluation[0], "images")
    options = ("--method", "laplace", *OPTIONS, "--no-progress")
    _, text, _ = run(capsys, "fit", "images", "--out", "people", *options)
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


def test_a_fit_of_all_classifiers_together(capsys, tmp_path):
    """Of the size of those in test_shared_difficulty.py, whose compiled programs it shares."""
    study_path, path = tmp_path / "study", tmp_path / "all.nc"
    bayesrep.simulate_study(seed=5, images=600, classifiers=4).write(study_path)
    arguments = ("--model", "shared-difficulty", "--method", "laplace", "--no-progress")
    arguments = (*arguments, "--chains", "2", "--draws", "500")
    status, _, _ = run(capsys, "fit", study_path, "--out", path, *arguments)
    assert status == 0
    status, text, _ = run(capsys, "images", study_path, path)
    assert status == 0
    assert "Hardest for classifiers" in text
    status, text, _ = run(capsys, "images", as_evaluation(study_path, tmp_path / "other"), path)
    assert status == 0
    assert "Hardest for models, given how judges see them" in text
    assert not OURS.search(text)
    status, text, _ = run(capsys, "summarize", study_path, path)
    assert status == 0
    assert "other images of the same populations" in text
