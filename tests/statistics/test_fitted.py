"""Draws on the reference's population, with and without a matrix of all classifiers."""

import numpy as np

from bayesrep.posterior import joint_draws
from bayesrep.posterior.joint_draws import reference_draws


def test_population_draws_of_many_are_those_of_few(monkeypatch):
    """With and without a matrix of classifiers by classifiers: moments over many draws."""
    rng = np.random.default_rng(0)
    adjusted = 0.7 + 0.01 * rng.normal(size=(4, 2500, 3))
    log_mass = 2 * (adjusted - 0.7) @ rng.normal(size=(3, 4)) - 2
    cell, correct = rng.integers(0, 4, 400), rng.random((400, 3)) < 0.7
    arguments = adjusted, adjusted, log_mass, cell, correct
    one = reference_draws(*arguments, seed=1)
    monkeypatch.setattr(joint_draws, "MOST_WHOLE", 1)
    other = reference_draws(*arguments, seed=2)
    for draws in (one, other):
        assert draws.shape == adjusted.shape
    joint = [np.concatenate([adjusted, d], axis=2).reshape(-1, 6) for d in (one, other)]
    np.testing.assert_allclose(other.mean(axis=(0, 1)), one.mean(axis=(0, 1)), atol=5e-4)
    covariances = [np.cov(each.T) for each in joint]
    scale = np.sqrt(np.diag(covariances[0]))
    apart = (covariances[1] - covariances[0]) / np.outer(scale, scale)
    assert np.abs(apart).max() < 0.07  # of chance 0.02
