"""Normal approximations of marginals, what is learnt of them, and their weighted draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from refusals import refused
from scipy import special, stats
from toys import (
    COUNTS,
    DATA,
    ROOT,
    UNITS,
    Normal,
    around_mass,
    drawn,
    expanding,
    log_own,
    settings,
    skewed,
    some,
    whitened,
)

from bayesrep.errors import PosteriorError
from bayesrep.inference import approximate, laplace, tuning
from bayesrep.inference.density import build_density
from bayesrep.inference.marginal import (
    FURTHEST,
    FactorNoise,
    Guide,
    Marginal,
    Visits,
    draw_in,
    feature_count,
    features,
)
from bayesrep.inference.settle import learn_more, look_at_draws, make_look, settle
from bayesrep.posterior.files import build_posterior

pytestmark = pytest.mark.usefixtures("float64")


def ravel(position):
    return np.asarray(ravel_pytree(position)[0])


@pytest.fixture(scope="module")
def normal():
    with jax.enable_x64(new_val=True):
        return Normal()


# --- what is learnt


def test_ridge_is_the_penalised_regression_of_least_generalised_error(monkeypatch):
    random = np.random.default_rng(0)
    inputs = np.concatenate([np.ones((40, 1)), random.standard_normal((40, 12))], axis=1)
    outputs = inputs[:, :4] @ random.standard_normal((4, 3)) + random.standard_normal((40, 3))
    weights = random.uniform(0.2, 3.0, 40)
    scale = np.diag(weights / weights.mean())
    penalised = np.diag([0.0] + [1.0] * 12)
    best = None
    for penalty in tuning.PENALTIES:
        inverse = np.linalg.inv(inputs.T @ scale @ inputs + penalty * penalised)
        coefficients = inverse @ inputs.T @ scale @ outputs
        free = 40 - np.trace(inputs @ inverse @ inputs.T @ scale)
        left = outputs - inputs @ coefficients
        risk = 40 * np.einsum("pi,pq,qi->", left, scale, left) / free**2
        if best is None or risk < best[0]:
            best = risk, coefficients
    for at_once in (tuning.IN_CACHE, 40):  # all outputs together, and one after another
        monkeypatch.setattr(tuning, "IN_CACHE", at_once)
        found = tuning.ridge(inputs, outputs, weights)
        np.testing.assert_allclose(found.coefficients, best[1], rtol=1e-8, atol=1e-10)
        assert found.left == pytest.approx(np.sqrt(best[0] / 3))


def test_features_are_products_for_the_program():
    random = np.random.default_rng(1)
    points = 3 * random.standard_normal((5, 4))
    inputs = tuning.products(draw_in(points))
    assert inputs.shape == (5, 1 + 4 + 10)
    for count in (15, 5):
        for point, wanted in zip(points, inputs[:, :count], strict=True):
            np.testing.assert_allclose(features(jnp.asarray(point), count), wanted, rtol=1e-10)
    assert feature_count(4) == 15


def test_points_far_out_are_drawn_in_and_others_are_not():
    near = np.array([[0.5, -1.0, 1.0], [1.0, 2.0, 0.5]])
    np.testing.assert_allclose(draw_in(near), near, rtol=1e-3)
    far = np.array([[3.0, 0.0, 4.0]]) * 10.0 ** np.arange(1, 5)[:, None]
    lengths = np.linalg.norm(draw_in(far), axis=1)
    assert (np.diff(lengths) >= 0).all()
    np.testing.assert_allclose(lengths, FURTHEST, rtol=1e-2)


def test_a_guide_learns_what_quadratics_say():
    """Made up visits, whose levels and centres are quadratics; also among visits that are none.

    What the sample says beyond a quadratic, levels have by six tenths.
    """
    random = np.random.default_rng(2)
    points = random.standard_normal((300, 3))
    quadratic = tuning.products(draw_in(points))
    centers = (quadratic @ random.standard_normal((10, UNITS * 2))).reshape(-1, UNITS, 2)
    roots = (quadratic[:, :4] @ random.standard_normal((4, UNITS * 3))).reshape(-1, UNITS, 3)
    said, sampled = quadratic @ random.standard_normal(10), random.standard_normal(300)
    potential = np.where(np.arange(300) % 50 == 7, np.nan, 0.5 * np.square(points).sum(axis=1))
    visits = Visits(points, potential, 0.6 * sampled + said, sampled, centers, roots)
    nothing = jnp.zeros((feature_count(3), UNITS, 2))
    linear = jnp.zeros((4, UNITS, 3))
    guide = Guide(jnp.ones(()), jnp.zeros(feature_count(3)), nothing, nothing[:, :1], linear)
    count = np.array([0.0, UNITS, *[0.0] * (UNITS - 2)])
    learnt = tuning.learn(guide, count, visits)
    assert learnt.share == pytest.approx(0.6, abs=1e-3)
    for point, wanted, center, root in zip(points[:5], said, centers, roots, strict=False):
        inputs = np.asarray(features(jnp.asarray(point), feature_count(3)))
        assert inputs @ learnt.level == pytest.approx(wanted, abs=1e-2)
        guess, of_sample = (np.tensordot(inputs, g, 1) for g in (learnt.guess, learnt.of_sample))
        np.testing.assert_allclose(guess, center, atol=1e-2)
        np.testing.assert_allclose(of_sample, center[1:2], atol=1e-2)
        np.testing.assert_allclose(np.tensordot(inputs[:4], learnt.root, 1), root, atol=1e-2)
    few = Visits(*(leaf[:7] for leaf in visits))
    assert tuning.learn(guide, count, few) is guide


# --- the marginal


def newton(gradient, hessian):
    """A step not longer than 3 standard deviations, and by how much it promises to go down."""
    step = np.linalg.solve(hessian, gradient)
    length = np.sqrt(step @ hessian @ step)
    share = min(1, 3 / length)
    return -share * step, share * (1 - share / 2) * length**2


@pytest.mark.parametrize("own", [1, 2])
def test_a_units_normal_is_two_newton_steps_from_its_guess(own):
    """The first by the root that is guessed, if it goes down; a guided normal is that of it."""
    counts, marginal, setting = settings(own)
    shared = jnp.asarray([0.3])
    guided = jax.jit(marginal.guess_units)(setting, shared)
    units, level = jax.jit(marginal.units)(setting, shared)
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

        _, gradient, _ = expanded(np.zeros(own))
        first, _ = newton(gradient, np.eye(own) / ROOT**2)
        np.testing.assert_allclose(guided.center[c], first, rtol=1e-8)
        np.testing.assert_allclose(guided.root[c], ROOT * np.eye(own))
        first = min((first, np.zeros(own)), key=lambda at: expanded(at)[0])
        value, gradient, hessian = expanded(first)
        step, promised = newton(gradient, hessian)
        np.testing.assert_allclose(units.center[c], first + step, rtol=1e-8)
        root = np.asarray(units.root[c])
        np.testing.assert_allclose(root @ root.T, np.linalg.inv(hessian), rtol=1e-8)
        wanted = value - promised + 0.5 * np.linalg.slogdet(hessian)[1]
        assert float(level[c]) == pytest.approx(wanted, rel=1e-8)
        assert float(units.log_volume[c]) == pytest.approx(-np.linalg.slogdet(hessian)[1] / 2)


@pytest.mark.parametrize(("how", "own"), [("units", 1), ("guess_units", 1), ("guess_units", 2)])
@pytest.mark.parametrize("far", [-1.0, 0.3])
def test_the_mean_ratio_of_a_unit_is_its_marginal(own, far, how):
    """Over standard normal z as over a unit's own parameters, however poor its normal."""
    counts, marginal, setting = settings(own)
    shared = jnp.asarray([far])
    found = jax.jit(getattr(marginal, how))(setting, shared)
    given = found[0] if how == "units" else found
    level = float((setting.whitening.to_shared @ shared)[0] + 0.4)
    z = np.linspace(-25, 25, 4001 if own == 1 else 501)
    grid = np.stack(np.meshgrid(*[z] * own, indexing="ij"), axis=-1).reshape(-1, own)

    def log_ratio(each):
        standard = jnp.broadcast_to(each, (1, UNITS, own))
        return marginal.estimates(setting, shared, given, standard).log_ratio[0]

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
    counts, marginal, setting = settings(1)
    shared, size = jnp.asarray([0.3]), 4000
    loading = jnp.zeros_like(setting.noise.common).at[:, :, 0].set(np.sqrt(common))
    own = jnp.full_like(setting.noise.own, np.sqrt(1 - common))
    setting = setting._replace(noise=FactorNoise(loading, own))
    given, _ = marginal.units(setting, shared)

    def draw(key):
        half, noise, step = jax.random.split(key, 3)
        half = jax.random.normal(half, (4, UNITS, 1))
        known = marginal.estimate(setting, shared, given, half)
        proposals = setting.noise.draw(noise, 4)
        fresh = marginal.estimates(setting, shared, given, proposals).log_ratio
        drawn = marginal.draw_units(step, setting, shared, known, proposals, fresh)
        return *drawn, known.estimates.of_units

    at, lp, log_evidence = jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(0), size))
    first = jax.tree.map(lambda leaf: leaf[0], at)
    exact = -float(marginal.density.potential(first, setting.data))
    assert float(lp[0]) == pytest.approx(exact)
    level = float(first["shared"][0])
    y = np.linspace(-20, 8, 20_001)
    # Pseudo-marginal: a point's weight is its estimate's.
    for c, found in enumerate(np.asarray(at["units"])[:, :, 0].T):
        mass = np.exp(log_own(level, counts[c], y))
        mean = (mass @ y) / mass.sum()
        sd = np.sqrt(mass @ (y - mean) ** 2 / mass.sum())
        weight = np.exp(np.asarray(log_evidence)[:, c])
        weight /= weight.sum()
        error = 4.5 / np.sqrt(1 / np.square(weight).sum())
        assert abs(weight @ found - mean) < error * sd
        assert weight @ (found - mean) ** 2 / sd**2 == pytest.approx(1, abs=2 * error)
    together = np.corrcoef(np.asarray(at["units"])[:, :, 0].T)[np.triu_indices(UNITS, 1)]
    if common:  # what refused proposals leave of it
        assert (together > 0.5 * common).all()
    else:
        assert np.abs(together).max() < 4.5 / np.sqrt(size)


