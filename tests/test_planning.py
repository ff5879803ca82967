"""What matching on noisy counts leaves: closed forms, sampling, and answers held out."""

import io
from functools import partial

import numpy as np
import polars as pl
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from populations import EASY, HARD, drawn, study_of
from refusals import check, refusal, refused
from scipy import integrate, stats

from bayesrep import Study
from bayesrep.cli import main
from bayesrep.errors import OptionError, StudyError
from bayesrep.estimators.annotators import extrapolate
from bayesrep.numerics.noisy_matching import BetaMixture, replication_mixture
from bayesrep.planning import match_images, rematch
from bayesrep.planning.discretise import S_NODES, masses_of
from bayesrep.planning.matching import fitted_mixtures
from bayesrep.studies.vocabulary import VOCABULARY_OF_NAME
from experiments.match_images import Annotated
from experiments.papers import __main__ as papers
from experiments.papers.lab import (
    chosen_masses,
    explore,
    matching_bias,
    simulate_matching,
)
from experiments.papers.lab_page import candidate_pools, lab_page, moments
from experiments.rematch import halved

positive = st.floats(0.3, 12)
numbers = st.integers(0, 60)


def beta(a, b):
    return BetaMixture(np.array([float(a)]), np.array([float(b)]), np.ones(1))


@given(positive, positive, numbers)
@settings(max_examples=60, deadline=None)
def test_equation_1(a, b, n):
    """Beta(α + 1, β) matched from Beta(α, β): a mixture of the two, n to α + β."""
    s = np.linspace(0.01, 0.99, 23)
    share = n / (n + a + b)
    expected = share * stats.beta.pdf(s, a + 1, b) + (1 - share) * stats.beta.pdf(s, a, b)
    found = replication_mixture(beta(a + 1, b), beta(a, b), n).density(s)
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
    found = replication_mixture(EASY, HARD, n)
    np.testing.assert_allclose(found.density(s), HARD.density(s) * accepted, rtol=1e-9)
    mean, _ = integrate.quad(lambda x: x * float(found.density(np.array([x]))[0]), 0, 1, limit=200)
    assert found.mean == pytest.approx(mean, abs=1e-8)
    assert matching_bias(EASY, HARD, n) == pytest.approx(EASY.mean - mean, abs=1e-8)


@given(positive, positive, positive, positive, numbers)
@settings(max_examples=60, deadline=None)
def test_the_pool_s_mean_pulls_in_proportion(a1, b1, a, b, n):
    first, pool = beta(a1, b1), beta(a, b)
    expected = (first.mean - pool.mean) * (a + b) / (a + b + n)
    assert matching_bias(first, pool, n) == pytest.approx(expected, abs=1e-10)


def test_what_is_sampled_is_the_pipelines():
    """That it agrees with the closed form is in tests/statistics."""
    table = explore(EASY, HARD, [3], careless=0.3, sampled=2_000, seed=3)
    found = simulate_matching(EASY, HARD, 3, careless=0.3, size=2_000, seed=3)
    assert (table["simulated"][0], table["error"][0]) == found


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


NUMBERS = "explored-answers-out-of-range"


@pytest.mark.parametrize(
    ("options", "broken"),
    [
        ({"answers": [0]}, (NUMBERS, {"most_answers": 1000, "answers": "[0]"})),
        ({"answers": []}, (NUMBERS, {"most_answers": 1000, "answers": "[]"})),
        ({"answers": [5], "careless": 1.0}, ("careless-share-out-of-range", {"careless": 1.0})),
        ({"answers": [5], "sampled": 3}, ("sampled-below-hundred", {"sampled": 3})),
    ],
)
def test_the_lab_refuses(options, broken):
    with refused(OptionError, *broken):
        explore(EASY, HARD, **options)
    with refused(OptionError, "beta-parameters-not-positive", {"role": "pool"}):
        explore(EASY, beta(-1, 2), [3])


