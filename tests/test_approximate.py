"""Normal approximations of marginals, what is learnt of them, and their weighted draws."""

from dataclasses import dataclass
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jax.flatten_util import ravel_pytree
from scipy import special, stats

from bayesrep.inference import approximate, laplace, tuning
from bayesrep.inference.arrowhead import Whitening, second_order, whitening
from bayesrep.inference.dense import dense_whitening
from bayesrep.inference.density import build_density
from bayesrep.inference.marginal import (
    FURTHEST,
    Guide,
    Marginal,
    Visits,
    drawn_in,
    feature_count,
    features,
    mirrored,
)
from bayesrep.inference.settle import looking, revisited, settle
from bayesrep.posterior.files import build_posterior

pytestmark = pytest.mark.usefixtures("float64")

UNITS = 3
DATA = np.array([[0.3, -1.0], [2.0, 0.5], [1.0, 4.0]])
COUNTS = np.array([[0.0], [2.0], [9.0]])


def some(data, rows):
    return data[rows]


def gaussian(data):
    """Normal everywhere: a mean, and units around it that are observed with noise."""
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0).expand([2]).to_event(1))
    with numpyro.plate("classifier", UNITS):
        center = jnp.broadcast_to(mean, (UNITS, 2))
        own = numpyro.sample("own", dist.Normal(center, 0.7).to_event(1))
        numpyro.sample("seen", dist.Normal(own, 0.5).to_event(1), obs=data)


def skewed(data):
    """Counts of events at rates exp(x), exp(x + y), …: posteriors have longer left tails."""
    level = numpyro.sample("level", dist.Normal(0.0, 3.0).expand([1]).to_event(1))
    own = data.shape[1]
    with numpyro.plate("classifier", UNITS):
        center = jnp.broadcast_to(level, (UNITS, own))
        steps = numpyro.sample("own", dist.Normal(center, 1.0).to_event(1))
        rates = jnp.cumsum(steps, axis=-1)
        numpyro.factor("counts", jnp.sum(data * rates - jnp.exp(rates), axis=-1))


def log_own(level, counts, *own):
    """Log density of one unit's own parameters and its counts, for given shared ones; no JAX."""
    prior = sum(stats.norm.logpdf(each, level, 1.0) for each in own)
    rates = np.cumsum(np.broadcast_arrays(*own), axis=0)
    return prior + sum(
        y * rate - np.exp(np.minimum(rate, 50)) for y, rate in zip(counts, rates, strict=True)
    )


def ravel(position):
    return np.asarray(ravel_pytree(position)[0])


@dataclass
class Normal:
    """The toy normal density: its covariance and its mean, by linear algebra alone."""

    def __post_init__(self):
        self.density = build_density(gaussian, jnp.asarray(DATA), select=some)
        self.data = jnp.asarray(DATA)
        precision = np.zeros((8, 8))
        precision[:2, :2] = (1 / 4 + UNITS / 0.49) * np.eye(2)
        precision[2:, 2:] = (1 / 0.49 + 1 / 0.25) * np.eye(6)
        precision[:2, 2:] = np.tile(-np.eye(2) / 0.49, UNITS)
        precision[2:, :2] = precision[:2, 2:].T
        self.covariance = np.linalg.inv(precision)
        self.mean = self.covariance @ np.concatenate([np.zeros(2), DATA.ravel() / 0.25])

    def at(self, flat):
        return {"shared": jnp.asarray(flat[:2]), "units": jnp.asarray(flat[2:].reshape(UNITS, 2))}


@pytest.fixture(scope="module")
def normal():
    with jax.enable_x64(new_val=True):
        return Normal()


def expanding(density):
    return jax.jit(lambda at, data: second_order(lambda q: density.potential(q, data), at))


def whitened(density, data, position):
    """Coordinates about a position by the Hessian there, as at a mode."""
    there = expanding(density)(position, data)
    return whitening(there.hessian, position)


# --- what is learnt


def test_ridge_is_the_penalised_regression_of_least_generalised_error():
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
    found = tuning.ridge(inputs, outputs, weights)
    np.testing.assert_allclose(found.coefficients, best[1], rtol=1e-8, atol=1e-10)
    assert found.left == pytest.approx(np.sqrt(best[0] / 3))


