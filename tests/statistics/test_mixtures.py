"""Mixtures of beta-binomials find what counts were drawn from."""

import numpy as np
import pytest
from numpy.typing import NDArray

from bayesrep.estimators.mixtures import CellTable, fit_mixtures

Floats = NDArray[np.float64]


def table_of(*datasets: Floats) -> CellTable:
    """Images per count 0..n of the reference and of the replication, the same twice if one."""
    images = np.stack([np.asarray(data, float) for data in (datasets * 2)[:2]])[:, None]
    n = images.shape[-1] - 1
    return CellTable(np.arange(n + 1), np.full(n + 1, n), images, np.zeros((1, n + 1, 1)))


def test_the_truth_is_recovered():
    """300,000 images of 40: mean and variance of s to 3 standard errors (false alarms 1 %)."""
    rng = np.random.default_rng(1)
    size = 300_000
    s = np.where(rng.random(size) < 0.7, rng.beta(9, 1.2, size), rng.beta(1.5, 1.5, size))
    images = np.bincount(rng.binomial(40, s), minlength=41).astype(float)
    fit = fit_mixtures(table_of(images), components=2)
    a, b, weights = fit.a[0, 0], fit.b[0, 0], fit.weights[0, 0]
    mean = weights @ (a / (a + b))
    second = weights @ (a * (a + 1) / ((a + b) * (a + b + 1)))
    assert mean == pytest.approx(s.mean(), abs=3 * s.std() / np.sqrt(size))
    assert second == pytest.approx((s**2).mean(), abs=3 * (s**2).std() / np.sqrt(size))
    np.testing.assert_allclose(weights, [0.3, 0.7], atol=0.03)
