"""Intervals of accuracies and of differences, and tests of pairs, against other ways there."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from scipy.special import betainc, betaincinv
from scipy.stats import beta, binom, binomtest

from bayesrep import OptionError
from bayesrep.protocols import (
    INTERVALS,
    compare_pairs,
    holm,
    independent_difference,
    mcnemar,
    paired_difference,
    proportion_interval,
)

COUNTS = [(0, 1), (1, 1), (0, 20), (3, 20), (20, 20), (973, 1000), (1, 50_000), (49_999, 50_000)]
TAILS = (0.025, 0.975)


# ------------------------------------------------------------------ one accuracy


@pytest.mark.parametrize(("kind", "method"), [("clopper-pearson", "exact"), ("wilson", "wilson")])
@pytest.mark.parametrize(("right", "images"), COUNTS)
def test_frequentist_intervals_are_those_of_scipy(kind, method, right, images):
    found = proportion_interval(right, images, kind)
    expected = binomtest(right, images).proportion_ci(0.95, method)
    np.testing.assert_allclose(found, (expected.low, expected.high), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("right", "images"), COUNTS)
def test_jeffreys_is_a_beta_posterior_whose_ends_reach_0_and_1(right, images):
    lower, upper = proportion_interval(right, images)
    ends = beta.ppf(TAILS, right + 0.5, images - right + 0.5)
    assert lower == pytest.approx(0 if right == 0 else ends[0], rel=1e-9)
    assert upper == pytest.approx(1 if right == images else ends[1], rel=1e-9)


@pytest.mark.parametrize("kind", ["jeffreys", "wilson", "clopper-pearson"])
def test_without_images_there_is_no_interval(kind):
    lower, upper = proportion_interval([0, 3], [0, 4], kind)
    assert np.isnan([lower[0], upper[0]]).all()
    assert np.isfinite([lower[1], upper[1]]).all()


@pytest.mark.parametrize("kind", INTERVALS)
def test_counts_broadcast(kind):
    right, images = np.arange(5)[:, None], np.array([4, 9, 100])
    lower, upper = proportion_interval(right, images, kind)
    assert lower.shape == upper.shape == (5, 3)
    assert (lower[3, 1], upper[3, 1]) == proportion_interval(3, 9, kind)


def test_an_unknown_interval_is_refused():
    with refused(
        OptionError,
        "unknown-proportion-interval",
        {"interval": "wald", "choices": "jeffreys, wilson, clopper-pearson"},
    ):
        proportion_interval(1, 2, "wald")


@pytest.mark.parametrize(
    ("kind", "least", "mean"),
    [("clopper-pearson", 0.95, 0.98), ("wilson", 0.83, 0.955), ("jeffreys", 0.88, 0.955)],
)
def test_coverage_summed_exactly_over_the_binomial(kind, least, mean):
    """Brown, Cai and DasGupta (2001): Clopper-Pearson never below 95 %, the others about it."""
    images, share = 50, np.linspace(0.0005, 0.9995, 1999)
    right = np.arange(images + 1)
    lower, upper = proportion_interval(right, images, kind)
    covered = (lower[:, None] <= share) & (share <= upper[:, None])
    coverage = np.sum(binom.pmf(right[:, None], images, share) * covered, axis=0)
    assert coverage.min() >= least
    assert 0.945 <= coverage.mean() <= mean


# ------------------------------------------------------------------ differences

CELLS = [
    (0, 0, 0),
    (1, 0, 0),
    (0, 0, 1),
    (3, 2, 100),
    (0, 50, 0),
    (50, 50, 0),
    (7, 0, 3),
    (1, 0, 1000),
    (10, 10, 10_000),
    (200, 150, 9650),
    (5000, 0, 45_000),
    (0.3, 0.2, 5),
]
TWO_SETS = [
    (0, 0, 0, 0),
    (1, 1, 0, 1),
    (0, 1, 0, 1),
    (0, 10, 5, 10),
    (970, 1000, 8000, 10_000),
    (38_000, 50_000, 6300, 10_000),
    (50_000, 50_000, 0, 1),
    (1, 1, 0, 50_000),
]
UNIFORM = (np.arange(100_000) + 0.5) / 100_000


def shares_below(difference, *cells):
    """P(first less second <= difference), summed over 100,000 equally likely discordant shares."""
    first, second, rest = (np.array(cells) + [0.25, 0.25, 0.5]).tolist()
    discordant = np.maximum(betaincinv(first + second, rest, UNIFORM), 1e-300)
    at = (1 + np.clip(difference / discordant, -1, 1)) / 2
    return betainc(first, second, at).mean()


def sets_below(difference, right, images, other_right, other_images):
    other = betaincinv(other_right + 0.5, other_images - other_right + 0.5, UNIFORM)
    at = np.clip(difference + other, 0, 1)
    return betainc(right + 0.5, images - right + 0.5, at).mean()


@pytest.mark.parametrize("cells", CELLS)
def test_ends_of_paired_differences_cut_off_the_tails(cells):
    _, *ends, _ = paired_difference(*cells)
    tails = [shares_below(end, *cells) for end in ends]
    assert tails == pytest.approx(TAILS, abs=0.003)


@pytest.mark.parametrize("cells", TWO_SETS)
def test_ends_of_independent_differences_cut_off_the_tails(cells):
    """Or, where nothing or everything is right, go as far as what was observed."""
    right, images, other_right, other_images = cells
    observed = right / images - other_right / other_images if images else 0
    lower, upper, _ = independent_difference(*cells)
    low, high = sets_below(lower, *cells), sets_below(upper, *cells)
    assert lower <= observed <= upper
    assert low == pytest.approx(TAILS[0], abs=0.003) or (lower == observed and low < TAILS[0])
    assert high == pytest.approx(TAILS[1], abs=0.003) or (upper == observed and high > TAILS[1])


@pytest.mark.parametrize("cells", CELLS)
def test_the_paired_posterior_has_the_mean_of_four_cells(cells):
    """Of Dirichlet(1/4 + counts), the number of those alike halved."""
    first, second, _ = cells
    mean, _, _, positive = paired_difference(*cells)
    assert mean == pytest.approx((first - second) / (sum(cells) + 1), abs=0.003)
    assert positive == pytest.approx(1 - shares_below(0, *cells), abs=0.003)


@pytest.mark.parametrize("cells", TWO_SETS)
def test_the_probability_of_being_better_is_that_of_two_betas(cells):
    *_, positive = independent_difference(*cells)
    assert positive == pytest.approx(1 - sets_below(0, *cells), abs=0.003)


def test_each_accuracy_of_a_pair_alone_has_jeffreys_prior():
    """With everything discordant in one direction the difference is one accuracy less 0."""
    _, lower, upper, _ = paired_difference(4000, 0, 6000)
    expected = beta.ppf(TAILS, 4000.5, 6000.5)
    assert (lower, upper) == pytest.approx(expected, abs=5e-4)


def test_swapping_a_pair_changes_the_sign():
    rng = np.random.default_rng(0)
    first, second, alike = rng.integers(0, 40, (3, 100))
    alike[50:] *= 300
    mean, lower, upper, positive = paired_difference(first, second, alike)
    swapped = paired_difference(second, first, alike)
    np.testing.assert_allclose(swapped[0], -mean, atol=1e-12)
    np.testing.assert_allclose(swapped[1], -upper, atol=1e-5)
    np.testing.assert_allclose(swapped[2], -lower, atol=1e-5)
    np.testing.assert_allclose(swapped[3], 1 - positive, atol=1e-9)


def swapped_ends(right, images, other_right, other_images):
    lower, upper, positive = independent_difference(right, images, other_right, other_images)
    low, high, negative = independent_difference(other_right, other_images, right, images)
    return np.array([lower, upper, positive]), np.array([-high, -low, 1 - negative])


def test_swapping_two_sets_changes_the_sign():
    rng = np.random.default_rng(0)
    images, other_images = rng.integers(20, 900, 80), rng.integers(1000, 60_000, 80)
    right, other_right = rng.integers(0, images + 1), rng.integers(0, other_images + 1)
    np.testing.assert_allclose(*swapped_ends(right, images, other_right, other_images), atol=1e-5)


def test_swapping_two_small_equally_uncertain_sets_changes_the_sign():
    right, other_right = (each.ravel() for each in np.indices((3, 3)))
    np.testing.assert_allclose(*swapped_ends(right, 2, other_right, 2), atol=1e-3)


def test_a_difference_does_not_depend_on_its_neighbours_in_the_array():
    rng = np.random.default_rng(3)
    cells = rng.integers(0, 60, (3, 20))
    cells[2, 10:] *= 500
    alone = [paired_difference(*cell) for cell in cells.T]
    np.testing.assert_allclose(paired_difference(*cells), np.transpose(alone), atol=1e-5)
    images = rng.integers(1, 3000, (2, 20))
    right = rng.integers(0, images + 1)
    counts = np.stack([right[0], images[0], right[1], images[1]])
    alone = [independent_difference(*cell) for cell in counts.T]
    np.testing.assert_allclose(independent_difference(*counts), np.transpose(alone), atol=1e-5)


def test_differences_keep_the_shape_of_their_counts_even_when_empty():
    assert all(each.shape == (2, 3) for each in paired_difference(np.ones((2, 3)), 1, 1))
    assert all(each.shape == (0,) for each in paired_difference([], [], []))
    assert all(each.shape == (0,) for each in independent_difference([], [], [], []))


COUNT = st.integers(0, 60_000)


@given(COUNT, COUNT, COUNT)
def test_paired_ends_are_in_order_and_in_range(first, second, alike):
    mean, lower, upper, positive = paired_difference(first, second, alike)
    assert -1 <= lower <= upper <= 1
    assert -1 < mean < 1
    assert 0 <= positive <= 1


@given(COUNT, COUNT, COUNT, COUNT)
def test_independent_ends_are_in_order_and_in_range(right, wrong, other_right, other_wrong):
    images, other_images = right + wrong, other_right + other_wrong
    lower, upper, positive = independent_difference(right, images, other_right, other_images)
    assert -1 <= lower <= upper <= 1
    assert -1e-9 <= positive <= 1 + 1e-9


# ------------------------------------------------------------------ pairs


@pytest.mark.parametrize("cell", [(0, 0), (0, 1), (5, 5), (2, 9), (30, 12), (400, 310), (0, 2000)])
def test_mcnemar_is_the_two_sided_binomial_test(cell):
    first, second = cell
    expected = binomtest(first, first + second).pvalue if first + second else 1.0
    assert mcnemar(first, second) == pytest.approx(expected, rel=1e-9)


def test_mcnemar_of_published_tables():
    """Agresti's approval of the prime minister (86, 150); Wikipedia's first example (121, 59)."""
    np.testing.assert_allclose(mcnemar([86, 121], [150, 59]), [3.7e-5, 4.4e-6], rtol=0.02)


def test_mcnemar_does_not_reject_too_often():
    """The level by exact summation: over b of n discordant images by fair coins."""
    for images in (5, 17, 60):
        first = np.arange(images + 1)
        p_value = mcnemar(first, images - first)
        for level in (0.01, 0.05, 0.2):
            assert binom.pmf(first, images, 0.5)[p_value <= level].sum() <= level


def test_holm_on_a_known_example():
    """R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")."""
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(0, 1) | st.just(np.nan), max_size=12))
def test_holm_against_a_loop(values):
    tests = sorted((value, place) for place, value in enumerate(values) if not np.isnan(value))
    expected, running = [np.nan] * len(values), 0.0
    for number, (value, place) in enumerate(tests):
        running = max(running, value * (len(tests) - number))
        expected[place] = min(running, 1.0)
    np.testing.assert_allclose(holm(values), expected)


