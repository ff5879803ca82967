"""Accuracy curves by equation 8: recovery, losses, bounds, and the published implementation."""

import json
from typing import Any

import jax
import numpy as np
import pytest
from curve_studies import small_study
from numpy.typing import NDArray
from published import DATA
from refusals import refused
from scipy import integrate, optimize, stats

from bayesrep import OptionError, Study
from bayesrep.estimators.betas import Betas
from bayesrep.estimators.em_spline import EMSpline, fit_curves_given, fit_parametric
from bayesrep.estimators.mixtures import CellTable, MixtureFit, complete_cells, fit_mixtures
from bayesrep.estimators.replicates import Replicates
from bayesrep.estimators.spline import SplineCells, bounded_rows, equation_8, fit_curves
from bayesrep.numerics.beta_splines import published_grid
from bayesrep.numerics.splines import (
    bspline_basis,
    bsplines_in_truncated_powers,
    truncated_power_basis,
)
from bayesrep.studies.statistics import SufficientStatistics

pytestmark = pytest.mark.usefixtures("float64")

Floats = NDArray[np.float64]
CASE_A = DATA / "engstrom-reference"

A, B, WEIGHTS = np.array([2.0, 9.0]), np.array([1.5, 1.2]), np.array([0.3, 0.7])


def design_of(n: int, quadrature: str = "exact") -> Floats:
    k = np.arange(n + 1)
    cells = SplineCells.from_cells(k, np.full(n + 1, n), quadrature)
    return np.asarray(equation_8(Betas(A, B, WEIGHTS), np.ones(n + 1), cells))


# --- equation 8 -------------------------------------------------------------------------------


def test_rows_are_the_integrals_of_equation_8():
    n = 9
    design = design_of(n)
    for k in (0, 4, 9):
        for j in (0, 3, 6):

            def integrand(s: float, k: int = k, j: int = j) -> float:
                density = WEIGHTS @ stats.beta.pdf(s, A, B)
                return bspline_basis(np.array([s]))[0, j] * stats.binom.pmf(k, n, s) * density

            expected, _ = integrate.quad(integrand, 0, 1, points=[0.5, 0.7, 0.9])
            assert design[k, j] == pytest.approx(expected, rel=1e-7, abs=1e-10)


def test_rows_sum_to_the_masses():
    mass = stats.betabinom.pmf(np.arange(41)[:, None], 40, A, B) @ WEIGHTS
    np.testing.assert_allclose(design_of(40).sum(axis=1), mass, rtol=1e-10)


def test_cells_of_different_n_share_the_images():
    """A quarter of the images have 2 annotators, the others 3: each block sums to its share."""
    shown = np.array([2, 2, 2, 3, 3, 3, 3])
    selected = np.array([0, 1, 2, 0, 1, 2, 3])
    images = np.array([5, 5, 15, 25, 25, 0, 25.0])
    cells = SplineCells.from_cells(selected, shown, "exact")
    design = np.asarray(equation_8(Betas(A, B, WEIGHTS), images, cells))
    assert design[:3].sum() == pytest.approx(0.25)
    assert design[3:].sum() == pytest.approx(0.75)


# --- curves -----------------------------------------------------------------------------------

