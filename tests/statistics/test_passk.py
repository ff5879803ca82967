"""Pass@k: samplers that agree with closed forms, widths of intervals, and their coverage."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from test_passk import DRAWS, attempts_of, one_mixture, pair

from bayesrep import pass_at_k
from bayesrep.estimators.solve_rates import fit_solve_rates
from bayesrep.estimators.unbiased import item_passes
from bayesrep.numerics.solve_rates import SolveRates, pass_rate, passed_items
from bayesrep.numerics.tempering import tempered_draws
from bayesrep.studies.attempts import Attempts

__all__ = ["pair"]


def test_tempering_finds_a_normal_posterior():
    """A likelihood N(2, 0.5²) of each number; errors of 5 standard errors: chance 1e-5."""
    rng = np.random.default_rng(0)
    draws = tempered_draws(lambda z: -2 * np.square(z - 2).sum(axis=1), 3, 4_000, rng)
    np.testing.assert_allclose(draws.mean(axis=0), 1.6, atol=5 * np.sqrt(0.2 / 1_000))
    np.testing.assert_allclose(draws.var(axis=0), 0.2, rtol=5 * np.sqrt(2 / 1_000))


def test_items_own_rates_are_those_of_their_counts():
    """One beta: given c of n the rate is Beta(a + c, b + n − c); 5 standard errors."""
    rates = SolveRates(*(np.repeat(part, 4_000, axis=0) for part in one_mixture(0.7, 1.4)))
    c, n, items = np.array([0, 3]), np.array([5, 5]), np.array([2, 1])
    draws = passed_items(rates, c, n, items, np.array([1, 6]), np.random.default_rng(0))
    each = [pass_rate(one_mixture(0.7 + i, 6.4 - i), np.array([1, 6]))[0] for i in c]
    exact = items @ np.array(each) / 3
    np.testing.assert_allclose(draws.mean(axis=0), exact, atol=5 * 0.2 / np.sqrt(4_000))


def test_the_posterior_agrees_with_the_unbiased_estimate_where_there_is_one(pair: list[Attempts]):
    found = pass_at_k(pair, (1, 2, 5, 10, 100), draws=DRAWS)
    table = found.table.filter(pl.col("k") < 10)
    half = (table["unbiased_upper"] - table["unbiased_lower"]) / 2
    assert ((table["estimate"] - table["unbiased"]).abs() < half / 2).all()
    width = (table["upper"] - table["lower"]) / 2
    assert (width / half).is_between(0.8, 1.25).all()
    beyond = found.table.filter(pl.col("k") == 100)
    assert beyond["unbiased"].null_count() == 2
    assert (beyond["prior_share"] > 0.1).all()
    assert (table["prior_share"] < 0.2).all()
    rising = found.table.sort("model", "k")["estimate"].to_numpy().reshape(2, -1)
    assert (np.diff(rising, axis=1) > 0).all()


def test_differences_allow_for_shared_items(pair: list[Attempts]):
    found = pass_at_k(pair, (2, 5), draws=DRAWS)
    together = found.differences()
    apart = pass_at_k(
        [pair[0], attempts_of(pair[1].solved, 10, "b", start=300)], (2, 5), draws=DRAWS
    ).differences()
    widths = [(each["upper"] - each["lower"]).to_numpy() for each in (together, apart)]
    assert (widths[0] < 0.85 * widths[1]).all()
    unbiased = [
        (each["unbiased_upper"] - each["unbiased_lower"]).to_numpy() for each in (together, apart)
    ]
    np.testing.assert_allclose(widths, unbiased, rtol=0.2)
    (row,) = together.filter(pl.col("k") == 2).to_dicts()
    a, b = (item_passes(data.solved, data.attempts, 2) for data in pair)
    standard = (a - b).std(ddof=1) / np.sqrt(300)
    assert row["unbiased_upper"] - row["unbiased"] == pytest.approx(
        stats.t(299).ppf(0.975) * standard
    )


def test_these_items_are_known_better_than_their_population(pair: list[Attempts]):
    wide, narrow = (
        pass_at_k(pair[0], (1, 4), draws=DRAWS, target=target).table  # type: ignore[arg-type]
        for target in ("population", "items")
    )
    widths = [(each["upper"] - each["lower"]).to_numpy() for each in (wide, narrow)]
    assert (widths[1] < 0.8 * widths[0]).all()
    own = (narrow["unbiased_upper"] - narrow["unbiased_lower"]).to_numpy()
    np.testing.assert_allclose(widths[1], own, rtol=0.25)


@settings(max_examples=5)
@given(st.integers(0, 100))
def test_all_or_nothing_solved(seed: int):
    nothing = pass_at_k(attempts_of(np.zeros(40, int), 5), (1, 100), draws=DRAWS, seed=seed).table
    everything = pass_at_k(attempts_of(np.full(40, 5), 5), (1, 100), draws=DRAWS, seed=seed).table
    assert nothing["estimate"][0] < 0.03
    assert nothing["lower"][0] < 1e-3
    assert everything["estimate"][0] > 0.97
    assert everything["upper"][1] > 0.999


def test_influences_add_up_to_the_variance_that_items_make(pair: list[Attempts]):
    """Well identified: the prior's share is little; and no more items, less of it."""
    posterior = fit_solve_rates(pair[0].solved, pair[0].attempts, draws=4_000)
    values = pass_rate(posterior.rates, np.array([1, 3]))
    told = np.square(posterior.influences(values)).sum(axis=0)
    np.testing.assert_allclose(told, values.var(axis=0), rtol=0.25)


def test_intervals_hold_the_truth():
    """24 studies, three k: 72 intervals of which the chance that more than 10 miss is 1e-3 even
    if the three of a study miss together."""
    missed = 0
    for seed in range(24):
        rng = np.random.default_rng([7, seed])
        mean, total = rng.uniform(0.1, 0.6), np.exp(rng.uniform(0, 2))
        share = (0, 0.1, 0.4)[seed % 3]
        s = rng.beta(mean * total, (1 - mean) * total, 150) * (rng.random(150) >= share)
        k = np.array([2, 10, 100])
        mixture = one_mixture(mean * total, (1 - mean) * total, share)
        truth = pass_rate(mixture, k)[0]
        table = pass_at_k(attempts_of(rng.binomial(6, s), 6), k, draws=DRAWS, seed=seed).table
        held = (table["lower"].to_numpy() <= truth) & (truth <= table["upper"].to_numpy())
        missed += int((~held).sum())
    assert missed <= 10
