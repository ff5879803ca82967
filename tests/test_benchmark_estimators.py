"""The textbook in the benchmark is the same estimator as ours."""

import numpy as np
import pytest
import zoo

from bayesrep.estimators.em_spline import EMSpline, fit_curves_given
from bayesrep.estimators.mixtures import complete_cells, fit_mixtures
from bayesrep.estimators.replicates import Replicates
from bayesrep.numerics.splines import truncated_power_basis
from bayesrep.studies.statistics import SufficientStatistics

pytest.importorskip("cvxpy", reason="cvxpy is in the extra 'bench'")

from benchmarks import _textbook


def test_the_textbook_agrees():
    study = zoo.study("tiny")
    annotators = 8
    table = complete_cells(Replicates.from_study(SufficientStatistics.from_study(study)))
    fit = fit_mixtures(table, components=2)
    theirs = []
    for role, data in enumerate(study.datasets.values()):
        mixture = _textbook.fit_mixture(data.selected, annotators, components=2, rounds=15, seed=0)
        assert mixture.log_likelihood <= fit.log_likelihood[role, 0] + 1e-6
        assert mixture.log_likelihood > fit.log_likelihood[role, 0] - 5
        a, b, weights = fit.a[role, 0], fit.b[role, 0], fit.weights[role, 0]
        theirs.append(_textbook.Mixture(a, b, weights, float(fit.log_likelihood[role, 0])))
    data = study.replication
    correct = data.correct.astype(float)
    curves, adjusted = _textbook.curves_and_accuracies(*theirs, data.selected, annotators, correct)
    ours, _ = fit_curves_given(EMSpline(2, quadrature="published"), fit, table)
    np.testing.assert_allclose(ours[0], adjusted, atol=2e-3)
    np.testing.assert_array_equal(
        _textbook.basis(np.array([0.3, 0.95])), truncated_power_basis(np.array([0.3, 0.95]))
    )
    values = _textbook.basis(_textbook.GRID) @ curves.T
    assert ((values > -1e-5) & (values < 1 + 1e-5)).all()
