"""Normal approximations of marginals, what is learnt of them, and their weighted draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import zoo
from jax.flatten_util import ravel_pytree
from refusals import refused
from scipy import special, stats
from toys import (
    COUNTS,
    DATA,
    UNITS,
    Normal,
    around_mass,
    expanding,
    log_own,
    settings,
    skewed,
    some,
    whitened,
)
from toys import counts as of_one_rate

import bayesrep
from bayesrep.errors import ConvergenceWarning, PosteriorError
from bayesrep.inference import distance, methods, nested_laplace, surrogate
from bayesrep.inference.arrowhead import shift_map
from bayesrep.inference.density import build_density
from bayesrep.inference.laplace_marginal import (
    MIN_PIVOT,
    FactorNoise,
    Marginal,
    choose_subsample,
)
from bayesrep.inference.marginal_mode import evaluation_program, find_marginal_mode
from bayesrep.inference.methods import build_target
from bayesrep.inference.mode import around_mode
from bayesrep.inference.nested_laplace import PSISResult, draw_weighted, smooth_weights
from bayesrep.inference.problem import pose, programs
from bayesrep.inference.surrogate import (
    CLIP_NORM,
    features,
    fit_surrogate,
    soft_clip_norm,
    surrogate_potential,
)
from bayesrep.posterior.files import build_posterior

pytestmark = pytest.mark.usefixtures("float64")


def ravel(position):
    return np.asarray(ravel_pytree(position)[0])


@pytest.fixture(scope="module")
def normal():
    with jax.enable_x64(new_val=True):
        return Normal()


# --- what is learnt


def test_ridge_is_the_penalised_regression_of_least_generalised_error():
    random = np.random.default_rng(0)
    inputs = np.concatenate([np.ones((40, 1)), random.standard_normal((40, 12))], axis=1)
    outputs = inputs[:, :4] @ random.standard_normal((4, 3)) + random.standard_normal((40, 3))
    weights = random.uniform(0.2, 3.0, 40)
    scale = np.diag(weights / weights.mean())
    penalised = np.diag([0.0] + [1.0] * 12)
    best = None
    for penalty in surrogate.RIDGE_PENALTIES:
        inverse = np.linalg.inv(inputs.T @ scale @ inputs + penalty * penalised)
        coefficients = inverse @ inputs.T @ scale @ outputs
        free = 40 - np.trace(inputs @ inverse @ inputs.T @ scale)
        left = outputs - inputs @ coefficients
        risk = 40 * np.einsum("pi,pq,qi->", left, scale, left) / free**2
        if best is None or risk < best[0]:
            best = risk, coefficients
    found = surrogate.ridge(inputs, outputs, weights)
    np.testing.assert_allclose(found, best[1], rtol=1e-8, atol=1e-10)


def test_features_are_products_for_the_program():
    random = np.random.default_rng(1)
    points = 3 * random.standard_normal((5, 4))
    clipped = soft_clip_norm(points)
    products = [clipped[:, i] * clipped[:, j] for i in range(4) for j in range(i, 4)]
    wanted = np.column_stack([np.ones(5), clipped, *products])
    assert wanted.shape == (5, 1 + 4 + 10)
    np.testing.assert_allclose(features(points), wanted, rtol=1e-10)
    np.testing.assert_allclose(features(jnp.asarray(points)), wanted, rtol=1e-10)


def test_points_far_out_are_shortened_and_others_are_not():
    near = np.array([[0.5, -1.0, 1.0], [1.0, 2.0, 0.5]])
    np.testing.assert_allclose(soft_clip_norm(near), near, rtol=1e-3)
    far = np.array([[3.0, 0.0, 4.0]]) * 10.0 ** np.arange(1, 5)[:, None]
    lengths = np.linalg.norm(soft_clip_norm(far), axis=1)
    assert (np.diff(lengths) >= 0).all()
    np.testing.assert_allclose(lengths, CLIP_NORM, rtol=1e-2)


# --- the marginal


def newton(gradient, hessian):
    """A step not longer than 3 standard deviations."""
    step = np.linalg.solve(hessian, gradient)
    return -min(1, 3 / np.sqrt(step @ hessian @ step)) * step


@pytest.mark.parametrize("own", [1, 2])
@pytest.mark.parametrize("far", [0.3, 4.0])
def test_a_conditional_normal_is_two_newton_steps_that_lead_down(own, far):
    """The first as if the Hessian were the identity; V by the potential where they end."""
    counts, marginal, setting = settings(own)
    shared = jnp.asarray([far])
    normals, level = jax.jit(marginal.conditional_normals)(setting, shared)
    map_, at = setting.whitening, np.asarray(setting.whitening.to_shared) @ shared + 0.4
    inverse = np.tri(own)  # rates are sums of a unit's own parameters
    for c in range(UNITS):
        to, offset = np.asarray(map_.to_units[c]), map_.center["units"][c] - map_.drag[c] @ shared

        def expanded(standard, c=c, to=to, offset=offset):
            y = np.asarray(offset) + to @ standard
            rates = np.exp(inverse @ y)
            gradient = to.T @ (y - at + inverse.T @ (rates - counts[c]))
            hessian = to.T @ (np.eye(own) + inverse.T @ np.diag(rates) @ inverse) @ to
            return -log_own(at[0], counts[c], *y), gradient, hessian

        place, hessian = np.zeros(own), np.eye(own)
        for _ in range(2):
            further = place + newton(expanded(place)[1], hessian)
            place = min((further, place), key=lambda at: expanded(at)[0])
            last, hessian = hessian, expanded(place)[2]
        np.testing.assert_allclose(normals.center[c], place, rtol=1e-8)
        root = np.asarray(normals.root[c])
        np.testing.assert_allclose(root @ root.T, np.linalg.inv(last), rtol=1e-8)
        wanted = expanded(place)[0] + 0.5 * np.linalg.slogdet(last)[1]
        assert float(level[c]) == pytest.approx(wanted, rel=1e-8)
        assert float(normals.log_volume[c]) == pytest.approx(-np.linalg.slogdet(last)[1] / 2)


def test_one_of_units_that_are_alike_stands_for_all():
    data = jnp.full(5, 2.0)
    density = build_density(of_one_rate, data, select=some, weight=lambda data: jnp.asarray(0.4))
    setting = Marginal(density).setting(data, shift_map(density.origin()))
    one = Marginal(density).subsample(setting._replace(subsample=np.array([3])))
    points = np.linspace(-3, 3, 5)[:, None]
    alone, together = (evaluation_program(density)(each, points)[0] for each in (one, setting))
    np.testing.assert_allclose(alone, together, rtol=1e-10)


def test_a_subsample_has_one_of_every_stratum_of_values():
    values = np.random.default_rng(0).permutation(np.arange(640.0))
    rows = choose_subsample(values)
    np.testing.assert_array_equal(np.sort(values[rows]) // 16, np.arange(40))


@pytest.mark.parametrize("own", [1, 2])
@pytest.mark.parametrize("far", [-1.0, 0.3])
def test_the_mean_ratio_of_a_unit_is_its_marginal(own, far):
    """Over standard normal z as over a unit's own parameters, however poor its normal."""
    counts, marginal, setting = settings(own)
    shared = jnp.asarray([far])
    normals, _ = jax.jit(marginal.conditional_normals)(setting, shared)
    level = float((setting.whitening.to_shared @ shared)[0] + 0.4)
    z = np.linspace(-25, 25, 4001 if own == 1 else 501)
    grid = np.stack(np.meshgrid(*[z] * own, indexing="ij"), axis=-1).reshape(-1, own)

    def log_ratio(each):
        standard = jnp.broadcast_to(each, (1, UNITS, own))
        return marginal.log_ratios(setting, shared, normals, standard)[0][0]

    values = np.asarray(jax.jit(lambda at: jax.lax.map(log_ratio, at, batch_size=1000))(grid))
    normal = stats.norm.logpdf(grid).sum(axis=1)
    found = special.logsumexp(values + normal[:, None], axis=0) + own * np.log(z[1] - z[0])
    y = np.linspace(-20, 8, 2001)
    axes = np.meshgrid(*[y] * own, indexing="ij")
    for c in range(UNITS):
        wanted = special.logsumexp(log_own(level, counts[c], *axes)) + own * np.log(y[1] - y[0])
        scale = np.linalg.slogdet(np.asarray(setting.whitening.to_units[c]))[1]
        constant = -own * np.log(2 * np.pi) / 2  # of the normal's density, which ratios leave out
        assert found[c] - constant == pytest.approx(wanted - scale, abs=1e-5)


