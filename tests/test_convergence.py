"""R-hat and effective sizes of many quantities at once, against ArviZ's of one at a time."""

import warnings

import numpy as np
import pytest

from bayesrep.numerics.convergence import BLOCK, TAILS, convergence, mean_ess
from bayesrep.posterior.files import arviz

RANDOM = np.random.default_rng(0)


def correlated(chains: int, draws: int, count: int, rho: float) -> np.ndarray:
    values = RANDOM.normal(size=(chains, draws, count))
    for draw in range(1, draws):
        values[:, draw] = rho * values[:, draw - 1] + np.sqrt(1 - rho**2) * values[:, draw]
    return values


def repeated(values: np.ndarray) -> np.ndarray:
    """As a Metropolis chain leaves them: half of the draws are the ones before."""
    stays = RANDOM.random(values.shape) < 0.5
    stays[:, 0] = False
    place = np.where(stays, 0, np.arange(values.shape[1])[None, :, None])
    return np.take_along_axis(values, np.maximum.accumulate(place, axis=1), axis=1)


CASES = {
    "independent": RANDOM.normal(size=(4, 500, 3)),
    "more than a block": RANDOM.normal(size=(2, 40, BLOCK + 3)),
    "slow": correlated(4, 200, 4, 0.95),
    "alternating": correlated(4, 200, 4, -0.9),
    "hardly moving": correlated(2, 101, 3, 0.9999),
    "apart": RANDOM.normal(size=(4, 100, 3)) + np.arange(4)[:, None, None],
    "of different widths": RANDOM.normal(size=(4, 100, 3)) * [[[1.0]], [[1.0]], [[5.0]], [[1.0]]],
    "odd number of draws": RANDOM.normal(size=(3, 51, 3)),
    "one chain": correlated(1, 400, 3, 0.5),
    "short": RANDOM.normal(size=(4, 10, 3)),
    "shortest": RANDOM.normal(size=(2, 4, 3)),
    "fives": RANDOM.normal(size=(2, 5, 3)),
    "heavy tails": RANDOM.standard_cauchy(size=(4, 300, 3)),
    "ties": repeated(correlated(4, 300, 3, 0.3)),
    "integers": RANDOM.integers(0, 4, size=(4, 300, 3)).astype(float),
    "two values": RANDOM.integers(0, 2, size=(4, 300, 3)).astype(float),
    "rare": (RANDOM.random((4, 300, 3)) < 0.01).astype(float),
    "tiny": 1e-9 * RANDOM.normal(size=(4, 100, 3)) + 0.7,
}


@pytest.mark.parametrize("case", CASES)
def test_they_are_arviz(case: str):
    draws, module = CASES[case], arviz()
    whole = module.convert_to_dataset({"x": draws})
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        several = [whole["x"].shape[0] > 1 and module.rhat(whole)["x"].values]
        # By default the tails of 1.x are those of its intervals, 5.5 % each.
        for how, options in (("bulk", {}), ("tail", {"prob": TAILS}), ("mean", {})):
            several.append(module.ess(whole, method=how, **options)["x"].values)
    if several[0] is False:
        several[0] = np.full(draws.shape[2], np.nan)
    ours = (*convergence(draws), mean_ess(draws))
    for mine, theirs in zip(ours, several, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_constants_and_what_is_no_number():
    draws = np.stack([np.full((2, 50), 3.0), RANDOM.normal(size=(2, 50))], axis=2)
    found = convergence(draws)
    assert np.isnan(found.rhat[0])
    assert found.ess_bulk[0] == found.ess_tail[0] == mean_ess(draws)[0] == 100
    draws[1, 7, 1] = np.nan
    assert all(np.isnan(part[1]) for part in convergence(draws))
    assert all(np.isnan(part).all() for part in convergence(draws[:, :3]))
    assert convergence(draws[:, :, :0]).rhat.shape == (0,)
