"""Estimators where the truth is known, and laws that hold up to noise."""

import numpy as np
from test_estimators import (
    arrays,
    evaluate,
    every_estimator,
    make_study,
    naive,
    ragged,
    reduced,
    rows,
)

from bayesrep import estimate


@every_estimator
def test_no_estimate_is_further_from_a_known_truth_than_the_raw_accuracy(name: str):
    reference, replication = ragged(0, 5, images=4000), ragged(1, 3, images=4000)
    truth = np.linspace(0.6, 0.95, 3).mean() * 5 / 7  # skill · E[s²] under Beta(5, 1)
    adjusted = evaluate(name, reduced(reference, replication)).mean()
    raw = replication["correct"].mean()
    assert abs(adjusted - truth) <= abs(raw - truth) * (1 if name == "raw" else 0.7)


def test_naive_closes_part_of_the_gap():
    study = make_study(arrays(0, 5, images=5000), arrays(1, 2, images=5000))
    raw_gap, naive_gap = estimate(study, ("raw", "naive")).partition_by("method")
    assert (naive_gap["bias_corrected_gap"] < 0.6 * raw_gap["bias_corrected_gap"]).all()
    assert (naive_gap["bias_corrected_gap"] > 0).all()


@every_estimator
def test_equal_distributions_need_nearly_no_adjustment(name: str):
    """A smooth curve through a mixture leaves residuals."""
    replication = ragged(0, 3, images=4000)
    reference = {**rows(replication, np.tile(np.arange(4000), 3))}
    reference["correct"] = ~reference["correct"]  # what the reference gets right is no business
    adjusted = evaluate(name, reduced(reference, replication))
    np.testing.assert_allclose(adjusted, replication["correct"].mean(axis=0), atol=0.01)


def test_fewer_annotators_correct_less():
    statistics = reduced(arrays(0, 5, images=5000), arrays(1, 2, images=5000))
    curve = [naive(statistics, annotators=number).mean() for number in range(1, 6)]
    assert curve == sorted(curve)