@pytest.mark.parametrize("common", [0.0, 0.8])
def test_a_units_draws_are_of_its_posterior_whatever_units_share(common):
    """Means and spreads given what is shared, by quadrature: 4.5 standard errors of 4,000 draws."""
    counts, marginal, _ = settings(1)
    mode = whitened(marginal.density, jnp.asarray(counts), marginal.density.origin())
    setting = find_marginal_mode(
        marginal.density, mode, jnp.asarray(counts), expanding(marginal.density)
    )
    shared, size = jnp.asarray([0.3]), 4000
    loading = jnp.zeros_like(setting.noise.common).at[:, :, 0].set(np.sqrt(common))
    own = jnp.full_like(setting.noise.own, np.sqrt(1 - common))
    setting = setting._replace(noise=FactorNoise(loading, own))
    draw = jax.jit(jax.vmap(marginal.draw, in_axes=(None, None, 0)))
    keys = jax.random.split(jax.random.key(0), size)
    at, log_marginal = draw(setting, shared, keys)
    white = setting.whitening  # z and −z are there alike, so that the sign of units is nothing
    mirrored = setting._replace(whitening=white._replace(to_units=-white.to_units))
    np.testing.assert_allclose(draw(mirrored, shared, keys).log_marginal, log_marginal)
    level = float(at["shared"][0, 0])
    y = np.linspace(-20, 8, 20_001)
    # Pseudo-marginal: a point's weight is its estimate's.
    weight = np.exp(np.asarray(log_marginal) - np.max(log_marginal))
    weight /= weight.sum()
    evidence = stats.norm.logpdf(level, 0, 3.0)
    for c, found in enumerate(np.asarray(at["units"])[:, :, 0].T):
        mass = np.exp(log_own(level, counts[c], y))
        scale = float(setting.whitening.to_units[c, 0, 0]) * np.sqrt(2 * np.pi)
        evidence += np.log(mass.sum() * (y[1] - y[0]) / scale)
        mean = (mass @ y) / mass.sum()
        sd = np.sqrt(mass @ (y - mean) ** 2 / mass.sum())
        error = 4.5 / np.sqrt(1 / np.square(weight).sum())
        assert abs(weight @ found - mean) < error * sd
        assert weight @ (found - mean) ** 2 / sd**2 == pytest.approx(1, abs=2 * error)
    found = special.logsumexp(log_marginal) - np.log(size)  # estimates are unbiased
    assert found == pytest.approx(evidence, abs=0.02)
    together = np.corrcoef(np.asarray(at["units"])[:, :, 0].T)[np.triu_indices(UNITS, 1)]
    if common:  # what refused proposals leave of it
        assert (together > 0.5 * common).all()
    else:
        assert np.abs(together).max() < 4.5 / np.sqrt(size)


