"""Answers of workers whose leniencies are known."""

import numpy as np
from scipy.special import expit, logit

from bayesrep.numerics.leniency import CrowdAnswers, stretched_logit


def lenient_crowd(seed, *, images, workers, shown, spread, one_crowd=False):
    """Answers about two data sets, and the leniencies that they were given with."""
    random = np.random.default_rng(seed)
    b = random.normal(0, spread, 2 * workers)
    frequency = random.beta(3, 1.2, 2 * images)
    dataset = np.repeat([0, 1], images)
    alpha = stretched_logit(logit(frequency), spread)
    asked = [random.choice(workers, shown, replace=False) for _ in dataset]
    worker = (np.array(asked) + (0 if one_crowd else workers) * dataset[:, None]).ravel()
    image = np.repeat(np.arange(2 * images), shown)
    selected = random.random(len(image)) < expit(alpha[image] + b[worker])
    return CrowdAnswers(image, worker, selected, dataset, 2 * workers), b
