"""Posteriors of differences of accuracies against draws of them."""

import numpy as np
import pytest
from test_protocols_intervals import CELLS, TWO_SETS

from bayesrep.protocols import independent_difference, paired_difference


@pytest.mark.parametrize("cells", CELLS)
def test_the_paired_posterior_is_that_of_four_cells(cells):
    """Against 200,000 draws of Dirichlet(1/4 + counts).

    Each of four comparisons per cell raises a false alarm with probability 6e-7 (5 sd), all
    together 3e-5, beside the 0.003 that the quadrature may be off.
    """
    first, second, alike = cells
    rng = np.random.default_rng(0)
    counts = np.array([first, second, alike / 2, alike / 2]) + 0.25
    draws = rng.dirichlet(counts, 200_000)
    difference = draws[:, 0] - draws[:, 1]
    mean, lower, upper, positive = paired_difference(*cells)
    error = 5 / np.sqrt(len(draws))
    assert mean == pytest.approx(difference.mean(), abs=error * difference.std())
    for value, share in (
        (np.mean(difference > 0), positive),
        (np.mean(difference <= lower), 0.025),
    ):
        assert value == pytest.approx(share, abs=0.003 + error * 0.5)
    assert np.mean(difference <= upper) == pytest.approx(0.975, abs=0.003 + error * 0.16)


@pytest.mark.parametrize("cells", TWO_SETS)
def test_the_probability_of_being_better_on_independent_sets(cells):
    """Against 200,000 draws: 5 sd, so a false alarm in 200,000 runs of all cells."""
    right, images, other_right, other_images = cells
    rng = np.random.default_rng(1)
    first = rng.beta(right + 0.5, images - right + 0.5, 200_000)
    second = rng.beta(other_right + 0.5, other_images - other_right + 0.5, 200_000)
    positive = independent_difference(*cells)[2]
    assert np.mean(first > second) == pytest.approx(positive, abs=5 * 0.5 / np.sqrt(200_000))
