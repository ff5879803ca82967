"""The joint model's log density against a brute-force integration, and its invariants."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import zoo
from fits import hold_better_mode
from refusals import refused
from scipy import integrate, special, stats

from bayesrep import OptionError, Study, StudyError, SufficientStatistics
from bayesrep.inference import cells as cells_module
from bayesrep.inference.arrowhead import newton_direction, second_order, whitening
from bayesrep.inference.cells import evaluate
from bayesrep.inference.density import build_density
from bayesrep.inference.mode import find_mode
from bayesrep.inference.problem import Problem, pose, programs
from bayesrep.models import counts
from bayesrep.models.curve_bases import CURVE_FAMILIES
from bayesrep.models.curves import PopulationLaw, complete_terms, curve_family
from bayesrep.models.joint import joint, joint_data, joint_start
from bayesrep.models.mixtures import contrasts, mixture_offsets
from bayesrep.models.options import JointOptions
from bayesrep.studies.subset_statistics import statistics_by_group

pytestmark = pytest.mark.usefixtures("float64")

OPTIONS = JointOptions(degree=8, terms=7)
ROLES = ("reference", "replication")
MIDDLE = zoo.cut(zoo.study("tiny"), images=400)
SMALL = zoo.cut(zoo.study("tiny"), images=300, classifiers=2)


def _case(name="tiny", classifiers=3, images=400, options=OPTIONS):
    study = zoo.cut(zoo.study(name), images=images, classifiers=classifiers)
    statistics = SufficientStatistics.from_study(study)
    with jax.enable_x64(True):
        data = joint_data([statistics.cells])
        density = build_density(
            lambda d: joint(d, options), data, offsets=lambda v: mixture_offsets(v, options)
        )
        return statistics, data, density, _sites(data, options)


def _sites(data, options):
    rng = np.random.default_rng(0)
    return {
        name: np.asarray(value) + 0.1 * rng.standard_normal(np.shape(value))
        for name, value in joint_start(data, options).items()
    }


def placed(density, sites):
    """Compiled whole, as in every fit: operation by operation each would be compiled alone."""
    return jax.jit(density.to_position)(sites)


def _potential(density, sites, data):
    """Of every answer, whatever it counts for what is shared."""
    shared, units = density.potentials(placed(density, sites), data)
    return float(shared + units.sum())


def _log_prior(sites, options):
    def normal(name, location, scale):
        return stats.norm.logpdf(sites[name], location, scale).sum()

    order = np.arange(1, options.terms - 1)
    own = options.classifier_bend / order
    return (
        normal("first_location", *options.first_location)
        + normal("log_step", *options.log_step)
        + normal("log_concentration", *options.log_concentration)
        + normal("location_deviation", 0, options.location_deviation)
        + normal("concentration_deviation", 0, options.concentration_deviation)
        + normal("weight_logit", 0, options.weight)
        + stats.norm.logpdf(sites["population_curve"][0], *options.level)
        + stats.norm.logpdf(sites["population_curve"][1], *options.slope)
        + stats.multivariate_t.logpdf(
            sites["population_curve"][2:], shape=options.bend**2 * np.diag(1 / order), df=4
        )
        + normal(
            "classifier_curve",
            sites["population_curve"][:5],
            [options.classifier_level, options.classifier_slope, *own[:3]],
        )
    )


def _coefficients(sites):
    """σ(η) [C, d + 1]: five terms are a classifier's own, the finer ones all share."""
    legendre = np.polynomial.legendre.legvander(np.linspace(-1, 1, OPTIONS.degree + 1), 6)
    own, shared = sites["classifier_curve"], sites["population_curve"][5:]
    return special.expit(own @ legendre[:, :5].T + shared @ legendre[:, 5:].T)


def _mixture(sites, which, options):
    half = (-0.5, 0.5)[which]
    location = sites["first_location"] + np.concatenate([[0], np.cumsum(np.exp(sites["log_step"]))])
    mean = special.expit(location + half * sites["location_deviation"][0])
    total = np.exp(sites["log_concentration"] + half * sites["concentration_deviation"][0])
    weights = special.softmax(np.concatenate([[0], sites["weight_logit"][which]]))
    return weights, mean * total, (1 - mean) * total