def test_the_naive_estimate_is_foretold_to_ever_more_answers():
    """That it is what naive matching then finds is in tests/statistics."""
    study = zoo.study("tiny")
    told = extrapolate(study, [4, 8, 80, 10_000])
    assert np.all(np.diff(told["left"].abs()) < 0)
    assert abs(told["left"][-1]) < 4e-4  # nothing is left by answers without number
    assert extrapolate(study)["annotators"].to_list() == [8, 16, 32, 80]
    with refused(OptionError, "annotator-numbers-out-of-range", {"most": 10_000}):
        extrapolate(study, [0])


# ------------------------------------------------------------------------ matching again


def test_matching_again_repeats_and_goes_by_class():
    labels = np.repeat(["a", "b"], 3_000)
    study = study_of(EASY, HARD, labels=labels)
    one, two = (rematch(study, by_class=True, size=200, deals=3, bootstrap=3) for _ in range(2))
    assert one.held_out.equals(two.held_out)
    assert one.by_answers.equals(two.by_answers)


def test_matching_again_refuses():
    study = study_of(EASY, HARD, size=400)
    roles = {"role": "flickr", "roles": "reference, replication, candidates"}
    with refused(StudyError, "no-data-set-in-role", roles):
        rematch(study, pool="flickr")
    with refused(StudyError, "no-answers-to-hold-out", {"matched_on": 10}):
        rematch(study, answers=10)
    with refused(StudyError, "class-matching-without-labels"):
        rematch(study, by_class=True)
    with refused(StudyError, "too-few-pool-images", {"size": 401}):
        rematch(study, size=401)
    with refused(OptionError, "rematch-number-below-one"):
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
    with refused(StudyError, "too-few-frequent-candidates", {"least": 0.9}):
        match_images((k1, ten[:2_000]), (k, ten), size=3_000, least=0.9, replicates=4)
    with refused(OptionError, "least-frequency-out-of-range", {"least": 1.0}):
        match_images((k1, ten[:2_000]), (k, ten), size=30, least=1.0, replicates=4)


def test_lab_command(tmp_path, capsys):
    page, table = tmp_path / "lab.html", tmp_path / "lab.csv"
    words = ["lab", "--answers", "4,10", "--out", str(page), "--csv", str(table)]
    assert papers.main(words) == 0
    rows = pl.read_csv(table)
    assert rows["answers"].to_list() == [4, 10]
    assert rows["fine"][0] == pytest.approx(0.05)
    assert "What does matching on a few answers leave?" in page.read_text("utf-8")
    two = ["--reference", "8,1,0.8+2,3,0.2", "--pool", "4,1.5,.5+1,2,.5"]
    assert papers.main(["lab", *two, "--answers", "3"]) == 0
    assert "3 " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--reference", "3"], "'3' is not A,B of a beta"),
        (["--reference", "3,2+1,1"], "is not A,B of a beta"),
        (["--answers", "3,x"], "'3,x' is not N,N"),
    ],
)
def test_lab_command_cannot_read(words, said, capsys):
    with pytest.raises(SystemExit):
        papers.main(["lab", *words])
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "broken"),
    [
        (["--pool", "0,2"], ("population-parameters-not-positive",)),
        (["--pool", "nan,2"], ("population-parameters-not-positive",)),
        (["--answers", "5000"], (NUMBERS, {"most_answers": 1000, "answers": "[5000]"})),
        (["--careless", "2"], ("careless-share-out-of-range", {"careless": 2.0})),
        (["--out", "lab.txt"], ("out-not-html", {"out": "lab.txt"})),
        (["--study", "here", "--pool", "2,2"], ("study-and-populations-given",)),
    ],
)
def test_lab_command_refuses(words, broken):
    with refused(OptionError, *broken):
        papers.run(["lab", *words])