def test_features_are_products_for_the_program():
    random = np.random.default_rng(1)
    points = 3 * random.standard_normal((5, 4))
    inputs = tuning.products(drawn_in(points))
    assert inputs.shape == (5, 1 + 4 + 10)
    for count in (15, 5):
        for point, wanted in zip(points, inputs[:, :count], strict=True):
            np.testing.assert_allclose(features(jnp.asarray(point), count), wanted, rtol=1e-10)
    assert feature_count(4) == 15


def test_points_far_out_are_drawn_in_and_others_are_not():
    near = np.array([[0.5, -1.0, 1.0], [1.0, 2.0, 0.5]])
    np.testing.assert_allclose(drawn_in(near), near, rtol=1e-3)
    far = np.array([[3.0, 0.0, 4.0]]) * 10.0 ** np.arange(1, 5)[:, None]
    lengths = np.linalg.norm(drawn_in(far), axis=1)
    assert (np.diff(lengths) >= 0).all()
    np.testing.assert_allclose(lengths, FURTHEST, rtol=1e-2)


def test_a_guide_learns_what_quadratics_say():
    """Made up visits, whose levels and centres are quadratics; also among visits that are none.

    What the sample says beyond a quadratic, levels have by six tenths.
    """
    random = np.random.default_rng(2)
    points = random.standard_normal((300, 3))
    quadratic = tuning.products(drawn_in(points))
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


def stretched(units, own, shared):
    """Coordinates that no Hessian suggests."""
    random = np.random.default_rng(3)
    return Whitening(
        {"shared": jnp.full(shared, 0.4), "units": jnp.asarray(random.normal(size=(units, own)))},
        jnp.asarray(np.tril(random.uniform(0.5, 1.5, (shared, shared)))),
        jnp.asarray(random.uniform(0.5, 1.5, (units, own, own)) + np.eye(own)),
        jnp.asarray(random.normal(size=(units, own, shared))),
    )


ROOT = 0.4
"""That is guessed for all units, times the identity."""


def settings(own):
    counts = np.tile(COUNTS, (1, own))
    density = build_density(skewed, jnp.asarray(counts), select=some)
    marginal = Marginal(density)
    plain = marginal.first_setting(jnp.asarray(counts), density.origin())
    guide = plain.guide._replace(root=ROOT * plain.guide.root)
    return counts, marginal, plain._replace(whitening=stretched(UNITS, own, 1), guide=guide)


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
    guided = jax.jit(marginal.guided)(setting, shared)
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


@pytest.mark.parametrize(("how", "own"), [("units", 1), ("guided", 1), ("guided", 2)])
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


def test_an_estimate_is_the_mean_ratio_and_a_drawn_position_is_of_one_of_them():
    """Of 4,000 draws the share of each z is its ratio's: 4.5 standard errors at most."""
    _, marginal, setting = settings(2)
    shared = jnp.asarray([0.3])
    given = marginal.guided(setting, shared)
    half = np.random.default_rng(5).normal(size=(2, UNITS, 2))
    standard = mirrored(jnp.asarray(0.5 * half))
    np.testing.assert_array_equal(standard[2:], -standard[:2])
    known = marginal.estimates(setting, shared, given, standard)
    ratios = np.exp(np.asarray(known.log_ratio))
    np.testing.assert_allclose(known.of_units, np.log(ratios.mean(axis=0)))
    wanted = float(known.shared) - np.log(ratios.mean(axis=0)).sum()
    assert float(known.potential) == pytest.approx(wanted)

    def draw(key):
        return marginal.drawn(key, setting, shared, given, standard, known)

    drawn, lp = jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(0), 4000))
    places = np.stack(
        [marginal.position(setting, shared, given.at(each))["units"] for each in standard]
    )
    which = np.abs(np.asarray(drawn["units"])[:, None] - places).sum(axis=3).argmin(axis=1)
    shares = ratios / ratios.sum(axis=0)
    for j, share in enumerate(shares):
        found = (which == j).mean(axis=0)
        assert (np.abs(found - share) < 4.5 * np.sqrt(share * (1 - share) / 4000) + 1e-9).all()
    at = {name: leaf[0] for name, leaf in drawn.items()}
    exact = -float(marginal.density.potential(at, setting.data))
    assert float(lp[0]) == pytest.approx(exact)


