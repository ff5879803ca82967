"""The simulated study: its truth, by many images."""

import numpy as np
import pytest

from bayesrep import simulate_study
from bayesrep.studies import validation
from bayesrep.studies.scenarios import SCENARIOS


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


def test_no_simulated_study_is_taken_for_percentages():
    """A thousand of all scenarios, those with single answers too."""
    rng = np.random.default_rng(71)
    for seed, scenario in enumerate((sorted(SCENARIOS) * 60)[:1000]):
        images, most = (int(np.exp(rng.uniform(*np.log(ends)))) for ends in ((50, 1e4), (2, 101)))
        ragged = SCENARIOS[scenario].selection is None and seed % 3 == 0 and most > 3
        annotators = (most // 2, most) if ragged else most
        given = {"images": images, "annotators": annotators, "classifiers": 1}
        for data in simulate_study(seed=seed, scenario=scenario, **given).datasets.values():
            assert [*validation.value_violations("", data.selected, data.shown)] == [], scenario