def test_rematch_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("bayesrep.planning.rematch", partial(rematch, deals=2, bootstrap=5))
    study_of(EASY, HARD, size=800).write(tmp_path / "study")
    words = [str(tmp_path / "study"), "--images", "100"]
    command = ["collect", "match", *words, "--check"]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "D.1" in out
    assert "D.2" in out
    assert "D.3" in out
    assert main([*command, "--format", "csv"]) == 0
    assert set(pl.read_csv(io.StringIO(capsys.readouterr().out))["annotators"]) >= {1, 5}
    found = refusal(["collect", "match", *words, "--check", "--per-class", "3"])
    check(found, "images-and-per-class-given")
    found = refusal(["collect", "match", *words, "--check", "--answers", "3,5"])
    check(found, "check-of-matching-options")
    assert papers.main(["lab", "--study", words[0], "--answers", "5"]) == 0
    with refused(OptionError, "no-dataset-in-pool-role", {"pool_role": "pool"}):
        papers.run(["lab", "--study", words[0], "--pool-role", "pool"])


def test_mixtures_of_counts_have_the_mean_of_expected_counts():
    """As many images at every count as two betas expect: what is fitted has their mean."""
    k = np.arange(11)
    sets = []
    for a, b in ((8.0, 2.0), (3.0, 3.0)):
        expected = np.rint(2_000 * stats.betabinom.pmf(k, 10, a, b)).astype(int)
        counts = np.repeat(k, expected)
        sets.append((counts, np.full(len(counts), 10)))
    for found, mean in zip(fitted_mixtures(*sets), (0.8, 0.5), strict=True):
        assert found.mean == pytest.approx(mean, abs=0.002)


def test_the_page_has_candidates_around_those_that_are_given():
    mean, concentration = moments(beta(6, 2))
    assert (mean, concentration) == (pytest.approx(0.75), pytest.approx(8))
    pools = candidate_pools(beta(6, 2), beta(2, 2))
    assert list(pools) == [
        "as given: mean 50.0 %",
        "harder: mean 30.0 %",
        "harder: mean 40.0 %",
        "easier: mean 60.0 %",
        "like the reference",
    ]
    assert [pool.mean for pool in pools.values()] == pytest.approx([0.5, 0.3, 0.4, 0.6, 0.75])
    rows = explore(beta(6, 2), beta(2, 2), [3]).to_dicts()
    html = lab_page(beta(6, 2), beta(2, 2), rows, VOCABULARY_OF_NAME["images"])
    assert "Answers about an image" in html
    other = lab_page(beta(6, 2), beta(2, 2), [], VOCABULARY_OF_NAME["evaluation"])
    assert "Answers about an item" in other
    assert "answers about an item" in other  # of an axis


@pytest.mark.parametrize(("answers", "careless"), [(1, 0.0), (7, 0.0), (10, 0.2), (40, 0.4)])
def test_what_is_chosen_has_the_mean_that_theory_says(answers, careless):
    """Densities that the lab's page draws, beside equation 1 and beside a sum over counts."""
    reference, pool = masses_of(beta(3, 2)), masses_of(beta(2, 2))
    chosen = chosen_masses(reference, pool, answers, careless=careless)
    assert chosen.sum() == pytest.approx(1)
    left = float((reference - chosen) @ S_NODES)
    if careless == 0:
        assert left == pytest.approx(matching_bias(beta(3, 2), beta(2, 2), answers), abs=1e-4)
    coarse = chosen_masses(reference, pool, answers, bins=5, careless=careless)
    (row,) = explore(beta(3, 2), beta(2, 2), [answers], careless=careless).to_dicts()
    assert float((reference - coarse) @ S_NODES) == pytest.approx(row["published"], abs=3e-4)
    assert left == pytest.approx(row["fine"], abs=3e-4)


def test_without_answers_candidates_stay_as_they_are():
    reference, pool = masses_of(beta(3, 2)), masses_of(beta(2, 2))
    for bins in (None, 5):
        chosen = chosen_masses(reference, pool, 0, bins=bins, careless=0.0)
        np.testing.assert_allclose(chosen, pool, atol=1e-12)


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