# --- where the mass is


def test_coordinates_and_surrogate_of_a_normal_posterior_are_its_own(normal):
    """Found from elsewhere: the mode to half an sd, the shape by importance sampling."""
    off = normal.mean + np.array([0.4, -0.3, *[0.2] * 6])
    mode = whitened(normal.density, normal.data, normal.at(off))
    mode = mode._replace(to_shared=mode.to_shared @ np.array([[1.6, 0.0], [0.8, 1.2]]))
    found = find_marginal_mode(normal.density, mode, normal.data, expanding(normal.density))
    covariance = normal.covariance[:2, :2]
    spread = np.sqrt(np.diag(covariance))
    setting, fitted = build_target(normal.density, around_mass(normal.density, normal.data, mode))
    for each, error in ((found, 1e-6), (setting, 0.1)):
        center = np.asarray(each.whitening.center["shared"])
        to_shared = np.asarray(each.whitening.to_shared)
        np.testing.assert_allclose((center - normal.mean[:2]) / spread, 0, atol=error)
        np.testing.assert_allclose(
            to_shared @ to_shared.T, covariance, atol=2 * error * spread.min() ** 2
        )
        np.testing.assert_array_equal(np.triu(to_shared, 1), 0)
    points = np.random.default_rng(1).standard_normal((32, 2))
    of_points = jax.vmap(lambda at: surrogate_potential(normal.density, fitted, at))
    wanted = evaluation_program(normal.density)(setting, points)[0]
    np.testing.assert_allclose(jax.jit(of_points)(points), wanted, atol=1e-2)


