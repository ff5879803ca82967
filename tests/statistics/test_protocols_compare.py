"""Accuracies on other images: as means of images scatter."""

import numpy as np
import pytest

from bayesrep.protocols import resampled_accuracies


def test_resampled_accuracies_scatter_as_means_of_images_do():
    """Mean and sd of 1,000 draws: 5 sd of their own error, 6e-7 for each of eight checks."""
    rng = np.random.default_rng(4)
    right = rng.random((2, 300)) < np.array([[0.7], [0.2]])
    answered = np.array([np.ones(300, bool), rng.random(300) < 0.5])
    for seen in (np.ones_like(right), answered):
        draws = resampled_accuracies(right, seen, 9)
        assert draws.shape == (1000, 2)
        for number in range(2):
            values = right[number, seen[number]]
            spread = values.std() / np.sqrt(values.size + 1)
            error = 5 / np.sqrt(1000)
            assert draws[:, number].mean() == pytest.approx(values.mean(), abs=error * spread)
            assert draws[:, number].std() == pytest.approx(spread, rel=error * 0.75)
