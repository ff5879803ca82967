"""Mixtures of beta-binomials: the optimum, its monotone climb, degenerate cases, comparisons."""

import warnings
from dataclasses import replace

import jax
import numpy as np
import polars as pl
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from refusals import refused
from scipy import optimize, stats

from bayesrep import OptionError, Study
from bayesrep.errors import EstimateWarning
from bayesrep.estimators import IdentificationWarning
from bayesrep.estimators.components import _distance_from_best, compare_components
from bayesrep.estimators.em import CellMatrices, ascend
from bayesrep.estimators.mixtures import (
    CellTable,
    MixtureFit,
    complete_cells,
    fit_mixtures,
    log_shares,
    random_starts,
    refit_mixtures,
)
from bayesrep.estimators.replicates import CellCounts, Replicates
from bayesrep.studies.statistics import SufficientStatistics

Floats = NDArray[np.float64]

# Every number of cells, starts, components and rounds is a program of its own: counts of 20 and the
# default starts, or these, unless a test is about another size.
SHORT = {"starts": 6, "rounds": 20, "newton": False}


def table_of(*datasets: Floats) -> CellTable:
    """Images per count 0..n of the reference and of the replication, the same twice if one."""
    images = np.stack([np.asarray(data, float) for data in (datasets * 2)[:2]])[:, None]
    n = images.shape[-1] - 1
    return CellTable(np.arange(n + 1), np.full(n + 1, n), images, np.zeros((1, n + 1, 1)))


def drawn(seed: int, n: int = 20, images: int = 3000) -> Floats:
    """Counts drawn from 0.7 Beta(9, 1.2) + 0.3 Beta(1.5, 1.5)."""
    rng = np.random.default_rng(seed)
    s = np.where(rng.random(images) < 0.7, rng.beta(9, 1.2, images), rng.beta(1.5, 1.5, images))
    return np.bincount(rng.binomial(n, s), minlength=n + 1).astype(float)


def scipy_log_likelihood(fit: MixtureFit, table: CellTable, role: int = 0) -> float:
    n, k = table.shown[:, None], table.selected[:, None]
    mass = stats.betabinom.pmf(k, n, fit.a[role, 0], fit.b[role, 0]) @ fit.weights[role, 0]
    images = table.images[role, 0]
    return float(images[images > 0] @ np.log(mass[images > 0]))


# --- the optimum ------------------------------------------------------------------------------


def test_one_component_is_the_maximum_scipy_finds():
    images = drawn(0)
    n = len(images) - 1
    k = np.arange(n + 1)

    def loss(position: Floats) -> float:
        return -float(images @ stats.betabinom.logpmf(k, n, *np.exp(position)))

    best = optimize.minimize(loss, [1.0, 0.5], method="Nelder-Mead", options={"xatol": 1e-8})
    fit = fit_mixtures(table_of(images), components=1)
    np.testing.assert_allclose(fit.a[0, 0], np.exp(best.x[0]), rtol=1e-4)
    np.testing.assert_allclose(fit.b[0, 0], np.exp(best.x[1]), rtol=1e-4)
    assert fit.log_likelihood[0, 0] == pytest.approx(-best.fun, abs=1e-6)


@pytest.mark.parametrize("components", [1, 2, 3])
def test_the_log_likelihood_is_scipys(components: int):
    table = table_of(drawn(0), drawn(1))
    fit = fit_mixtures(table, components=components)
    for role in range(2):
        expected = scipy_log_likelihood(fit, table, role)
        assert fit.log_likelihood[role, 0] == pytest.approx(expected, abs=1e-6)
    np.testing.assert_allclose(fit.weights.sum(axis=-1), 1)
    means = fit.a / (fit.a + fit.b)
    assert (np.diff(means, axis=-1) >= 0).all()
    assert fit.converged.all()


def test_the_best_start_wins():
    """By the likelihood of the mixture, whatever the order of the starts."""
    table = table_of(drawn(0), drawn(1))
    fit = fit_mixtures(table, components=3, **SHORT)
    assert np.ptp(fit.start_log_likelihoods[:, 0], axis=-1).min() > 0.01  # the starts differ
    np.testing.assert_array_equal(fit.log_likelihood, fit.start_log_likelihoods.max(axis=-1))
    for role in range(2):
        expected = scipy_log_likelihood(fit, table, role)
        assert fit.log_likelihood[role, 0] == pytest.approx(expected, abs=1e-6)