def test_a_surrogate_is_fitted_where_points_are():
    """With points three to five standard deviations out it is right there, and not without."""
    counts = jnp.asarray(COUNTS)
    density = build_density(skewed, counts, select=some)
    mode = whitened(density, counts, density.origin())
    setting = find_marginal_mode(density, mode, counts, expanding(density))
    near, far = (
        np.random.default_rng(0).standard_normal((300, 1)),
        np.linspace(-5, -3, 300)[:, None],
    )
    wanted = evaluation_program(density)(setting, far)[0]

    def error(points):
        potential, center = evaluation_program(density)(setting, points)
        broken = np.where(np.arange(len(points)) == 7, np.nan, potential)
        fitted = fit_surrogate(density, setting, points, broken, center)
        found = jax.jit(jax.vmap(lambda at: surrogate_potential(density, fitted, at)))(far)
        return np.std(wanted - np.asarray(found))

    assert error(np.concatenate([near, far])) < 0.5 * error(near)


def test_a_step_that_only_a_broken_hessian_promises_is_not_taken():
    """Far out, where the Hessian is of no minimum, no classifier's V is below its potential."""
    problem = pose(zoo.cut(zoo.study("tiny"), images=60), model="joint", options={})
    data = problem.data()
    tools = programs(problem, data)
    marginal = Marginal(tools.density)
    setting = marginal.setting(data, around_mode(problem, tools, data))
    far = 40 * np.random.default_rng(0).standard_normal((40, tools.density.shared))
    level = jax.jit(jax.vmap(lambda at: marginal.conditional_normals(setting, at)[1]))(far)
    own = tools.density.per_unit
    highest = own * np.log(1 / np.sqrt(MIN_PIVOT))  # of a volume
    assert np.nanmin(level) > -highest - 1


# --- weights


def shape_of(log_weight):
    return smooth_weights(log_weight).pareto_k


def test_pareto_shape_is_that_of_arviz(arviz_smooths):
    random = np.random.default_rng(0)
    for scale in (0.3, 1.0, 3.0):
        ratios = scale * random.standard_normal(2500)
        smooth, shape = arviz_smooths(ratios)
        found = smooth_weights(ratios)
        assert found.pareto_k == pytest.approx(float(shape))
        np.testing.assert_allclose(found.log_weight, smooth, atol=1e-8)


def test_even_weights_need_no_tail_and_others_do():
    even = smooth_weights(np.full(500, 3.0))
    assert (even.pareto_k, even.is_reliable) == (0.0, True)
    assert even.ess == pytest.approx(500)
    assert shape_of(np.arange(10.0)) == np.inf
    broken = smooth_weights(np.append(np.zeros(100), np.nan))
    assert (broken.pareto_k, broken.ess) == (np.inf, 0.0)
    assert np.exp(broken.log_weight).sum() == pytest.approx(1)


def test_certificates_need_a_light_tail_and_many_draws():
    good = PSISResult(np.full(4000, -np.log(4000)), 0.69, 400.0)
    assert good.is_reliable
    assert not good._replace(ess=399.0).is_reliable
    assert not good._replace(pareto_k=0.7).is_reliable
    assert not good._replace(pareto_k=0.7).is_hopeless
    # Of 4,000 weights the tail has 3 √4000 = 190: an error of (1 + k) / √190, 0.133 at k = 0.833.
    assert not good._replace(pareto_k=0.83).is_hopeless
    assert good._replace(pareto_k=0.84).is_hopeless
    assert smooth_weights(np.append(np.zeros(100), np.nan)).is_hopeless