# --- where the mass is


def test_settling_finds_a_normal_posterior_from_elsewhere(normal):
    off = normal.mean + np.array([0.4, -0.3, *[0.2] * 6])
    mode = whitened(normal.density, normal.data, normal.at(off))
    mode = mode._replace(to_shared=1.6 * mode.to_shared)
    look = make_look(normal.density)
    expand = expanding(normal.density)
    found = settle(normal.density, mode, normal.data, look, 0, expand=expand)
    center, to_shared = (
        np.asarray(each)
        for each in (found.setting.whitening.center["shared"], found.setting.whitening.to_shared)
    )
    covariance = normal.covariance[:2, :2]
    spread = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((center - normal.mean[:2]) / spread, 0, atol=1e-2)
    np.testing.assert_allclose(to_shared @ to_shared.T, covariance, atol=0.03 * spread.min() ** 2)
    np.testing.assert_array_equal(np.triu(to_shared, 1), 0)
    # What was learnt of the points is told in the new coordinates.
    points = np.random.default_rng(1).standard_normal((32, 2))
    surrogate = jax.jit(jax.vmap(Marginal(normal.density).surrogate, in_axes=(None, 0)))
    wanted = look(found.setting, points).potential
    np.testing.assert_allclose(surrogate(found.setting, points), wanted, atol=1e-2)
    stayed = settle(normal.density, mode, normal.data, look, 0, expand=None).setting
    jax.tree.map(np.testing.assert_array_equal, stayed.whitening, mode)