@pytest.mark.parametrize(
    ("name", "grid"), [("tiny", True), ("ragged", True), ("ragged", False), ("tiny", False)]
)
def test_potential_equals_quadrature_over_s(name, grid, monkeypatch):
    """Every integral over s by Gauss-Jacobi, the rest with SciPy; no shared code."""
    if not grid:
        monkeypatch.setattr(counts, "_fits_grid", lambda _: False)
    statistics, data, density, sites = _case(name)
    log_density = _log_prior(sites, OPTIONS)
    coefficients = _coefficients(sites)
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
    ours = -_potential(density, sites, data)
    assert abs(ours - log_density) < 1e-8 * abs(log_density)


def test_adjusted_accuracy_is_the_integral_under_the_reference():
    _, data, density, sites = _case()
    values = jax.jit(density.quantities)(placed(density, sites), data)
    weights, a, b = _mixture(sites, 0, OPTIONS)
    coefficients = _coefficients(sites)
    j = np.arange(OPTIONS.degree + 1)
    wanted = sum(
        w * coefficients @ stats.betabinom(OPTIONS.degree, aj, bj).pmf(j)
        for w, aj, bj in zip(weights, a, b, strict=True)
    )
    np.testing.assert_allclose(values["adjusted_accuracy"], wanted, rtol=1e-10)
    np.testing.assert_allclose(
        values["mean_selection_frequency"][0], weights @ (a / (a + b)), rtol=1e-12
    )


