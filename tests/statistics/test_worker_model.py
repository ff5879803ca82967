"""The worker model finds how lenient workers are, and its intervals allow for it."""

import numpy as np
import pytest
from leniencies import lenient_crowd

import bayesrep
from bayesrep.numerics.expectation_propagation import find_leniencies
from bayesrep.posterior.fitted import Fitted


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0])
def test_spread_and_leniencies_are_found(spread):
    """Squares of 200 standardised errors, each seed fixed; 4 standard errors: 1 in 10,000."""
    answers, b = lenient_crowd(1, images=1500, workers=100, shown=10, spread=spread)
    found = find_leniencies(answers)
    assert found.spread == pytest.approx(spread, abs=0.1)
    # Within a crowd: what both crowds' means are cannot be told.
    for start in (0, 100):
        among = slice(start, start + 100)
        centred = np.eye(100) - 1 / 100
        error = centred @ (found.mean - b)[among]
        covariance = centred @ found.covariance[among, among] @ centred
        if spread:
            square = np.mean(np.square(error)) / np.mean(np.diag(covariance))
            assert square == pytest.approx(1, abs=4 * np.sqrt(2 / 100))
        else:
            assert np.abs(found.mean).max() < 0.2


@pytest.fixture(scope="module")
def two_panels():
    return bayesrep.simulate_study(seed=4, images=80, classifiers=3, scenario="two-panels")


@pytest.fixture(scope="module")
def fitted(two_panels):
    posterior = bayesrep.fit(
        two_panels, model="workers", method="laplace", draws=200, progress=False
    )
    return Fitted(two_panels, posterior)


def test_intervals_know_what_is_not_known_of_crowds(two_panels, fitted):
    alone = fitted.adjusted_draws.std(axis=(0, 1))
    whole = fitted.draws_over_crowds.std(axis=(0, 1))
    assert (whole > 1.2 * alone).all()
    truth = two_panels.truth.adjusted_accuracy
    assert (np.abs(fitted.adjusted_draws.mean(axis=(0, 1)) - truth) < 4 * whole).all()


def test_one_crowd_moves_both_data_sets_and_cancels(fitted, two_panels):
    """A covariance of leniencies that all move together does next to nothing then."""
    scores = fitted.need("posterior", "leniency_score")["leniency_score"].values
    moves = np.cov(scores.sum(axis=2).ravel(), fitted.adjusted_draws.mean(axis=2).ravel())[0, 1]
    apart = [
        np.cov(part.sum(axis=2).ravel(), fitted.adjusted_draws.mean(axis=2).ravel())[0, 1]
        for part in np.split(scores, 2, axis=2)
    ]
    assert np.sign(apart[0]) != np.sign(apart[1])
    assert abs(moves) < 0.35 * np.abs(apart).min()
