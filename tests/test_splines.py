"""Splines, their integrals under betas and bounded least squares, against independent code."""

import jax
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, stats

from bayesrep.numerics.beta_splines import (
    GRID_POINTS,
    expected_bsplines,
    published_grid,
    published_sum,
)
from bayesrep.numerics.least_squares import BOUND_TOLERANCE, bounded_least_squares
from bayesrep.numerics.splines import (
    KNOTS,
    N_COEFFICIENTS,
    bspline_basis,
    bsplines_in_truncated_powers,
    truncated_power_basis,
)

pytestmark = pytest.mark.usefixtures("float64")

Floats = NDArray[np.float64]


# --- bases ------------------------------------------------------------------------------------


def test_both_bases_span_the_same_curves():
    s = np.linspace(0, 1, 501)
    through = truncated_power_basis(s) @ bsplines_in_truncated_powers()
    np.testing.assert_allclose(through, bspline_basis(s), atol=1e-11)


def test_truncated_powers_are_the_papers():
    expected = [1, 0.8, 0.64, 0.512, 0.3**3, 0.1**3, 0]
    np.testing.assert_allclose(truncated_power_basis(np.array([0.8]))[0], expected, rtol=1e-12)


def test_bsplines_are_positive_and_sum_to_one():
    basis = bspline_basis(np.linspace(0, 1, 501))
    assert basis.shape == (501, N_COEFFICIENTS)
    assert (basis >= 0).all()
    np.testing.assert_allclose(basis.sum(axis=1), 1, rtol=1e-12)


# --- integrals --------------------------------------------------------------------------------

SHAPES = [0.01, 0.3, 0.5, 1.0, 1.19, 2.5, 8.0, 17.0, 60.0, 900.0]


def moment_by_mpmath(a: float, b: float, knot: float) -> mpmath.mpf:
    """E[(s − t)³₊] under Beta(a, b), from incomplete betas of 50 digits."""
    with mpmath.workdps(50):
        a, b, t = mpmath.mpf(a), mpmath.mpf(b), mpmath.mpf(knot)
        whole = mpmath.beta(a, b)
        above = [
            mpmath.betainc(a + power, b, t, 1)
            / whole
            * mpmath.binomial(3, power)
            * (-t) ** (3 - power)
            for power in range(4)
        ]
        return mpmath.fsum(above)


def exact_moments(a: float, b: float) -> list[float]:
    """Of the truncated powers, whose sizes are known."""
    with mpmath.workdps(50):
        powers = [mpmath.rf(a, p) / mpmath.rf(mpmath.mpf(a) + b, p) for p in range(4)]
    return [float(x) for x in (*powers, *(moment_by_mpmath(a, b, t) for t in KNOTS))]


def test_expected_splines_equal_mpmath():
    """At all pairs of shapes; B-splines cancel some of the truncated powers' moments."""
    a, b = (each.ravel() for each in np.meshgrid(SHAPES, SHAPES))
    result = np.asarray(expected_bsplines(a, b))
    exact = np.array([exact_moments(*pair) for pair in zip(a, b, strict=True)])
    np.testing.assert_allclose(result, exact @ bsplines_in_truncated_powers(), atol=1e-10)
    np.testing.assert_allclose(result.sum(axis=-1), 1, rtol=0, atol=1e-12)


def test_expected_splines_equal_quadrature():
    node, weight = np.polynomial.legendre.leggauss(400)
    s, weight = (node + 1) / 2, weight / 2
    density = stats.beta.pdf(s, 3.5, 2.25)
    expected = (weight * density) @ bspline_basis(s)
    np.testing.assert_allclose(
        expected_bsplines(np.float64(3.5), np.float64(2.25)), expected, atol=1e-7
    )


def test_expected_splines_take_any_shape_of_parameters():
    a, b = np.array([[0.4, 2.0, 9.0]]), np.array([[0.7], [1.5]])
    a, b = np.broadcast_arrays(a, b)
    together = np.asarray(expected_bsplines(a, b))
    assert together.shape == (2, 3, N_COEFFICIENTS)
    alone = [expected_bsplines(*pair) for pair in zip(a.ravel(), b.ravel(), strict=True)]
    np.testing.assert_allclose(together.reshape(6, N_COEFFICIENTS), alone, atol=1e-14)


def test_the_published_sum_misses_mass_at_the_end():
    """By about these shares of P(40 of 40), as measured on the published code."""
    likelihood = stats.binom.pmf(40, 40, published_grid())[None]
    missing = {}
    for shapes in ((8, 1.2), (5, 0.6), (0.5, 0.5)):
        a, b = (np.array([each], dtype=float) for each in shapes)
        mass = np.asarray(published_sum(a, b, np.ones(1), likelihood)).sum()
        missing[shapes] = 1 - mass / stats.betabinom.pmf(40, 40, *shapes)
    expected = {(8, 1.2): 0.011, (5, 0.6): 0.12, (0.5, 0.5): 0.17}
    assert missing == pytest.approx(expected, rel=0.1)