def test_copies_of_a_point_make_no_tail_heavy():
    """One point that was resampled often is a step in the weights, as of a heavy tail."""
    of_points, diagnose = PSISResult(np.zeros(1000), -1.0, 1e9), nested_laplace.diagnose_draws
    weights = stats.norm(0, 0.02).ppf((np.arange(1000) + 0.5) / 1000)
    once = diagnose(weights, np.arange(1000), of_points)
    assert once.pareto_k == pytest.approx(shape_of(weights))
    weights, places = np.append(weights, np.full(12, 0.6)), np.append(np.arange(1000), [999] * 12)
    assert shape_of(weights) > 0.7
    judged = diagnose(weights, places, of_points)
    assert judged.pareto_k == pytest.approx(once.pareto_k)
    assert judged.ess == pytest.approx(smooth_weights(weights).ess, rel=1e-5)
    bad = of_points._replace(pareto_k=0.9, ess=100.0)
    judged = diagnose(np.zeros(1000), np.arange(1000), bad)
    assert judged.pareto_k == 0.9
    assert judged.ess == pytest.approx(1 / (1 / 100 + 1 / 1000))


def test_a_shape_is_that_of_its_tail():
    """Weights at the quantiles of a tail of known shape: no draw, so no scatter."""
    at = (np.arange(20_000) + 0.5) / 20_000
    for shape in (-0.3, 0.2, 1.0):
        found = shape_of(np.log(1 + stats.genpareto(shape).ppf(at)))
        assert found == pytest.approx(shape, abs=0.05)


def test_resampling_draws_one_from_every_stratum():
    weight = np.random.default_rng(3).dirichlet(np.full(12, 0.5))
    for seed in range(5):
        kept = nested_laplace.resample(np.random.default_rng(seed), np.log(weight), 50)
        assert kept.shape == (50,)
        ends = np.concatenate([[0], np.cumsum(weight)])
        for stratum, place in enumerate(np.sort(kept)):  # [stratum, stratum + 1] / 50 meets its own
            assert ends[place] < (stratum + 1) / 50
            assert ends[place + 1] > stratum / 50
        assert (np.diff(kept) < 0).any()  # in random order


# --- weighted draws


def log_density(normal, position):
    """With its constants, those of the data too."""
    mean = np.asarray(position["shared"])
    own = np.asarray(position["units"])
    return (
        stats.norm.logpdf(mean, 0, 2).sum(axis=1)
        + stats.norm.logpdf(own, mean[:, None], 0.7).sum(axis=(1, 2))
        + stats.norm.logpdf(DATA, own, 0.5).sum(axis=(1, 2))
    )


def test_draws_of_a_normal_posterior_are_weighted_evenly(normal, unannotated):
    """Laplace's marginal of a normal is exact: weights are highest, and equal, where it is alone.

    With the mixture of proposals as a tenth of what is resampled they are 1 / (0.9 + 0.1 m / p)
    at most, with m and p the mixture's and the posterior's density, and 1 on average.
    """
    mode = whitened(normal.density, normal.data, normal.at(normal.mean))
    sample = around_mass(normal.density, normal.data, mode)
    draws, log_weight, psis = draw_weighted(normal.density, sample, np.random.default_rng(4), 400)
    lp = log_density(normal, draws.position)
    found = jax.vmap(normal.density.potential, in_axes=(0, None))(draws.position, normal.data)
    np.testing.assert_allclose(-found, lp, atol=1e-8)
    weight = np.exp(log_weight)
    assert weight.max() / weight.mean() < 1 / 0.9 + 0.01
    assert np.median(weight) / weight.mean() > 1.0
    assert psis.pareto_k < 0.7


