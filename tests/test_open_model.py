"""The model as NumPyro code and as functions of a flat vector: the density is that of `fit`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import zoo
from numpyro.infer.util import log_density
from refusals import refused

import bayesrep
from bayesrep.errors import OptionError
from bayesrep.inference.laplace_marginal import Marginal
from bayesrep.inference.marginal_mode import find_marginal_mode
from bayesrep.inference.mode import around_mode
from bayesrep.inference.problem import pose, programs

SMALL = {"degree": 8, "terms": 3, "components": 2}
pytestmark = pytest.mark.usefixtures("float64")


@pytest.fixture(scope="module")
def few():
    """Of which the fixed data sets are enough for NumPyro's own sampler."""
    return zoo.cut(zoo.study("tiny"), images=60)


@pytest.fixture(scope="module")
def box(few):
    return bayesrep.numpyro_model(few, **SMALL)


@pytest.fixture(scope="module")
def density_of(box):
    """Of data and sites, by NumPyro; jitted, since each operation alone would be a program."""
    return jax.jit(lambda data, sites: log_density(box.function, (data,), {}, sites)[0])


def log_law_of_chains(study, model, points, options):
    """Log density of flat vectors' parameters where chains of `fit` are, from the fit's own parts.

    A chain has ξ and the z of every classifier with the density exp(−E(ξ, z)) N(z), and returns z
    or −z in proportion to their ratios.
    """
    problem = pose(study, model=model, options=options)
    data = problem.data()
    tools = programs(problem, data)
    marginal = Marginal(tools.density)
    normal = around_mode(problem, tools, data)
    setting = find_marginal_mode(tools.density, normal, data, tools.expand)
    w = tools.density.weight(data)

    def one(shared, z):
        units, _ = marginal.conditional_normals(setting, shared)
        (here, there), own = marginal.log_ratios(setting, shared, units, jnp.stack([z, -z]))
        both = jnp.logaddexp(here, there)
        law = w * (both - jnp.log(2)).sum() - own - 0.5 * jnp.square(z).sum()
        law += jnp.sum(here - both) - units.log_volume.sum()
        position = setting.whitening({"shared": shared, "units": units.place(z)})
        return tools.density.to_sites(position), law

    return [jax.jit(one)(*point) for point in points]


@pytest.mark.parametrize(
    ("name", "model", "weight"),
    [("tiny", "joint", 0.531), ("one", "joint", 1.0), ("panels", "workers", 0.851)],
)
def test_the_density_is_that_of_the_chains_of_a_fit(name, model, weight):
    study = zoo.study(name) if model == "workers" else zoo.cut(zoo.study(name), images=60)
    box = bayesrep.numpyro_model(study, model=model, **SMALL)
    assert box.weight == pytest.approx(weight, abs=1e-3)
    random, classifiers = np.random.default_rng(0), len(study.classifiers)
    own = len(box.unravel(box.start)["classifier_curve"].T)
    shared = len(box.start) - own * classifiers
    points = [
        (random.standard_normal(shared), random.standard_normal((classifiers, own)))
        for _ in range(4)
    ]
    laws = log_law_of_chains(study, model, points, SMALL)
    left = [float(law - box.log_density(box.ravel(sites))) for sites, law in laws]
    assert max(left) - min(left) < 1e-10
    if weight == 1:  # of one classifier it is the model's own
        problem = pose(study, model=model, options=SMALL)
        tools = programs(problem, problem.data())
        for sites, _ in laws:
            there = tools.density.to_position(sites)
            plain = -float(tools.density.potential(there, problem.data()))
            assert float(box.log_density(box.ravel(sites))) == pytest.approx(plain, abs=1e-10)


def test_what_it_gives_is_of_one_piece(few, box, density_of):
    at = box.start + 0.05 * np.random.default_rng(1).standard_normal(len(box.start))
    sites = box.unravel(at)
    np.testing.assert_array_equal(box.ravel(sites), at)
    whole = density_of(*box.arguments, sites)
    assert float(box.log_density(at)) == pytest.approx(float(whole), abs=1e-10)
    step = 1e-5 * np.eye(len(at))
    for place in (0, len(at) // 2, len(at) - 1):
        up, down = (box.log_density(at + sign * step[place]) for sign in (1, -1))
        assert float(box.gradient(at)[place]) == pytest.approx(float(up - down) / 2e-5, rel=1e-4)
    quantities = box.quantities(at)
    assert set(sites) < set(quantities)
    for name, dims in box.dims.items():
        assert len(dims) == jnp.ndim(quantities[name]), name
        for dim, size in zip(dims, jnp.shape(quantities[name]), strict=True):
            assert len(box.coords.get(dim, range(size))) == size, (name, dim)
    assert box.coords["classifier"] == list(few.classifiers)
    assert repr(box) == f"<NumpyroModel: {len(at)} parameters, weight {box.weight:.3g}>"


def test_with_a_weight_of_one_it_is_the_plain_model(few, box, density_of):
    """As the page says, whatever images classifiers share."""
    assert box.weight < 1
    sites = box.unravel(box.start)
    data = box.arguments[0]._replace(weight=jnp.ones(()))
    problem = pose(few, model="joint", options=SMALL)
    tools = programs(problem, problem.data())
    shared, units = tools.density.potentials(tools.density.to_position(sites), problem.data())
    found = density_of(data, sites)
    assert float(found) == pytest.approx(-float(shared + units.sum()), abs=1e-10)


def test_without_64_bit_floats_it_says_how_to_get_them(box):
    with jax.enable_x64(new_val=False):
        for use in (box.log_density, box.gradient, box.unravel, box.quantities):
            with refused(OptionError, "model-needs-float64"):
                use(np.asarray(box.start, dtype=np.float32))
        with refused(OptionError, "model-needs-float64"):
            log_density(box.function, box.arguments, {}, {})


def test_what_fit_refuses_is_refused(few):
    with refused(OptionError, "unknown-model-option", {"options": ["degre"], "model": "joint"}):
        bayesrep.numpyro_model(few, degre=8)
    with refused(OptionError, "unknown-model", {"model": "probit"}):
        bayesrep.numpyro_model(few, model="probit")
