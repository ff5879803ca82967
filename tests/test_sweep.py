"""Grids, their runs, what is kept of them when a process is killed, and what they come to."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from importlib import import_module

import numpy as np
import polars as pl
import pytest
import zoo
from refusals import check, refusal, refused

import bayesrep
from bayesrep import cli
from bayesrep.errors import OptionError, StudyError
from bayesrep.models import MODELS
from bayesrep.sweeps import execute, figures, scheduler, store
from bayesrep.sweeps.coverage import advice_text, count_runs, scores, varying_axes
from bayesrep.sweeps.execute import result_of
from bayesrep.sweeps.grid import read_grid
from bayesrep.sweeps.run_spec import StudySpec, SweepRun
from bayesrep.sweeps.studies import add_contents, contents, keep_answers, study_of

TINY = "simulate = { images = 500, annotators = 8, classifiers = 3, seed = 1 }"
TINY_TABLE = {"simulate": {"images": 500, "annotators": 8, "classifiers": 3, "seed": 1}}
WORLD = StudySpec(
    "simulate",
    "simulated",
    (("annotators", 8), ("classifiers", 3), ("images", 500), ("seed", 1)),
)


@pytest.fixture
def grid(tmp_path):
    """Writes a grid of the tiny study, or of others."""

    def write(text, study=TINY, name="grid.toml"):
        path = tmp_path / name
        path.write_text(text if "[[study]]" in text else f"{text}\n[[study]]\n{study}\n")
        return path

    return write


def runs_of(path):
    found = read_grid(path)
    return found.runs(add_contents(found.studies))


def swept(capsys, *words):
    status = cli.main(["sweep", *map(str, words)])
    said = capsys.readouterr()
    return status, said.out, said.err


# --- which runs a grid has --------------------------------------------------------------------


def test_axes_that_a_method_has_no_use_for_are_dropped(grid):
    runs = runs_of(
        grid(
            """
            method = ["raw", "naive(annotators=4)", "em-spline", "laplace", "nuts", "cut"]
            annotators = ["all", 5]
            seed = [0, 1]
            chains = [2, 4]
            [options]
            components = ["default", 3]
            slope = [[3.0, 2.5], [1, 2.5], [0.5, 1.0]]
            """,
            study="simulate = { images = 40, annotators = [8, '6:9'], seed = [1, 2, 3] }",
        )
    )
    each = {
        "raw": 1,
        "naive(annotators=4)": 1,
        "em-spline": 2,  # seeds
        "laplace": 2 * 2 * 3,  # and options, but no chains
        "nuts": 2 * 2 * 2 * 3,
        "cut": 2 * 2 * 2 * 3,
    }
    studies = 2 * 3 * 2  # annotators that there are, seeds, annotators that are kept
    assert Counter(run.method for run in runs) == {m: n * studies for m, n in each.items()}
    assert len({run.key for run in runs}) == len(runs)
    assert {dict(run.options).get("slope") for run in runs if run.method == "nuts"} == {
        (3.0, 2.5),
        (1.0, 2.5),
        (0.5, 1.0),
    }


def test_settings_of_nuts_are_axes_of_chains(grid):
    text = 'target_accept = [0.8, 0.95]\nmax_tree_depth = 8\ndense_mass = ["default", false]\n'
    runs = runs_of(grid(f'method = ["laplace", "nuts"]\n{text}'))
    found = [dict(run.settings) for run in runs]
    of_nuts = [{"target_accept": a, "max_tree_depth": 8} for a in (0.8, 0.95)]
    assert found == [{}, *(each | more for each in of_nuts for more in ({}, {"dense_mass": False}))]
    with refused(OptionError, "grid-value-of-wrong-kind", {"wanted": "true or false"}):
        runs_of(grid('method = "nuts"\ndense_mass = 1\n'))
    with refused(
        OptionError, "grid-value-of-wrong-kind", {"wanted": "a number above 0 and below 1"}
    ):
        runs_of(grid('method = "nuts"\ntarget_accept = 0\n'))


def test_options_are_those_of_models_that_have_them(grid):
    text = 'method = "nuts"\nmodel = ["joint", "workers"]\n'
    runs = runs_of(grid(f"{text}[options]\npanel = [false, true]\nslope = [1, 2.5]\n"))
    found = [(dict(run.settings)["model"], dict(run.options)) for run in runs]
    pair = {"slope": (1.0, 2.5)}
    assert found == [
        ("joint", pair),
        *(("workers", {"panel": panel, **pair}) for panel in (False, True)),
    ]
    axes = {name for run in runs for name in run.axes()}
    fields = {name for model in MODELS.values() for name in vars(model.options())}
    assert fields.isdisjoint((axes - {"panel", "slope"}) | set(store.RESULT_TYPES))


def test_a_bootstrap_has_use_of_seeds(grid):
    runs = runs_of(grid('method = ["naive"]\nbootstrap = [0, 20]\nseed = [0, 1, 2]'))
    assert [(dict(run.settings)["bootstrap"], run.seed) for run in runs] == [
        (0, None),
        *((20, seed) for seed in range(3)),
    ]


def test_keys_are_what_a_run_is_in_whatever_order_it_is_listed(grid):
    one = runs_of(
        grid(
            "method = ['naive', 'laplace']\nannotators = ['all', 5]\ndraws = 100\n"
            "[options]\ncomponents = 2\nlevel = [0, 1]\n",
        )
    )
    other = runs_of(
        grid(
            "draws = [100]\nannotators = [5, 'all']\nmethod = ['laplace', 'naive']\n"
            "[options]\nlevel = [[0.0, 1.0]]\ncomponents = [2]\n"
            "[[study]]\nname = 'world'\n"
            "simulate = { seed = [1], classifiers = 3, annotators = 8, images = 500 }\n",
        )
    )
    assert {run.key for run in one} == {run.key for run in other}
    assert [run.key for run in one] != [run.key for run in other]
    assert SweepRun(WORLD, "naive").key in {run.key for run in one}


def test_a_study_that_is_read_is_known_by_its_contents(grid, tmp_path):
    study = zoo.cut(zoo.study("tiny"), images=40)
    study.write(tmp_path / "first")
    study.write(tmp_path / "second")
    one, *others = (
        runs_of(grid("method = 'raw'", study=f"folder = '{name}'")) for name in ("first", "second")
    )
    assert [[run.key for run in runs] for runs in others] == [[run.key for run in one]]
    data = study.reference
    changed = replace(data, correct=~data.correct)
    other = replace(study, datasets={**study.datasets, "reference": changed})
    assert contents(other) != contents(study)
    assert contents(replace(study, truth=zoo.study("tiny").truth)) != contents(study)
    workers = zoo.study("workers")
    nameless = {role: replace(each, answers=None) for role, each in workers.datasets.items()}
    assert contents(replace(workers, datasets=nameless)) != contents(workers)
    assert contents(with_contexts(workers)) != contents(workers)


def with_contexts(study):
    """The study with two answers about an image in each context, in the order of its workers."""
    sets = {}
    for role, data in study.datasets.items():
        of_pair = 1000 * data.answers.image + data.answers.worker // 2
        context = np.unique(of_pair, return_inverse=True)[1]
        sets[role] = replace(data, answers=replace(data.answers, context=context))
    return replace(study, datasets=sets)


def test_answers_that_are_kept_keep_their_contexts():
    study = with_contexts(zoo.study("workers"))
    for role, data in keep_answers(study, 3).datasets.items():
        whole = study.datasets[role].answers
        key = dict(zip(zip(whole.image, whole.worker, strict=True), whole.context, strict=True))
        kept = data.answers
        assert len(kept.image) == len(kept.context) == 3 * len(data.images)
        pairs = zip(kept.image, kept.worker, strict=True)
        assert [key[pair] for pair in pairs] == kept.context.tolist()


# --- what a grid may not say ------------------------------------------------------------------

METHOD = "method = 'raw'\n"
OF_TINY, STUDY = f"[[study]]\n{TINY}", f"{METHOD}[[study]]\n"
KIND, KEY, SIMULATE = (
    "grid-value-of-wrong-kind",
    "grid-key-unknown",
    f"{METHOD}[[study]]\nsimulate = ",
)
OUT_OF_RANGE = ("components-or-degree-out-of-range", {"components": 9})
TABLES = f"{STUDY}source = 'tables'\nfiles = "


@pytest.mark.parametrize(
    ("text", "rule", "facts"),
    [
        ("method = ", "grid-not-toml", {}),
        (METHOD, "grid-key-missing", {"wanted": "a [[study]]"}),
        (OF_TINY, "grid-key-missing", {"wanted": "a method or a list of them"}),
        (f"{METHOD}sed = 1\n{OF_TINY}", KEY, {"hint": "; did you mean 'seed'?"}),
        (f"{METHOD}seed = []\n{OF_TINY}", "grid-axis-empty", {}),
        (
            f"{METHOD}seed = [0, '1']\n{OF_TINY}",
            *(KIND, {"value": "'1'", "wanted": "a whole number from 0 on"}),
        ),
        (f"{METHOD}chains = true\n{OF_TINY}", KIND, {}),
        (f"{METHOD}model = 'best'\n{OF_TINY}", KIND, {}),
        (f"method = 'hmc'\n{OF_TINY}", KIND, {"value": "'hmc'"}),
        (f"method = 'default'\n{OF_TINY}", KIND, {}),
        (f"{METHOD}seed = 'default'\n{OF_TINY}", KIND, {}),
        (f"method = 'naive(x=1)'\n{OF_TINY}", "unknown-method-option", {}),
        (f"{METHOD}study = 'here'", KIND, {}),
        (f"{STUDY}name = 'x'", "grid-study-kinds", {}),
        (f"{METHOD}{OF_TINY}\nfolder = 'x'", "grid-study-kinds", {}),
        (f"{STUDY}folder = 'nowhere'", "grid-path-missing", {}),
        (f"{SIMULATE}3", KIND, {}),
        (f"{SIMULATE}{{ image = 3 }}", KEY, {}),
        (f"{SIMULATE}{{ images = 0 }}", KIND, {}),
        (f"{SIMULATE}{{ annotators = 'x' }}", KIND, {}),
        (f"{SIMULATE}{{ dependence = 2 }}", KIND, {}),
        (f"{SIMULATE}{{ scenario = 'x' }}", "unknown-scenario", {}),
        (f"{STUDY}source = 'tables'", "grid-key-missing", {}),
        (f"{TABLES}'nowhere'", "grid-path-missing", {}),
        (f"{STUDY}source = 'evil'\nfiles = 'x'", KIND, {}),
        (f"{METHOD}[options]\nfactors = 1\n{OF_TINY}", KEY, {}),
        (f"{METHOD}[options]\ncomponents = 9\n{OF_TINY}", *OUT_OF_RANGE),
        (f"{METHOD}[options]\nslope = 3\n{OF_TINY}", "prior-not-mean-and-sd", {}),
        (f"{METHOD}[options]\ncurve = 3\n{OF_TINY}", KIND, {}),
        (f"{METHOD}seed = {2**64}\n{OF_TINY}", "option-above-limit", {}),
        # Values of which no type is as it should be, and sizes that nobody has.
        (f"a = {'[' * 2000}", "grid-not-toml", {}),
        (f"a = {'[' * 200}{']' * 200}", "grid-not-toml", {}),
        ("a." * 9_000 + "a = 1", "grid-not-toml", {}),
        (f"a = 1{'0' * 400}", "grid-not-toml", {}),
        ("a = nan", "grid-not-toml", {"reason": "nan is not a value"}),
        (f"{METHOD}model = [['joint']]\n{OF_TINY}", KIND, {}),
        (f"{METHOD}model = {{a = 1}}\n{OF_TINY}", KIND, {}),
        (f"{SIMULATE}{{ annotators = '1:{'9' * 5000}' }}", KIND, {}),
        (f"{TABLES}'grid.toml'\nreference = 1", KIND, {"value": "1", "wanted": "text"}),
        *(
            (f"{METHOD}[options]\n{option}\n{OF_TINY}", rule, {})
            for option, rule in (
                ("components = true", "model-option-not-whole"),
                ("bend = true", "standard-deviation-not-positive"),
                ("slope = [true, 1]", "prior-not-mean-and-sd"),
                ("slope = [[1, 2], {a = 1}]", KIND),
                ("slope = 'GaussianRandomWalk(1.0, 5)'", "prior-not-readable"),
                (f"level = 'Normal(1{'0' * 400}, 1)'", "prior-not-readable"),
            )
        ),
        (
            f"{METHOD}model = 'best'\nseed = 'x'\n[options]\nfactors = 1\n[[study]]\nsimulate = 3",
            "grid-of-several-faults",
            {"count": 3},
        ),
        (
            f"{METHOD}seed = -1\n[options]\nslope = 3\nfactors = 1\n[[study]]\n{TINY}",
            "grid-of-several-faults",
            {"count": 2},
        ),
        # A product that would never be listed.
        (
            f"{METHOD}annotators = {list(range(1, 1001))}\nseed = {list(range(1000))}\n"
            f"[[study]]\nsimulate = {{ images = 20, seed = {list(range(1000))} }}",
            *("grid-of-too-many-runs", {"largest": 10_000}),
        ),
    ],
)
def test_a_grid_is_refused_in_one_line_before_any_work(text, rule, facts, grid, tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text(text)
    violation = refusal(["sweep", path, "--out", tmp_path / "out"])
    check(violation, rule, facts)
    assert str(path) in violation
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("given", "rule", "facts"),
    [
        ({"sed": 1}, KEY, {"hint": "; did you mean 'seed'?"}),
        ({"seed": range(3)}, "grid-not-toml", {"file": "grid"}),
        ({"seed": float("nan")}, "grid-not-toml", {"reason": "NaN is not a number"}),
        ({"keep": "draws"}, KIND, {"wanted": "one of posterior"}),
        ({"study": [{"folder": "nowhere"}]}, "grid-path-missing", {"path": "nowhere"}),
    ],
)
def test_a_mapping_is_refused_as_a_file_is(given, rule, facts, tmp_path):
    with refused(OptionError, rule, facts):
        bayesrep.sweep({"method": "raw", "study": [TINY_TABLE]} | given, tmp_path / "out")
    assert runs_of({"method": ("raw",), "study": [TINY_TABLE]}) == (SweepRun(WORLD, "raw"),)


def test_the_command_is_refused_in_one_line(grid, tmp_path):
    path = grid(METHOD)
    for words in ([], [path], [path, "--table", tmp_path], ["--table", "x", "--figure", "x"]):
        check(refusal(["sweep", *words]), "sweep-takes-grid-or-folder")
    check(refusal(["sweep", path, "--out", "x", "--seed", "1"]), "sweep-seeds-in-grid")
    check(refusal(["sweep", path, "--out", "x", "--jobs", 0]), "jobs-below-one", {"jobs": 0})
    check(refusal(["sweep", tmp_path / "x", "--out", "x"]), "input-file-unreadable")
    check(refusal(["sweep", "--table", tmp_path]), "sweep-folder-missing")
    check(refusal(["sweep", path, "--out", tmp_path]), "out-not-earlier-run")  # it holds the grid
    store.begin(tmp_path / "out", path, runs_of(path))
    check(refusal(["sweep", "--table", tmp_path / "out"]), "sweep-without-finished-runs")


# --- runs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tiny", "workers"])
def test_answers_that_are_kept_are_some_of_those_that_there_are(name):
    whole = zoo.study(name)
    few, some = (keep_answers(whole, n) for n in (3, 5))
    for role, data in whole.datasets.items():
        three, five = few.datasets[role], some.datasets[role]
        assert set(three.shown) == {3}
        assert set(five.shown) == {5}
        for less, more in ((three, five), (five, data)):  # fewer are a part of more
            gone = less.shown - less.selected
            assert (less.selected <= more.selected).all()
            assert (gone <= more.shown - more.selected).all()
        assert np.array_equal(three.correct, data.correct)
        if data.answers is not None:
            assert three.answers.counts(len(data.images))[0].tolist() == three.selected.tolist()
    shares = [(s.reference.selected / s.reference.shown).mean() for s in (whole, some)]
    assert shares[1] == pytest.approx(shares[0], abs=0.03)
    same = [s.reference.selected for s in (keep_answers(whole, 3), few)]
    assert np.array_equal(*same)


def test_answers_are_not_left_out_where_they_selected_the_images():
    with refused(StudyError, "annotators-kept-of-selecting-counts", {"dataset": "reference"}):
        keep_answers(zoo.study("kept"), 5)
    with refused(OptionError, "thinned-annotators-out-of-range", {"fewest": 8}):
        keep_answers(zoo.study("tiny"), 9)


def rows_of(result, quantity):
    made = pl.DataFrame(result["estimates"])
    return made.filter(quantity=quantity)


@pytest.mark.filterwarnings("ignore::bayesrep.errors.EstimateWarning")  # 8 annotators
def test_an_estimate_is_the_librarys():
    study = zoo.study("tiny")
    run = SweepRun(WORLD, "jackknife", seed=3, settings=(("bootstrap", 20),))
    result = result_of(run)
    assert result["error"] is None
    assert result["fingerprint"] == study.fingerprint()
    table = bayesrep.estimate(study, "jackknife", bootstrap=20, seed=3)
    gaps = bayesrep.estimate_gaps(study, "jackknife", bootstrap=20, seed=3)
    single = rows_of(result, "adjusted_accuracy")
    for name, column in (("estimate", "adjusted_accuracy"), ("lower", "lower"), ("upper", "upper")):
        assert single[name].to_list() == table[column].to_list()
    assert single["classifier"].to_list() == list(study.classifiers)
    assert single["truth"].to_list() == study.truth.adjusted_accuracy.tolist()
    for quantity, name in (("bias_corrected_gap", "mean_gap"), ("slope", "slope")):
        wanted = gaps.filter(quantity=quantity).select("estimate", "lower", "upper").row(0)
        found = rows_of(result, name).select("estimate", "lower", "upper").row(0)
        assert found == pytest.approx(wanted, abs=1e-14)
    measured = study.reference.correct.mean(axis=0)
    truth = float((measured - study.truth.adjusted_accuracy).mean())
    assert rows_of(result, "mean_gap")["truth"][0] == pytest.approx(truth)


def test_what_an_estimate_rests_on_is_said_in_the_table_too():
    run = SweepRun(WORLD, "em-spline(components=4)", seed=0)
    result = result_of(run)
    assert "4 components have 11 parameters" in result["advice"]
    asked = {run.key: run.axes()}
    runs, _ = store.tables(asked, {run.key: result})
    (line,) = advice_text(runs)
    assert line.startswith("em-spline(components=4), 1 of 1 runs: ")
    assert advice_text(store.tables(asked, {run.key: {**result, "advice": ""}})[0]) == []
    assert [count_runs(number) for number in (0, 1, 1200)] == ["0 runs", "1 run", "1,200 runs"]


FIT = {
    "nuts": (("chains", 2), ("draws", 100), ("warmup", 100)),
    "laplace": (),
}


@pytest.mark.parametrize("method", FIT)
def test_a_fit_is_summarized_as_the_library_does(method, monkeypatch):
    monkeypatch.setattr(import_module("bayesrep.inference.fit"), "fit", kept_fit)
    short = (("degree", 8), ("terms", 3)) if method == "nuts" else ()
    result = result_of(SweepRun(WORLD, method, None, 0, FIT[method], short))
    assert result["error"] is None
    study = zoo.study("tiny")
    posterior = zoo.posterior("tiny", **(zoo.SHORT if method == "nuts" else zoo.QUICK))
    allow = {"allow_unconverged": True, "all_columns": True}
    table = bayesrep.summarize(study, posterior, **allow)
    gaps = bayesrep.summarize_gaps(study, posterior, allow_unconverged=True)
    single = rows_of(result, "adjusted_accuracy")
    for name, column in (("estimate", "adjusted_accuracy"), ("lower", "lower"), ("upper", "upper")):
        assert single[name].to_numpy() == pytest.approx(table[column].to_numpy(), abs=1e-12)
    for quantity, name in (("bias_corrected_gap", "mean_gap"), ("slope", "slope")):
        wanted = gaps.filter(quantity=quantity).select("estimate", "lower", "upper").row(0)
        found = rows_of(result, name).select("estimate", "lower", "upper").row(0)
        assert found == pytest.approx(wanted, abs=1e-9)
    attributes = posterior["posterior"].attrs
    assert result["fitted_by"] == method
    assert result["converged"] == bool(attributes["converged"])
    if method == "nuts":
        assert result["rhat_max"] >= table["rhat"].max()
        assert result["ess_min"] <= table["ess_bulk"].min()
        assert result["pareto_k"] is None
    else:
        assert result["rhat_max"] is None
        assert (result["ess_min"], result["pareto_k"]) == (
            attributes["ess"],
            attributes["pareto_k"],
        )


def kept_fit(study, *, seed, progress, feedback, **options):
    """As `bayesrep.fit`, of the zoo: what is not asked for is not passed on."""
    assert (seed, progress, feedback) == (0, False, "full")
    if options["method"] == "nuts":
        assert options == {name: zoo.SHORT[name] for name in options}
        return zoo.posterior("tiny", **zoo.SHORT)
    assert options == {"method": "laplace"}
    return zoo.posterior("tiny", **zoo.QUICK)


def test_a_posterior_that_is_kept_is_that_of_the_fit(grid, tmp_path, monkeypatch):
    monkeypatch.setattr(import_module("bayesrep.inference.fit"), "fit", kept_fit)
    out, fits = tmp_path / "out", {"method": ["raw", "laplace"], "study": [TINY_TABLE]}
    bayesrep.sweep(fits, out)  # which keeps none
    assert not list((out / "runs").glob("*.nc"))
    keeping = fits | {"keep": "posterior"}
    bayesrep.sweep(keeping, out)
    (file,) = (out / "runs").glob("*.nc")
    kept = bayesrep.read_posterior(file)["posterior"]["adjusted_accuracy"]
    wanted = zoo.posterior("tiny", **zoo.QUICK)["posterior"]["adjusted_accuracy"]
    assert np.array_equal(kept, wanted)
    (file.parent / f".{file.name}.0.partial").touch()
    file.unlink()
    path = grid("method = ['raw', 'laplace']\nkeep = 'posterior'")
    assert [run.key in store.find_finished(out, [run]) for run in runs_of(path)] == [True, False]
    bayesrep.sweep(path, out)
    assert [*(out / "runs").glob("*.nc"), *(out / "runs").glob(".*")] == [file]


# --- the folder -------------------------------------------------------------------------------

MANY = "method = ['naive']\nbootstrap = 100\nseed = [{}]\nannotators = [8, 5]"
SMALL = "simulate = { images = 100, annotators = 8, classifiers = 2, seed = 1 }"
COUNT = 50


def equal_tables(one, other):
    """Both folders have the same bytes of estimates, and the same runs but for the time."""
    assert (one / store.ESTIMATES_TABLE).read_bytes() == (
        other / store.ESTIMATES_TABLE
    ).read_bytes()
    runs = [pl.read_parquet(each / store.RUNS_TABLE) for each in (one, other)]
    same = [c for c in runs[0].columns if not c.startswith(("seconds", "ess_per_second"))]
    assert runs[0].select(same).equals(runs[1].select(same))


@pytest.mark.compiles
def test_a_sweep_that_is_killed_goes_on_and_ends_as_if_it_had_not_been(grid, tmp_path, capsys):
    path = grid(MANY.format(", ".join(map(str, range(COUNT)))), study=SMALL)
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    command = [sys.executable, "-m", "bayesrep", "sweep", path, "--out", killed, "--jobs", "2"]
    process = subprocess.Popen(
        [*map(str, command)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    until = time.monotonic() + 120
    while len(list(killed.glob("runs/*.json"))) < 5 and time.monotonic() < until:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.5)
    made = list(killed.glob("runs/*.json"))
    assert 5 <= len(made) < 2 * COUNT
    time.sleep(0.3)
    assert len(list(killed.glob("runs/*.json"))) == len(made)  # nobody goes on alone
    kept = {file.name: file.read_bytes() for file in made}
    status, out, err = swept(capsys, path, "--out", killed)
    assert status == 0
    assert f"{2 * COUNT} runs, {2 * COUNT - len(made)} made now" in out
    assert f"[{len(made)}/{2 * COUNT}] done before" in err
    assert f"[{2 * COUNT}/{2 * COUNT}] annotators=5, method=naive, seed={COUNT - 1}: " in err
    assert {name: (killed / "runs" / name).read_bytes() for name in kept} == kept
    assert swept(capsys, path, "--out", whole, "--quiet")[0] == 0
    equal_tables(killed, whole)
    before = (killed / store.RUNS_TABLE).read_bytes()
    status, out, err = swept(capsys, path, "--out", killed)
    assert (status, "0 made now" in out, "up to date" in err) == (0, True, True)
    assert (killed / store.RUNS_TABLE).read_bytes() == before


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # Ray leaves pipes to be collected
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning:ray")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_cluster_makes_what_is_missing_with_the_same_bits(grid, tmp_path, capsys, monkeypatch):
    zoo.cut(zoo.study("tiny"), images=60).write(tmp_path / "study")
    grid("method = ['raw', 'em-spline', 'naive']", study="folder = 'study'")
    monkeypatch.chdir(tmp_path)  # workers find a study by a path from here
    assert swept(capsys, "grid.toml", "--out", "here", "--quiet")[0] == 0
    here, spread = tmp_path / "here", tmp_path / "spread"
    shutil.copytree(here, spread)
    (lost,) = (run.key for run in runs_of(tmp_path / "grid.toml") if run.method == "em-spline")
    (spread / "runs" / f"{lost}.json").unlink()
    kept = {file: file.stat().st_mtime_ns for file in spread.glob("runs/*.json")}
    status, out, _ = swept(capsys, "grid.toml", "--out", "spread", "--ray", "local")
    assert (status, "3 runs, 1 made now" in out, len(kept)) == (0, True, 2)
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    equal_tables(spread, here)


def test_a_grid_that_grew_is_continued_and_another_is_refused(grid, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    small, more = grid("method = ['raw']"), grid("method = ['naive', 'raw']", name="more.toml")
    assert swept(capsys, small, "--out", out)[0] == 0
    first = pl.read_parquet(out / store.RUNS_TABLE)
    (file,) = (out / "runs").iterdir()
    (out / "runs" / f".{file.name}.0.partial").write_text("{")
    assert "2 runs, 1 made now" in swept(capsys, more, "--out", out)[1]
    assert {each.name[0] for each in (out / "runs").iterdir()} != {"."}
    assert not list((out / "runs").glob(".*"))
    grown = pl.read_parquet(out / store.RUNS_TABLE)
    assert grown["method"].to_list() == ["naive", "raw"]
    assert grown.filter(method="raw")["seconds"].to_list() == first["seconds"].to_list()
    facts = {"out": str(out), "others": 1, "held": 2}
    check(refusal(["sweep", small, "--out", out]), "sweep-of-another-grid", facts)
    file.write_text(file.read_text()[:30])  # as a machine that lost its power leaves it
    assert "2 runs, 1 made now" in swept(capsys, more, "--out", out)[1]
    monkeypatch.setattr(store, "__version__", "99")
    found = refusal(["sweep", more, "--out", out])
    check(found, "sweep-of-another-version", {"current": "99", "version": bayesrep.__version__})
    (out / store.SWEEP_RECORD).write_text("[]")
    check(refusal(["sweep", more, "--out", out]), "out-not-earlier-run")


# --- what it comes to -------------------------------------------------------------------------


def test_a_run_that_fails_is_a_row_and_the_others_are_made(grid, tmp_path, capsys):
    path, out = grid("method = ['raw', 'jackknife']\nannotators = ['all', 9]"), tmp_path / "out"
    status, said, err = swept(capsys, path, "--out", out)
    assert status == 1
    assert err.endswith("bayesrep: 2 of 4 runs failed\n")
    runs = pl.read_parquet(out / store.RUNS_TABLE)
    (why,) = set(runs.filter(annotators=9)["error"])
    assert "8" in why
    assert f"2 failed: {why}" in said
    assert runs["error"].null_count() == 2
    estimates = pl.read_parquet(out / store.ESTIMATES_TABLE)
    assert set(estimates["run"]) == set(runs.filter(pl.col("error").is_null())["run"])
    assert swept(capsys, path, "--out", out)[0] == 1  # nothing is tried again
    table = scores(runs, estimates)
    assert table["failed"].to_list() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    "damage",
    [
        lambda run: run | {"estimates": 3},
        lambda run: run | {"estimates": None},
        lambda run: run | {"estimates": {"quantity": run["estimates"]["quantity"]}},
        lambda run: run | {"estimates": run["estimates"] | {"estimate": [0.5]}},
        lambda run: run | {"seconds": []},
        lambda run: run | {"seconds": {"study": "long"}},
        lambda run: run | {"error": {"x": 1}},
        lambda run: run | {"images": True},
        lambda run: run | {"estimates": run["estimates"] | {"quantity": [["mean_gap"]] * 7}},
        lambda run: run | {"estimates": {n: [{"x": 1}] for n in run["estimates"]}},
        lambda run: [run],
    ],
)
def test_a_damaged_run_is_made_again(grid, tmp_path, capsys, damage):
    path, out = grid("method = ['raw', 'naive']"), tmp_path / "out"
    assert swept(capsys, path, "--out", out)[0] == 0
    wanted = pl.read_parquet(out / store.ESTIMATES_TABLE)
    file = sorted((out / store.RUNS_FOLDER).iterdir())[0]
    file.write_text(json.dumps(damage(json.loads(file.read_text("utf-8")))), encoding="utf-8")
    assert len(store.read_tables(out)[0]) == 1
    assert swept(capsys, path, "--out", out)[0] == 0
    assert pl.read_parquet(out / store.ESTIMATES_TABLE).equals(wanted)


@pytest.mark.parametrize(
    "change",
    [
        {"../../x": {"study": "a", "method": "raw"}},
        {"0" * 16: {"study": "a"}},
        {"0" * 16: {"study": "a", "method": "raw", "failed": 1}},
        {"0" * 16: {"study": "a", "method": "raw", "seed": {"x": 1}}},
        {"0" * 16: [["study", "a"]]},
        [],
    ],
)
def test_a_record_that_no_sweep_wrote_is_none(grid, tmp_path, change):
    store.write_json(tmp_path / store.SWEEP_RECORD, {"version": "0", "runs": change})
    check(refusal(["sweep", "--table", tmp_path]), "sweep-folder-missing")
    check(refusal(["sweep", grid("method = 'raw'"), "--out", tmp_path]), "out-not-earlier-run")


@pytest.mark.parametrize("left", [(), ("runs",), (".sweep.json.ab12.partial", "runs")])
def test_a_sweep_that_was_stopped_before_its_record_goes_on(grid, tmp_path, capsys, left):
    (tmp_path / "out").mkdir()
    for name in left:
        place = tmp_path / "out" / name
        place.touch() if place.suffix else place.mkdir()
    assert swept(capsys, grid("method = 'raw'"), "--out", tmp_path / "out")[0] == 0


def test_a_command_that_begins_while_another_looks_at_the_folder(tmp_path, monkeypatch):
    out, runs, looked = tmp_path / "out", (), store.find_foreign

    def another_begins(*entries):
        monkeypatch.setattr(store, "find_foreign", looked)
        store.begin(out, tmp_path, runs)
        return looked(*entries)

    out.mkdir()
    monkeypatch.setattr(store, "find_foreign", another_begins)
    store.begin(out, tmp_path, runs)
    assert store.read_results(out, ()) == {}


@pytest.mark.compiles
@pytest.mark.parametrize("jobs", [1, 2])
def test_commands_on_one_folder_share_its_runs_and_those_of_one_that_is_killed(
    grid, tmp_path, capsys, jobs
):
    path = grid(MANY.format(", ".join(map(str, range(COUNT)))), study=SMALL)
    shared, whole = tmp_path / "shared", tmp_path / "whole"
    command = [sys.executable, "-m", "bayesrep", "sweep", path, "--out", shared, "--json"]
    started = [
        subprocess.Popen([*map(str, command), f"--jobs={jobs}"], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    until = time.monotonic() + 240
    while len(list(shared.glob("runs/*.json"))) < 5 and time.monotonic() < until:
        time.sleep(0.005)
    before = len(list(shared.glob("runs/*.json")))
    started[0].kill()
    said = [child.communicate(timeout=240)[0] for child in started]
    assert [child.returncode for child in started] == [-signal.SIGKILL, 0, 0]
    made = sum(json.loads(each)["made"] for each in said[1:])
    assert 2 * COUNT - before - 10 <= made <= 2 * COUNT
    assert swept(capsys, path, "--out", whole, "--quiet")[0] == 0
    equal_tables(shared, whole)
    assert not list(shared.glob("runs/.*"))


def test_a_run_too_large_for_the_memory_is_a_row(grid, tmp_path, capsys, monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("RESOURCE_EXHAUSTED: 105 GiB wanted\nand where")

    monkeypatch.setattr(execute, "analyse", refuse)
    out = tmp_path / "out"
    assert swept(capsys, grid("method = 'raw'"), "--out", out)[0] == 1
    (why,) = pl.read_parquet(out / store.RUNS_TABLE)["error"]
    assert why == "out of memory: RESOURCE_EXHAUSTED: 105 GiB wanted"


@pytest.mark.filterwarnings("ignore::bayesrep.errors.EstimateWarning")
def test_errors_and_coverage_by_hand(grid, tmp_path, capsys):
    path, out = grid("method = ['raw', 'jackknife']\nannotators = ['all', 5]"), tmp_path / "out"
    status, said, _ = swept(capsys, path, "--out", out, "--json")
    assert status == 0
    facts = json.loads(said)
    assert (facts["runs"], facts["made"], facts["failed"]) == (4, 4, 0)
    assert [row["axes"] for row in facts["rows"]] == [
        {"method": method, "annotators": n} for n in ("all", "5") for method in ("raw", "jackknife")
    ]
    study = zoo.study("tiny")
    truth, measured = study.truth.adjusted_accuracy, study.reference.correct.mean(axis=0)
    table = bayesrep.estimate(study, "jackknife")
    adjusted, lower, upper = (
        table[name].to_numpy() for name in ("adjusted_accuracy", "lower", "upper")
    )
    row = facts["rows"][1]
    assert row["mean_gap"] == pytest.approx((measured - adjusted).mean())
    assert row["gap_error"] == pytest.approx((truth - adjusted).mean())
    assert row["gap_rms"] == pytest.approx(abs((truth - adjusted).mean()))
    assert row["single_rms"] == pytest.approx(np.sqrt(np.square(truth - adjusted).mean()))
    assert row["single_held"] == pytest.approx(((lower <= truth) & (truth <= upper)).mean())
    assert row["single_width"] == pytest.approx((upper - lower).mean())
    assert (row["gap_held"], row["converged"], row["ess_per_second"]) == (None, None, None)
    assert row["gap_change"] is None
    few = facts["rows"][3]
    assert few["gap_change"] == pytest.approx(few["mean_gap"] - row["mean_gap"])
    raw = facts["rows"][0]
    assert raw["mean_gap"] == pytest.approx((measured - study.replication.correct.mean(0)).mean())
    status, printed, _ = swept(capsys, "--table", out)
    assert status == 0
    assert printed.splitlines()[0].split()[:3] == ["method", "annotators", "runs"]
    assert json.loads(swept(capsys, "--table", out, "--json")[1])["rows"] == facts["rows"]
    table = bayesrep.sweep(path, out)  # nothing is made again
    assert table["mean_gap"].to_list() == [row["mean_gap"] for row in facts["rows"]]
    assert swept(capsys, "--figure", out)[0] == 0
    drawn = figures.sweep_figure(*store.read_tables(out)[:2])["datasets"]
    # Those without intervals have no place where coverage is shown.
    assert {row["method"] for row in drawn["held"]} == {"jackknife"}
    assert {row["method"] for row in drawn["gap"]} == {"raw", "jackknife"}
    assert (out / "figure.png").stat().st_size > 10_000
    check(refusal(["sweep", "--figure", out]), "output-path-exists")
    svg = tmp_path / "figure.svg"
    assert json.loads(swept(capsys, "--figure", out, "--out", svg, "--json")[1])["out"] == str(svg)
    assert "posterior" not in svg.read_text()


def test_scores_over_runs_by_hand():
    runs = pl.DataFrame(
        {
            "run": ["a", "b", "c", "d"],
            "study": ["w"] * 4,
            "method": ["naive", "nuts", "nuts", "nuts"],
            "chains": [None, 2, 2, 4],
            "slope": [None, [3.0, 2.5], [3.0, 2.5], [3.0, 2.5]],
            "seed": [None, 0, 1, 0],
            "fingerprint": ["f"] * 4,
            "converged": [None, True, False, None],
            "rhat_max": [None, 1.01, 1.2, None],
            "divergences": [None, 0, 3, None],
            "error": [None, None, None, "no"],
            "seconds": [1.0, 10.0, 20.0, 0.0],
            "ess_per_second": [None, 5.0, 15.0, None],
        }
    )
    gap = {"quantity": "mean_gap", "truth": 0.04}
    single = {"quantity": "adjusted_accuracy", "truth": 0.6}
    estimates = pl.DataFrame(
        [
            {"run": "a", **gap, "estimate": 0.07, "lower": None, "upper": None},
            {"run": "b", **gap, "estimate": 0.05, "lower": 0.03, "upper": 0.07},
            {"run": "c", **gap, "estimate": 0.02, "lower": 0.01, "upper": 0.03},
            {"run": "b", **single, "estimate": 0.61, "lower": 0.5, "upper": 0.7},
            {"run": "b", **single, "estimate": 0.63, "lower": 0.61, "upper": 0.71},
            {"run": "c", **single, "estimate": 0.60, "lower": 0.5, "upper": 0.7},
        ],
        schema={
            name: t for name, t in store.ESTIMATE_TYPES.items() if name not in ("sd", "classifier")
        },
    )
    assert varying_axes(runs) == ["method", "chains"]
    naive, two, four = scores(runs, estimates).to_dicts()
    assert (naive["method"], naive["chains"], naive["converged"]) == ("naive", "-", None)
    assert (naive["gap_error"], naive["gap_held"]) == (pytest.approx(0.03), None)
    assert (two["chains"], two["runs"], two["converged"]) == ("2", 2, 1)
    assert two["gap_error"] == pytest.approx(-0.005)
    assert two["gap_rms"] == pytest.approx(np.sqrt((0.01**2 + 0.02**2) / 2))
    assert (two["gap_held"], two["single_held"]) == (0.5, 0.75)
    assert two["gap_width"] == pytest.approx(0.03)
    assert (two["seconds"], two["ess_per_second"]) == (15.0, 10.0)
    assert (two["max_rhat"], two["divergences"], naive["divergences"]) == (1.2, 3, None)
    assert two["gap_spread"] == pytest.approx(0.03 / np.sqrt(2))  # of two seeds
    assert (two["gap_change"], four["gap_change"], naive["gap_spread"]) == (None, None, None)
    assert (four["failed"], four["mean_gap"], four["seconds"]) == (1, None, None)


def test_the_end_is_told_from_runs_of_the_same_method_and_size():
    large = replace(WORLD, settings=(("images", 9), ("seed", 1)))
    size, other = (scheduler.size_of(SweepRun(each, "nuts")) for each in (WORLD, large))
    assert size != other
    assert size == scheduler.size_of(SweepRun(WORLD, "nuts", 5, 1, (), (("components", 3),)))
    done = [scheduler.FinishedRun("nuts", size, each) for each in (100.0, 10.0, 20.0)]
    done += [scheduler.FinishedRun("naive", size, 1.0)]
    left = [
        SweepRun(WORLD, "nuts"),
        SweepRun(WORLD, "nuts", 5),
        SweepRun(WORLD, "naive"),
        SweepRun(WORLD, "laplace"),
    ]
    found = scheduler.forecast(done, left, 1)
    assert found == (15.0 * 2 + 1.0, {"laplace": 1})  # the first compiled
    assert scheduler.forecast(done, left, 2).seconds == found.seconds / 2
    assert scheduler.forecast(done, [SweepRun(large, "nuts")], 1).seconds == 15.0  # of any size
    assert scheduler.forecast([], left, 1) == (0.0, {"nuts": 2, "naive": 1, "laplace": 1})


def test_processes_share_cores_and_gpus():
    assert [scheduler.cores_of(place, 2, {5, 1, 3}) for place in range(2)] == [[1, 5], [3]]
    assert [scheduler.cores_of(place, 3, [4, 6]) for place in range(3)] == [[4], [6], [4]]
    assert [scheduler.gpu_of(place, 2, {}) for place in range(3)] == ["0", "1", "0"]
    assert [scheduler.gpu_of(place, 2, {"CUDA_VISIBLE_DEVICES": "3,7"}) for place in (0, 1)] == [
        "3",
        "7",
    ]


def test_a_study_that_has_changed_is_refused(grid, tmp_path):
    study, out = zoo.cut(zoo.study("tiny"), images=40), tmp_path / "out"
    study.write(tmp_path / "mine")
    path = grid(METHOD, study="folder = 'mine'")
    store.begin(out, path, runs_of(path))
    zoo.cut(study, images=30).write(tmp_path / "mine", force=True)
    check(refusal(["sweep", path, "--out", out]), "sweep-of-changed-study", {"study": "mine"})


def test_the_study_of_a_run_is_made_as_simulate_makes_it():
    assert study_of(WORLD).fingerprint() == zoo.study("tiny").fingerprint()
    ragged = study_of(
        StudySpec(
            "simulate",
            "x",
            (("annotators", "8:9"), ("classifiers", 4), ("images", 600), ("seed", 0)),
        )
    )
    assert ragged.fingerprint() == zoo.study("ragged").fingerprint()