LOSSES = ("least-squares", "weighted", "binomial")
BOUNDS = ("grid", "everywhere")
TRUE_CURVE = np.array([0.05, 0.1, 0.3, 0.5, 0.75, 0.85, 0.95])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bounds", BOUNDS)
def test_a_curve_without_noise_is_found(loss: str, bounds: str):
    design = design_of(40)
    images = 1e6 * design.sum(axis=1)
    correct = 1e6 * design @ TRUE_CURVE
    (curve,) = fit_curves(design, images, correct[:, None], bounded_rows(bounds), loss)
    s = np.linspace(0.05, 1, 50)
    np.testing.assert_allclose(bspline_basis(s) @ (curve - TRUE_CURVE), 0, atol=3e-3)
    mean = design.sum(axis=0)
    assert mean @ curve == pytest.approx(mean @ TRUE_CURVE, abs=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bounds", BOUNDS)
def test_curves_stay_within_their_bounds(loss: str, bounds: str):
    rng = np.random.default_rng(0)
    design = design_of(12)
    images = np.ceil(300 * design.sum(axis=1))
    chance = np.clip(design @ np.array([0, 1, 0, 1, 0.2, 1, 1]) / design.sum(axis=1), 0, 1)
    correct = rng.binomial(images.astype(int)[:, None], chance[:, None], size=(13, 8))
    curves = np.asarray(
        fit_curves(design, images, correct.astype(float), bounded_rows(bounds), loss)
    )
    finer = bspline_basis(np.linspace(0, 1, 9999))
    slack = 1e-4 if bounds == "grid" else 1e-8  # between the points of the grid
    assert (finer @ curves.T > 2e-6 - slack).all()
    assert (finer @ curves.T < 1 + slack).all()
    if bounds == "everywhere":
        assert ((curves > 0) & (curves < 1 + 1e-8)).all()


def binomial_loss(curve: Floats, design: Floats, images: Floats, correct: Floats) -> float:
    q = np.clip(design @ curve / design.sum(axis=1), 1e-12, 1 - 1e-12)
    return -float(correct @ np.log(q) + (images - correct) @ np.log(1 - q))


def test_the_binomial_curve_is_the_maximum_scipy_finds():
    rng = np.random.default_rng(1)
    design = design_of(20)
    images = np.ceil(2000 * design.sum(axis=1))
    chance = design @ TRUE_CURVE / design.sum(axis=1)
    correct = rng.binomial(images.astype(int), chance).astype(float)
    (curve,) = fit_curves(design, images, correct[:, None], bounded_rows("everywhere"), "binomial")
    best = optimize.minimize(
        binomial_loss,
        np.clip(curve, 0.01, 0.99),
        args=(design, images, correct),
        bounds=[(2e-6, 1.0)] * 7,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
    )
    assert binomial_loss(np.asarray(curve), design, images, correct) <= best.fun + 1e-3


def test_weights_are_those_of_the_expected_counts():
    """Weighted least squares over SciPy, with bounds on the coefficients."""
    rng = np.random.default_rng(2)
    design = design_of(25)
    images = np.ceil(3000 * design.sum(axis=1))
    correct = rng.binomial(images.astype(int), 0.6).astype(float)
    (curve,) = fit_curves(design, images, correct[:, None], bounded_rows("everywhere"), "weighted")
    scale = 1 / np.sqrt(design.sum(axis=1))
    expected = optimize.lsq_linear(
        design * scale[:, None], correct / images.sum() * scale, bounds=(2e-6, 1), method="bvls"
    )
    np.testing.assert_allclose(curve, expected.x, atol=1e-3)


def test_the_papers_coefficients_draw_the_same_curve():
    study = small_study()
    replicates = Replicates.from_study(SufficientStatistics.from_study(study))
    fitted = fit_parametric(EMSpline(components=1), replicates)
    s = np.linspace(0, 1, 101)
    by_powers = truncated_power_basis(s) @ bsplines_in_truncated_powers() @ fitted.curves.T
    np.testing.assert_allclose(by_powers, bspline_basis(s) @ fitted.curves.T, atol=1e-9)


def test_as_many_annotators_as_there_are_thin_nothing():
    replicates = Replicates.from_study(SufficientStatistics.from_study(small_study()))
    full, same = (EMSpline(1, annotators=n)(replicates).value[0] for n in (None, 12))
    np.testing.assert_allclose(same, full, rtol=1e-6)
    broken = {"annotators": 13, "fewest": 12}
    with refused(OptionError, "thinned-annotators-out-of-range", broken):
        EMSpline(annotators=13)(replicates)


# --- the published implementation -------------------------------------------------------------

needs_case_a = pytest.mark.skipif(
    not CASE_A.is_dir(),
    reason="values of the published implementation are missing; BAYESREP_DATA names their folder",
)


@pytest.fixture(scope="module")
def case_a() -> tuple[CellTable, dict[str, Any], MixtureFit]:
    """Cells of the case, the published values, and the published mixtures."""
    data = np.load(CASE_A / "case_a_input.npz")
    expected = json.loads((CASE_A / "case_a_expected.json").read_text())
    study = Study.from_arrays(
        reference={"selected": data["k1"], "shown": int(data["n"]), "correct": data["f1"]},
        replication={"selected": data["k2"], "shown": int(data["n"]), "correct": data["f2"]},
        classifiers=list(expected["classifiers"]),
    )
    table = complete_cells(Replicates.from_study(SufficientStatistics.from_study(study)))
    listed = [expected["mixtures"][name] for name in ("v1", "v2")]
    a, b = (np.array([np.array(m["alpha_beta"])[:, i] for m in listed])[:, None] for i in (0, 1))
    weights = np.array([m["weights"] for m in listed])[:, None]
    with jax.enable_x64(new_val=True):
        fitted = fit_mixtures(table, components=3)
    published = MixtureFit(
        a,
        b,
        weights,
        fitted.log_likelihood,
        fitted.converged,
        fitted.optima,
        fitted.start_log_likelihoods,
    )
    return table, {**expected, "fitted": fitted}, published


def published(expected: dict[str, Any], name: str) -> Floats:
    return np.array([values[name] for values in expected["classifiers"].values()])


def log_likelihood(mixtures: MixtureFit, table: CellTable, role: int) -> float:
    n, k = table.shown[:, None], table.selected[:, None]
    mass = stats.betabinom.pmf(k, n, mixtures.a[role, 0], mixtures.b[role, 0])
    return float(table.images[role, 0] @ np.log(mass @ mixtures.weights[role, 0]))


@needs_case_a
def test_em_is_at_least_as_likely_as_the_published_one(case_a: Any):
    table, expected, listed = case_a
    for role, value in enumerate((-28580.071, -31075.217)):
        assert log_likelihood(listed, table, role) == pytest.approx(value, abs=1e-3)
        assert log_likelihood(expected["fitted"], table, role) >= value + 0.4
    assert expected["fitted"].converged.all()


@needs_case_a
def test_curves_given_the_published_mixtures_are_the_published_ones(case_a: Any):
    table, expected, listed = case_a
    adjusted, curves = fit_curves_given(EMSpline(quadrature="published"), listed, table)
    np.testing.assert_allclose(adjusted[0], published(expected, "adjusted_accuracy"), atol=5e-4)
    # our minimum of the published objective is not above theirs, but for their solver's tolerance
    cells = SplineCells.from_cells(table.selected, table.shown, "published")
    mixture = Betas(listed.a[1, 0], listed.b[1, 0], listed.weights[1, 0])
    design = np.asarray(equation_8(mixture, table.images[1, 0], cells))
    target = table.correct[0] / table.images[1, 0].sum()
    objective = ((target - design @ curves[0].T) ** 2).sum(axis=0)
    theirs = published(expected, "objective")
    assert (objective <= theirs * (1 + 1e-4)).all()
    assert (objective >= 0.9 * theirs).all()


@needs_case_a
def test_exact_integrals_move_the_published_values_by_their_quadrature_only(case_a: Any):
    """What the left sum misses lifts the published values by 0.0015 to 0.0030."""
    table, expected, listed = case_a
    adjusted, _ = fit_curves_given(EMSpline(), listed, table)
    moved = published(expected, "adjusted_accuracy") - adjusted[0]
    assert ((moved > 0.001) & (moved < 0.0035)).all()
    truth = published(expected, "truth")
    assert abs((adjusted[0] - truth).mean()) < 0.001
    assert (published(expected, "adjusted_accuracy") - truth).mean() > 0.002


@needs_case_a
@pytest.mark.parametrize("quadrature", ["exact", "published"])
def test_end_to_end(case_a: Any, quadrature: Any):
    table, expected, _ = case_a
    adjusted, _ = fit_curves_given(EMSpline(quadrature=quadrature), expected["fitted"], table)
    tolerance = 0.004 if quadrature == "exact" else 0.001
    np.testing.assert_allclose(
        adjusted[0], published(expected, "adjusted_accuracy"), atol=tolerance
    )


def test_the_grid_is_the_published_one():
    np.testing.assert_array_equal(published_grid(), np.linspace(0, 1, 1000))
