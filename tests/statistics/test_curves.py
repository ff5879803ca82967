"""Accuracy curves by equation 8 find the truth, and so they do from fewer annotators."""

import numpy as np
import pytest
from curve_studies import small_study

from bayesrep.estimators.em_spline import EMSpline
from bayesrep.estimators.replicates import Replicates
from bayesrep.studies.statistics import SufficientStatistics

pytestmark = pytest.mark.usefixtures("float64")


def test_known_truth_is_recovered():
    """100,000 images, s ~ Beta(5, 1) and Beta(3, 1), g = 0.2 + 0.7 s: A = 0.2 + 0.7 · 5/6.

    The sampling error of 100,000 images is 0.0016 + 0.0016; the tolerance is three times that
    (false alarms below 1 % for one classifier; all see the same images).
    """
    replicates = Replicates.from_study(SufficientStatistics.from_study(small_study(100_000)))
    for options in (EMSpline(1), EMSpline(1, loss="weighted"), EMSpline(1, loss="binomial")):
        adjusted = options(replicates).value[0]
        np.testing.assert_allclose(adjusted, 0.2 + 0.7 * 5 / 6, atol=0.007)


def test_fewer_annotators_estimate_the_same():
    replicates = Replicates.from_study(SufficientStatistics.from_study(small_study(20_000)))
    full, fewer = (EMSpline(1, annotators=n)(replicates).value[0] for n in (None, 6))
    np.testing.assert_allclose(fewer, full, atol=0.01)
