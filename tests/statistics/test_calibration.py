"""What the calibration experiments say of draws: uniform ranks, and truths of odd worlds."""

import numpy as np

from experiments import odd_worlds, sbc


def test_uniform_ranks_pass_and_others_do_not() -> None:
    """False alarm of the first two assertions 1 % each; the seed is fixed."""
    rng = np.random.default_rng(3)
    studies, limit = 300, sbc.ecdf_limit(300, 0.99)
    good = sbc.uniformity(rng.integers(0, sbc.RANKS + 1, studies))
    assert good["chi2_p"] > 0.01
    assert good["ecdf_distance"] < limit
    for wrong in (rng.binomial(sbc.RANKS, rng.beta(2, 2, studies)), rng.integers(0, 90, studies)):
        bad = sbc.uniformity(wrong)
        assert bad["chi2_p"] < 0.01
        assert bad["ecdf_distance"] > limit


def test_truths_of_odd_worlds_are_those_of_another_integral() -> None:
    """Of 200,000 and 400,000 draws: 0.004 is four standard errors or more; the seed is fixed."""
    _, truth, (density, curve, _) = odd_worlds.simulated(7, 400, 3)
    s = odd_worlds.DENSITIES[density](np.random.default_rng(0), 400_000)
    able = np.linspace(-1, 1, 3)
    again = [np.clip(odd_worlds.CURVES[curve](s, a), 0.005, 0.995).mean() for a in able]
    np.testing.assert_allclose(truth, again, atol=0.004)
