"""R-hat and effective sizes of many quantities at once, against ArviZ's of one at a time."""

import warnings

import numpy as np
import pytest
from scipy import stats

from bayesrep.numerics.convergence import (
    QUANTITIES_PER_BLOCK,
    TAIL_QUANTILES,
    convergence,
    mean_ess,
)
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
    "more than a block": RANDOM.normal(size=(2, 40, QUANTITIES_PER_BLOCK + 3)),
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
        for how, options in (("bulk", {}), ("tail", {"prob": TAIL_QUANTILES}), ("mean", {})):
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


def nested(draws: np.ndarray, groups: list[np.ndarray]) -> float:
    """Nested R-hat of one quantity's scores, by the definition, chain by chain."""
    means, spreads = [], []
    for group in groups:
        chains = draws[group]
        means.append(chains.mean())
        spreads.append(
            np.var([c.mean() for c in chains], ddof=1) + np.mean([c.var(ddof=1) for c in chains])
        )
    return float(np.sqrt(1 + np.var(means, ddof=1) / np.mean(spreads)))


def test_many_chains_are_compared_by_their_groups():
    draws = correlated(36, 12, 3, 0.5)
    groups = np.array_split(np.arange(36), 8)
    ranks = stats.rankdata(draws.reshape(-1, 3), axis=0).reshape(draws.shape)
    folded = np.abs(draws - np.median(draws, axis=(0, 1)))
    distances = stats.rankdata(folded.reshape(-1, 3), axis=0).reshape(draws.shape)
    size = 36 * 12
    expected = [
        max(
            nested(stats.norm.ppf((r[..., q] - 3 / 8) / (size + 1 / 4)), groups)
            for r in (ranks, distances)
        )
        for q in range(3)
    ]
    np.testing.assert_allclose(convergence(draws, 8).rhat, expected, rtol=1e-12)


def test_sizes_of_many_chains_are_true():
    """ρ = 0.6 leaves (1 − ρ) / (1 + ρ) of long chains' draws; of so few a known share more.

    By the binomial, 4 standard errors: one false alarm in 10,000.
    """
    chains, length, rho = 2000, 12, 0.6
    draws = correlated(chains, length, 40, rho)
    lags = np.arange(1, length)
    tau = 1 + 2 * np.sum((1 - lags / length) * rho**lags)
    found = convergence(draws, 8)
    expected = chains * length / tau
    assert abs(found.ess_bulk.mean() / expected - 1) < 4 * np.sqrt(2 / chains / 40)
    assert (found.ess_tail < chains * length).all()


def test_groups_that_remember_where_they_began_are_seen():
    """B is χ²(7) / 7 of 1 / 300, or 0.1 more: a false alarm in 10,000."""
    fresh = RANDOM.normal(size=(200, 12, 2))
    begun = np.repeat(np.linspace(-0.5, 0.5, 8), 25)[:, None, None]
    assert convergence(fresh, 8).rhat.max() < 1.01
    assert convergence(fresh + begun, 8).rhat.min() > 1.02
    # One draw a chain is enough for them; without groups it is for nobody.
    assert convergence(fresh[:, :1], 8).rhat.max() < 1.15
    assert np.isnan(convergence(fresh[:, :1]).rhat).all()
