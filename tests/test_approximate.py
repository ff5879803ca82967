"""Laplace's approximation, the flow and the measures of both."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jax.flatten_util import ravel_pytree
from scipy import stats

import bayesrep
from bayesrep.inference import approximate, flow, laplace
from bayesrep.inference.arrowhead import Whitening, arrowhead_hessian, whitening
from bayesrep.inference.density import build_density
from bayesrep.inference.mode import climb
from bayesrep.inference.problem import evaluate, pose, programs
from bayesrep.posterior.files import arviz, build_posterior

pytestmark = pytest.mark.usefixtures("float64")

UNITS = 3


def gaussian(data):
    """Normal everywhere: a mean, and units around it that are observed with noise."""
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0).expand([2]).to_event(1))
    with numpyro.plate("classifier", UNITS):
        center = jnp.broadcast_to(mean, (UNITS, 2))
        own = numpyro.sample("own", dist.Normal(center, 0.7).to_event(1))
        numpyro.sample("seen", dist.Normal(own, 0.5).to_event(1), obs=data)


def skewed(data):
    """Counts of events at rates exp(x): the posterior of x has a longer left tail."""
    level = numpyro.sample("level", dist.Normal(0.0, 3.0).expand([1]).to_event(1))
    with numpyro.plate("classifier", UNITS):
        center = jnp.broadcast_to(level, (UNITS, 1))
        own = numpyro.sample("own", dist.Normal(center, 1.0).to_event(1))
        numpyro.factor("counts", jnp.sum(data * own - jnp.exp(own), axis=-1))


def ravel(position):
    return ravel_pytree(position)[0]


def unravel(density, flat):
    shared, units = flat[: density.shared], flat[density.shared :]
    return {"shared": shared, "units": units.reshape(density.units, density.per_unit)}


@pytest.fixture(scope="module")
def target():
    """The toy normal density, its data, its exact mean and its covariance."""
    with jax.enable_x64(new_val=True):
        return normal_target()


def normal_target():
    data = jnp.asarray([[0.3, -1.0], [2.0, 0.5], [1.0, 4.0]])
    density = build_density(gaussian, data)

    def flat(vector):
        return density.potential(unravel(density, vector), data)

    zero = jnp.zeros(density.shared + density.units * density.per_unit)
    covariance = np.linalg.inv(np.asarray(jax.jit(jax.hessian(flat))(zero)))
    mean = -covariance @ np.asarray(jax.jit(jax.grad(flat))(zero))
    return density, data, mean, covariance


def covariance_of(density, normal: Whitening) -> np.ndarray:
    """Covariance of the image of a standard normal, by its linear part."""
    linear = jax.jit(jax.jacobian(lambda flat: ravel(normal(unravel(density, flat)))))(
        ravel(normal.center)
    )
    return np.asarray(linear @ linear.T)


def flattened(position):
    """Draws [chain · draw, N] of positions [chain, draw, ...]."""
    return np.asarray(jax.vmap(jax.vmap(ravel))(position)).reshape(
        -1, sum(leaf[0, 0].size for leaf in position.values())
    )


@pytest.mark.parametrize("refinements", [0, 3])
def test_the_normal_is_exact_for_a_normal_posterior(target, refinements):
    density, data, mean, covariance = target
    start = unravel(density, jnp.asarray(mean))
    normal = laplace.nearest_normal(density, start, data, jax.random.key(0), refinements)
    np.testing.assert_allclose(ravel(normal.center), mean, atol=1e-10)
    np.testing.assert_allclose(covariance_of(density, normal), covariance, atol=1e-10)


def test_densities_of_the_draws_are_right_up_to_the_evidence(target):
    density, data, mean, covariance = target
    start = unravel(density, jnp.asarray(mean))
    normal = laplace.nearest_normal(density, start, data, jax.random.key(0), 1)
    result = laplace.draw_normal(density, normal, data, jax.random.key(1), 2, 300)
    draws = flattened(result.position)
    exact = stats.multivariate_normal(mean, covariance).logpdf(draws)
    np.testing.assert_allclose(result.log_approximation.ravel(), exact, atol=1e-8)
    assert np.ptp(result.log_density - result.log_approximation) < 1e-8
    assert result.pareto_k == 0.0


def test_laplace_at_a_mode_and_its_refinement_to_the_nearest_normal():
    data = jnp.asarray([[0.0], [2.0], [5.0]])
    density = build_density(skewed, data)
    mode = jax.jit(lambda at: climb(density, at, data, tolerance=1e-14))(
        unravel(density, jnp.zeros(4))
    ).position
    plain = laplace.nearest_normal(density, mode, data, jax.random.key(0), 0)
    refined = laplace.nearest_normal(density, mode, data, jax.random.key(0), 30)
    np.testing.assert_allclose(ravel(plain.center), ravel(mode), atol=1e-8)
    flat = jax.jit(jax.hessian(lambda v: density.potential(unravel(density, v), data)))(ravel(mode))
    np.testing.assert_allclose(covariance_of(density, plain), np.linalg.inv(flat), rtol=1e-8)

    # E exp(x) = exp(m + v/2) under a normal makes the fixed point a system of equations.
    prior = np.diag([1 / 9 + UNITS, 1, 1, 1]).astype(float)
    prior[0, 1:] = prior[1:, 0] = -1
    mean, covariance = np.asarray(ravel(mode)), np.eye(4) / 4
    for _ in range(200):
        rates = np.exp(mean[1:] + np.diag(covariance)[1:] / 2)
        covariance = np.linalg.inv(prior + np.diag([0, *rates]))
        gradient = prior @ mean + np.array([0, *(rates - np.asarray(data)[:, 0])])
        mean = mean - covariance @ gradient
    spread = np.sqrt(np.diag(covariance))
    before = np.abs(ravel(plain.center) - mean) / spread
    after = np.abs(ravel(refined.center) - mean) / spread
    assert after.max() < min(0.1, before.max() / 3), before


def test_pareto_shape_is_that_of_arviz():
    random = np.random.default_rng(0)
    for scale in (0.3, 1.0, 3.0):
        ratios = scale * random.standard_normal(2000)
        psislw = getattr(arviz(), "psislw", None)
        if psislw is not None:  # ArviZ 1.x keeps it elsewhere
            assert approximate.pareto_shape(ratios) == pytest.approx(float(psislw(ratios)[1]))


@pytest.mark.parametrize("shape", [-0.3, 0.2, 1.0])
def test_pareto_shape_finds_the_shape_it_was_made_with(shape):
    excess = stats.genpareto(shape).rvs(20_000, random_state=np.random.default_rng(1))
    assert approximate.pareto_shape(np.log(1 + excess)) == pytest.approx(shape, abs=0.15)


def test_pareto_shape_tells_good_from_bad():
    random = np.random.default_rng(2)
    narrow = 0.2 * random.standard_normal(4000)  # k = 1 - 0.2²
    bad = stats.norm.logpdf(narrow) - stats.norm.logpdf(narrow, scale=0.2)
    broad = 1.5 * random.standard_normal(4000)
    good = stats.norm.logpdf(broad) - stats.norm.logpdf(broad, scale=1.5)
    assert approximate.pareto_shape(bad) > 0.7
    assert approximate.pareto_shape(good) < 0.2
    assert approximate.pareto_shape(np.zeros(100)) == 0.0
    assert approximate.pareto_shape(np.zeros(10)) == np.inf
    assert approximate.pareto_shape(np.append(np.zeros(100), np.nan)) == np.inf


def size_of(density):
    return density.shared + density.units * density.per_unit, density.shared


def test_log_density_of_the_flow_is_normalised(target):
    """Importance weights of a nearby normal have mean 1 only if both densities are normalised."""
    params = flow.start(jax.random.key(0), *size_of(target[0]))
    keys = jax.random.split(jax.random.key(1), len(params))
    params = {
        name: value if name == "mask" else value + 0.15 * jax.random.normal(key, value.shape)
        for key, (name, value) in zip(keys, sorted(params.items()), strict=True)
    }
    places = jax.vmap(flow.draw, (None, 0))(params, jax.random.split(jax.random.key(2), 20_000))
    log_q = jax.jit(jax.vmap(flow.log_prob, (None, 0)))(params, places)
    other = stats.multivariate_normal(places.mean(axis=0), 0.5 * np.cov(places.T))
    weights = np.exp(other.logpdf(places) - np.asarray(log_q))
    assert weights.mean() == pytest.approx(1, abs=5 * weights.std() / np.sqrt(weights.size) + 1e-9)
    assert weights.std() < 4


def test_the_flow_recovers_a_normal_posterior(target):
    """Also from a poor start: whitened at the wrong place and stretched."""
    density, data, mean, covariance = target
    at = unravel(density, jnp.asarray(mean) + 0.3)
    hessian = jax.jit(lambda at: arrowhead_hessian(lambda q: density.potential(q, data), at))(at)
    exact = whitening(hessian, at)
    off = exact._replace(to_units=1.3 * exact.to_units)
    seen = []
    args = (density, off, data, jax.random.key(0), 440)
    params, losses = flow.train(*args, seen.append)
    assert seen == [50] * 9
    drawn = flow.drawing(density, 4000)(params, off, data, jax.random.key(1))
    result = approximate.approximation(*drawn, chains=4)
    draws = flattened(result.position)
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.1 * sd.max())
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.08)
    assert losses.shape == (450,)
    assert losses[-50:].mean() < losses[:50].mean()
    assert result.pareto_k < 0.7
    again, _ = flow.train(*args)
    for name, value in params.items():
        np.testing.assert_array_equal(value, again[name])


@pytest.fixture(scope="module")
def small():
    study = bayesrep.simulate_study(images=500, annotators=20, classifiers=3)
    with jax.enable_x64(new_val=True):
        problem = pose(study, model="joint", options={})
        data = problem.data()
        return problem, programs(problem, data), data


def test_both_ways_agree_on_a_study_and_repeat(small):
    problem, tools, data = small
    key = jax.random.key(3)
    normal = laplace.laplace(problem, tools, data, key, 4, 250)
    bent = flow.flow(problem, tools, data, key, 4, 250, steps=400)
    again = laplace.laplace(problem, tools, data, key, 4, 250)
    for name, leaf in normal.position.items():
        np.testing.assert_array_equal(leaf, again.position[name])
    assert normal.log_density.shape == normal.log_approximation.shape == (4, 250)
    ours, theirs = (
        build_posterior(
            {
                "posterior": {
                    "adjusted_accuracy": (
                        ("chain", "draw", "classifier"),
                        evaluate(tools, one.position, data)["adjusted_accuracy"],
                    )
                }
            },
            {"classifier": ("classifier", np.array(problem.statistics.classifiers))},
            {},
        )
        for one in (normal, bent)
    )
    apart = approximate.distance(ours, theirs)
    assert apart["classifier"].to_list() == list(problem.statistics.classifiers)
    assert apart["mean_difference"].abs().max() < 0.3
    assert apart["sd_ratio"].is_between(0.8, 1.25).all()
    same = approximate.distance(ours, ours)
    assert same["mean_difference"].abs().max() == 0
    assert same["wasserstein"].max() == 0
    np.testing.assert_allclose(same["sd_ratio"], 1)


def test_distance_of_different_studies_is_refused():
    def posterior(name):
        draws = np.random.default_rng(0).uniform(size=(2, 5, 1))
        group = {"posterior": {"adjusted_accuracy": (("chain", "draw", "classifier"), draws)}}
        return build_posterior(group, {"classifier": ("classifier", np.array([name]))}, {})

    with pytest.raises(ValueError, match="different classifiers"):
        approximate.distance(posterior("a"), posterior("b"))
