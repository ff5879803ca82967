"""Intervals of effective robustness hold the truth as often as they say."""

import numpy as np
from scipy.special import ndtr

from bayesrep.protocols import Shift, resampled_accuracies
from bayesrep.protocols.effective_robustness import expect_accuracies, measure_robustness

STUDIES, IMAGES, NAMES = 120, 400, tuple("abcdefgh")
SKILLS = np.linspace(0.4, 2.2, len(NAMES))
OTHERWISE = SKILLS - 0.6 + 0.1 * np.array([1, -1, -1, 1, 0, 1, -1, 5])  # the last is robust
BASELINE = NAMES[:-1]


def some_answers(rng, skills):
    """Images as hard for one classifier as for another, and chance."""
    hard = rng.standard_normal(IMAGES)
    return skills[:, None] > hard + rng.standard_normal((len(skills), IMAGES))


def test_intervals_hold_the_robustness_of_the_populations():
    truth = [ndtr(skills / np.sqrt(2)) for skills in (SKILLS, OTHERWISE)]
    used = np.isin(NAMES, BASELINE)
    robustness = truth[1] - expect_accuracies(*truth, used, "logit")
    held = np.zeros(len(NAMES))
    for seed in range(STUDIES):
        rng = np.random.default_rng(seed)
        right = [some_answers(rng, skills) for skills in (SKILLS, OTHERWISE)]
        draws = [
            resampled_accuracies(each, np.ones_like(each), rng.integers(2**32)) for each in right
        ]
        values = (each.mean(axis=1) for each in right)
        found = measure_robustness([Shift("v2", *values, tuple(draws))], NAMES, baseline=BASELINE)
        rows = found.classifiers.filter(scale="logit")
        held += (rows["lower"].to_numpy() <= robustness) & (robustness <= rows["upper"].to_numpy())
    assert 0.93 < held.mean() / STUDIES < 0.97
    assert (held / STUDIES > 0.88).all()
