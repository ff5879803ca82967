"""What matching on noisy counts leaves: simulated, foretold, and held out."""

import numpy as np
import polars as pl
import pytest
from populations import EASY, HARD, drawn, study_of

from bayesrep import simulate_study
from bayesrep.estimators.annotators import compare_annotators, extrapolate
from bayesrep.planning import rematch
from bayesrep.planning.matching import fitted_mixtures
from experiments.papers.lab import explore, simulate_matching


@pytest.mark.parametrize("careless", [0.0, 0.3])
@pytest.mark.parametrize("n", [1, 3, 10, 40])
def test_sampling_agrees(n, careless):
    """Within four standard errors: one false alarm in 2,000 such suites of eight."""
    table = explore(EASY, HARD, [n], careless=careless, sampled=400_000, seed=3)
    found, error = simulate_matching(EASY, HARD, n, careless=careless, size=400_000, seed=3)
    assert (table["simulated"][0], table["error"][0]) == (found, error)
    assert abs(found - table["fine"][0]) < 4 * error + (2e-4 if careless else 0)


def test_the_naive_estimate_is_foretold():
    """With as many annotators as there are, and half, it is what it is: within 0.15 points."""
    study = simulate_study(seed=1, images=8_000, annotators=20, classifiers=8)
    told = extrapolate(study, [5, 10, 20, 80, 10_000])
    rows = compare_annotators(study).group_by("annotators", maintain_order=True)
    gaps = rows.agg(gap=(pl.col("reference_accuracy") - pl.col("naive")).mean())["gap"]
    np.testing.assert_allclose(told["gap"][:3], [gaps[4], gaps[9], gaps[19]], atol=0.0015)
    assert np.all(np.diff(told["left"]) < 0)
    assert abs(told["left"][-1]) < 2e-4  # nothing is left by answers without number


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


def test_mixtures_of_counts_have_the_means_of_the_populations():
    rng = np.random.default_rng(5)
    ten = np.full(20_000, 10)
    sets = [(drawn(rng, mixture, 20_000, 10)[1], ten) for mixture in (EASY, HARD)]
    for found, true in zip(fitted_mixtures(*sets), (EASY, HARD), strict=True):
        assert found.mean == pytest.approx(true.mean, abs=0.01)
