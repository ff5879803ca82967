"""What matching on noisy counts leaves: closed forms, sampling, and answers held out."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from bayesrep import Study, simulate_study
from bayesrep.cli import main
from bayesrep.errors import OptionError, StudyError
from bayesrep.estimators.annotators import compare_annotators, extrapolate
from bayesrep.lab import explore, match_images, rematch
from bayesrep.lab.matching import fitted_mixtures
from bayesrep.lab.pipeline import simulated
from bayesrep.numerics.noisy_matching import BetaMixture, left_by_matching, replicated
from bayesrep.report.lab_page import lab_page, moments
from bayesrep.studies.words import VOCABULARIES, VOICE, Voice
from experiments.match_images import Annotated
from experiments.rematch import halved

positive = st.floats(0.3, 12)
numbers = st.integers(0, 60)


def beta(a, b):
    return BetaMixture(np.array([float(a)]), np.array([float(b)]), np.ones(1))


EASY = BetaMixture(np.array([8.0, 2.0]), np.array([1.0, 3.0]), np.array([0.8, 0.2]))
HARD = BetaMixture(np.array([4.0, 1.0]), np.array([1.5, 2.0]), np.array([0.5, 0.5]))


@given(positive, positive, numbers)
@settings(max_examples=60, deadline=None)
def test_equation_1(a, b, n):
    """Beta(α + 1, β) matched from Beta(α, β): a mixture of the two, n to α + β."""
    s = np.linspace(0.01, 0.99, 23)
    share = n / (n + a + b)
    expected = share * stats.beta.pdf(s, a + 1, b) + (1 - share) * stats.beta.pdf(s, a, b)
    found = replicated(beta(a + 1, b), beta(a, b), n).density(s)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@given(positive, positive, numbers, st.floats(0.02, 0.98))
@settings(max_examples=60, deadline=None)
def test_appendix_c(a, b, n, s):
    """Acceptance with probability p₁(k) / p_flickr(k): the sum over k is linear in s."""
    k = np.arange(n + 1)
    ratio = stats.betabinom.pmf(k, n, a + 1, b) / stats.betabinom.pmf(k, n, a, b)
    np.testing.assert_allclose(ratio, (k + a) / (n + a + b) * (a + b) / a, rtol=1e-9)
    accepted = stats.binom.pmf(k, n, s) @ ratio
    assert accepted == pytest.approx((n * s + a) / (n + a + b) * (a + b) / a, rel=1e-9)


@pytest.mark.parametrize("n", [0, 1, 4, 25])
def test_any_mixtures_are_the_pool_s_times_what_is_accepted(n):
    s, k = np.linspace(0.02, 0.98, 17), np.arange(n + 1)

    def masses(of):
        return sum(
            w * stats.betabinom.pmf(k, n, a, b)
            for a, b, w in zip(of.a, of.b, of.weights, strict=True)
        )

    accepted = stats.binom.pmf(k[:, None], n, s).T @ (masses(EASY) / masses(HARD))
    found = replicated(EASY, HARD, n)
    np.testing.assert_allclose(found.density(s), HARD.density(s) * accepted, rtol=1e-9)
    mean, _ = integrate.quad(lambda x: x * float(found.density(np.array([x]))[0]), 0, 1, limit=200)
    assert found.mean == pytest.approx(mean, abs=1e-8)
    assert left_by_matching(EASY, HARD, n) == pytest.approx(EASY.mean - mean, abs=1e-8)


@given(positive, positive, positive, positive, numbers)
@settings(max_examples=60, deadline=None)
def test_the_pool_s_mean_pulls_in_proportion(a1, b1, a, b, n):
    first, pool = beta(a1, b1), beta(a, b)
    expected = (first.mean - pool.mean) * (a + b) / (a + b + n)
    assert left_by_matching(first, pool, n) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("careless", [0.0, 0.3])
@pytest.mark.parametrize("n", [1, 3, 10, 40])
def test_sampling_agrees(n, careless):
    """Within four standard errors: one false alarm in 2,000 such suites of eight."""
    table = explore(EASY, HARD, [n], careless=careless, sampled=400_000, seed=3)
    found, error = simulated(EASY, HARD, n, careless=careless, size=400_000, seed=3)
    assert (table["simulated"][0], table["error"][0]) == (found, error)
    assert abs(found - table["fine"][0]) < 4 * error + (2e-4 if careless else 0)


def test_methods_leave_what_they_should():
    table = explore(EASY, HARD, (1, 3, 4, 10, 40))
    np.testing.assert_allclose(table["published"][:3], table["fine"][:3], atol=2e-4)
    assert (table["published"][3:] > table["fine"][3:]).all()
    assert (table["posterior"].abs() <= table["fine"] + 1e-6).all()
    assert np.all(np.diff(table["fine"]) < 0)
    again = explore(EASY, HARD, (10,), careless=0.25)
    assert again["fine"][0] > table["fine"][3]  # coins say nothing
    measured = 0.75 * EASY.mean + 0.125
    assert again["measured_reference"][0] == pytest.approx(measured)
    assert table["weight"].null_count() == 5
    assert explore(beta(3, 2), beta(2, 2), (4,))["weight"][0] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"answers": [0]}, "from 1 to 1,000; got"),
        ({"answers": []}, "from 1 to 1,000; got"),
        ({"answers": [5], "careless": 1.0}, "from 0 to below 1"),
        ({"answers": [5], "sampled": 3}, "100 at least"),
    ],
)
def test_the_lab_refuses(options, said):
    with pytest.raises(OptionError, match=said):
        explore(EASY, HARD, **options)
    with pytest.raises(OptionError, match="the pool: parameters of betas"):
        explore(EASY, beta(-1, 2), [3])


def test_the_naive_estimate_is_foretold():
    """With as many annotators as there are, and half, it is what it is: within 0.15 points."""
    study = simulate_study(seed=1, images=8_000, annotators=20, classifiers=8)
    told = extrapolate(study, [5, 10, 20, 80, 10_000])
    rows = compare_annotators(study).group_by("annotators", maintain_order=True)
    gaps = rows.agg(gap=(pl.col("reference_accuracy") - pl.col("naive")).mean())["gap"]
    np.testing.assert_allclose(told["gap"][:3], [gaps[4], gaps[9], gaps[19]], atol=0.0015)
    assert np.all(np.diff(told["left"]) < 0)
    assert abs(told["left"][-1]) < 2e-4  # nothing is left by answers without number
    assert extrapolate(study)["annotators"].to_list() == [20, 40, 80, 200]
    with pytest.raises(OptionError, match="from 1 to 10,000"):
        extrapolate(study, [0])


# ------------------------------------------------------------------------ matching again


def drawn(rng, mixture, size, n):
    component = rng.choice(len(mixture.a), size=size, p=mixture.weights)
    s = rng.beta(mixture.a[component], mixture.b[component])
    return s, rng.binomial(n, s)


def study_of(reference, pool, *, n=10, size=6_000, seed=0, classifiers=3, **more):
    rng = np.random.default_rng(seed)
    entries = {}
    for role, mixture in (("reference", reference), ("candidates", pool)):
        s, k = drawn(rng, mixture, size, n)
        correct = rng.random((size, classifiers)) < (0.1 + 0.8 * s)[:, None]
        entries[role] = {"selected": k, "shown": n, "correct": correct, **more}
    names = [f"c{place}" for place in range(classifiers)]
    return Study.from_arrays(replication=entries["candidates"], classifiers=names, **entries)


def test_matching_again_finds_what_it_leaves():
    """D.2 within four standard errors of what theory says of five bins; D.3 of the right sign."""
    found = rematch(study_of(EASY, HARD, size=20_000), size=3_000, bootstrap=20)
    left = explore(EASY, HARD, (5,))["published"][0]
    rows = found.held_out.filter(reference_answers=5)
    matched, held = rows.to_dicts()
    assert held["difference"] == pytest.approx(-left, abs=4 * held["error"])
    assert held["difference"] < -4 * held["error"]
    assert matched["sampled"] > held["sampled"]
    sources = found.by_source
    assert sources["candidates"][1] < sources["candidates"][0]
    assert sources["accuracy_difference"][1] > 2 * sources["accuracy_error"][1]
    gap = found.by_answers["gap"]
    assert gap[0] > gap[4] > gap[9] > 0
    assert (found.by_answers["lower"] < gap).all()


def test_matching_from_the_same_population_leaves_nothing():
    found = rematch(study_of(EASY, EASY, size=20_000, seed=1), size=3_000, bootstrap=2)
    for row in found.held_out.to_dicts():
        assert abs(row["difference"]) < 4 * row["error"]


def test_matching_again_repeats_and_goes_by_class():
    labels = np.repeat(["a", "b"], 3_000)
    study = study_of(EASY, HARD, labels=labels)
    one, two = (rematch(study, by_class=True, size=200, deals=3, bootstrap=3) for _ in range(2))
    assert one.held_out.equals(two.held_out)
    assert one.by_answers.equals(two.by_answers)


def test_matching_again_refuses():
    study = study_of(EASY, HARD, size=400)
    with pytest.raises(StudyError, match="no data set in the role 'flickr'; it has reference"):
        rematch(study, pool="flickr")
    with pytest.raises(StudyError, match="none is left to hold out when 10 are matched on"):
        rematch(study, answers=10)
    with pytest.raises(StudyError, match="takes the labels of both"):
        rematch(study, by_class=True)
    with pytest.raises(StudyError, match="fewer than 401 images"):
        rematch(study, size=401)
    with pytest.raises(OptionError, match="must be 1 at least"):
        rematch(study, deals=0)


def test_a_pool_without_predictions_has_frequencies_still():
    rng = np.random.default_rng(0)
    pool = {"selected": drawn(rng, HARD, 500, 10)[1], "shown": 10}
    whole = study_of(EASY, HARD, size=500)
    entry = {"selected": whole.reference.selected, "shown": 10, "correct": whole.reference.correct}
    study = Study.from_arrays(
        reference=entry, replication=entry, candidates=pool, classifiers=whole.classifiers
    )
    found = rematch(study, size=100, deals=2)
    assert not len(found.by_answers)
    assert found.by_source["accuracy"].null_count() == 2
    nine = rematch(study, answers=9, size=100, deals=2)
    assert nine.by_source is None


# ------------------------------------------------------------------------ choosing, and commands


def test_candidates_of_too_low_a_frequency_are_left_out():
    rng = np.random.default_rng(2)
    (_, k1), (_, k) = drawn(rng, EASY, 2_000, 10), drawn(rng, HARD, 6_000, 10)
    ten = np.full(6_000, 10)
    found = match_images((k1, ten[:2_000]), (k, ten), size=500, least=0.5, replicates=4)
    for chosen in found.chosen.values():
        assert len(chosen.images) == 500
        assert k[chosen.images].min() >= 4  # the pool's mean pulls a count of 4 to a half
    with pytest.raises(StudyError, match=r"expected frequency of 0\.9 or more"):
        match_images((k1, ten[:2_000]), (k, ten), size=3_000, least=0.9, replicates=4)
    with pytest.raises(OptionError, match="least is a selection frequency"):
        match_images((k1, ten[:2_000]), (k, ten), size=30, least=1.0, replicates=4)


def test_lab_command(tmp_path, capsys):
    page = tmp_path / "lab.html"
    assert main(["lab", "--answers", "4,10", "--out", str(page), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [row["answers"] for row in facts["rows"]] == [4, 10]
    assert facts["rows"][0]["fine"] == pytest.approx(0.05)
    assert "What does matching on a few answers leave?" in page.read_text("utf-8")
    two = "8,1,0.8+2,3,0.2"
    assert main(["lab", "--reference", two, "--pool", "4,1.5,.5+1,2,.5", "--answers", "3"]) == 0
    assert "3 " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--reference", "3"], "'3' is not A,B of a beta"),
        (["--reference", "3,2+1,1"], "is not A,B of a beta"),
        (["--pool", "0,2"], "must be above 0"),
        (["--pool", "nan,2"], "must be above 0"),
        (["--answers", "3,x"], "'3,x' is not N,N"),
        (["--answers", "5000"], "from 1 to 1,000"),
        (["--careless", "2"], "from 0 to below 1"),
        (["--out", "lab.txt"], "ends in .html"),
        (["--study", "here", "--pool", "2,2"], "not both"),
    ],
)
def test_lab_command_refuses(words, said, capsys):
    assert main(["lab", *words]) == 2
    assert said in capsys.readouterr().err


def test_rematch_command(tmp_path, capsys):
    study_of(EASY, HARD, size=800).write(tmp_path / "study")
    words = [str(tmp_path / "study"), "--images", "100", "--deals", "2", "--bootstrap", "5"]
    assert main(["rematch", *words]) == 0
    out = capsys.readouterr().out
    assert "D.1" in out
    assert "D.2" in out
    assert "D.3" in out
    assert main(["rematch", *words, "--per-class", "3"]) == 2
    assert "not both" in capsys.readouterr().err
    assert main(["lab", "--study", str(tmp_path / "study"), "--answers", "5"]) == 0
    assert main(["lab", "--study", str(tmp_path / "study"), "--pool-role", "pool"]) == 2
    assert "no data set in the role 'pool'" in capsys.readouterr().err


def test_mixtures_of_counts_and_the_page_s_sliders():
    rng = np.random.default_rng(5)
    ten = np.full(20_000, 10)
    sets = [(drawn(rng, mixture, 20_000, 10)[1], ten) for mixture in (EASY, HARD)]
    for found, true in zip(fitted_mixtures(*sets), (EASY, HARD), strict=True):
        assert found.mean == pytest.approx(true.mean, abs=0.01)
    mean, concentration = moments(beta(6, 2))
    assert (mean, concentration) == (pytest.approx(0.75), pytest.approx(8))
    html = lab_page(beta(6, 2), beta(2, 2), explore(beta(6, 2), beta(2, 2), [3]).to_dicts())
    assert 'value="75.0"' in html
    assert 'value="8.0"' in html
    assert "Answers about an image" in html
    speaking = VOICE.set(Voice(VOCABULARIES["evaluation"]))
    other = lab_page(beta(6, 2), beta(2, 2), [])
    VOICE.reset(speaking)
    assert "Answers about an item" in other
    assert "answers about an item" in other  # of an axis


def test_the_experiment_s_halves_are_what_they_say():
    rng = np.random.default_rng(0)
    shown = np.full(600, 12)
    data = Annotated(
        rng.binomial(12, 0.8, 600), shown, rng.random((600, 2)) < 0.7, 2, (3, 5), 2, 50
    )
    study = halved(data, 5, seed=1)
    assert len(study.datasets["candidates"].images) == pytest.approx(300, abs=60)
    assert len(study.reference.images) < 300
    assert (study.reference.shown == 5).all()
    assert study.replication.selected.tolist() == study.datasets["candidates"].selected.tolist()
