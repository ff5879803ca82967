"""The simulated study: its truth, by many images."""

import numpy as np
import pytest

from bayesrep import simulate_study


@pytest.mark.parametrize("process", ["outside", "inside"])
def test_truth_is_the_population_value(process):
    """A study of 400,000 images has the stated values; false alarm rate about 1e-6 a value."""
    study = simulate_study(seed=3, images=400_000, classifiers=3, process=process)
    truth = study.truth
    error = np.sqrt(0.25 / 400_000) * 5
    for data, accuracy in (
        (study.reference, truth.reference_accuracy),
        (study.replication, truth.replication_accuracy),
    ):
        assert np.abs(data.correct.mean(axis=0) - accuracy).max() < error
    s = (study.reference.selected / 36).mean()
    assert abs(s - truth.mean_selection_frequency["reference"]) < error
