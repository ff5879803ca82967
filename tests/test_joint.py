"""The joint model's log density against a brute-force integration, and its invariants."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from bayesrep import SufficientStatistics, simulate_study
from bayesrep.inference.arrowhead import arrowhead_hessian, newton_direction, whitening
from bayesrep.inference.density import build_density, ravel
from bayesrep.inference.mode import climb
from bayesrep.models.joint import JointOptions, joint, joint_data, joint_start

OPTIONS = JointOptions(degree=8, terms=3)


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def _case(annotators=8, classifiers=3, images=400, options=OPTIONS):
    study = simulate_study(seed=2, images=images, annotators=annotators, classifiers=classifiers)
    statistics = SufficientStatistics.from_study(study)
    with jax.enable_x64(True):
        data = joint_data(statistics)
        density = build_density(lambda d: joint(d, options), data)
        rng = np.random.default_rng(0)
        sites = {
            name: np.asarray(value) + 0.1 * rng.standard_normal(np.shape(value))
            for name, value in joint_start(data, options).items()
        }
        return statistics, data, density, sites


def _log_prior(sites, options):
    def normal(name, location, scale):
        return stats.norm.logpdf(sites[name], location, scale).sum()

    bends = options.bend / np.arange(1, options.terms - 1)
    own = options.classifier_bend / np.arange(1, options.terms - 1)
    return (
        normal("first_location", *options.first_location)
        + normal("log_step", *options.log_step)
        + normal("log_concentration", *options.log_concentration)
        + normal("location_deviation", 0, options.location_deviation)
        + normal("concentration_deviation", 0, options.concentration_deviation)
        + normal("weight_logit", 0, options.weight)
        + normal(
            "population_curve",
            [options.level[0], options.slope[0], *np.zeros(len(bends))],
            [options.level[1], options.slope[1], *bends],
        )
        + normal(
            "classifier_curve",
            sites["population_curve"],
            [options.classifier_level, options.classifier_slope, *own],
        )
    )


def _mixture(sites, which, options):
    half = (-0.5, 0.5)[which]
    location = sites["first_location"] + np.concatenate([[0], np.cumsum(np.exp(sites["log_step"]))])
    mean = special.expit(location + half * sites["location_deviation"])
    total = np.exp(sites["log_concentration"] + half * sites["concentration_deviation"])
    weights = special.softmax(np.concatenate([[0], sites["weight_logit"][which]]))
    return weights, mean * total, (1 - mean) * total


@pytest.mark.parametrize("annotators", [8, (3, 8)])
def test_potential_equals_quadrature_over_s(annotators):
    """Every integral over s by Gauss-Jacobi, the rest with SciPy; no shared code."""
    statistics, data, density, sites = _case(annotators)
    log_density = _log_prior(sites, OPTIONS)
    legendre = np.polynomial.legendre.legvander(np.linspace(-1, 1, OPTIONS.degree + 1), 2)
    coefficients = special.expit(sites["classifier_curve"] @ legendre.T)
    for which, cells in enumerate((statistics.reference, statistics.replication)):
        weights, a, b = _mixture(sites, which, OPTIONS)
        mass = np.zeros(len(cells.images))
        right = np.zeros((len(coefficients), len(cells.images)))
        for w, aj, bj in zip(weights, a, b, strict=True):
            s, q = special.roots_sh_jacobi(80, aj + bj - 1, aj)
            choose = stats.binom.pmf(cells.selected[:, None], cells.shown[:, None], s)
            joint_mass = w * choose * q / q.sum()  # [M, S]
            j = np.arange(OPTIONS.degree + 1)
            curve = coefficients @ stats.binom.pmf(j[:, None], OPTIONS.degree, s)  # [C, S]
            mass += joint_mass.sum(axis=1)
            right += curve @ joint_mass.T
        choices = special.gammaln(cells.shown + 1) - special.gammaln(cells.selected + 1)
        choices = choices - special.gammaln(cells.shown - cells.selected + 1)
        log_density += cells.images @ (np.log(mass) - choices)
        if which == 1:
            accuracy, y = right / mass, cells.correct.T
            log_density += (y * np.log(accuracy)).sum()
            log_density += ((cells.images - y) * np.log1p(-accuracy)).sum()
    ours = -density.potential(density.to_position(sites), data)
    assert abs(float(ours) - log_density) < 1e-8 * abs(log_density)


def test_adjusted_accuracy_is_the_integral_under_the_reference():
    _, data, density, sites = _case()
    values = density.quantities(density.to_position(sites), data)
    weights, a, b = _mixture(sites, 0, OPTIONS)
    legendre = np.polynomial.legendre.legvander(np.linspace(-1, 1, OPTIONS.degree + 1), 2)
    coefficients = special.expit(sites["classifier_curve"] @ legendre.T)
    j = np.arange(OPTIONS.degree + 1)
    wanted = sum(
        w * coefficients @ stats.betabinom(OPTIONS.degree, aj, bj).pmf(j)
        for w, aj, bj in zip(weights, a, b, strict=True)
    )
    np.testing.assert_allclose(values["adjusted_accuracy"], wanted, rtol=1e-10)
    np.testing.assert_allclose(
        values["mean_selection_frequency"][0], weights @ (a / (a + b)), rtol=1e-12
    )


def test_gradient_has_no_scatter_and_no_gather():
    _, data, density, sites = _case(annotators=(3, 8))
    position = density.to_position(sites)
    text = jax.jit(jax.grad(density.potential)).lower(position, data).as_text()
    assert "scatter" not in text
    assert "gather" not in text


def test_arrowhead_is_the_hessian():
    _, data, density, sites = _case()
    position = density.to_position(sites)
    flat, unravel = jax.flatten_util.ravel_pytree(position)
    dense = jax.hessian(lambda v: density.potential(unravel(v), data))(flat)
    blocks = arrowhead_hessian(lambda p: density.potential(p, data), position)
    shared, (units, each) = density.shared, position["units"].shape
    np.testing.assert_allclose(blocks.shared, dense[:shared, :shared], rtol=1e-8, atol=1e-8)
    for c in range(units):
        rows = slice(shared + c * each, shared + (c + 1) * each)
        np.testing.assert_allclose(blocks.units[c], dense[rows, rows], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(blocks.cross[c], dense[rows, :shared], rtol=1e-8, atol=1e-8)
        others = np.delete(dense[rows, shared:], np.s_[c * each : (c + 1) * each], axis=1)
        np.testing.assert_allclose(others, 0, atol=1e-8)


def test_whitening_standardises_at_the_mode_and_newton_solves():
    _, data, density, sites = _case()

    def potential(position):
        return density.potential(position, data)

    mode = climb(density, density.to_position(sites), data)
    assert float(mode.decrement) <= 1e-6
    hessian = arrowhead_hessian(potential, mode.position)
    white = whitening(hessian, mode.position)
    zero = jax.tree.map(jnp.zeros_like, mode.position)
    flat, unravel = jax.flatten_util.ravel_pytree(zero)
    identity = jax.hessian(lambda v: potential(white(unravel(v))))(flat)
    np.testing.assert_allclose(identity, np.eye(len(flat)), atol=1e-6)

    gradient = jax.grad(potential)(density.to_position(sites))
    step = newton_direction(hessian, gradient)
    dense = jax.hessian(lambda v: potential(unravel(v)))(
        jax.flatten_util.ravel_pytree(mode.position)[0]
    )
    np.testing.assert_allclose(
        dense @ jax.flatten_util.ravel_pytree(step)[0],
        -jax.flatten_util.ravel_pytree(gradient)[0],
        rtol=1e-6,
        atol=1e-6,
    )


def test_sites_survive_the_round_trip():
    _, _, density, sites = _case()
    back = density.to_sites(density.to_position(sites))
    for name, value in sites.items():
        np.testing.assert_array_equal(back[name], value)
    assert ravel(density.to_position(sites)).shape == (
        density.shared + density.units * density.per_unit,
    )


def test_permuting_classifiers_permutes_the_density():
    statistics, data, density, sites = _case()
    order = [2, 0, 1]
    moved = data._replace(
        correct=data.correct[jnp.array(order)], wrong=data.wrong[jnp.array(order)]
    )
    permuted = {**sites, "classifier_curve": sites["classifier_curve"][order]}
    one = density.potential(density.to_position(sites), data)
    two = density.potential(density.to_position(permuted), moved)
    assert abs(float(one - two)) < 1e-9 * abs(float(one))


@pytest.mark.parametrize("bad", [{"components": 0}, {"degree": 0}, {"terms": 1}])
def test_bad_options(bad):
    with pytest.raises(ValueError, match="needs components"):
        JointOptions(**bad)
