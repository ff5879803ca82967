"""Studies of two classes of images, and what is looked at of their fits."""

from types import SimpleNamespace

import numpy as np

import bayesrep


def fit_of(study, sd=0.01, grouping=None):
    """What `judge_classes` looks at: adjusted accuracies whose mean has that sd."""
    adjusted = 0.7 + sd * np.random.default_rng(0).standard_normal((1, 4000, 1))
    return SimpleNamespace(
        study=study, adjusted_draws=adjusted, record=SimpleNamespace(grouping=grouping), group={}
    )


def study_of_classes(seed, *, shift, labels=False, images=2000):
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