def test_points_hold_the_density_that_is_resampled():
    """Nine tenths of the weighted points, and a tenth of them all; worth what was asked for."""

    def evaluate(shared):
        return stats.norm.logpdf(shared, [0.5, 0.0], [0.8, 1.0]).sum(axis=1)

    random = np.random.default_rng(6)
    shared, log_density, psis = nested_laplace.adaptive_importance_sampling(
        evaluate, 2, random, 150.0
    )
    share = np.exp(psis.log_weight)
    assert share.sum() == pytest.approx(1)
    assert share.min() >= nested_laplace.DEFENSIVE_SHARE / len(share)
    assert psis.ess >= 150
    # The first proposal alone, a t of ten degrees of freedom, was enough.
    assert len(shared) == nested_laplace.N_POINTS
    t = stats.multivariate_t(np.zeros(2), np.eye(2), nested_laplace.DEGREES_OF_FREEDOM)
    left = log_density - psis.log_weight - t.logpdf(shared)
    assert np.ptp(left) < 1e-8


def test_points_that_teach_shape_the_next_proposal():
    """Their weighted mean, and their covariance beside the identity seen in four points."""
    random = np.random.default_rng(6)
    shared = random.standard_normal((30, 2)) * [1.5, 1.0]
    wanted = stats.norm.logpdf(shared, [0.5, 0.0], [0.8, 1.0]).sum(axis=1)
    judged = smooth_weights(wanted - stats.norm.logpdf(shared, 0, [1.5, 1.0]).sum(axis=1))
    found = nested_laplace.fit_proposal(shared, judged)
    share = np.exp(judged.log_weight)
    covariance = np.cov(shared.T, aweights=share, ddof=0)
    seen = judged.ess / (judged.ess + 4)
    np.testing.assert_allclose(found.center, np.average(shared, axis=0, weights=share))
    np.testing.assert_allclose(
        found.root @ found.root.T, seen * covariance + (1 - seen) * np.eye(2)
    )


def test_a_density_that_is_nowhere_has_points_worth_nothing():
    *_, psis = nested_laplace.adaptive_importance_sampling(
        lambda x: np.full(len(x), np.nan), 2, np.random.default_rng(0), 9.0
    )
    assert psis.ess == 0
    assert not psis.is_reliable


# --- distances


def posterior(draws, names):
    group = {"posterior": {"adjusted_accuracy": (("chain", "draw", "classifier"), draws)}}
    return build_posterior(group, {"classifier": ("classifier", np.array(names))}, {})


def test_distances_are_in_the_references_standard_deviations():
    draws = np.random.default_rng(0).normal(0.7, 0.02, size=(2, 500, 2))
    ours = posterior(draws, ["a", "b"])
    same = distance(ours, ours)
    assert same["classifier"].to_list() == ["a", "b"]
    assert same["mean_difference"].abs().max() == 0
    assert same["wasserstein"].max() == 0
    moved = distance(ours, posterior(draws + 0.5 * draws.std(axis=(0, 1)), ["a", "b"]))
    np.testing.assert_allclose(moved["mean_difference"], 0.5)
    np.testing.assert_allclose(moved["wasserstein"], 0.5)
    np.testing.assert_allclose(moved["sd_ratio"], 1)


def test_distance_of_different_studies_is_refused():
    draws = np.random.default_rng(0).uniform(size=(2, 5, 1))
    with refused(PosteriorError, "posteriors-of-different-classifiers"):
        distance(posterior(draws, ["a"]), posterior(draws, ["b"]))


def test_draws_of_unreliable_weights_are_returned_with_a_warning(monkeypatch):
    def hopeless(*arguments):
        draws, log_weight, psis = draw_weighted(*arguments)
        return draws, log_weight, psis._replace(pareto_k=1.2)

    monkeypatch.setattr(methods, "draw_weighted", hopeless)
    with pytest.warns(ConvergenceWarning, match="Pareto k"):
        posterior = bayesrep.fit(zoo.study("tiny"), method="laplace", progress=False)
    assert posterior["posterior"].attrs["converged"] == 0
    assert np.isfinite(posterior["posterior"]["adjusted_accuracy"].values).all()
    assert bayesrep.diagnose(posterior).trust != "yes"
