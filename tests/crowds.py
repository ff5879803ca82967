"""Answers of crowds of workers, and what crowds add to a fit's spread."""

import numpy as np
from scipy.special import expit

from bayesrep.posterior.fitted import Fitted


def asked_of(rng, images, annotators, workers, sd, grid=1):
    """Image, worker and answer; the images of a grid are shown to the same workers."""
    s = rng.beta(4, 2, images)
    leniency = sd * rng.standard_normal(workers)
    rows = -(-images // grid)
    asked = rng.random((rows, workers)).argsort(axis=1)[:, :annotators]
    asked = np.repeat(asked, grid, axis=0)[:images]
    chance = expit(np.log(s / (1 - s))[:, None] + leniency[asked])
    selected = rng.random(asked.shape) < chance
    return np.repeat(np.arange(images), annotators), asked.ravel(), selected.ravel()


def widening(study, posterior):
    fitted = Fitted(study, posterior)
    spread = [
        draws.mean(axis=-1).std() for draws in (fitted.draws_over_crowds, fitted.adjusted_draws)
    ]
    return spread[0] / spread[1]