@pytest.mark.parametrize("grid", [True, False])
@pytest.mark.parametrize("curve", ["bernstein", "spline"])
def test_gradient_has_no_scatter_and_no_gather(grid, curve, monkeypatch):
    if not grid:
        monkeypatch.setattr(counts, "_fits_grid", lambda _: False)
    options = JointOptions(degree=8, curve=curve)
    _, data, density, sites = _case("ragged", options=options)
    position = placed(density, sites)
    text = jax.jit(jax.grad(density.potential)).lower(position, data).as_text()
    assert "scatter" not in text
    assert "gather" not in text


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("tiny", JointOptions()),
        ("ragged", JointOptions(components=3, shared_components=False)),
        ("tiny", JointOptions(curve="spline")),
        ("tiny", JointOptions(curve="gp", monotone=True)),
    ],
)
def test_compiled_gradient_is_the_one_of_finite_differences(name, options, as_shipped):
    """XLA 0.10 was seen to compile a wrong gradient of a model of images for the CPU.

    So as it is shipped, beside a value compiled without optimization.
    """
    _, data, density, sites = _case(name, classifiers=2, images=200, options=options)
    flat, back = jax.flatten_util.ravel_pytree(placed(density, sites))
    both = jax.jit(
        jax.value_and_grad(lambda v, d: density.potential(back(v), d)), compiler_options=as_shipped
    )
    value, gradient = both(flat, data)
    plain = jax.jit(density.potential)(back(flat), data)
    assert float(value) == pytest.approx(float(plain), rel=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(4):
        along, step = rng.standard_normal(flat.shape), 1e-4
        ends = [float(both(flat + sign * step * along, data)[0]) for sign in (1, -1)]
        wanted = (ends[0] - ends[1]) / (2 * step)
        assert float(gradient @ along) == pytest.approx(wanted, rel=1e-5, abs=1e-4)


def test_second_order_is_the_value_the_gradient_and_the_hessian():
    _, data, density, sites = _case()
    position = placed(density, sites)
    flat, unravel = jax.flatten_util.ravel_pytree(position)

    def potential(v):
        return density.potential(unravel(v), data)

    dense = jax.jit(jax.hessian(potential))(flat)
    value, slope = jax.jit(jax.value_and_grad(potential))(flat)
    found = jax.jit(lambda at: second_order(lambda p: density.potential(p, data), at))(position)
    np.testing.assert_allclose(found.value, value, rtol=1e-12)
    gradient = jax.flatten_util.ravel_pytree(found.gradient)[0]
    np.testing.assert_allclose(gradient, slope, rtol=1e-8, atol=1e-8)
    blocks = found.hessian
    shared, (units, each) = density.shared, position["units"].shape
    np.testing.assert_allclose(blocks.shared, dense[:shared, :shared], rtol=1e-8, atol=1e-8)
    for c in range(units):
        rows = slice(shared + c * each, shared + (c + 1) * each)
        np.testing.assert_allclose(blocks.units[c], dense[rows, rows], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(blocks.cross[c], dense[rows, :shared], rtol=1e-8, atol=1e-8)
        others = np.delete(dense[rows, shared:], np.s_[c * each : (c + 1) * each], axis=1)
        np.testing.assert_allclose(others, 0, atol=1e-8)


def test_whitening_standardises_at_the_mode_and_newton_solves():
    _, data, tools = _posed(MIDDLE, degree=OPTIONS.degree, terms=OPTIONS.terms)
    density = tools.density
    start = placed(density, _sites(data, OPTIONS))
    away, unravel = jax.flatten_util.ravel_pytree(start)

    def potential(v):
        return density.potential(unravel(v), data)

    mode = find_mode(tools.expand, start, data)
    assert mode.decrement <= 1e-6
    dense = np.asarray(
        jax.jit(jax.hessian(potential))(jax.flatten_util.ravel_pytree(mode.position)[0])
    )
    white = whitening(mode.expansion.hessian, mode.position)
    root = np.asarray(
        jax.jit(jax.jacobian(lambda v: jax.flatten_util.ravel_pytree(white(unravel(v)))[0]))(away)
    )
    # Of the weighted potential a unit's own spread is not the inverse: w of it is.
    weight = np.where(np.arange(len(away)) < density.shared, 1.0, float(data.weight))
    assert 0.1 < data.weight < 0.9
    np.testing.assert_allclose(root.T @ dense @ root, np.diag(weight), atol=1e-6)

    gradient = jax.jit(jax.grad(potential))(away)
    for held in (0, 4):
        step = newton_direction(mode.expansion.hessian, unravel(gradient), n_fixed=held)
        wanted = np.zeros(len(away))
        wanted[held:] = -np.linalg.solve(dense[held:, held:], gradient[held:])
        found = np.concatenate([step["shared"], step["units"].ravel()])
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)


def test_the_search_for_the_mode_ends_at_the_better_of_two():
    hold_better_mode(zoo.study("tiny"))


def test_the_mode_given_held_parameters_is_that_of_the_others():
    _, data, tools = _posed(MIDDLE, degree=OPTIONS.degree, terms=OPTIONS.terms)
    start = placed(tools.density, _sites(data, OPTIONS))
    mode = find_mode(tools.expand, start, data, n_fixed=4)
    np.testing.assert_array_equal(mode.position["shared"][:4], start["shared"][:4])
    slope = mode.expansion.gradient
    assert np.abs(slope["shared"][:4]).max() > 0.1
    np.testing.assert_allclose(slope["shared"][4:], 0, atol=1e-2)
    np.testing.assert_allclose(slope["units"], 0, atol=1e-2)

    # Coordinates of held parameters with a spread of their own: the others have their conditional
    # precision, and what all move along with the held ones is the conditional mode, to first order.
    spread = np.linalg.cholesky(np.eye(4) + 0.5)
    white = whitening(mode.expansion.hessian, mode.position, fixed_root=spread)
    np.testing.assert_array_equal(white.to_shared[:4, :4], spread)
    np.testing.assert_array_equal(white.to_shared[:4, 4:], 0)
    shared, cross, units, _ = map(np.asarray, mode.expansion.hessian)
    zero = np.zeros_like(start["units"])
    for axis in np.eye(tools.density.shared):
        moved = white(mode.position | {"shared": jnp.asarray(axis), "units": jnp.asarray(zero)})
        by = {name: np.asarray(moved[name] - mode.position[name]) for name in moved}
        force = shared @ by["shared"] + np.einsum("cqp,cq->p", cross, by["units"])
        own = np.einsum("cqp,p->cq", cross, by["shared"])
        own = own + np.einsum("cqr,cr->cq", units, by["units"])
        np.testing.assert_allclose(own, 0, atol=1e-7)
        if axis[:4].any():
            np.testing.assert_allclose(force[4:], 0, atol=1e-6)
        else:
            assert by["shared"] @ force == pytest.approx(1, rel=1e-8)


def test_sites_survive_the_round_trip():
    _, _, density, sites = _case()
    back = jax.jit(density.to_sites)(placed(density, sites))
    for name, value in sites.items():
        np.testing.assert_allclose(back[name], value, rtol=1e-14)
    flat = jax.flatten_util.ravel_pytree(density.to_position(sites))[0]
    assert flat.shape == (density.shared + density.units * density.per_unit,)


def _posed(study, **options):
    groups, datasets = options.pop("groups", None), options.pop("datasets", ROLES)
    problem = pose(study, model="joint", options=options, groups=groups, datasets=datasets)
    data = problem.data()
    return problem, data, programs(problem, data)


def _at_sites(problem: Problem, data, tools):
    sites = _sites(data, problem.options)
    position = placed(tools.density, sites)
    one = jax.tree.map(lambda leaf: leaf[None, None], position)
    values = evaluate(one, [(tools, data, np.arange(1))])
    return sites, position, {name: value[0, 0] for name, value in values.items()}


def test_equal_draws_are_evaluated_once(monkeypatch):
    """Repeats in any order, in parts whose last begins within the one before."""
    problem, data, tools = _posed(zoo.study("tiny"))
    start = tools.density.origin()
    random = np.random.default_rng(0)
    draws = {
        name: np.asarray(leaf) + 0.1 * random.standard_normal((1, 9, *jnp.shape(leaf)))
        for name, leaf in start.items()
    }
    again = random.permutation(np.repeat(np.arange(9), [1, 3, 1, 1, 7, 1, 2, 1, 1]))
    monkeypatch.setattr(cells_module, "MAX_DRAWS_PER_CALL", 4)
    wanted = evaluate(draws, [(tools, data, np.arange(9))])
    made = []

    def quantities_of(some, data):
        made.append(len(some["shared"]))
        return tools.quantities(some, data)

    counted = tools._replace(quantities=quantities_of)
    repeated = {name: leaf[:, again] for name, leaf in draws.items()}
    found = evaluate(repeated, [(counted, data, np.arange(len(again)))])
    assert made == [4, 4, 4]
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name], values[:, again], rtol=1e-12, atol=1e-14)
    few = {name: leaf[:, [0, 0, 1, 0]] for name, leaf in draws.items()}
    found, name = evaluate(few, [(counted, data, np.arange(4))]), "adjusted_accuracy"
    np.testing.assert_allclose(found[name], wanted[name][:, [0, 0, 1, 0]], rtol=1e-12)
    assert made == [4, 4, 4, 4]  # and no program for two


