"""Figures by name: drawn of a study without truth, right numbers, whole files, clear refusals."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zoo
from refusals import check, refusal, refused
from scipy.stats import beta, betabinom, binom

import bayesrep
from bayesrep import cli
from bayesrep.errors import BayesrepError, OptionError, StudyError, Violation
from bayesrep.estimators import analyse
from bayesrep.estimators.annotators import compare_annotators
from bayesrep.report.figure import FILE_SUFFIXES
from bayesrep.report.figure_registry import FIGURES_BY_NAME
from experiments.papers import __main__ as papers
from experiments.papers import (
    catalogue,
    figure2,
    figure3,
    figure4,
    figure5,
    figure11,
    figure12,
)
from experiments.papers.registry import PAPER_FIGURES
from experiments.papers.study_facts import StudyFacts
from experiments.style import panels, save_figure

FIGURES = {**FIGURES_BY_NAME, **PAPER_FIGURES}
pytestmark = pytest.mark.filterwarnings("ignore::bayesrep.errors.EstimateWarning")  # a small study

# Enough to draw; the options that only Python knows keep EM from many small fits.
FEW = {
    "paper-6": {"bootstrap": 2},
    "paper-11": {"bootstrap": 2},
    "paper-13": {"bootstrap": 2, "quarters": (4,)},
    "paper-14": {"bootstrap": 2, "components": (2,)},
}


@pytest.fixture(scope="module")
def simulated() -> bayesrep.Study:
    return zoo.study("ragged")


@pytest.fixture(scope="module")
def study(simulated) -> bayesrep.Study:
    return dataclasses.replace(simulated, truth=None)


@pytest.fixture(scope="module")
def study_path(study, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("figures") / "study"
    study.write(path)
    return path


def drawn(name: str, study: bayesrep.Study) -> Any:
    figure = FIGURES[name]
    return figure.draw(*([study] if figure.needs_study else []), **FEW.get(name, {}))


def labels(figure: Any) -> set[str]:
    return {label for axes in figure.axes for label in axes.get_legend_handles_labels()[1]}


def run(capsys, *arguments: Any) -> tuple[int, str, str]:
    """Draw, by the command or, of a paper, by the program of the papers."""
    words = [*map(str, arguments)]
    status = papers.main(words) if words[0].startswith("paper") else cli.main(["figure", *words])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.mark.parametrize(
    "name",
    [
        n
        for n, f in PAPER_FIGURES.items()
        if not f.inputs or f.needs_study and not f.needs_posterior
    ],
)
def test_every_figure_of_a_paper_without_a_truth_in_every_format(name, study, tmp_path):
    figure = drawn(name, study)
    assert not any("true" in label or "truth" in label for label in labels(figure))
    for suffix in FILE_SUFFIXES:
        save_figure(figure, tmp_path / f"figure{suffix}")
    pdf, svg, png = ((tmp_path / f"figure{suffix}").read_bytes() for suffix in FILE_SUFFIXES)
    assert pdf.startswith(b"%PDF")
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    assert b"<text" in svg
    assert b"DejaVu" in svg
    assert png.startswith(b"\x89PNG")
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("name", ["paper-2", "paper-5", "paper-11"])
def test_drawn_again_a_figure_has_the_same_bytes(study, tmp_path, name):
    for again in (1, 2):
        figure = drawn(name, study)
        for suffix in FILE_SUFFIXES:
            save_figure(figure, tmp_path / f"{again}{suffix}")
    for suffix in FILE_SUFFIXES:
        first, second = ((tmp_path / f"{again}{suffix}").read_bytes() for again in (1, 2))
        assert first == second, suffix


@pytest.mark.parametrize("name", ["paper-5", "paper-11", "paper-12"])
def test_the_truth_of_a_simulated_study_is_drawn(name, simulated):
    assert any("true" in label or "truth" in label for label in labels(drawn(name, simulated)))


def test_what_is_known(simulated, study):
    truth = simulated.truth
    known = StudyFacts.from_study(simulated, seed=3)
    assert known.seed == 3
    np.testing.assert_array_equal(known.truth, truth.adjusted_accuracy)
    gap = (truth.reference_accuracy - truth.adjusted_accuracy).mean()
    assert known.true_gap == pytest.approx(gap, abs=1e-15)
    unknown = StudyFacts.from_study(study)
    assert unknown.truth is unknown.true_gap is unknown.true_slope is None
    same = StudyFacts(study, np.asarray(known.reference_accuracy))
    assert same.true_gap == 0
    assert same.true_slope == pytest.approx(1)
    assert known.columns(known.study.classifiers[::-1]) == [3, 2, 1, 0]
    with refused(StudyError, "classifier-unknown-to-study", {"classifier": "x"}):
        known.columns(["x"])


def test_figure2_is_bayes_theorem():
    found = figure2.numbers(selected=7, annotators=10)
    s = np.array(found["s"])
    for i, prior in found["density"].items():
        joint = np.array(prior) * s**7 * (1 - s) ** 3
        expected = joint / np.trapezoid(joint, s)
        np.testing.assert_allclose(found["given_reading"][i], expected, atol=1e-4)
    means = {i: np.trapezoid(s * p, s) for i, p in found["given_reading"].items()}
    assert means["flickr"] < 0.7 < means["1"]  # as in the paper's caption


@pytest.mark.parametrize("annotators", [1, 5, 40])
def test_figure3_is_what_matching_on_counts_accepts(annotators):
    """Candidates accepted in proportion to p₁(k)/p_flickr(k), against the mixture of equation 1.

    The same of drawn candidates is in tests/statistics.
    """
    a, b = 2.5, 1.5
    counts, s = np.arange(annotators + 1), np.linspace(0.02, 0.98, 25)
    ratio = betabinom.pmf(counts, annotators, a + 1, b) / betabinom.pmf(counts, annotators, a, b)
    accepted = binom.pmf(counts[:, None], annotators, s).T @ ratio
    found = figure3.replication_density(s, annotators, alpha=a, beta=b)
    np.testing.assert_allclose(found, beta.pdf(s, a, b) * accepted, rtol=1e-9)


def test_figure3_runs_from_the_candidates_to_the_reference():
    s = np.linspace(0.01, 0.99, 99)
    ends = {0: beta.pdf(s, 2, 2), 10**9: beta.pdf(s, 3, 2)}
    for annotators, expected in ends.items():
        got = figure3.replication_density(s, annotators)
        np.testing.assert_allclose(got, expected, atol=1e-7)


def test_figure4_needs_no_second_image():
    one = {"selected": [1], "shown": 2, "correct": np.array([[True]])}
    tiny = bayesrep.Study.from_arrays(reference=one, replication=one, classifiers=["a"])
    assert figure4.numbers(StudyFacts(tiny))["reference"]["standard_error"] is None
    FIGURES["paper-4"].draw(tiny)


def test_figures_5_and_12_show_the_classifiers_that_are_named(study):
    known, name = StudyFacts(study), study.classifiers[0]
    median = figure5.numbers(known)["median_classifier"]
    found = figure5.numbers(known, classifiers=[name])
    assert found["median_classifier"] == median
    assert found["shown_classifier"] == name
    assert any(name in axes.get_title(loc="left") for axes in figure5.draw(found).axes)
    with refused(OptionError, "figure5-takes-one-classifier", {"classifier_count": 2}):
        figure5.numbers(known, classifiers=study.classifiers[:2])
    chosen = [study.classifiers[2], name]
    assert list(figure12.numbers(known, classifiers=chosen)["classifiers"]) == chosen


def test_a_dollar_in_a_name_is_no_mathematics(tmp_path):
    study = zoo.cut(zoo.study("tiny"), images=200, classifiers=1)
    study = dataclasses.replace(study, classifiers=("a$\\frac$",))
    save_figure(FIGURES["paper-5"].draw(study), tmp_path / "f.svg")
    assert "a$\\frac$" in (tmp_path / "f.svg").read_text(encoding="utf-8")


def test_figure11_is_compare_annotators_and_estimates_interval(study):
    found = figure11.numbers(StudyFacts(study, seed=5), bootstrap=40)
    table = compare_annotators(study)
    naive = table["naive"].to_numpy().reshape(-1, 4)
    reference = table["reference_accuracy"].to_numpy().reshape(-1, 4)
    assert found["annotators"] == list(range(1, 9))
    np.testing.assert_allclose(found["gap"], (reference - naive).mean(axis=1), atol=1e-14)
    for n in (3, 8):
        (same,) = analyse(study, f"naive(annotators={n})", bootstrap=40, seed=5)
        low, high = same.interval[:, 4]
        assert found["lower"][n - 1] == pytest.approx(low, abs=1e-13)
        assert found["upper"][n - 1] == pytest.approx(high, abs=1e-13)
    with refused(OptionError, "figure11-needs-replicates", {"bootstrap": 0}):
        figure11.numbers(StudyFacts(study), bootstrap=0)


def test_one_classifier_is_enough(study):
    one = zoo.cut(study, classifiers=1)
    for name in ("paper-5", "paper-7", "paper-12"):
        FIGURES[name].draw(one).canvas.draw()
    FIGURES["paper-6"].draw(one, bootstrap=2).canvas.draw()
    FIGURES["paper-11"].draw(one, bootstrap=2).canvas.draw()


def test_figure12_needs_three_annotators():
    data = zoo.cut(zoo.study("tiny"), images=50, classifiers=1).datasets
    of_two = {
        role: {"selected": part.selected % 3, "shown": 2, "correct": part.correct}
        for role, part in data.items()
    }
    study = bayesrep.Study.from_arrays(**of_two, classifiers=["a"])
    with refused(StudyError, "figure12-needs-annotators", {"annotators": 2, "fewest": 3}):
        FIGURES["paper-12"].draw(study)


def test_the_lists_name_every_figure(capsys):
    assert run(capsys, "--list")[0] == 0
    status, listed, _ = run(capsys, "--list", "--json")
    figures = json.loads(listed)["figures"]
    assert [each["name"] for each in figures] == list(FIGURES_BY_NAME)
    assert papers.main(["list"]) == 0
    out = capsys.readouterr().out
    assert all(f" {name} " in out for name in PAPER_FIGURES)
    assert all(bool(each.name) != bool(each.why) for each in catalogue.entries())
    # Every number of every paper, in order.
    last = {"engstrom2020": 14, "anzaku2022": 8, "shankar2020": 5, "tsipras2020": 28}
    for paper, most in last.items():
        numbers = [each.number for each in catalogue.of_paper(paper)]
        assert numbers[:most] == [str(n) for n in range(1, most + 1)]


def test_the_list_says_what_a_study_lacks(capsys, study_path, tmp_path):
    status, out, _ = run(capsys, "--list", study_path, "--json")
    assert status == 0
    lacks = {each["name"]: each["lacks"] for each in json.loads(out)["figures"]}
    assert lacks["robustness"] == []
    assert lacks["answer"] == ["posterior"]
    assert lacks["people"] == ["labels", "--objects|--counts"]
    assert papers.main(["list", str(study_path), "--input", f"images={tmp_path}"]) == 0
    said = {line.split()[1]: line for line in capsys.readouterr().out.splitlines() if "[" in line}
    assert said["paper-4"].endswith("[yes]")
    assert said["paper-1"].endswith("[yes]")
    assert said["anzaku-1"].endswith("[it lacks probabilities]")
    assert said["shankar-3"].endswith("[it lacks labels, --input labels]")
    nowhere = tmp_path / "nowhere"
    check(refusal(["figure", "--list", nowhere]), "study-path-missing", {"path": str(nowhere)})
    violation = refusal(["figure", "--list", tmp_path])
    check(violation, "neither-study-nor-predictions", {"path": str(tmp_path)})


def test_listing_imports_nothing_slow():
    code = (
        "import sys; from bayesrep.cli import main; main(['figure', '--list']);"
        "assert not {'jax', 'numpy', 'polars', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


TENTH = next(each.why for each in catalogue.of_paper("engstrom2020") if each.number == "10")


def refused_by_papers(words: list[Any]) -> Violation:
    with pytest.raises(BayesrepError) as found:
        papers.run([*map(str, words)])
    return found.value.violation


UNKNOWN = {"figure": "paper-3", "setting": "x", "choices": "alpha, annotators, beta"}
EXCEEDS = {"selected": 11, "annotators": 10}


@pytest.mark.parametrize(
    ("name", "settings", "rule", "facts"),
    [
        ("paper-3", "x=1", "unknown-figure-setting", UNKNOWN),
        ("paper-3", "alpha=0", "figure3-setting-not-positive", {"setting": "alpha", "value": 0}),
        ("paper-3", "annotators=0,1", "figure3-annotators-not-whole", {}),
        ("paper-3", "alpha=word", "setting-not-number", {"setting": "alpha", "value": "word"}),
        ("paper-2", "selected=11", "figure2-selected-exceeds-annotators", EXCEEDS),
        ("paper-2", "reference=3", "figure2-beta-not-positive", {"distribution": "reference"}),
    ],
)
def test_settings_that_do_not_fit(tmp_path, study_path, name, settings, rule, facts):
    given = [study_path] if FIGURES[name].needs_study else []
    words = [name, *given, "--set", settings, "--out", tmp_path / "f.svg"]
    check(refused_by_papers(words), rule, facts)


def test_figures_2_and_3_with_the_users_numbers(capsys, tmp_path):
    for name, settings in (
        ("paper-2", ("selected=15", "annotators=20", "reference=9,1.5", "candidates=2,2")),
        ("paper-3", ("alpha=3", "beta=1", "annotators=7")),
    ):
        out = tmp_path / f"{name}.svg"
        more = [part for setting in settings for part in ("--set", setting)]
        assert run(capsys, name, *more, "--out", out)[0] == 0
    text = (tmp_path / "paper-3.svg").read_text(encoding="utf-8")
    assert "n = 7" in text
    assert "Beta(4, 1)" in text
    found = figure2.numbers(selected=15, annotators=20, reference=(9, 1.5), candidates=(2, 2))
    s = np.array(found["s"])
    np.testing.assert_allclose(found["given_reading"]["flickr"], beta.pdf(s, 17, 7))


@pytest.mark.parametrize("name", ["paper-2", "paper-4", "paper-11"])
def test_the_command_writes_one_file(capsys, name, study_path, tmp_path):
    out = tmp_path / "figure.PDF"
    given = [study_path] if FIGURES[name].needs_study else []
    few = ["--bootstrap", 3] if name == "paper-11" else []
    status, text, _ = run(capsys, name, *given, "--out", out, *few)
    assert (status, text) == (0, f"Written to {out}\n")
    first = out.read_bytes()
    assert first.startswith(b"%PDF")
    again = refused_by_papers([name, *given, "--out", out, *few])
    check(again, "output-path-exists", {"path": str(out)})
    assert capsys.readouterr().out == ""
    assert run(capsys, name, *given, "--out", out, *few, "--force")[0] == 0
    assert out.read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == ["figure.PDF"]


def test_the_command_passes_on_names_and_seeds(capsys, study, study_path, tmp_path, monkeypatch):
    seen: dict[str, Any] = {}

    def draw(study: Any, *, classifiers: Any = (), bootstrap: int = 1, seed: int = 0) -> Any:
        seen.update(study=study, classifiers=classifiers, bootstrap=bootstrap, seed=seed)
        return panels(1)[0]

    options = frozenset({"classifiers", "bootstrap", "seed"})
    figure = dataclasses.replace(PAPER_FIGURES["paper-5"], draw=draw, options=options)
    monkeypatch.setitem(PAPER_FIGURES, "paper-5", figure)
    arguments = ("--classifier", "a", "--classifier", "b", "--bootstrap", 7, "--seed", 4)
    assert run(capsys, "paper-5", study_path, "--out", tmp_path / "f.svg", *arguments)[0] == 0
    assert seen.pop("study").fingerprint() == study.fingerprint()
    assert seen == {"classifiers": ["a", "b"], "bootstrap": 7, "seed": 4}


NO_INPUT = "figure-takes-no-input"


@pytest.mark.parametrize(
    ("words", "rule", "facts"),
    [
        ("paper-15", "unknown-paper", {"choices": ", ".join(PAPER_FIGURES)}),
        ("curve", "unknown-figure", {"choices": ", ".join(FIGURES_BY_NAME)}),
        ("paper-10", "figure-not-drawn", {"explanation": TENTH}),
        ("paper-1 STUDY", "figure-needs-input", {"needed": "--input images"}),
        ("paper-4", "figure-needs-study", {}),
        ("paper-2 STUDY", NO_INPUT, {"input": "study"}),
        ("robustness STUDY posterior.nc", NO_INPUT, {"input": "posterior"}),
        ("paper-4 STUDY --classifier x", "figure-takes-no-option", {"option": "classifier"}),
        ("paper-5 STUDY --classifier x", "classifier-unknown-to-study", {"classifier": "x"}),
        ("paper-11 STUDY --bootstrap 0", "figure11-needs-replicates", {"bootstrap": 0}),
        ("paper-4 nowhere", "study-path-missing", {"path": "nowhere"}),
    ],
)
def test_mistakes_are_one_line(capsys, study_path, tmp_path, words, rule, facts):
    given = [study_path if part == "STUDY" else part for part in words.split()]
    out = tmp_path / "f.pdf"
    ours = refusal if given[0] in (*FIGURES_BY_NAME, "curve") else refused_by_papers
    words = ["figure", *given] if ours is refusal else given
    found = ours([*words, "--out", out])
    check(found, rule, facts)
    assert found.facts.get("figure", given[0]) == given[0]
    assert capsys.readouterr().out == ""
    assert not out.exists()


def test_other_suffixes_and_missing_arguments(capsys, study_path, tmp_path):
    odd = tmp_path / "f.jpg"
    endings = {"path": str(odd), "endings": ".pdf, .svg or .png"}
    words = ["figure", "robustness", study_path, "--out", odd]
    check(refusal(words), "figure-ending-unknown", endings)
    status = cli.main(["figure"])
    assert (status, capsys.readouterr().err) == (2, "bayesrep figure: NAME, --out must be given\n")
    assert run(capsys, "robustness")[0] == 2


def test_without_the_extra_pictures_are_refused_before_any_work(study_path, tmp_path, monkeypatch):
    monkeypatch.setattr("bayesrep.report.figure.find_spec", lambda name: None)
    for words in (["figure", "robustness"], ["report", "--input", f"images={tmp_path}"]):
        out = tmp_path / ("f.svg" if words[0] == "figure" else "r.html")
        check(refusal([*words, study_path, "--out", out]), "pictures-not-installed")
    assert cli.main(["report", str(study_path), "--out", str(tmp_path / "r.html")]) == 0


def test_a_figure_that_cannot_be_written_leaves_the_old_one(tmp_path):
    class Broken:
        def savefig(self, path: Path, **_: Any) -> None:
            path.write_bytes(b"half")
            raise OSError("disk full")

    target = tmp_path / "f.png"
    target.write_bytes(b"old")
    with pytest.raises(OSError, match="disk full"):
        save_figure(Broken(), target)
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["f.png"]
