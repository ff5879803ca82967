"""Beta-binomial tables and Bernstein identities against independent computations."""

import itertools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from scipy import integrate, stats

from bayesrep.errors import OptionError
from bayesrep.files import sandbox
from bayesrep.numerics import settings
from bayesrep.numerics.bernstein import bernstein_basis, smooth_basis
from bayesrep.numerics.beta_binomial import (
    counts_below,
    log_binomial,
    log_cells,
    log_mixture,
    virtual_annotators,
)
from bayesrep.numerics.settings import own_settings, refuse_fork

pytestmark = pytest.mark.usefixtures("float64")

PARAMETERS = (1e-2, 0.3, 1.0, 7.5, 1e2, 1e4)


def _pmf(a, b, n):
    """The whole beta-binomial(n, a, b) through log_cells, [n + 1]."""
    return np.exp(_log_pmf(a, b, n))


def _log_pmf(a, b, n, size=None):
    """In a table for up to ``size`` annotators, as where numbers of annotators differ."""
    return _log_pmfs(np.array([a]), np.array([b]), n, size)[0]


def _log_pmfs(a, b, n, size=None):
    """The same of several components, [component, n + 1]."""
    size = n if size is None else size
    k = np.minimum(np.arange(size + 1), n)
    shown = np.full(size + 1, n)
    masses = log_cells(
        jnp.array(a),
        jnp.array(b),
        counts_below(k, size),
        counts_below(n - k, size),
        counts_below(shown, size),
    )
    return (np.asarray(masses) + log_binomial(n, k))[:, : n + 1]


def _exact(a, b, n, k):
    with mpmath.workdps(60):
        a, b = mpmath.mpf(a), mpmath.mpf(b)
        return mpmath.binomial(n, k) * mpmath.beta(a + k, b + n - k) / mpmath.beta(a, b)


@pytest.mark.parametrize("n", [1, 36, 200])
def test_beta_binomial_equals_mpmath_to_1e_10(n):
    ks = sorted({0, 1, n // 3, n // 2, n - 1, n})
    pairs = list(itertools.product(PARAMETERS, PARAMETERS))
    ours = _log_pmfs(*np.transpose(pairs), n)[:, ks]
    # Logarithms, since the mass itself may be as small as 1e-400.
    exact = [[float(mpmath.log(_exact(a, b, n, k))) for k in ks] for a, b in pairs]
    np.testing.assert_allclose(ours, exact, rtol=0, atol=1e-10)


def test_beta_binomial_equals_scipy():
    a, b = np.transpose(list(itertools.product([0.3, 7.5, 1e2], [0.3, 1.0, 1e2])))
    exact = stats.betabinom.pmf(np.arange(41), 40, a[:, None], b[:, None])
    np.testing.assert_allclose(np.exp(_log_pmfs(a, b, 40)), exact, 1e-9)


@given(a=st.floats(1e-2, 1e4), b=st.floats(1e-2, 1e4), n=st.integers(1, 200))
def test_masses_sum_to_one(a, b, n):
    with jax.enable_x64(True):
        assert abs(np.exp(_log_pmf(a, b, n, size=200)).sum() - 1) < 1e-9


@pytest.mark.parametrize("degree", [1, 24, 60])
def test_virtual_annotators_is_the_beta_binomial(degree):
    pairs = [(0.05, 3.0), (2.0, 0.7), (40.0, 5.0), (3e3, 1e3)]
    table = virtual_annotators(*map(jnp.array, np.transpose(pairs)), degree)
    exact = [[float(_exact(a, b, degree, j)) for j in range(degree + 1)] for a, b in pairs]
    np.testing.assert_allclose(table, exact, rtol=1e-10)


def test_mixture_is_the_weighted_sum():
    weights = np.array([0.2, 0.8])
    a, b, n = np.array([2.0, 9.0]), np.array([3.0, 1.5]), 20
    k = np.arange(n + 1)
    components = log_cells(
        jnp.array(a),
        jnp.array(b),
        counts_below(k, n),
        counts_below(n - k, n),
        counts_below(np.full(n + 1, n), n),
    )
    ours = np.exp(np.asarray(log_mixture(jnp.log(weights), components)) + log_binomial(n, k))
    wanted = weights[0] * _pmf(2.0, 3.0, n) + weights[1] * _pmf(9.0, 1.5, n)
    np.testing.assert_allclose(ours, wanted, rtol=1e-12)


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (8.0, 1.2), (30.0, 4.0)])
def test_bernstein_integral_under_a_beta(a, b):
    """∫ g(s) Beta(s; a, b) ds = Σ_j P(J = j) c_j, against adaptive quadrature."""
    degree, rng = 12, np.random.default_rng(5)
    c = rng.uniform(size=degree + 1)
    ours = np.asarray(virtual_annotators(jnp.array([a]), jnp.array([b]), degree)[0]) @ c

    def integrand(s):
        return float(bernstein_basis(np.array([s]), degree)[0] @ c)

    # The weight s^(a−1) (1−s)^(b−1) is handled by the rule, so endpoint singularities are exact.
    value, _ = integrate.quad(integrand, 0, 1, weight="alg", wvar=(a - 1, b - 1), epsabs=1e-13)
    assert abs(ours - value / float(mpmath.beta(a, b))) < 1e-10


