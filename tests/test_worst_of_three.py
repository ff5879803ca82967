"""Bounds from one published share: held against a linear program over all distributions."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, linprog
from scipy.special import betaln
from scipy.stats import beta

from experiments.worst_of_three import bounds, by_beta

GRID = np.linspace(0, 1, 2_001)
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
    total = 1 / correlation - 1
    mean = brentq(lambda m: beta(m * total, (1 - m) * total).moment(3) - 0.317, 0.01, 0.99)
    a, b = mean * total, (1 - mean) * total

    def below(end, power):
        """∫ s^power p(s) ds from 0 to an end."""
        scale = np.exp(-betaln(a, b))  # with the ends of p(s), where it may be infinite, as weights
        if end == 1:
            return quad(lambda s: scale * s**power, 0, 1, weight="alg", wvar=(a - 1, b - 1))[0]
        rest = quad(
            lambda s: scale * s**power * (1 - s) ** (b - 1), 0, end, weight="alg", wvar=(a - 1, 0)
        )
        return rest[0]

    kept = below(1, 3)
    assert kept == pytest.approx(0.317)
    assert found["fourth"] == pytest.approx(1 - below(1, 4) / kept)
    assert found["again"] == pytest.approx(1 - below(1, 6) / kept)
    assert found["most"] == pytest.approx(below(0.5, 3) / kept)
