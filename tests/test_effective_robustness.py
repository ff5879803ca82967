"""Effective robustness: lines and residuals against NumPy's, the command, and what it refuses."""

import json

import numpy as np
import polars as pl
import pytest
import zoo
from refusals import check, refusal, refused
from scipy.special import expit, logit, ndtr, ndtri

import bayesrep
from bayesrep import StudyError, cli
from bayesrep.protocols import Shift, measure_robustness, measure_shifts
from bayesrep.report.robustness_figures import robustness
from bayesrep.studies.draft import StudyContents
from bayesrep.studies.predictions import Predictions

NAMES = ("a", "b", "c", "d", "e")
SKILLS = np.array([0.45, 0.55, 0.6, 0.75, 0.85])
SCALES = {"logit": (logit, expit), "probit": (ndtri, ndtr)}


def answer(dataset, drop, seed, images=300, names=NAMES, skills=SKILLS):
    """Images that are hard for all: classifiers err together."""
    rng = np.random.default_rng(seed)
    hard = rng.random(images)
    right = 0.7 * hard + 0.3 * rng.random((len(names), images)) < (skills - drop)[:, None]
    answers = np.where(right, 0, 1)[:, :, None]
    labels = np.zeros(images, dtype=int)
    pictures = [f"{dataset} {number}" for number in range(images)]
    return Predictions(dataset, pictures, ("ant", "bee"), labels, names, answers)


@pytest.fixture
def family():
    return [answer("val", 0.0, 1), answer("v2", 0.1, 2, 200), answer("sketch", 0.25, 3)]


@pytest.fixture
def folder(tmp_path, family):
    StudyContents(answers=family).write(tmp_path / "s")
    return tmp_path / "s"


def run(capsys, *words):
    status = cli.main(["papers", "compare", *map(str, words)])
    return status, *capsys.readouterr()


@pytest.mark.parametrize("baseline", [None, ["a", "c", "d", "e"]])
@pytest.mark.parametrize("scale", SCALES)
def test_residuals_are_those_of_a_regression(family, scale, baseline):
    to, back = SCALES[scale]
    shifts = measure_shifts(family, seed=4)
    found = measure_robustness(shifts, NAMES, baseline=baseline)
    on_line = np.isin(NAMES, baseline or NAMES)
    for shift, data in zip(shifts, family[1:], strict=True):
        x, y = family[0].correct.mean(axis=1), data.correct.mean(axis=1)
        slope, intercept = np.polyfit(to(x[on_line]), to(y[on_line]), 1)
        expected = back(intercept + slope * to(x))
        rows = found.classifiers.filter(dataset=data.dataset, scale=scale)
        assert rows["classifier"].to_list() == list(NAMES)
        assert rows["baseline"].to_list() == on_line.tolist()
        assert not rows["adjusted"].any()
        np.testing.assert_allclose(rows["reference_accuracy"], x)
        np.testing.assert_allclose(rows["expected_accuracy"], expected)
        np.testing.assert_allclose(rows["robustness"], y - expected, atol=1e-12)
        line = found.lines.filter(dataset=data.dataset, scale=scale)
        told = dict(line.select("quantity", "estimate").rows())
        assert told == pytest.approx({"slope": slope, "intercept": intercept})
        # The interval is of the same on each draw of the images.
        drawn = []
        for one, other in zip(*shift.draws, strict=True):
            slope, intercept = np.polyfit(to(one[on_line]), to(other[on_line]), 1)
            drawn.append(other - back(intercept + slope * to(one)))
        lower, upper = np.quantile(drawn, [0.025, 0.975], axis=0)
        np.testing.assert_allclose(rows["lower"], lower, atol=1e-9)
        np.testing.assert_allclose(rows["upper"], upper, atol=1e-9)


@pytest.mark.parametrize("scale", SCALES)
def test_who_is_on_a_straight_line_has_no_robustness_and_who_is_above_has_some(scale):
    to, back = SCALES[scale]
    x = SKILLS
    y = back(0.9 * to(x) - 0.5)
    y[-1] += 0.04
    draws = np.tile(x, (50, 1)), np.tile(y, (50, 1))
    found = measure_robustness([Shift("v2", x, y, draws)], NAMES, baseline=NAMES[:4])
    rows = found.classifiers.filter(scale=scale)
    np.testing.assert_allclose(rows["robustness"], [0, 0, 0, 0, 0.04], atol=1e-12)
    np.testing.assert_allclose(rows["lower"], rows["upper"], atol=1e-12)


def test_classifiers_that_are_never_right_leave_the_line_alone():
    x, y = SKILLS, SKILLS - 0.2
    y[0] = 0
    draws = np.tile(x, (5, 1)), np.tile(y, (5, 1))
    all_of_them, others = (
        measure_robustness([Shift("a", x, y, draws)], NAMES, baseline=baseline)
        for baseline in (NAMES, NAMES[1:])
    )
    columns = ["expected_accuracy", "robustness", "lower", "upper"]
    assert all_of_them.classifiers.select(columns).equals(others.classifiers.select(columns))
    nobody = measure_robustness([Shift("a", x, 0 * y, draws)], NAMES)
    assert nobody.classifiers["robustness"].null_count() == 2 * len(NAMES)
    curved = nobody.lines.filter(pl.col("scale") != "linear")
    assert curved["estimate"].null_count() == len(curved) == 4


