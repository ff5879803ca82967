"""How far classifiers may lie from the population, where nobody says: as far as they differ.

`classifier_level` and `classifier_slope` are standard deviations of a classifier's own terms around
the population's. As they are by default they suit classifiers of one kind. Where accuracies run
from 0.1 % to 99.9 % they pull the extreme ones to the middle by more than these have answers to
resist. The spread cannot be sampled with what classifiers share, whose data count with a weight for
the images they have in common; it is taken from the accuracies beforehand. Classifiers that the
prior may well have made leave it as it is. Others widen it in steps of √2, so that studies share
programs.
"""

import math
from collections.abc import Collection
from dataclasses import replace

import numpy as np

from bayesrep.inference.problem import Problem
from bayesrep.models.priors import locate
from bayesrep.studies.statistics import Cells


def widen_priors(problem: Problem, named: Collection[str]) -> Problem:
    """The problem with priors of classifiers' terms that are no narrower than they differ.

    Levels differ as the logits of accuracies do, by r times what their prior has. Where r is √2 or
    more levels are given the last of √2, 2, 2 √2, … that r reaches, and slopes the root of that: a
    classifier that is nearly always right says little of its slope.

    Parameters
    ----------
    problem
        With options as they are by default, but for those named.
    named
        Options that stay.
    """
    options = problem.options
    level, slope = (
        locate(each).scale for each in (options.classifier_level, options.classifier_slope)
    )
    # Most images lie about 2 s − 1 = 0.5: an accuracy is about that of the curve there.
    usual = math.hypot(level, 0.5 * slope)
    ratio = between_classifier_sd(problem.statistics.replication) / usual
    steps = max(0, math.floor(2 * math.log2(max(ratio, 1e-3))))
    wider = {
        "classifier_level": level * 2 ** (steps / 2),
        "classifier_slope": slope * 2 ** (steps / 4),
    }
    free = {name: value for name, value in wider.items() if steps and name not in named}
    return replace(problem, options=replace(options, **free)) if free else problem


def between_classifier_sd(cells: Cells) -> float:
    """Standard deviation of classifiers' logit accuracies, less what chance adds."""
    images, right = cells.images.sum(), cells.correct.sum(axis=0)
    if len(right) < 2:
        return 0.0
    accuracy = (right + 0.5) / (images + 1)
    chance = 1 / (images * accuracy * (1 - accuracy))
    logit = np.log(accuracy) - np.log1p(-accuracy)
    return float(np.sqrt(max(logit.var(ddof=1) - chance.mean(), 0.0)))