def test_nothing_near_the_optimum_is_higher():
    table = table_of(drawn(2))
    fit = fit_mixtures(table, components=2)
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b = (np.exp(np.log(x) + 0.02 * rng.normal(size=x.shape)) for x in (fit.a, fit.b))
        logits = np.log(fit.weights) + 0.02 * rng.normal(size=fit.weights.shape)
        weights = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
        other = replace(fit, a=a, b=b, weights=weights)
        assert scipy_log_likelihood(other, table) < fit.log_likelihood[0, 0]


def test_more_components_never_fit_worse():
    table = table_of(drawn(3), drawn(4))
    fits = [fit_mixtures(table, components=k) for k in (1, 2, 3)]
    heights = np.stack([fit.log_likelihood for fit in fits])
    assert (np.diff(heights, axis=0) > -1e-4).all()


# --- the climb --------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.integers(0, 2**31), st.sampled_from([1, 3]))
def test_no_round_of_em_lowers_the_likelihood(seed: int, components: int):
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 50, size=(2, 1, 13)).astype(float) + np.eye(13)[3]
    table = CellTable(np.arange(13), np.full(13, 12), images, np.zeros((1, 13, 1)))
    starts = random_starts(table, components, 4, seed)
    with jax.enable_x64(new_val=True):
        cells = CellMatrices.from_cells(table.selected, table.shown)
        result = ascend(starts, table.images, cells, rounds=60, newton=False)
        further = ascend(starts, table.images, cells, rounds=60, newton=True)
        assert float(np.max(result.drop)) < 1e-8
        gained = np.asarray(further.log_likelihood) - np.asarray(result.log_likelihood)
        assert gained.min() > -1e-8


def test_a_fall_of_the_likelihood_is_an_error(monkeypatch: pytest.MonkeyPatch):
    from bayesrep.estimators import mixtures

    monkeypatch.setattr(mixtures, "_ROUNDING_NATS", -1.0)
    with pytest.raises(ArithmeticError, match="EM"):
        fit_mixtures(table_of(drawn(0)), components=1)


def test_newton_goes_on_where_em_stops():
    table = table_of(drawn(5), drawn(6))
    short = fit_mixtures(table, components=3, **SHORT)
    full = fit_mixtures(table, components=3, **{**SHORT, "newton": True})
    assert (full.log_likelihood > short.log_likelihood + 1e-3).all()
    assert not short.converged.any()
    assert full.converged.all()


