"""What a stated correlation of the answers takes away from the bias of an adjusted accuracy."""

import pytest

import bayesrep
from bayesrep.checks.dependence import dependence_band


@pytest.fixture(scope="module")
def crowded():
    study = bayesrep.simulate_study(
        seed=3, images=2000, classifiers=6, scenario="crowded-grid", dependence=0.1
    )
    return study, bayesrep.fit(study, method="laplace", progress=False)


def test_the_right_correlation_takes_the_bias_away(crowded):
    """One study, seed fixed: at 0.1 the truth is within 2.5 sd of the mean gap, at 0 beyond 3."""
    study, plain = crowded
    informed = bayesrep.fit(study, method="laplace", progress=False, dependence=0.1)
    truth = (study.truth.reference_accuracy - study.truth.adjusted_accuracy).mean()
    off = []
    for posterior in (plain, informed):
        gap = posterior["posterior"]["bias_corrected_gap"].values.mean(axis=2)
        off.append(abs(gap.mean() - truth) / gap.std())
    assert off[0] > 3
    assert off[1] < 2.5
    # The band says from the plain fit what the other one finds, within half its sd.
    shift = dependence_band(plain, (0.1,))["shift"][0]
    means = [p["posterior"]["bias_corrected_gap"].values.mean() for p in (plain, informed)]
    sd = informed["posterior"]["bias_corrected_gap"].values.mean(axis=2).std()
    assert abs(means[0] + shift - means[1]) < 0.5 * sd
