"""Classes of images that were selected as often: sound studies, shifts, and the simulator's."""

import numpy as np
import pytest
from class_studies import fit_of, study_of_classes

import bayesrep
from bayesrep.checks.classes import class_shifts, judge_classes


def test_sound_studies_seldom_differ_and_the_shift_is_what_classes_do():
    """60 sound studies: more than 8 below 0.05 have a chance of 0.4 %."""
    p = [class_shifts(study_of_classes(seed, shift=0.0))[0].p for seed in range(60)]
    assert sum(each < 0.05 for each in p) <= 8
    found = [class_shifts(study_of_classes(seed, shift=0.15))[0] for seed in range(20)]
    assert all(each.p < 1e-6 for each in found)
    # The true shift: 15 % of the images are 20 points harder than they would be.
    assert np.mean([each.shift for each in found]) == pytest.approx(0.03, abs=0.003)


def test_label_shift_of_the_simulator_is_told():
    for seed in range(5):
        study = bayesrep.simulate_study(
            seed=seed, images=2000, annotators=10, classifiers=10, scenario="label-shift"
        )
        (found,) = judge_classes(fit_of(study))
        assert found.trust == "with care"
        assert "superclass" in found.sentence
        assert "smaller" in found.sentence
        assert "as groups" in found.sentence