@pytest.mark.parametrize(("k", "n"), [(0, 6), (4, 6), (6, 6)])
def test_bernstein_posterior_predictive(k, n):
    """Σ_j P(J = j | k, n) c_j is the posterior mean of g(s) given k of n."""
    a, b, degree = 2.5, 0.8, 9
    c = np.linspace(0.1, 0.9, degree + 1) ** 2
    table = virtual_annotators(jnp.array([a + k]), jnp.array([b + n - k]), degree)[0]
    posterior = stats.beta(a + k, b + n - k)
    value, _ = integrate.quad(
        lambda s: float(bernstein_basis(np.array([s]), degree)[0] @ c) * posterior.pdf(s),
        0,
        1,
        epsabs=1e-12,
        limit=200,
    )
    assert abs(float(table @ c) - value) < 1e-8


def test_bases():
    s = np.linspace(0, 1, 11)
    np.testing.assert_allclose(bernstein_basis(s, 7).sum(axis=1), 1, rtol=1e-13)
    np.testing.assert_allclose(bernstein_basis(s, 7) @ (np.arange(8) / 7), s, atol=1e-13)
    basis = smooth_basis(10, 3)
    x = np.linspace(-1, 1, 11)
    np.testing.assert_allclose(basis, np.stack([x**0, x, (3 * x**2 - 1) / 2], axis=1), atol=1e-13)


SETTINGS = {
    "jax_numpy_dtype_promotion": ("standard", "strict"),
    "jax_debug_nans": (False, True),
    "jax_debug_infs": (False, True),
    "jax_disable_jit": (False, True),
    "jax_check_tracer_leaks": (False, True),
    "jax_default_matmul_precision": (None, "bfloat16"),
    "jax_log_compiles": (False, True),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_our_settings_rule_inside_and_the_callers_after(name):
    ours, theirs = SETTINGS[name]
    before = jax.config.values[name]
    jax.config.update(name, theirs)
    try:
        with own_settings():
            assert getattr(jax.config, name) == ours
        assert getattr(jax.config, name) == theirs
    finally:
        jax.config.update(name, before)


def test_a_fork_of_a_process_that_has_computed_is_refused(monkeypatch):
    monkeypatch.setattr(settings, "_users", {0})
    with refused(OptionError, "forked-after-computing"):
        refuse_fork()


@pytest.mark.parametrize("kind", [AssertionError, RuntimeError])
def test_where_jax_finds_no_device_the_variable_is_named(monkeypatch, kind):
    def fail():
        raise kind("many lines\nof XLA's")

    monkeypatch.setattr(jax, "devices", fail)
    with refused(OptionError, "jax-without-device", {"asked": "JAX_PLATFORMS=cpu"}), own_settings():
        pass


def test_without_a_home_nothing_is_kept(monkeypatch):
    """As of a container's user whom no table of users has."""
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    assert sandbox._SoundFiles().file is None
