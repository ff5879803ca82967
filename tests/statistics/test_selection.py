"""Images that counts kept: the shares and accuracies that simulated ones have."""

import numpy as np

from bayesrep import simulate_study
from bayesrep.studies.scenarios import chance_to_be_kept


def test_chance_to_be_kept_is_the_share_of_draws_that_are():
    rng = np.random.default_rng(0)
    s = np.array([0.3, 0.7, 0.95])
    kept = rng.binomial(10, s, size=(40_000, 3)) >= 7
    # Three standard errors of 40,000 draws: a false alarm in 1 of 120 seeds; this one is fixed.
    assert np.abs(kept.mean(axis=0) - chance_to_be_kept("at least 70 %", 10, s)).max() < 0.0075


def test_a_simulated_study_keeps_what_its_rule_keeps():
    made = simulate_study(seed=1, images=4_000, classifiers=3, scenario="kept")
    truth = made.truth
    for role, accuracies in (
        ("reference", truth.reference_accuracy),
        ("replication", truth.replication_accuracy),
    ):
        data = made.datasets[role]
        # Shared difficulty widens the error of a mean of 4,000 a little: 0.03 is 3.5 of them.
        assert np.abs(data.correct.mean(axis=0) - accuracies).max() < 0.03
