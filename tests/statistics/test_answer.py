"""The interval of the measured gap over repeated samples."""

import numpy as np

from bayesrep.numerics.estimands import measured_gap


def test_the_measured_gaps_interval_is_that_of_repeated_samples():
    random = np.random.default_rng(0)

    def sample(level):
        hard = random.random((400, 1)) < 0.3  # images that all classifiers miss together
        return (random.random((400, 5)) < level) & ~hard

    truth = (0.9 - 0.8) * 0.7
    found = np.array([measured_gap(sample(0.9), sample(0.8)) for _ in range(400)])
    inside = np.mean((found[:, 1] < truth) & (truth < found[:, 2]))
    assert 0.92 < inside < 0.98  # s.e. 0.011
