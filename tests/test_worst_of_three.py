"""Bounds from one published share: held against a linear program over all distributions."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import beta

from experiments.worst_of_three import bounds, by_beta

GRID = np.linspace(0, 1, 4_001)
VALUES = {
    "fourth": lambda s: s**3 - s**4,
    "again": lambda s: s**3 - s**6,
    "most": lambda s: np.where(s < 0.5, s**3, 0.0),
}


@pytest.mark.parametrize("q", [0.05, 0.317, 0.617, 0.9])
@pytest.mark.parametrize("name", VALUES)
def test_bounds_are_those_of_every_distribution(name, q):
    fixed = {"A_eq": [GRID**3, np.ones_like(GRID)], "b_eq": [q, 1.0], "method": "highs"}
    value = VALUES[name](GRID)
    least, most = linprog(value, **fixed).fun / q, -linprog(-value, **fixed).fun / q
    assert (least, most) == pytest.approx(bounds(q)[name], abs=2e-3)


@pytest.mark.parametrize("correlation", [0.1, 0.5, 0.9])
def test_a_beta_lies_between_and_is_what_integration_says(correlation):
    found = by_beta(0.317, correlation)
    for name, value in found.items():
        least, most = bounds(0.317)[name]
        assert least <= value <= most + 1e-12
    rng = np.random.default_rng(0)
    total = 1 / correlation - 1
    means = np.linspace(0.01, 0.99, 981)
    moments = [beta(m * total, (1 - m) * total).moment(3) for m in means]
    mean = np.interp(0.317, moments, means)
    s = rng.beta(mean * total, (1 - mean) * total, 2_000_000)
    kept = s[rng.random(len(s)) < s**3]
    # 600,000 kept draws: 0.003 is more than four standard errors.
    assert found["fourth"] == pytest.approx(1 - kept.mean(), abs=3e-3)
    assert found["most"] == pytest.approx((kept < 0.5).mean(), abs=3e-3)
