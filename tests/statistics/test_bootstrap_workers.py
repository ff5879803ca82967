"""The bootstrap where it is known who answered: how far its replicates scatter."""

from dataclasses import replace

import numpy as np
import pytest
import zoo
from test_bootstrap_workers import ROLES, frequencies, nameless, replicates_of

import bayesrep
from bayesrep.studies.crowds import frequency_covariance, residuals_of

pytestmark = pytest.mark.filterwarnings("ignore::bayesrep.errors.InterpolationWarning")


def one_crowd():
    return bayesrep.simulate_study(seed=8, images=600, classifiers=3, scenario="one-crowd")


@pytest.mark.parametrize("name", ["two-crowds", "one-crowd"])
def test_mean_frequencies_scatter_as_images_and_workers_say(name):
    """400 replicates: a variance has a standard error of 7 %, and four of these are allowed."""
    study = zoo.study("workers") if name == "two-crowds" else one_crowd()
    datasets = [study.datasets[role] for role in ROLES]
    residuals = residuals_of(datasets)
    crowd = frequency_covariance(datasets, residuals)
    images = [np.var(d.selected / d.shown) / len(d.images) for d in datasets]
    found = frequencies(replicates_of(study, size=400, seed=1))
    np.testing.assert_allclose(found.mean(axis=0), found[0], atol=0.006)
    covariance = np.cov(found[1:].T)
    expected = crowd + np.diag(images)
    np.testing.assert_allclose(np.diag(covariance), np.diag(expected), rtol=4 * np.sqrt(2 / 400))
    error = 4 * np.sqrt(expected[0, 0] * expected[1, 1] / 400)
    assert covariance[0, 1] == pytest.approx(expected[0, 1], abs=error)
    if name == "two-crowds":
        assert crowd[0, 0] > 0.7 * images[0]
        assert crowd[0, 1] == 0


def test_one_data_set_may_lack_its_workers():
    two_crowds = zoo.study("workers")
    datasets = {**two_crowds.datasets, "replication": replace(two_crowds.replication, answers=None)}
    study = replace(two_crowds, datasets=datasets)
    half = frequencies(replicates_of(study, size=200, seed=1)).std(axis=0)
    whole = frequencies(replicates_of(two_crowds, size=200, seed=1)).std(axis=0)
    assert half[0] == pytest.approx(whole[0], rel=0.2)
    assert half[1] < 0.8 * whole[1]


def test_intervals_are_as_wide_as_estimates_scatter():
    """Naive estimates of 60 studies; a standard deviation of 60 has an error of 9 %: three."""
    errors, known, blind = [], [], []
    for seed in range(60):
        study = bayesrep.simulate_study(
            seed=seed, images=1_500, classifiers=1, annotators=10, scenario="two-crowds"
        )
        for widths, of in ((known, study), (blind, nameless(study))):
            table = bayesrep.estimate(of, "naive", bootstrap=60, seed=seed)
            widths.append(float((table["upper"] - table["lower"])[0]))
        errors.append(float(table["adjusted_accuracy"][0] - study.truth.adjusted_accuracy[0]))
    of_known, of_blind = (np.std(errors) / (np.mean(width) / 3.92) for width in (known, blind))
    assert of_known == pytest.approx(1, abs=3 * 0.09)
    assert of_blind > 1.2 * of_known
