"""Empirical scales of the classifiers' priors: default ones are widened to the accuracies' spread.

The default sds of classifiers' own terms suit classifiers of one kind; accuracies from 0.1 % to
99.9 % they would shrink to the middle. They cannot be sampled with the shared parameters, whose
data have a weight for the images that all classifiers have in common.
"""

import math
from collections.abc import Collection
from dataclasses import replace

import numpy as np

from bayesrep.inference.problem import Problem
from bayesrep.models.priors import locate
from bayesrep.studies.statistics import Cells


def widen_priors(problem: Problem, named: Collection[str]) -> Problem:
    """Widen the default priors of classifiers' terms to the accuracies' spread, but for `named`."""
    options = problem.options
    level, slope = (
        locate(each).scale for each in (options.classifier_level, options.classifier_slope)
    )
    # Levels differ as the logits of accuracies do. Most images lie about 2 s − 1 = 0.5: an accuracy
    # is about that of the curve there.
    usual = math.hypot(level, 0.5 * slope)
    ratio = between_classifier_sd(problem.statistics.replication) / usual
    # Levels are multiplied by the largest of 1, √2, 2, 2 √2, … that the ratio reaches, so that
    # studies share programs. Slopes by its square root: a classifier that is nearly always right
    # tells little of its slope.
    steps = max(0, math.floor(2 * math.log2(max(ratio, 1e-3))))
    wider = {
        "classifier_level": level * 2 ** (steps / 2),
        "classifier_slope": slope * 2 ** (steps / 4),
    }
    free = {name: value for name, value in wider.items() if steps and name not in named}
    return replace(problem, options=replace(options, **free)) if free else problem


def between_classifier_sd(cells: Cells) -> float:
    """Estimate the sd of classifiers' logit accuracies, less the sampling variance."""
    images, right = cells.images.sum(), cells.correct.sum(axis=0)
    if len(right) < 2:
        return 0.0
    accuracy = (right + 0.5) / (images + 1)
    chance = 1 / (images * accuracy * (1 - accuracy))
    logit = np.log(accuracy) - np.log1p(-accuracy)
    return float(np.sqrt(max(logit.var(ddof=1) - chance.mean(), 0.0)))
