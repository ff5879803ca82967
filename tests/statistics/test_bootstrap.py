"""The bootstrap over images: its draws are multinomial, its interval that of a binomial."""

import numpy as np
import pytest
from test_bootstrap import replicates_of, study_of

from bayesrep import estimate


def test_draws_are_multinomial():
    """Variance of cell totals over 4,000 replicates to 10 % (false alarms about 1e-3 of cells)."""
    study = study_of(images=100)
    counts = replicates_of(study, 4000).reference.images[1:]
    share = counts.mean(axis=0) / 100
    np.testing.assert_allclose(counts.var(axis=0), 100 * share * (1 - share), rtol=0.1)
    p, q = share[-1], share[-2]
    together = np.cov(counts[:, -1], counts[:, -2])[0, 1]
    assert together == pytest.approx(-100 * p * q, rel=0.15)


def test_the_percentile_interval_of_a_proportion():
    """Raw is a mean of 2,000 answers: the width is that of the binomial, to 10 %."""
    study = study_of(images=2000, classifiers=1)
    table = estimate(study, "raw", bootstrap=2000)
    p = table["adjusted_accuracy"][0]
    width = table["upper"][0] - table["lower"][0]
    assert width == pytest.approx(2 * 1.96 * np.sqrt(p * (1 - p) / 2000), rel=0.1)
