"""Short fits by NUTS, and a study that is hard to fit."""

import warnings

import numpy as np
import zoo

import bayesrep
from bayesrep import (
    ConvergenceWarning,
    Study,
)

TUTORIALS = (
    "images=2000, annotators=20, classifiers=12, seed=1",
    "images=500, annotators=8, classifiers=3, seed=1",
)
"""The study of tutorials and notebooks, and the tiny one of the zoo, which is quick to fit."""


def short_fit(study, **changes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return bayesrep.fit(study, **{**zoo.SHORT, **changes})


def values_of(posterior, name="adjusted_accuracy"):
    return posterior.posterior[name].values


def hard_study(**changes):
    rng = np.random.default_rng(0)
    parts = {
        role: {
            "selected": rng.binomial(8, 0.8, 50),
            "shown": 8,
            "correct": rng.random((50, 3)) < [0.0, 0.5, 1.1],
        }
        for role in ("reference", "replication")
    }
    for role in parts:
        parts[role] |= changes
    return Study.from_arrays(**parts, classifiers=["never", "half", "always"])