def _density(values, which):
    """p(s) of one data set as a function of s."""
    mean, total, weight = (
        values[f"component_{name}"][which] for name in ("mean", "concentration", "weight")
    )
    return lambda s: sum(
        w * stats.beta.pdf(s, m * t, (1 - m) * t)
        for m, t, w in zip(mean, total, weight, strict=True)
    )


@pytest.mark.parametrize(("curve", "monotone"), [("spline", True), ("gp", False)])
def test_curves_on_quadrature_nodes_are_integrated(curve, monotone):
    """Cell and adjusted accuracies against adaptive quadrature of the interpolated curve."""
    problem, data, tools = _posed(SMALL, curve=curve, monotone=monotone)
    sites, _, values = _at_sites(problem, data, tools)
    family = problem.options.family()
    own, population = map(jnp.asarray, (sites["classifier_curve"], sites["population_curve"]))
    eta = np.asarray(family.logit(complete_terms(own, population)))[1]
    if monotone:
        assert (np.diff(eta) >= 0).all()

    def g(s):
        return special.expit(np.interp(s, family.points, eta))

    inner = np.unique(np.round(family.points, 6))

    def integral(function):
        return integrate.quad(function, 0, 1, points=inner, limit=900)[0]

    reference, replication = _density(values, 0), _density(values, 1)
    adjusted = integral(lambda s: g(s) * reference(s))
    assert abs(adjusted - values["adjusted_accuracy"][1]) < 2e-4
    for k in (0, 4, 8):

        def mass(s, k=k):
            return replication(s) * stats.binom.pmf(k, 8, s)

        right = integral(lambda s, mass=mass: g(s) * mass(s)) / integral(mass)
        assert abs(right - values["cell_accuracy"][1, 0, k]) < 2e-4


