"""Figure 3 beside candidates that are drawn and matched."""

import numpy as np
import pytest
from scipy.stats import beta, betabinom

from experiments.papers import figure3


@pytest.mark.parametrize("annotators", [1, 5, 40])
def test_figure3_is_what_matching_on_counts_accepts(annotators):
    """Candidates accepted in proportion to p₁(k)/p_flickr(k), against the mixture of equation 1."""
    rng = np.random.default_rng(annotators)
    a, b = 2.5, 1.5
    s = rng.beta(a, b, size=400_000)
    k = rng.binomial(annotators, s)
    counts = np.arange(annotators + 1)
    ratio = betabinom.pmf(counts, annotators, a + 1, b) / betabinom.pmf(counts, annotators, a, b)
    accepted = s[rng.uniform(size=s.size) < (ratio / ratio.max())[k]]
    edges = np.linspace(0, 1, 21)
    share = np.histogram(accepted, edges)[0] / accepted.size
    fine = np.linspace(0, 1, 20_001)
    density = figure3.replication_density(fine, annotators, alpha=a, beta=b)
    expected = [
        np.trapezoid(density[low : low + 1001], fine[low : low + 1001])
        for low in range(0, 20_000, 1000)
    ]
    error = np.sqrt(share * (1 - share) / accepted.size)
    assert np.abs(share - expected).max() < 4.5 * error.max()
    assert (
        np.abs(share - np.diff(beta.cdf(edges, a, b))).max() > 10 * error.max() or annotators == 1
    )