@pytest.mark.parametrize("scale", SCALES)
def test_a_classifier_outside_the_baseline_does_not_move_the_line(scale):
    x, y = SKILLS, SKILLS - 0.2
    draws = np.tile(x, (5, 1)), np.tile(y, (5, 1))
    moved = y + np.eye(5)[1] * 0.05
    before, after = (
        measure_robustness([Shift("a", x, each, draws)], NAMES, baseline=["a", "c", "d", "e"])
        for each in (y, moved)
    )
    change = (each.classifiers.filter(scale=scale)["robustness"] for each in (after, before))
    np.testing.assert_allclose(next(change) - next(change), np.eye(5)[1] * 0.05, atol=1e-12)


def test_a_baseline_of_others_or_of_two_is_refused(family):
    shifts = measure_shifts(family)
    with refused(StudyError, "classifiers-not-in-study"):
        measure_robustness(shifts, NAMES, baseline=["a", "b", "c", "x"])
    with refused(StudyError, "line-needs-more-classifiers", {"fewest": 3}):
        measure_robustness(shifts, NAMES, baseline=["a", "b", "b"])


def test_a_data_set_alone_is_refused(family, tmp_path):
    told = {"dataset": "val"}
    with refused(StudyError, "no-answers-beside-reference", told):
        measure_shifts(family[:1])
    StudyContents(answers=family[:1]).write(tmp_path / "s")
    words = ["papers", "compare", tmp_path / "s", "--table", "robustness", "--datasets"]
    check(refusal([*words, "val"]), "no-answers-beside-reference", told)
    told = {"dataset": "v3", "known_datasets": ["val"]}
    check(refusal([*words, "v3"]), "data-set-without-predictions", told)


def test_the_command_prints_what_the_function_finds(capsys, family, folder):
    words = (folder, "--datasets", "val", "--baseline", "a,b,c,d")
    printed = {
        name: run(capsys, *words, "--table", name, "--format", "csv")[1].splitlines()[0].split(",")
        for name in ("robustness", "baseline")
    }
    expected = measure_robustness(
        measure_shifts([family[0], family[2], family[1]]), NAMES, baseline=NAMES[:4]
    )
    status, text, error = run(capsys, *words, "--table", "robustness", "--json")
    assert (status, error) == (0, "")
    facts = json.loads(text)
    for found, table in ((facts["rows"], expected.classifiers), (facts["lines"], expected.lines)):
        assert len(found) == len(table)
        for one, other in zip(found, table.iter_rows(named=True), strict=True):
            assert one == pytest.approx(other, abs=1e-5, nan_ok=True)
    assert printed["robustness"] == expected.classifiers.columns
    status, text, _ = run(capsys, *words, "--table", "baseline")
    assert status == 0
    assert printed["baseline"] == expected.lines.columns
    slope = expected.lines.row(0, named=True)
    assert f"{slope['estimate']:.3f}" in text
    status, text, _ = run(capsys, *words, "--table", "robustness")
    row = expected.classifiers.row(4, named=True)
    assert f"{100 * row['robustness']:.2f}" in text
    assert "sketch" in text


def test_options_of_robustness_are_for_its_tables(folder):
    for option, value in (("baseline", "a"), ("input posterior", "posterior=a")):
        given = f"--{option.split()[0]}"
        words = ["papers", "compare", folder, "--table", "lines", given, value]
        facts = {"option": option, "table": "robustness or baseline"}
        check(refusal(words), "option-of-another-table", facts)


def test_adjusted_accuracies_take_the_place_of_those_measured(capsys, tmp_path):
    study, file = zoo.study("tiny"), zoo.posterior_path("tiny")
    study.write(tmp_path / "s")
    words = (tmp_path / "s", "--table", "robustness", "--json")
    _, text, _ = run(capsys, *words)
    measured = json.loads(text)["rows"]
    status, text, error = run(capsys, *words, "--input", f"posterior={file}")
    assert (status, error) == (0, "")
    adjusted = json.loads(text)["rows"]
    assert not any(row["adjusted"] for row in measured)
    assert all(row["adjusted"] for row in adjusted)
    told = bayesrep.summarize(study, zoo.posterior("tiny"))
    by_name = dict(told.select("classifier", "adjusted_accuracy").rows())
    for row, other in zip(adjusted, measured, strict=True):
        assert row["accuracy"] == pytest.approx(by_name[row["classifier"]], abs=1e-5)
        assert row["lower"] < row["robustness"] < row["upper"]
        assert row["reference_accuracy"] == other["reference_accuracy"]
    name = study.replication.name
    words = ["papers", "compare", *words, "--input", f"posterior={file}", "--datasets", name]
    check(refusal(words), "posterior-of-another-reference", {"reference": study.reference.name})


def test_the_figure_has_a_panel_for_each_data_set(tmp_path, family, folder):
    figure = robustness(family)
    assert [panel["layer"][0]["encoding"]["y"]["title"] for panel in figure["concat"]] == [
        f"accuracy on {name} (%)" for name in ("v2", "sketch")
    ]
    out = tmp_path / "r.png"
    words = ["figure", "robustness", folder, "--reference", "val"]
    assert cli.main([*map(str, words), "--out", str(out)]) == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    violation = refusal([*words, "--replication", "v9", "--out", tmp_path / "v9.png"])
    check(violation, "data-set-without-predictions", {"dataset": "v9"})