def test_the_published_sum_is_a_left_sum_of_step_one_thousandth():
    a, b, k, n = 3.0, 2.0, 7, 12
    s = np.linspace(0, 1, GRID_POINTS)[:-1]
    integrand = stats.beta.pdf(s, a, b) * stats.binom.pmf(k, n, s)
    expected = (integrand / GRID_POINTS) @ bspline_basis(s)
    likelihood = stats.binom.pmf(k, n, published_grid())[None]
    result = published_sum(np.array([a]), np.array([b]), np.ones(1), likelihood)
    np.testing.assert_allclose(np.asarray(result)[0], expected, rtol=1e-10)


# --- bounded least squares --------------------------------------------------------------------


compiled = jax.jit(bounded_least_squares)
BOUNDS = np.linspace(0, 1, 100)  # most tests' rows, so that few shapes are compiled
CASES = 20  # data points of most tests' problems


def solve(design: Floats, target: Floats, rows: Floats, lower: float, upper: float) -> Floats:
    return np.asarray(compiled(design, target[None], rows, lower, upper))[0]


@settings(max_examples=60)
@given(st.integers(0, 2**31), st.sampled_from([0.1, 1.0, 10.0]))
def test_bounded_coefficients_equal_scipys(seed: int, spread: float):
    rng = np.random.default_rng(seed)
    design = rng.normal(size=(CASES, N_COEFFICIENTS))
    target = design @ rng.normal(0.5, spread, size=N_COEFFICIENTS) + rng.normal(size=CASES)
    expected = optimize.lsq_linear(design, target, bounds=(0, 1), method="bvls", tol=1e-14).x
    result = solve(design, target, np.eye(N_COEFFICIENTS), 0.0, 1.0)
    np.testing.assert_allclose(result, expected, atol=1e-8)


@settings(max_examples=60)
@given(st.integers(0, 2**31), st.sampled_from([0.1, 1.0, 10.0]))
def test_bounds_on_a_grid_meet_the_conditions_of_an_optimum(seed: int, spread: float):
    """Karush, Kuhn and Tucker: the gradient is a non-negative sum of normals of bounds that bind.

    The sum is found by SciPy's non-negative least squares.
    """
    rng = np.random.default_rng(seed)
    rows = bspline_basis(BOUNDS)
    design = rng.random((CASES, len(rows))) @ rows / len(rows)
    target = design @ rng.normal(0.5, spread, size=N_COEFFICIENTS) + 0.05 * rng.normal(size=CASES)
    solution = solve(design, target, rows, 2e-6, 1.0)
    value = rows @ solution
    assert (value >= 2e-6 - 2 * BOUND_TOLERANCE).all()
    assert (value <= 1 + 2 * BOUND_TOLERANCE).all()
    gradient = 2 * design.T @ (design @ solution - target)
    binding = np.concatenate([rows[value < 2e-6 + 1e-8], -rows[value > 1 - 1e-8]])
    if len(binding):
        _, left = optimize.nnls(binding.T, gradient)
    else:
        left = float(np.linalg.norm(gradient))
    assert left < 1e-7 * (1 + np.linalg.norm(2 * design.T @ target))


def test_problems_side_by_side_are_those_alone():
    rng = np.random.default_rng(0)
    rows = bspline_basis(BOUNDS)
    design, targets = rng.random((CASES, N_COEFFICIENTS)), rng.normal(size=(40, CASES))
    together = np.asarray(compiled(design, targets, rows, 0.0, 1.0))
    for target, solution in zip(targets, together, strict=True):
        np.testing.assert_allclose(solution, solve(design, target, rows, 0.0, 1.0), atol=1e-9)


def test_bounds_that_do_not_bind_change_nothing():
    rng = np.random.default_rng(1)
    design, target = rng.normal(size=(CASES, N_COEFFICIENTS)), rng.normal(size=CASES)
    free = np.linalg.lstsq(design, target, rcond=None)[0]
    np.testing.assert_allclose(
        solve(design, target, np.eye(N_COEFFICIENTS), -1e3, 1e3), free, rtol=1e-9
    )


def test_nearly_dependent_columns():
    """The truncated powers' columns nearly depend on each other; the fit is still the optimum."""
    s = np.linspace(0.3, 1, 41)
    design = truncated_power_basis(s)
    target = 0.2 + 0.6 * s**3
    solution = solve(design, target, design, 2e-6, 1.0)
    np.testing.assert_allclose(design @ solution, target, atol=1e-8)


@pytest.mark.parametrize("problems", [1, 2000])
def test_any_number_of_problems_ends(problems: int):
    """Thousands of problems with factors of their own once waited for ever."""
    rng = np.random.default_rng(2)
    designs = rng.random((problems, 10, N_COEFFICIENTS))
    targets = rng.normal(size=(problems, 1, 10))
    rows = np.eye(N_COEFFICIENTS)
    solve_all = jax.jit(jax.vmap(lambda d, t: bounded_least_squares(d, t, rows, 0.0, 1.0)))
    result = np.asarray(solve_all(designs, targets))
    assert ((result > -1e-8) & (result < 1 + 1e-8)).all()