def test_the_seed_repeats():
    table = table_of(drawn(7))
    one, again, other = (
        fit_mixtures(table, components=3, **SHORT, seed=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.a, again.a)
    assert not np.array_equal(one.a, other.a)


def test_replicates_start_from_the_optima_of_the_study():
    table = table_of(drawn(8), drawn(9))
    rng = np.random.default_rng(0)
    size = table.images.sum(axis=-1, keepdims=True)
    images = np.stack(
        [
            np.stack([rng.multinomial(int(n[0, 0]), p[0] / p.sum()) for _ in range(6)])
            for n, p in zip(size, table.images, strict=True)
        ]
    ).astype(float)
    replicates = CellTable(table.selected, table.shown, images, np.zeros((6, 21, 1)))
    refit = refit_mixtures(fit_mixtures(table, components=2), replicates)
    for row in range(6):
        alone = fit_mixtures(replicates.rows(slice(row, row + 1)), components=2)
        np.testing.assert_allclose(
            refit.log_likelihood[:, row], alone.log_likelihood[:, 0], atol=1e-3
        )


# --- edges ------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::bayesrep.estimators.IdentificationWarning")
@pytest.mark.parametrize("count", [0, 3, 8])
def test_one_count_is_a_point(count: int):
    """All images at one count: the likelihood grows until the component is a point."""
    fit = fit_mixtures(table_of(50.0 * (np.arange(9) == count)), components=2)
    assert np.isfinite(fit.a).all()
    assert np.isfinite(fit.b).all()
    assert fit.degenerate_components.any(axis=-1).all()
    expected = 50 * stats.binom.logpmf(count, 8, count / 8)
    assert fit.log_likelihood[0, 0] == pytest.approx(expected, abs=0.01)


def test_more_components_than_counts_are_fitted_with_a_warning():
    table = table_of([0, 5, 20, 7, 30])
    with pytest.warns(IdentificationWarning, match=r"\b3\b.*\b8\b.*\b4\b"):
        fit = fit_mixtures(table, components=3)
    with pytest.warns(IdentificationWarning):
        more = fit_mixtures(table, components=9)
    # with this many parameters every share can be matched, as far as beta mixtures can
    assert more.log_likelihood[0, 0] >= fit.log_likelihood[0, 0] - 0.01
    assert np.isfinite(more.a).all()


def test_what_the_counts_determine_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_mixtures(table_of(drawn(0)), components=3)


def test_fractions_of_images_are_counted_as_they_are():
    """Exactly thinned counts are fractions; scaling them scales the likelihood."""
    one, tenth = (fit_mixtures(table_of(drawn(0) * scale), components=2) for scale in (1, 0.1))
    np.testing.assert_allclose(tenth.a, one.a, rtol=1e-3)
    np.testing.assert_allclose(10 * tenth.log_likelihood, one.log_likelihood, rtol=1e-8)


@pytest.mark.parametrize("wrong", [{"components": 0}, {"components": 2, "starts": 0}])
def test_impossible_requests(wrong: dict[str, int]):
    with refused(OptionError, "components-or-starts-below-one", wrong):
        fit_mixtures(table_of(drawn(0)), **wrong)


# --- cells ------------------------------------------------------------------------------------


def cells(selected: list[int], shown: list[int], images: list[int]) -> CellCounts:
    counts = np.array(images, float)
    return CellCounts(
        np.array(selected), np.array(shown), counts[None], (counts / 2)[None, :, None]
    )


def test_cells_are_completed():
    reference = cells([1, 2], [2, 3], [4, 6])
    replication = cells([0, 3], [2, 3], [2, 8])
    table = complete_cells(Replicates(reference, replication))
    assert table.shown.tolist() == [2, 2, 2, 3, 3, 3, 3]
    assert table.selected.tolist() == [0, 1, 2, 0, 1, 2, 3]
    assert table.images[0, 0].tolist() == [0, 4, 0, 0, 0, 6, 0]
    assert table.images[1, 0].tolist() == [2, 0, 0, 0, 0, 0, 8]
    assert table.correct[0, :, 0].tolist() == [1, 0, 0, 0, 0, 0, 4]


def test_fewer_annotators_thin_the_cells():
    reference, replication = cells([1, 2], [2, 3], [4, 6]), cells([0, 3], [2, 3], [2, 8])
    table = complete_cells(Replicates(reference, replication), annotators=1)
    assert table.shown.tolist() == [1, 1]
    np.testing.assert_allclose(table.images[0, 0], [4 / 2 + 6 / 3, 4 / 2 + 6 * 2 / 3])
    np.testing.assert_allclose(table.images[1, 0], [2, 8])
    np.testing.assert_allclose(table.correct[0, :, 0], [1, 4])
    broken = {"annotators": 3, "fewest": 2}
    with refused(OptionError, "thinned-annotators-out-of-range", broken):
        complete_cells(Replicates(reference, replication), annotators=3)


def test_masses_are_scipys():
    table = table_of(drawn(0), drawn(1))
    fit = fit_mixtures(table, components=2)
    mass = np.exp(log_shares(fit, table))
    np.testing.assert_allclose(mass.sum(axis=-1), 1, rtol=1e-12)
    expected = stats.betabinom.pmf(7, 20, fit.a[1, 0], fit.b[1, 0]) @ fit.weights[1, 0]
    assert mass[1, 0, 7] == pytest.approx(expected, rel=1e-12)


# --- how many components ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def small() -> Study:
    return zoo.study("images")


def test_components_side_by_side(small: Study):
    table = compare_components(small, (1, 2, 3))
    assert table["dataset"].to_list() == ["reference"] * 3 + ["replication"] * 3
    assert table["components"].to_list() == [1, 2, 3] * 2
    assert table["parameters"].to_list() == [2, 5, 8] * 2
    likelihood, parameters = table["log_likelihood"].to_numpy(), table["parameters"].to_numpy()
    np.testing.assert_allclose(table["aic"].to_numpy(), 2 * parameters - 2 * likelihood)
    np.testing.assert_allclose(table["bic"].to_numpy(), parameters * np.log(600) - 2 * likelihood)
    held_out = table["held_out_log_likelihood"].to_numpy()
    assert (held_out < likelihood).all()  # each image under a mixture that never saw it
    assert (np.abs(held_out - likelihood) < 25).all()


def test_held_out_likelihood_by_hand():
    """Two folds of identical images: a mixture fitted to one, applied to the other."""
    data = {"selected": np.tile([1, 2, 3, 4, 5, 6], 40), "shown": 6}
    data["correct"] = np.ones((240, 1), bool)
    study = Study.from_arrays(reference=data, replication=data, classifiers=["c"])
    (row,) = (
        compare_components(study, (1,), folds=240)
        .filter(pl.col("dataset") == "reference")
        .iter_rows(named=True)
    )
    counts = np.array([0, 40, 40, 40, 40, 40, 40.0])
    expected = 0.0
    for count in range(1, 7):
        less = counts - (np.arange(7) == count)
        fit = fit_mixtures(table_of(less), components=1)
        expected += 40 * stats.betabinom.logpmf(count, 6, fit.a[0, 0, 0], fit.b[0, 0, 0])
    assert row["held_out_log_likelihood"] == pytest.approx(expected, abs=1e-3)


def test_the_error_of_a_distance_is_that_of_its_images():
    """The standard error of a sum of differences, as if all images were listed."""
    rng = np.random.default_rng(0)
    images, value = rng.integers(0, 6, (2, 7)).astype(float), rng.normal(size=(3, 2, 7))
    behind, error = _distance_from_best(images * value, images)
    for role in range(2):
        by_image = np.repeat(value[:, role], images[role].astype(int), axis=1)
        lead = by_image[by_image.sum(axis=1).argmax()] - by_image
        np.testing.assert_allclose(behind[:, role], lead.sum(axis=1), atol=1e-12)
        wanted = lead.std(axis=1) * np.sqrt(images[role].sum())
        np.testing.assert_allclose(error[:, role], wanted, atol=1e-12)


def test_folds_must_fit(small: Study):
    for folds in (1, 601):
        with refused(OptionError, "folds-out-of-range", {"folds": folds, "most": 600}):
            compare_components(small, (1,), folds=folds)
    facts = {"option": "components", "value": 10**20 - 1, "largest": 64}
    with refused(OptionError, "option-above-limit", facts):
        compare_components(small, (10**20 - 1,))


def test_statistics_compare_like_studies(small: Study):
    by_statistics = compare_components(SufficientStatistics.from_study(small), (2,))
    assert by_statistics.equals(compare_components(small, (2,)))


def test_more_annotators_than_a_mixture_takes_are_thinned_and_said():
    """Of images with more than 500 the expected counts of 500; of the others their own."""
    selected, shown = np.array([3, 480, 900, 1999]), np.array([10, 500, 1000, 2000])
    correct = np.array([[[1.0], [0.0], [2.0], [3.0]]])
    cells = CellCounts(selected, shown, np.array([[1.0, 2.0, 4.0, 5.0]]), correct)
    with pytest.warns(EstimateWarning, match="more than 500 annotators per image are thinned"):
        table = complete_cells(Replicates(cells, cells))
    many = table.shown == 500
    kept = np.arange(501)
    first, last = (
        stats.hypergeom.pmf(kept, n, k, 500) for k, n in zip(selected[2:], shown[2:], strict=True)
    )
    expected = 2.0 * (kept == 480) + 4 * first + 5 * last
    np.testing.assert_allclose(table.images[0, 0, many], expected, rtol=1e-9, atol=1e-12)
    right = 2 * first + 3 * last
    np.testing.assert_allclose(table.correct[0, many, 0], right, rtol=1e-9, atol=1e-12)
    assert set(table.shown) == {10, 500}
    assert table.images[0, 0][table.shown == 10].tolist() == [0, 0, 0, 1, *[0] * 7]


def test_one_warning_names_both_data_sets_and_what_their_counts_determine():
    images = np.zeros((2, 1, 6))
    images[0, 0, :6], images[1, 0, :5] = 10, 10
    table = CellTable(np.arange(6), np.full(6, 5), images, np.zeros((1, 6, 1)))
    with pytest.warns(IdentificationWarning) as caught:
        fit_mixtures(table, components=3, starts=1, rounds=2, newton=False)
    (line,) = map(str, (each.message for each in caught))
    assert "the reference's 6 and the replication's 5 distinct counts determine at most 4" in line
    assert line.endswith("choose fewer components (components=1)")