def test_a_surrogate_learns_from_where_chains_came():
    """From places three to five standard deviations out, which it had hardly seen."""
    counts = jnp.asarray(COUNTS)
    density = build_density(skewed, counts, select=some)
    mode = whitened(density, counts, density.origin())
    look = make_look(density)
    settled = settle(density, mode, counts, look, 0, expand=expanding(density))
    white = settled.setting.whitening
    far = np.linspace(-5, -3, 300)[:, None]
    shared = np.asarray(white.center["shared"]) + far @ np.asarray(white.to_shared).T
    again = learn_more(density, settled, look_at_draws(settled.setting, look, shared))
    jax.tree.map(np.testing.assert_array_equal, again.setting.whitening, white)
    assert len(again.visits.shared) == len(settled.visits.shared)  # the latest
    np.testing.assert_allclose(again.visits.shared[-300:], far, rtol=1e-9)
    surrogate = jax.jit(jax.vmap(Marginal(density).surrogate, in_axes=(None, 0)))
    wanted = look(settled.setting, far).potential
    before, after = (
        np.std(wanted - np.asarray(surrogate(each.setting, far))) for each in (settled, again)
    )
    assert after < 0.5 * before


# --- weights


def shape_of(log_weight):
    return laplace.certify(log_weight).pareto_k


