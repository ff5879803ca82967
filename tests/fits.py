"""Short fits by NUTS, and a study that is hard to fit."""

import warnings

import numpy as np
import zoo

import bayesrep
from bayesrep import ConvergenceWarning, Study
from bayesrep.inference.mode import find_mode, find_mode_from_annotations, mixture_size
from bayesrep.inference.problem import pose, programs
from bayesrep.models.mixtures import mixture_start

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


def hold_better_mode(study):
    """The search for the mode ends at the better of two: of curves first, and of all at once."""
    problem = pose(study, model="joint", options={})
    data = problem.data()
    tools = programs(problem, data)
    start = tools.start(problem.model.start(data, problem.options))
    mode = find_mode_from_annotations(problem, tools, start, data)
    assert mode.decrement <= 1e-6
    held = mixture_size(tools.density, problem.model)
    assert held == sum(np.size(each) for each in mixture_start(problem.options, 2, 1).values())
    alone = find_mode(tools.expand, start, problem.model.annotations(data))
    through = find_mode(tools.expand, alone.position, data, n_fixed=held)
    ends = [find_mode(tools.expand, at.position, data).expansion.value for at in (alone, through)]
    assert abs(float(mode.expansion.value) - min(map(float, ends))) < 1e-3