# --- where the mass is


def test_settling_finds_a_normal_posterior_from_elsewhere(normal):
    off = normal.mean + np.array([0.4, -0.3, *[0.2] * 6])
    mode = whitened(normal.density, normal.data, normal.at(off))
    mode = mode._replace(to_shared=1.6 * mode.to_shared)
    look = looking(normal.density)
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
    look = looking(density)
    settled = settle(density, mode, counts, look, 0, expand=expanding(density))
    white = settled.setting.whitening
    far = np.linspace(-5, -3, 300)[:, None]
    shared = np.asarray(white.center["shared"]) + far @ np.asarray(white.to_shared).T
    again = revisited(settled, look, shared)
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


@pytest.mark.parametrize("shape", [-0.3, 0.2, 1.0])
def test_pareto_shape_finds_the_shape_it_was_made_with(shape):
    excess = stats.genpareto(shape).rvs(20_000, random_state=np.random.default_rng(1))
    assert shape_of(np.log(1 + excess)) == pytest.approx(shape, abs=0.15)


def test_certificates_tell_good_from_bad():
    random = np.random.default_rng(2)
    narrow = 0.2 * random.standard_normal(4000)  # k = 1 - 0.2²
    bad = laplace.certify(stats.norm.logpdf(narrow) - stats.norm.logpdf(narrow, scale=0.2))
    assert bad.pareto_k > 0.7
    assert not bad.enough
    broad = 1.5 * random.standard_normal(4000)
    good = laplace.certify(stats.norm.logpdf(broad) - stats.norm.logpdf(broad, scale=1.5))
    assert good.pareto_k < 0.2
    assert good.enough
    assert np.exp(good.log_weight).sum() == pytest.approx(1)
    # Of a normal and one 1.5 times as wide, ∫ p²/q = 1.5² / √(2 · 1.5² − 1).
    assert good.ess == pytest.approx(4000 * np.sqrt(2 * 1.5**2 - 1) / 1.5**2, rel=0.05)
    assert not good._replace(ess=399.0).enough


def test_a_shape_is_hopeless_only_by_more_than_its_error():
    """Shapes of 200 sets of 1,000 weights; their scatter is the error, within a sixth (3 s.e.)."""
    for shape, least, most in ((0.5, 0, 2), (0.75, 0, 40), (1.5, 190, 200)):
        random = np.random.default_rng(3)
        sets = np.log(1 + stats.genpareto(shape).rvs((200, 1000), random_state=random))
        found = [laplace.certify(log_weight) for log_weight in sets]
        assert least <= sum(each.hopeless for each in found) <= most
        # The prior of ten observations makes the shape surer than its likelihood.
        error = np.mean([each.error for each in found]) / (1 + 10 / 95)
        assert np.std([each.pareto_k for each in found]) == pytest.approx(error, rel=1 / 6)
    assert laplace.certify(np.append(np.zeros(100), np.nan)).hopeless


def test_even_weights_need_no_tail_and_others_do():
    even = laplace.certify(np.full(500, 3.0))
    assert (even.pareto_k, even.enough) == (0.0, True)
    assert even.ess == pytest.approx(500)
    assert shape_of(np.arange(10.0)) == np.inf
    broken = laplace.certify(np.append(np.zeros(100), np.nan))
    assert (broken.pareto_k, broken.ess) == (np.inf, 0.0)
    assert np.exp(broken.log_weight).sum() == pytest.approx(1)


def test_resampling_is_unbiased_and_stratified():
    random = np.random.default_rng(3)
    weight = random.dirichlet(np.full(12, 0.5))
    size, times = 50, 4000
    counts = np.array(
        [
            np.bincount(laplace.resample(random, np.log(weight), size), minlength=12)
            for _ in range(times)
        ]
    )
    assert (counts.sum(axis=1) == size).all()
    # A draw fills its strata but for the two at its ends, each a coin's toss at most.
    error = np.sqrt(0.5 / times)
    np.testing.assert_allclose(counts.mean(axis=0), size * weight, rtol=0, atol=4.5 * error)
    assert np.abs(counts - size * weight).max() < 2
    order = [laplace.resample(random, np.log(weight), size)[0] for _ in range(200)]
    assert len(set(order)) > 3


