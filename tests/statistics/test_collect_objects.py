"""Probabilities of main labels: by draws, and calibrated."""

import numpy as np

from bayesrep.collect.objects import most_probable


def test_the_largest_share_is_that_of_draws():
    """Monte Carlo, false alarm below 1e-6."""
    votes = [np.array([5, 3, 1])] * 40 + [np.array([2, 2, 5])] * 30
    found = most_probable(votes)[0]
    rng = np.random.default_rng(0)
    # The concentration, by the same likelihood on a grid.
    from scipy.special import gammaln

    grid = np.exp(np.linspace(-4, 4, 4001))
    loss = sum(
        gammaln(3 * grid) - gammaln(3 * grid + 9)
        + sum(gammaln(grid + k) - gammaln(grid) for k in each)
        for each in votes
    )  # fmt: skip
    best = grid[np.argmax(loss)]
    draws = rng.dirichlet(np.array([5, 3, 1]) + best, 200_000).argmax(axis=1)
    shares = np.bincount(draws, minlength=3) / len(draws)
    assert np.abs(shares - found).max() < 5 * np.sqrt(0.25 / len(draws)) + 1e-3


def test_probabilities_are_calibrated():
    """Main labels of 3,000 simulated images: said with p they are right in a share p of cases.

    Ten bins of at least 300, within 4.5 standard errors: false alarm below 1e-4.
    """
    rng = np.random.default_rng(1)
    shares = rng.dirichlet([0.5, 0.5, 0.5], 3_000)
    votes = np.array([rng.multinomial(9, each) for each in shares])
    found = np.array(most_probable(list(votes)))
    right = shares == shares.max(axis=1, keepdims=True)
    edges = np.quantile(found, np.linspace(0, 1, 11))
    for low, high in zip(edges, edges[1:], strict=False):
        within = (found >= low) & (found <= high)
        said_to_be, were = found[within].mean(), right[within].mean()
        error = np.sqrt(max(said_to_be * (1 - said_to_be), 1e-3) / within.sum())
        assert abs(were - said_to_be) < 4.5 * error