def test_bends_of_the_population_are_a_student_t():
    """Density and draws by SciPy's."""
    options = JointOptions(terms=4, bend=0.3)
    priors = options.curve_priors()
    law = PopulationLaw(priors)
    points = np.random.default_rng(0).standard_normal((5, 4))
    found = np.asarray(jax.vmap(law.log_prob)(points))
    t = stats.multivariate_t(shape=0.09 * np.diag([1, 1 / 2]), df=4)
    line = stats.norm.logpdf(points[:, :2], priors.mean[:2], priors.population[:2]).sum(axis=1)
    np.testing.assert_allclose(found, line + t.logpdf(points[:, 2:]), rtol=1e-10)
    draws = np.asarray(law.sample(jax.random.key(0), (4000,)))
    squares = np.square((draws - priors.mean) / priors.population)
    assert stats.kstest(squares[:, :2].sum(axis=1), stats.chi2(2).cdf).pvalue > 0.01
    assert stats.kstest(squares[:, 2:].sum(axis=1) / 2, stats.f(2, 4).cdf).pvalue > 0.01


def test_hilbert_space_basis_is_numpyros():
    from numpyro.contrib.hsgp.laplacian import eigenfunctions
    from numpyro.contrib.hsgp.spectral_densities import (
        diag_spectral_density_squared_exponential,
    )

    family = curve_family("gp", 1, 8, monotone=False)
    theirs = eigenfunctions(jnp.asarray(family.points - 0.5), ell=0.75, m=6)
    np.testing.assert_allclose(family.basis[:, 2:], theirs, atol=1e-12)
    spectral = diag_spectral_density_squared_exponential(1.0, 0.25, 0.75, m=6, dim=1)
    np.testing.assert_allclose(family.own_scale, np.sqrt(spectral), rtol=1e-10)
    np.testing.assert_allclose(family.scale / family.own_scale, 4.0, rtol=1e-12)


def test_spline_bends_have_a_random_walk_of_second_order():
    """The prior covariance of the curve is that of coefficients with normal second differences."""
    family = curve_family("spline", 1, 9, monotone=False)
    covariance = (family.basis[:, 2:] * family.scale**2) @ family.basis[:, 2:].T
    assert np.linalg.matrix_rank(covariance) == 7
    line = np.linalg.lstsq(family.basis[:, :2], family.points, rcond=None)[0]
    np.testing.assert_allclose(family.basis[:, :2] @ line, family.points, atol=1e-12)
    inside = (family.points > 0.01) & (family.points < 0.99)
    amplitude = np.sqrt(np.diag(covariance))[inside]
    assert 0.01 < amplitude.min() <= amplitude.max() < 2


def test_separate_components_have_no_deviations():
    problem, data, tools = _posed(SMALL, shared_components=False, components=3)
    sites, _, values = _at_sites(problem, data, tools)
    assert "location_deviation" not in tools.density.sites
    steps = np.exp(sites["log_step"])
    wanted = sites["first_location"][:, None] + np.cumsum(np.pad(steps, ((0, 0), (1, 0))), axis=1)
    np.testing.assert_allclose(values["component_mean"], special.expit(wanted), rtol=1e-12)