# --- weighted draws


def drawn(draw, count, shared=1):
    found = draw(np.random.default_rng(4), count, laplace._normal(shared))
    return found, laplace.certify(found.log_weight)


def of(density, data):
    """What the ways to draw look at in a run."""
    tools = SimpleNamespace(density=density, expand=expanding(density))
    return SimpleNamespace(tools=tools, data=data, seed=0)


def test_draws_of_a_mode_of_units_that_meet_are_weighted(normal, unannotated):
    center = normal.at(normal.mean)
    exact = dense_whitening(center, np.linalg.inv(normal.covariance))
    found, judged = drawn(laplace._whole(of(normal.density, normal.data), exact), 500)
    assert np.ptp(found.log_weight) < 1e-8
    assert judged.pareto_k == 0.0
    np.testing.assert_allclose(found.lp, log_density(normal, found.position), atol=1e-8)
    wide = exact._replace(root=1.3 * exact.root)
    draw = laplace._whole(of(normal.density, normal.data), wide)
    found, judged = drawn(draw, 4000)
    hold(found, judged, normal.mean, np.sqrt(np.diag(normal.covariance)))


def log_density(normal, position):
    """With its constants, those of the data too."""
    mean = np.asarray(position["shared"])
    own = np.asarray(position["units"])
    return (
        stats.norm.logpdf(mean, 0, 2).sum(axis=1)
        + stats.norm.logpdf(own, mean[:, None], 0.7).sum(axis=(1, 2))
        + stats.norm.logpdf(DATA, own, 0.5).sum(axis=(1, 2))
    )


def hold(found, judged, mean, spread):
    """Weighted means and spreads are the exact ones, as far as so many draws can say."""
    assert judged.enough
    values = np.concatenate(
        [np.asarray(leaf).reshape(len(found.lp), -1) for leaf in found.position.values()], axis=1
    )
    weight = np.exp(judged.log_weight)
    error = 4.5 / np.sqrt(judged.ess)
    np.testing.assert_allclose((weight @ values - mean) / spread, 0, atol=error)
    squares = weight @ np.square(values - mean) / spread**2
    np.testing.assert_allclose(squares, 1, atol=2 * error)


def test_nested_draws_of_a_normal_posterior(normal, unannotated):
    mode = whitened(normal.density, normal.data, normal.at(normal.mean))
    found, judged = drawn(laplace._nested(of(normal.density, normal.data), mode), 2000, shared=2)
    np.testing.assert_allclose(found.lp, log_density(normal, found.position), atol=1e-8)
    hold(found, judged, normal.mean, np.sqrt(np.diag(normal.covariance)))


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
    draw = laplace._nested(of(target, jnp.asarray(COUNTS)), mode)
    found, judged = drawn(draw, 8000)
    hold(found, judged, mean, np.sqrt(square - mean**2))
    # As a pilot they shape the next proposals; draws of those have the same means.
    again = draw(np.random.default_rng(5), 8000, laplace._taught(found))
    hold(again, laplace.certify(again.log_weight), mean, np.sqrt(square - mean**2))


def test_a_pilots_moments_shape_the_proposals():
    random = np.random.default_rng(6)
    shared = random.standard_normal((20_000, 2)) * [1.5, 1.0]
    wanted = stats.norm.logpdf(shared, [0.5, 0.0], [0.8, 1.0]).sum(axis=1)
    weight = wanted - stats.norm.logpdf(shared, 0, [1.5, 1.0]).sum(axis=1)
    pilot = laplace.Weighted(shared, {}, weight, wanted)
    found = laplace._taught(pilot)
    assert found.freedom < laplace._normal(2).freedom
    np.testing.assert_allclose(found.center, [0.5, 0.0], atol=0.05)
    np.testing.assert_allclose(found.root @ found.root.T, np.diag([0.64, 1.0]), atol=0.05)
    few = laplace._taught(jax.tree.map(lambda leaf: leaf[:30], pilot))
    assert np.linalg.eigvalsh(few.root @ few.root.T).min() > 0.05


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
    with pytest.raises(ValueError, match="different classifiers"):
        approximate.distance(posterior(draws, ["a"]), posterior(draws, ["b"]))
