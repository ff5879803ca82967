"""What a stated correlation of the answers takes away from the bias of an adjusted accuracy."""

import pytest

import bayesrep


@pytest.fixture(scope="module")
def crowded():
    study = bayesrep.simulate_study(
        seed=3, images=2000, classifiers=6, scenario="crowded-grid", dependence=0.1
    )
    return study, bayesrep.fit(study, method="laplace", progress=False)


def test_a_learnt_correlation_takes_bias_away(crowded):
    """One study, seed fixed: independent answers miss the mean gap by 3 sd, others by under 2.5."""
    study, learnt = crowded
    truth = (study.truth.reference_accuracy - study.truth.adjusted_accuracy).mean()
    off = {"learnt": learnt}
    for rho in (0.0, 0.1):
        off[rho] = bayesrep.fit(study, method="laplace", progress=False, dependence=rho)
    for name, posterior in off.items():
        gap = posterior["posterior"]["bias_corrected_gap"].values.mean(axis=2)
        off[name] = abs(gap.mean() - truth) / gap.std()
    assert off[0.0] > 3
    assert off[0.1] < 2.5
    assert off["learnt"] < 2.5