def test_one_component_has_neither_steps_nor_weights():
    problem, data, tools = _posed(SMALL, components=1)
    values = _at_sites(problem, data, tools)[2]
    dims = problem.model.dims(data, problem.options)
    assert set(dims) <= set(values)
    np.testing.assert_array_equal(values["component_weight"], np.ones((2, 1)))


def test_three_data_sets_deviate_alike():
    """Any two data sets' differences have the prior sd of the deviation."""
    study = zoo.cut(zoo.study("tiny"), images=300, classifiers=2)
    more = Study({**study.datasets, "top-images": _renamed(study.reference)}, study.classifiers)
    datasets = (*ROLES, "top-images")
    problem, data, tools = _posed(more, datasets=datasets, location_deviation=0.3)
    sites, _, values = _at_sites(problem, data, tools)
    assert sites["location_deviation"].shape == (2, 2)
    assert values["component_mean"].shape == (3, 2)
    assert values["accuracy_under"].shape == (2, 3)
    np.testing.assert_allclose(values["accuracy_under"][:, 0], values["adjusted_accuracy"])
    for sets in (2, 3, 5):
        spread = contrasts(sets)
        np.testing.assert_allclose(spread.sum(axis=0), 0, atol=1e-12)
        for i in range(sets):
            for j in range(i):
                assert abs(np.sum((spread[i] - spread[j]) ** 2) - 1) < 1e-12
    lacks = {"data_sets": ["top-images"]}
    with refused(StudyError, "study-lacks-data-sets", lacks):
        _posed(study, datasets=datasets)


def _renamed(data):
    return replace(data, name="top")


def _grouped():
    study = zoo.cut(zoo.study("tiny"), images=400, classifiers=2)
    rng = np.random.default_rng(0)
    return Study(
        {
            role: replace(data, groups={"superclass": rng.choice(["bird", "dog"], 400)})
            for role, data in study.datasets.items()
        },
        study.classifiers,
    )


def test_groups_that_do_not_differ_are_the_model_without_groups():
    """With group effects at 0 and equal weights the likelihood is the plain one."""
    study = _grouped()
    problem, data, tools = _posed(study, groups="superclass")
    plain, plain_data, plain_tools = _posed(study)
    sites = _sites(plain_data, plain.options)
    weight = np.asarray(sites["weight_logit"])
    grouped = {
        **sites,
        "group_weight_logit": np.repeat(weight[:, None], 2, axis=1),
        "group_effect": np.zeros(2),
        "classifier_group_effect": np.zeros((2, 2)),
    }
    ours = _potential(tools.density, grouped, data)
    extra = -stats.norm.logpdf(0, 0, problem.options.group_weight) * weight.size * 2
    extra -= 2 * stats.norm.logpdf(0, 0, problem.options.group_level)
    extra -= 4 * stats.norm.logpdf(0, 0, problem.options.classifier_group_level)
    wanted = _potential(plain_tools.density, sites, plain_data) + extra
    assert abs(ours - wanted) < 1e-8 * abs(wanted)


def test_overall_accuracy_is_the_groups_by_their_share_of_the_reference():
    study = _grouped()
    problem, data, tools = _posed(study, groups="superclass")
    values = _at_sites(problem, data, tools)[2]
    share = [np.mean(study.reference.groups["superclass"] == name) for name in problem.groups]
    by_group = values["group_adjusted_accuracy"]
    np.testing.assert_allclose(by_group @ share, values["adjusted_accuracy"], rtol=1e-12)
    assert problem.groups == ("bird", "dog")
    parts = statistics_by_group(study, "superclass")
    assert sum(part.reference.images.sum() for part in parts.values()) == 400