def test_pareto_shape_is_that_of_arviz(arviz_smooths):
    random = np.random.default_rng(0)
    for scale in (0.3, 1.0, 3.0):
        ratios = scale * random.standard_normal(2500)
        smooth, shape = arviz_smooths(ratios)
        found = laplace.certify(ratios)
        assert found.pareto_k == pytest.approx(float(shape))
        np.testing.assert_allclose(found.log_weight, smooth, atol=1e-8)


def test_even_weights_need_no_tail_and_others_do():
    even = laplace.certify(np.full(500, 3.0))
    assert (even.pareto_k, even.holds) == (0.0, True)
    assert even.ess == pytest.approx(500)
    assert shape_of(np.arange(10.0)) == np.inf
    broken = laplace.certify(np.append(np.zeros(100), np.nan))
    assert (broken.pareto_k, broken.ess) == (np.inf, 0.0)
    assert np.exp(broken.log_weight).sum() == pytest.approx(1)


def test_certificates_need_a_light_tail_and_many_draws():
    good = laplace.Certificate(np.full(4000, -np.log(4000)), 0.69, 400.0)
    assert good.holds
    assert not good._replace(ess=399.0).holds
    assert not good._replace(pareto_k=0.7).holds
    assert not good._replace(pareto_k=0.7).hopeless
    # Of 4,000 weights the tail has 3 √4000 = 190: an error of (1 + k) / √190.
    assert good.error == pytest.approx(1.69 / np.sqrt(190), rel=1e-2)
    assert good._replace(pareto_k=0.7 + 2 * good.error).hopeless
    assert laplace.certify(np.append(np.zeros(100), np.nan)).hopeless


def test_copies_of_a_point_make_no_tail_heavy():
    """One point that was resampled often is a step in the weights, as of a heavy tail."""
    points = laplace.ImportanceSample(
        np.zeros((1000, 1)), np.zeros(1000), laplace.Certificate(np.zeros(1000), -1.0, 1e9)
    )
    weights = stats.norm(0, 0.02).ppf((np.arange(1000) + 0.5) / 1000)
    once = points.judge(weights, np.arange(1000))
    assert once.pareto_k == pytest.approx(shape_of(weights))
    weights, places = np.append(weights, np.full(12, 0.6)), np.append(np.arange(1000), [999] * 12)
    assert shape_of(weights) > 0.7
    judged = points.judge(weights, places)
    assert judged.pareto_k == pytest.approx(once.pareto_k)
    assert judged.ess == pytest.approx(laplace.certify(weights).ess, rel=1e-5)
    bad = points._replace(judged=points.judged._replace(pareto_k=0.9, ess=100.0))
    judged = bad.judge(np.zeros(1000), np.arange(1000))
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
        kept = laplace.resample(np.random.default_rng(seed), np.log(weight), 50)
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
    found, judged = drawn(around_mass(normal.density, normal.data, mode), 400)
    np.testing.assert_allclose(found.lp, log_density(normal, found.position), atol=1e-8)
    weight = np.exp(found.log_weight)
    assert weight.max() / weight.mean() < 1 / 0.9 + 0.01
    assert np.median(weight) / weight.mean() > 1.0
    assert judged.pareto_k < 0.7


