"""Counts that selected their own images: what is found of the truth, with the rule and again."""

import warnings

import numpy as np
import pytest
from kept_counts import dealt

import bayesrep
from bayesrep.errors import ConvergenceWarning
from bayesrep.estimators.remeasured import remeasure_counts


@pytest.fixture(scope="module")
def kept():
    """By Laplace: its draws do for a test where its certificate is refused by a little, too."""
    study = bayesrep.simulate_study(seed=7, images=2_000, classifiers=3, scenario="kept")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return study, bayesrep.fit(study, method="laplace", progress=False)


def test_kept_images_are_recovered(kept):
    study, fit = kept
    adjusted = fit["posterior"]["adjusted_accuracy"].values.reshape(-1, 3)
    # Four posterior sds: a false alarm in 5,000 seeds, where intervals are right.
    error = np.abs(adjusted.mean(axis=0) - study.truth.adjusted_accuracy)
    assert (error < 4 * adjusted.std(axis=0)).all()
    frequency = fit["posterior"]["mean_selection_frequency"].values.reshape(-1, 2)
    truth = np.array(list(study.truth.mean_selection_frequency.values()))
    measured = [float((d.selected / d.shown).mean()) for d in study.datasets.values()]
    assert (np.abs(frequency.mean(axis=0) - truth) < 0.012).all()
    assert (measured - truth > 0.01).all()


def test_measured_again_images_fall_back(kept):
    study, fit = kept
    table = bayesrep.remeasure(study, fit)
    truth = np.array(list(study.truth.mean_selection_frequency.values()))
    lower, upper = table["frequency_lower"].to_numpy(), table["frequency_upper"].to_numpy()
    # About these images, where the truth is the population's: a sampling error of 0.003 more.
    assert (lower - 0.006 < truth).all()
    assert (truth < upper + 0.006).all()
    assert (table["regression_upper"] < 0).all()
    assert table["dropped"].is_between(0.02, 0.2).all()


def test_counts_alone_are_measured_again():
    selected, s = dealt(1)
    told = remeasure_counts(selected, 5, "at least 3 of 5", draws=2_000, seed=0)
    again = np.random.default_rng(2).binomial(5, s) < 3
    middle, lower, upper = told.frequency
    # Twice the half of a 95 % interval: a false alarm in some 10,000 seeds.
    assert abs(middle - s.mean()) < upper - lower
    assert abs(told.dropped[0] - again.mean()) < told.dropped[2] - told.dropped[1]
    assert told.measured - s.mean() > 0.04
    untold = remeasure_counts(selected, 5, draws=2_000, seed=0)
    assert untold.frequency[1] > s.mean()  # what the rule is for


def test_new_answers_scatter_more_than_frequencies():
    selected, _ = dealt(3, 300)
    asked = {"selection": "at least 3 of 5", "draws": 2_000}
    width = {
        n: np.ptp(remeasure_counts(selected, 5, answers=n, **asked).frequency) for n in (1, None)
    }
    assert width[1] > 1.2 * width[None]


def test_items_kept_because_a_model_failed_flatter_it_when_tried_again():
    rng = np.random.default_rng(4)
    s = np.where(rng.random(3_000) < 0.3, 0.0, rng.beta(1, 3, 3_000))
    failed = rng.binomial(4, s) == 0
    told = remeasure_counts(np.zeros(failed.sum(), int), 4, "none of 4", draws=2_000)
    assert told.frequency[1] <= s[failed].mean() <= told.frequency[2]