def test_accuracy_under_a_data_set_is_the_groups_by_its_own_shares():
    """Of data sets with the same mixtures, one of them with other shares of the groups."""
    study = _grouped()
    most = {"superclass": np.repeat(["bird", "dog"], [300, 100])}
    more = {**study.datasets, "top-images": replace(_renamed(study.reference), groups=most)}
    problem, data, tools = _posed(
        Study(more, study.classifiers), groups="superclass", datasets=[*more]
    )
    sites = dict(joint_start(data, problem.options))
    sites["classifier_group_effect"] = np.array([[0.5, -1.0], [-0.3, 0.8]])
    position = placed(tools.density, jax.tree.map(np.asarray, sites))
    one = jax.tree.map(lambda leaf: leaf[None, None], position)
    values = evaluate(one, [(tools, data, np.arange(1))])
    by_group, found = (values[name][0, 0] for name in ("group_adjusted_accuracy", "accuracy_under"))
    for place, each in enumerate(more.values()):
        share = [np.mean(each.groups["superclass"] == name) for name in problem.groups]
        np.testing.assert_allclose(found[:, place], by_group @ share, rtol=1e-10)


def test_groups_refused():
    study = _grouped()
    with refused(StudyError, "data-set-without-group-column", {"column": "breed"}):
        _posed(study, groups="breed")
    with refused(OptionError, "groups-need-study"):
        _posed(SufficientStatistics.from_study(study), groups="superclass")
    lonely = replace(study.reference, groups={"superclass": np.repeat(["bird", "cat"], 200)})
    with refused(StudyError, "group-missing-in-data-set", {"groups": ["cat", "dog"]}):
        _posed(
            Study({**study.datasets, "reference": lonely}, study.classifiers), groups="superclass"
        )


def test_offsets_leave_the_model_alone():
    """They move sites by what the others say: inverse, and of unit Jacobian."""
    _, data, density, sites = _case()
    position = placed(density, sites)
    flat, unravel = jax.flatten_util.ravel_pytree(position)

    def to_flat_sites(vector):
        return jax.flatten_util.ravel_pytree(density.to_sites(unravel(vector)))[0]

    jacobian = np.asarray(jax.jit(jax.jacobian(to_flat_sites))(flat))
    sign, log_size = np.linalg.slogdet(jacobian)
    assert abs(log_size) < 1e-10
    assert abs(sign) == 1
    plain = build_density(lambda d: joint(d, OPTIONS), data)
    one = _potential(density, sites, data)
    two = _potential(plain, sites, data)
    assert abs(one - two) < 1e-10 * abs(one)


SIZES, TERMS = "components-or-degree-out-of-range", "curve-terms-too-few"
FAMILIES = {"choices": ", ".join(CURVE_FAMILIES)}


@pytest.mark.parametrize(
    ("bad", "rule", "facts"),
    [
        ({"components": 0}, SIZES, {"components": 0, "most_components": 6}),
        ({"components": 7}, SIZES, {"components": 7, "most_components": 6}),
        ({"degree": 0}, SIZES, {"degree": 0}),
        ({"terms": 1}, TERMS, {"least": 2, "terms": 1}),
        ({"curve": "spline", "terms": 3}, TERMS, {"curve": "spline", "least": 4, "terms": 3}),
        ({"curve": "probit"}, "unknown-curve", {"curve": "probit", **FAMILIES}),
        ({"curve": 3}, "unknown-curve", {"curve": 3, **FAMILIES}),
        ({"weight": 0.0}, "standard-deviation-not-positive", {"option": "weight", "value": 0.0}),
        ({"components": 2.5}, "model-option-not-whole", {"option": "components", "value": 2.5}),
        ({"monotone": "yes"}, "option-not-true-or-false", {"option": "monotone"}),
        ({"monotone": True, "slope": (-1.0, 1.0)}, "monotone-slope-not-positive", {}),
        ({"slope": (1.0, -1.0)}, "prior-not-mean-and-sd", {"option": "slope"}),
    ],
)
def test_bad_options(bad, rule, facts):
    with refused(OptionError, rule, facts):
        JointOptions(**bad)