def test_points_hold_the_density_that_is_resampled():
    """Nine tenths of the weighted points, and a tenth of them all; worth what was asked for."""

    def evaluate(shared):
        return stats.norm.logpdf(shared, [0.5, 0.0], [0.8, 1.0]).sum(axis=1)

    points = laplace.adaptive_importance_sampling(evaluate, 2, np.random.default_rng(6), 700)
    share = np.exp(points.judged.log_weight)
    assert share.sum() == pytest.approx(1)
    assert share.min() >= laplace.DEFENSIVE / len(share)
    assert points.judged.ess >= 700
    # The first proposal alone, a t of ten degrees of freedom, was enough.
    assert len(points.shared) == laplace.POINTS
    t = stats.multivariate_t(np.zeros(2), np.eye(2), laplace.FREEDOM).logpdf(points.shared)
    left = points.log_density - points.judged.log_weight - t
    assert np.ptp(left) < 1e-8


def test_points_that_teach_shape_the_next_proposal():
    """Their weighted mean, and their covariance beside the identity seen in four points."""
    random = np.random.default_rng(6)
    shared = random.standard_normal((30, 2)) * [1.5, 1.0]
    wanted = stats.norm.logpdf(shared, [0.5, 0.0], [0.8, 1.0]).sum(axis=1)
    judged = laplace.certify(wanted - stats.norm.logpdf(shared, 0, [1.5, 1.0]).sum(axis=1))
    found = laplace._propose(shared, judged)
    share = np.exp(judged.log_weight)
    covariance = np.cov(shared.T, aweights=share, ddof=0)
    seen = judged.ess / (judged.ess + 4)
    np.testing.assert_allclose(found.center, np.average(shared, axis=0, weights=share))
    np.testing.assert_allclose(
        found.root @ found.root.T, seen * covariance + (1 - seen) * np.eye(2)
    )


def test_a_density_that_is_nowhere_has_points_worth_nothing():
    points = laplace.adaptive_importance_sampling(
        lambda x: np.full(len(x), np.nan), 2, np.random.default_rng(0), 9
    )
    assert points.judged.ess == 0
    assert not points.judged.holds


# --- distances


def posterior(draws, names):
    group = {"posterior": {"adjusted_accuracy": (("chain", "draw", "classifier"), draws)}}
    return build_posterior(group, {"classifier": ("classifier", np.array(names))}, {})


def test_distances_are_in_the_references_standard_deviations():
    draws = np.random.default_rng(0).normal(0.7, 0.02, size=(2, 500, 2))
    ours = posterior(draws, ["a", "b"])
    same = approximate.distance(ours, ours)
    assert same["classifier"].to_list() == ["a", "b"]
    assert same["mean_difference"].abs().max() == 0
    assert same["wasserstein"].max() == 0
    moved = approximate.distance(ours, posterior(draws + 0.5 * draws.std(axis=(0, 1)), ["a", "b"]))
    np.testing.assert_allclose(moved["mean_difference"], 0.5)
    np.testing.assert_allclose(moved["wasserstein"], 0.5)
    np.testing.assert_allclose(moved["sd_ratio"], 1)


def test_distance_of_different_studies_is_refused():
    draws = np.random.default_rng(0).uniform(size=(2, 5, 1))
    with refused(PosteriorError, "posteriors-of-different-classifiers"):
        approximate.distance(posterior(draws, ["a"]), posterior(draws, ["b"]))