def test_pairs_are_counted_where_both_answered():
    rng = np.random.default_rng(5)
    names = ("a", "b", "c", "nobody")
    answered = rng.random((4, 60)) < 0.7
    answered[3] = False
    right = rng.random((4, 60)) < 0.6
    table = compare_pairs(names, right, answered)
    assert len(table) == 6
    for row in table.iter_rows(named=True):
        one, other = names.index(row["participant"]), names.index(row["other"])
        cells = [0, 0, 0, 0]
        for image in range(60):
            if answered[one, image] and answered[other, image]:
                cells[2 * (not right[one, image]) + (not right[other, image])] += 1
        counted = [row[name] for name in ("both", "only_first", "only_second", "neither")]
        assert counted == cells
        assert row["images"] == sum(cells)
        found = [row[name] for name in ("difference", "lower", "upper", "probability")]
        if not sum(cells):
            assert found == [None] * 4
            assert row["p_value"] is row["p_holm"] is None
            continue
        expected = paired_difference(cells[1], cells[2], cells[0] + cells[3])
        assert found == pytest.approx([float(each) for each in expected], abs=1e-5)
        assert row["p_value"] == pytest.approx(float(mcnemar(cells[1], cells[2])))
    tested = table.filter(pl.col("images") > 0)
    np.testing.assert_allclose(tested["p_holm"], holm(tested["p_value"]))


def test_one_participant_makes_no_pairs():
    assert compare_pairs(["a"], np.ones((1, 4), bool), np.ones((1, 4), bool)).height == 0
