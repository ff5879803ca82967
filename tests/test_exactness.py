"""Every way to draw, on densities that quadrature knows, at full and at composite weight."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from toys import Toy, around_mass, counts, following, some

from bayesrep.inference.density import build_density
from bayesrep.inference.nested_laplace import draw_weighted
from bayesrep.inference.nuts import blank_target, build_kernel
from bayesrep.inference.schedule import Schedule

pytestmark = pytest.mark.usefixtures("float64", "unannotated")

COUNTS = np.array([0.0, 2.0, 9.0])
SEEN = np.array([1.5, 2.5])
GRID = np.linspace(-6, 7, 1301)


def moments(shared, log_shared, log_own, weight):
    """Means and sds of the last shared parameter and of each unit's own, on grids.

    `log_own` [unit, shared point, own point]: what is shared has the density p Π_c p(data_c | ·)^w,
    and a unit's own, given that, the density of all its data.
    """
    own = np.exp(log_own)
    evidence = own.sum(axis=2)
    density = np.exp(log_shared + weight * np.log(evidence).sum(axis=0))
    density /= density.sum()
    found = [[density @ shared**k for k in (1, 2)]]
    for each, total in zip(own, evidence, strict=True):
        found.append([density @ (each @ GRID**k / total) for k in (1, 2)])
    mean, square = np.array(found).T
    return mean, np.sqrt(square - mean**2)


def of_counts(weight):
    """Skewed units around a normal level."""
    level = GRID[:, None]
    log_own = [
        stats.norm.logpdf(GRID, level, 0.5) + y * GRID - np.exp(GRID) - 3 * y for y in COUNTS
    ]
    return moments(GRID, stats.norm.logpdf(GRID), np.array(log_own), weight)


def of_bend(weight):
    """Normal units around a site that bends after another."""
    m = np.linspace(-5, 5, 1001)[:, None]
    prior = stats.norm.logpdf(m) + stats.norm.logpdf(GRID, m + 0.3 * m**2)
    log_shared = np.log(np.exp(prior).sum(axis=0))
    log_own = [
        stats.norm.logpdf(GRID, GRID[:, None], 1.0) + stats.norm.logpdf(seen, GRID, 2.0)
        for seen in SEEN
    ]
    return moments(GRID, log_shared, np.array(log_own), weight)


TOYS = {"counts": (counts, COUNTS, of_counts), "bend": (following, SEEN, of_bend)}


def by_laplace(toy):
    sample = around_mass(toy.density, toy.data, toy.white)
    draws, _, psis = draw_weighted(toy.density, sample, np.random.default_rng(4), 8000)
    assert psis.is_reliable
    weight = np.exp(psis.log_weight)
    return draws.position, weight / weight.sum()


def by_nuts(toy):
    schedule = Schedule(4, warmup=200, draws=2000)
    made = toy.draws(schedule, vectorized=False, workers=2)
    assert made.acceptance_rate.mean() > 0.8
    flat = {name: leaf.reshape(-1, *leaf.shape[2:]) for name, leaf in made.position.items()}
    return flat, np.full(8000, 1 / 8000)


@pytest.mark.parametrize("weight", [1.0, 0.4])
@pytest.mark.parametrize("name", TOYS)
@pytest.mark.parametrize("sampler", [by_laplace, by_nuts])
def test_draws_are_those_of_the_density(sampler, name, weight):
    """To a tenth of an sd, five standard errors of some 2,500 independent draws."""
    model, data, exact = TOYS[name]
    toy = Toy(model, jnp.asarray(data), weight)
    position, share = sampler(toy)
    sites = np.concatenate([position["shared"][:, -1:], position["units"][:, :, 0]], axis=1)
    mean, sd = exact(weight)
    found = share @ sites
    np.testing.assert_allclose((found - mean) / sd, 0, atol=0.1)
    np.testing.assert_allclose(np.sqrt(share @ (sites - found) ** 2) / sd, 1, atol=0.07)


def test_a_refused_move_leaves_a_chain_as_it_was():
    """Where a draw is, potential and gradient are; it is of as many moves as it is thinned by."""
    density = build_density(counts, jnp.asarray(COUNTS), select=some)
    target, free = blank_target(density, jnp.asarray(COUNTS), density.origin()), jnp.zeros(0)
    start, evaluate, draw = build_kernel(density, Schedule(1, warmup=0, draws=70, thinning=3))

    def each(state, _):
        state, _ = draw(state, target, free)
        return state, (state.hmc, evaluate(state, target, free).hmc)

    @jax.jit
    def chain():
        first = evaluate(start(jax.random.split(jax.random.key(0))), target, free)
        return jax.lax.scan(each, first, length=70)[1]

    found, wanted = chain()
    np.testing.assert_allclose(found.potential_energy, wanted.potential_energy, rtol=1e-10)
    np.testing.assert_allclose(found.z_grad, wanted.z_grad, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(found.i, 3 * np.arange(1, 71))
    assert 10 < np.count_nonzero(np.diff(found.z[:, 0])) < 60
