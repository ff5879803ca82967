"""Classes of images that were selected as often: sound studies, shifts, and the simulator's."""

from types import SimpleNamespace

import numpy as np
import pytest

import bayesrep
from bayesrep.checks.classes import class_shifts, judge_classes


def _fitted(study, sd=0.01, grouping=None):
    """What `judge_classes` looks at: adjusted accuracies whose mean has that sd."""
    adjusted = 0.7 + sd * np.random.default_rng(0).standard_normal((1, 4000, 1))
    return SimpleNamespace(
        study=study, adjusted=adjusted, recorded=SimpleNamespace(grouping=grouping)
    )


def _study(seed, *, shift, labels=False, images=2000):
    """Two classes, one 20 points easier; the replication has `shift` more of the hard one."""
    rng = np.random.default_rng(seed)
    sides = {}
    for role, extra in (("reference", 0.0), ("replication", shift)):
        s = rng.beta(6, 2, images)
        hard = rng.random(images) < 0.4 + extra
        correct = rng.random((images, 3)) < np.where(hard, 0.6, 0.8)[:, None]
        names = np.where(hard, "hard", "easy")
        known = {"labels": names} if labels else {"groups": {"kind": names}}
        shown = np.full(images, 10)
        sides[role] = {"selected": rng.binomial(10, s), "shown": shown, "correct": correct, **known}
    return bayesrep.Study.from_arrays(**sides, classifiers=["a", "b", "c"])


def test_sound_studies_seldom_differ_and_the_shift_is_what_classes_do():
    """60 sound studies: more than 8 below 0.05 have a chance of 0.4 %."""
    p = [class_shifts(_study(seed, shift=0.0))[0].p for seed in range(60)]
    assert sum(each < 0.05 for each in p) <= 8
    found = [class_shifts(_study(seed, shift=0.15))[0] for seed in range(20)]
    assert all(each.p < 1e-6 for each in found)
    # The true shift: 15 % of the images are 20 points harder than they would be.
    assert np.mean([each.shift for each in found]) == pytest.approx(0.03, abs=0.003)


def test_label_shift_of_the_simulator_is_told():
    for seed in range(5):
        study = bayesrep.simulate_study(
            seed=seed, images=2000, annotators=10, classifiers=10, scenario="label-shift"
        )
        (found,) = judge_classes(_fitted(study))
        assert found.trust == "with care"
        assert "superclass" in found.sentence
        assert "smaller" in found.sentence
        assert "groups=" in found.sentence
