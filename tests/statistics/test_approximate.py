"""Draws of normal approximations: shares, means and spreads, as far as so many draws can say."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, polygamma
from toys import (
    COUNTS,
    Normal,
    around_mass,
    log_own,
    skewed,
    some,
    whitened,
)

from bayesrep.inference.density import build_density
from bayesrep.inference.nested_laplace import (
    adaptive_importance_sampling,
    draw_weighted,
    resample,
    smooth_weights,
)

pytestmark = pytest.mark.usefixtures("float64")


@pytest.fixture(scope="module")
def normal():
    with jax.enable_x64(new_val=True):
        return Normal()


def hold(found, mean, spread):
    """Weighted means and spreads are the exact ones, as far as so many draws can say."""
    draws, _, psis = found
    assert psis.is_reliable
    leaves = draws.position.values()
    values = np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)
    weight = np.exp(psis.log_weight)
    error = 4.5 / np.sqrt(psis.ess)
    np.testing.assert_allclose((weight @ values - mean) / spread, 0, atol=error)
    squares = weight @ np.square(values - mean) / spread**2
    np.testing.assert_allclose(squares, 1, atol=2 * error)


def test_nested_draws_of_a_normal_posterior(normal, unannotated):
    mode = whitened(normal.density, normal.data, normal.at(normal.mean))
    sample = around_mass(normal.density, normal.data, mode)
    found = draw_weighted(normal.density, sample, np.random.default_rng(4), 2000)
    hold(found, normal.mean, np.sqrt(np.diag(normal.covariance)))


@pytest.mark.parametrize("shape", [-0.3, 0.2, 1.0])
def test_pareto_shape_finds_the_shape_it_was_made_with(shape):
    excess = stats.genpareto(shape).rvs(20_000, random_state=np.random.default_rng(1))
    assert smooth_weights(np.log(1 + excess)).pareto_k == pytest.approx(shape, abs=0.15)


def test_certificates_tell_good_from_bad():
    random = np.random.default_rng(2)
    narrow = 0.2 * random.standard_normal(4000)  # k = 1 - 0.2²
    bad = smooth_weights(stats.norm.logpdf(narrow) - stats.norm.logpdf(narrow, scale=0.2))
    assert bad.pareto_k > 0.7
    assert not bad.is_reliable
    broad = 1.5 * random.standard_normal(4000)
    good = smooth_weights(stats.norm.logpdf(broad) - stats.norm.logpdf(broad, scale=1.5))
    assert good.pareto_k < 0.2
    assert good.is_reliable
    assert np.exp(good.log_weight).sum() == pytest.approx(1)
    # Of a normal and one 1.5 times as wide, ∫ p²/q = 1.5² / √(2 · 1.5² − 1).
    assert good.ess == pytest.approx(4000 * np.sqrt(2 * 1.5**2 - 1) / 1.5**2, rel=0.05)


def test_a_shape_is_hopeless_only_by_more_than_its_error():
    """Shapes of 200 sets of 1,000 weights; their scatter is the error, within a sixth (3 s.e.)."""
    for shape, least, most in ((0.5, 0, 2), (0.75, 0, 40), (1.5, 190, 200)):
        random = np.random.default_rng(3)
        sets = np.log(1 + stats.genpareto(shape).rvs((200, 1000), random_state=random))
        found = [smooth_weights(log_weight) for log_weight in sets]
        assert least <= sum(each.is_hopeless for each in found) <= most
        # The prior of ten observations makes the shape surer than its likelihood.
        error = np.mean([1 + each.pareto_k for each in found]) / np.sqrt(95) / (1 + 10 / 95)
        assert np.std([each.pareto_k for each in found]) == pytest.approx(error, rel=1 / 6)


def test_resampling_is_unbiased_and_stratified():
    random = np.random.default_rng(3)
    weight = random.dirichlet(np.full(12, 0.5))
    size, times = 50, 4000
    counts = np.array(
        [np.bincount(resample(random, np.log(weight), size), minlength=12) for _ in range(times)]
    )
    assert (counts.sum(axis=1) == size).all()
    # A draw fills its strata but for the two at its ends, each a coin's toss at most.
    error = np.sqrt(0.5 / times)
    np.testing.assert_allclose(counts.mean(axis=0), size * weight, rtol=0, atol=4.5 * error)
    assert np.abs(counts - size * weight).max() < 2
    order = [resample(random, np.log(weight), size)[0] for _ in range(200)]
    assert len(set(order)) > 3


def test_nested_draws_of_a_skewed_posterior_have_its_means(unannotated):
    """Exact moments by quadrature, of the level and of each unit given it."""
    level, own = np.linspace(-9, 7, 801), np.linspace(-12, 6, 1201)
    cases = [
        np.exp(log_own(level[:, None], counts, own[None]) - counts * np.log(counts + 1))
        for counts in COUNTS
    ]
    each = [case.sum(axis=1) for case in cases]
    density = stats.norm.pdf(level, 0, 3) * np.prod(each, axis=0)
    density /= density.sum()
    moments = [[density @ level**k for k in (1, 2)]]
    for case, total in zip(cases, each, strict=True):
        moments.append([density @ (case @ own**k / total) for k in (1, 2)])
    mean, square = np.array(moments).T

    target = build_density(skewed, jnp.asarray(COUNTS), select=some)
    near = {"shared": jnp.asarray(mean[:1]), "units": jnp.asarray(mean[1:, None])}
    mode = whitened(target, jnp.asarray(COUNTS), near)
    sample = around_mass(target, jnp.asarray(COUNTS), mode)
    found = draw_weighted(target, sample, np.random.default_rng(4), 8000)
    hold(found, mean, np.sqrt(square - mean**2))


def test_points_of_learnt_proposals_are_worth_draws_of_a_skewed_density():
    """Two coordinates, one of them log gamma; moments within 4.5 standard errors."""
    random = np.random.default_rng(6)

    def evaluate(points):
        skewed = points[:, 0]
        return 2 * skewed - np.exp(skewed) + stats.norm.logpdf(points[:, 1], skewed, 0.5)

    shared, log_density, psis = adaptive_importance_sampling(evaluate, 2, random, 4000.0)
    assert psis.is_reliable
    weight = np.exp(psis.log_weight + evaluate(shared) - log_density)
    weight /= weight.sum()
    mean = digamma(2.0), digamma(2.0)
    variance = polygamma(1, 2), polygamma(1, 2) + 0.25
    error = 4.5 / np.sqrt(psis.ess)
    standard = (weight @ shared - mean) / np.sqrt(variance)
    np.testing.assert_allclose(standard, 0, atol=error)
    squares = weight @ np.square(shared - mean) / variance
    np.testing.assert_allclose(squares, 1, atol=3 * error)
