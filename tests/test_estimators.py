"""Estimators: generic laws for all in the registry, the formulas by brute force, the bootstrap."""

import itertools
import subprocess
import sys
import warnings
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from bayesrep import Study, SufficientStatistics, estimate
from bayesrep.estimators import ESTIMATORS, InterpolationWarning, naive
from bayesrep.estimators.bootstrap import bootstrap, replicates
from bayesrep.numerics.thinning import thinning_matrix

COLUMNS = [
    "method",
    "classifier",
    "reference_accuracy",
    "replication_accuracy",
    "adjusted_accuracy",
    "lower",
    "upper",
    "bias_corrected_gap",
    "selection_gap",
]

every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def arrays(
    seed: int, easiness: float, *, images: int = 400, classifiers: int = 3, shown: Any = 5
) -> dict[str, Any]:
    """Images whose selection frequencies follow Beta(easiness, 1), harder ones less often right."""
    rng = np.random.default_rng(seed)
    frequency = rng.beta(easiness, 1, size=images)
    skill = np.linspace(0.6, 0.95, classifiers)
    return {
        "selected": rng.binomial(shown, frequency),
        "shown": np.broadcast_to(shown, images),
        "correct": rng.random((images, classifiers)) < skill * frequency[:, None] ** 2,
    }


def ragged(seed: int, easiness: float, images: int = 400) -> dict[str, Any]:
    shown = np.random.default_rng(seed).integers(4, 9, size=images)
    return arrays(seed, easiness, images=images, shown=shown)


def make_study(reference: dict[str, Any], replication: dict[str, Any]) -> Study:
    classifiers = [f"c{number}" for number in range(reference["correct"].shape[1])]
    return Study.from_arrays(reference=reference, replication=replication, classifiers=classifiers)


def reduced(reference: dict[str, Any], replication: dict[str, Any]) -> SufficientStatistics:
    return SufficientStatistics.from_study(make_study(reference, replication))


def rows(data: dict[str, Any], which: Any) -> dict[str, Any]:
    return {name: np.asarray(values)[which] for name, values in data.items()}


# --- laws of every estimator ------------------------------------------------------------------


@every_estimator
def test_the_order_of_images_does_not_matter(name: str):
    one, other = ragged(0, 5), ragged(1, 3)
    order = np.random.default_rng(2).permutation(400)
    estimator = ESTIMATORS[name]
    np.testing.assert_array_equal(
        estimator(reduced(one, other)), estimator(reduced(rows(one, order), rows(other, order)))
    )


@every_estimator
def test_permuting_classifiers_permutes_the_estimates(name: str):
    one, other = ragged(0, 5), ragged(1, 3)
    order = [2, 0, 1]
    permuted = [{**data, "correct": data["correct"][:, order]} for data in (one, other)]
    estimator = ESTIMATORS[name]
    expected = estimator(reduced(one, other))[order]
    np.testing.assert_allclose(estimator(reduced(*permuted)), expected, rtol=1e-14)


@every_estimator
def test_equal_distributions_need_no_adjustment(name: str):
    replication = ragged(0, 3)
    reference = {**rows(replication, np.tile(np.arange(400), 3))}
    reference["correct"] = ~reference["correct"]  # what the reference gets right is no business
    statistics = reduced(reference, replication)
    expected = replication["correct"].mean(axis=0)
    np.testing.assert_allclose(ESTIMATORS[name](statistics), expected, rtol=1e-12)


@every_estimator
def test_always_right_and_always_wrong(name: str):
    one, other = ragged(0, 5), ragged(1, 3)
    for data in (one, other):
        data["correct"][:, 0], data["correct"][:, 1] = True, False
    adjusted = ESTIMATORS[name](reduced(one, other))
    np.testing.assert_allclose(adjusted[:2], [1, 0], atol=1e-12)


@every_estimator
@pytest.mark.parametrize("classifiers", [1, 1000])
def test_any_number_of_classifiers(name: str, classifiers: int):
    data = [arrays(seed, 4, images=50, classifiers=classifiers, shown=2) for seed in (0, 1)]
    assert ESTIMATORS[name](reduced(*data)).shape == (classifiers,)


@every_estimator
def test_all_images_in_one_cell(name: str):
    one = {"selected": 3, "shown": 4, "correct": np.array([[1], [0], [1], [1]])}
    assert ESTIMATORS[name](reduced(one, one)) == pytest.approx([0.75])


# --- the naive estimator ----------------------------------------------------------------------


def equation_4(reference: dict[str, Any], replication: dict[str, Any]) -> NDArray[np.float64]:
    """Equation 4 as the paper writes it, over images that share n."""
    total = np.zeros(replication["correct"].shape[1])
    for k in range(int(replication["shown"][0]) + 1):
        share = (reference["selected"] == k).mean()
        if share:
            total += share * replication["correct"][replication["selected"] == k].mean(axis=0)
    return total


def test_naive_is_equation_4_where_all_images_share_n():
    one, other = arrays(0, 5, images=2000), arrays(1, 2, images=2000)
    np.testing.assert_allclose(naive(reduced(one, other)), equation_4(one, other), rtol=1e-13)


def test_naive_closes_part_of_the_gap():
    table = estimate(make_study(arrays(0, 5, images=5000), arrays(1, 2, images=5000)))
    raw_gap, naive_gap = table.partition_by("method")
    assert (naive_gap["bias_corrected_gap"] < 0.6 * raw_gap["bias_corrected_gap"]).all()
    assert (naive_gap["bias_corrected_gap"] > 0).all()


def test_fewer_annotators_correct_less():
    statistics = reduced(arrays(0, 5, images=5000), arrays(1, 2, images=5000))
    curve = [naive(statistics, annotators=number).mean() for number in range(1, 6)]
    assert curve == sorted(curve)
    np.testing.assert_array_equal(naive(statistics, annotators=5), naive(statistics))


def test_thinned_counts_are_the_average_over_who_was_asked():
    """Deal every subset of n' annotators to every image and apply equation 4 to all of them."""
    rng = np.random.default_rng(0)
    kept, sets = 2, []
    for easiness in (0.8, 0.5):
        answers = [rng.random(n) < easiness for n in rng.integers(2, 5, size=40)]
        correct = rng.random((40, 2)) < 0.6
        sets.append((answers, correct))
    observed = [
        {
            "selected": np.array([a.sum() for a in answers]),
            "shown": np.array([len(a) for a in answers]),
            "correct": correct,
        }
        for answers, correct in sets
    ]
    mass, images, hits = np.zeros(kept + 1), np.zeros(kept + 1), np.zeros((kept + 1, 2))
    for answers, _ in sets[:1]:
        for answer in answers:
            subsets = [sum(s) for s in itertools.combinations(answer.astype(int), kept)]
            mass += np.bincount(subsets, minlength=kept + 1) / len(subsets) / len(answers)
    for answer, right in zip(*sets[1], strict=True):
        subsets = [sum(s) for s in itertools.combinations(answer.astype(int), kept)]
        share = np.bincount(subsets, minlength=kept + 1) / len(subsets)
        images += share
        hits += share[:, None] * right
    expected = mass @ (hits / images[:, None])
    np.testing.assert_allclose(naive(reduced(*observed)), expected, rtol=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_equal_distributions_give_the_replication_accuracy_for_any_annotators(seed: int, kept: int):
    replication = ragged(seed, 3, images=60)
    adjusted = naive(reduced(replication, replication), annotators=kept)
    np.testing.assert_allclose(adjusted, replication["correct"].mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("annotators", [0, -1, 5])
def test_annotators_out_of_range(annotators: int):
    statistics = reduced(ragged(0, 5), arrays(1, 3))
    with pytest.raises(ValueError, match=f"annotators is {annotators} but .* between 1 and 4"):
        naive(statistics, annotators=annotators)


def test_annotators_are_a_whole_number():
    unchecked: Any = 2.5
    with pytest.raises(TypeError):
        naive(reduced(ragged(0, 5), arrays(1, 3)), annotators=unchecked)


def at_counts(counts: list[int], accuracy: dict[int, float]) -> dict[str, Any]:
    """Ten images at each count of 6, of which the given share is classified correctly."""
    correct = [np.arange(10) < 10 * accuracy.get(k, 0) for k in counts]
    return {
        "selected": np.repeat(counts, 10),
        "shown": np.full(10 * len(counts), 6),
        "correct": np.concatenate(correct)[:, None],
    }


def test_counts_without_replication_images_are_interpolated_and_reported():
    reference = at_counts([0, 1, 2, 3, 5], {})
    replication = at_counts([1, 4], {1: 0.2, 4: 0.8})
    with pytest.warns(InterpolationWarning, match=r"80\.00% of the reference .* = 0, 2, 3, 5 of 6"):
        adjusted = naive(reduced(reference, replication))
    # Beyond the ends the nearest value, between them the straight line.
    expected = np.mean([0.2, 0.2, 0.4, 0.6, 0.8])
    np.testing.assert_allclose(adjusted, [expected], rtol=1e-14)


def test_no_warning_where_nothing_is_interpolated():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        naive(reduced(at_counts([1, 4], {}), at_counts([0, 1, 4], {})))


def test_one_replication_cell_takes_all_the_mass():
    with pytest.warns(InterpolationWarning):
        adjusted = naive(reduced(at_counts([1, 4], {}), at_counts([2], {2: 0.3})))
    np.testing.assert_allclose(adjusted, [0.3], rtol=1e-14)


# --- thinning ---------------------------------------------------------------------------------


@given(st.integers(1, 200), st.data())
def test_thinning_is_exact(shown: int, data: st.DataObject):
    selected = data.draw(st.integers(0, shown))
    kept = data.draw(st.integers(1, shown))
    (row,) = thinning_matrix(np.array([selected]), np.array([shown]), kept)
    exact = [
        Fraction(comb(selected, k) * comb(shown - selected, kept - k), comb(shown, kept))
        for k in range(kept + 1)
    ]
    np.testing.assert_allclose(row, [float(value) for value in exact], rtol=1e-10, atol=0)
    expected = stats.hypergeom.pmf(np.arange(kept + 1), shown, selected, kept)
    np.testing.assert_allclose(row, expected, rtol=1e-10, atol=1e-300)


def test_keeping_all_annotators_changes_nothing():
    selected = np.arange(41)
    matrix = thinning_matrix(selected, np.full(41, 40), 40)
    np.testing.assert_array_equal(matrix, np.eye(41))


def test_thinning_twice_is_thinning_once():
    selected, shown = np.array([0, 3, 9, 12]), np.array([12, 12, 10, 12])
    twice = thinning_matrix(selected, shown, 7) @ thinning_matrix(np.arange(8), np.full(8, 7), 3)
    np.testing.assert_allclose(twice, thinning_matrix(selected, shown, 3), rtol=1e-12, atol=1e-15)


# --- the table --------------------------------------------------------------------------------


def test_the_table():
    study = make_study(arrays(0, 5), arrays(1, 3))
    table = estimate(study)
    assert table.columns == COLUMNS
    assert table["method"].to_list() == ["raw"] * 3 + ["naive"] * 3
    assert table["classifier"].to_list() == ["c0", "c1", "c2"] * 2
    assert table["lower"].null_count() == table["upper"].null_count() == 6
    assert table.schema["lower"] == pl.Float64
    gaps = table["bias_corrected_gap"] + table["selection_gap"]
    raw_gap = table["reference_accuracy"] - table["replication_accuracy"]
    np.testing.assert_allclose(gaps, raw_gap, atol=1e-15)
    assert table["selection_gap"][:3].to_list() == [0, 0, 0]
    np.testing.assert_allclose(
        table["reference_accuracy"][:3], study.reference.correct.mean(axis=0), rtol=1e-14
    )
    assert table.equals(estimate(SufficientStatistics.from_study(study)))


def test_methods_are_taken_in_the_order_given():
    study = make_study(arrays(0, 5), arrays(1, 3))
    assert estimate(study, ("naive", "raw"))["method"].to_list() == ["naive"] * 3 + ["raw"] * 3
    assert estimate(study, "naive")["method"].unique().to_list() == ["naive"]


def test_estimate_refuses():
    study = make_study(arrays(0, 5), arrays(1, 3))
    with pytest.raises(ValueError, match="unknown method 'jackknive'; the methods are raw, naive"):
        estimate(study, ("raw", "jackknive"))
    with pytest.raises(ValueError, match="no method is given"):
        estimate(study, ())
    with pytest.raises(ValueError, match="bootstrap is -1"):
        estimate(study, bootstrap=-1)
    with pytest.raises(ValueError, match="needs a Study"):
        estimate(SufficientStatistics.from_study(study), bootstrap=10)


# --- the bootstrap ----------------------------------------------------------------------------


def test_intervals_follow_the_seed_and_hold_the_estimate():
    study = make_study(arrays(0, 5), arrays(1, 3))
    table = estimate(study, bootstrap=200, seed=3)
    assert table.equals(estimate(study, bootstrap=200, seed=3))
    assert not table.equals(estimate(study, bootstrap=200, seed=4))
    assert (table["lower"] < table["adjusted_accuracy"]).all()
    assert (table["adjusted_accuracy"] < table["upper"]).all()


def test_all_methods_see_the_same_replicates():
    study = make_study(arrays(0, 5), arrays(1, 3))
    both, alone = estimate(study, bootstrap=70), estimate(study, ("naive",), bootstrap=70)
    assert both.filter(method="naive").equals(alone)


def test_raw_interval_is_that_of_a_proportion():
    study = make_study(arrays(0, 5), arrays(1, 3, images=4000))
    table = estimate(study, ("raw",), bootstrap=2000)
    share = study.replication.correct.mean(axis=0)
    width = 2 * 1.96 * np.sqrt(share * (1 - share) / 4000)
    np.testing.assert_allclose(table["upper"] - table["lower"], width, rtol=0.1)


def test_classifiers_stay_correlated():
    one, other = arrays(0, 5), arrays(1, 3)
    for data in (one, other):
        data["correct"][:, 1] = data["correct"][:, 0]
        data["correct"][:, 2] = ~data["correct"][:, 0]
    estimates = bootstrap(make_study(one, other), ESTIMATORS, size=100, seed=0)
    for values in estimates.values():
        assert values.shape == (100, 3)
        np.testing.assert_allclose(values[:, 0], values[:, 1], rtol=1e-14)
        np.testing.assert_allclose(values[:, 0], 1 - values[:, 2], rtol=1e-9)


def test_replicates_hold_as_many_images_in_the_same_cells():
    one, other = ragged(0, 5, images=70), ragged(1, 3, images=50)
    study = make_study(one, other)
    statistics = SufficientStatistics.from_study(study)
    drawn = list(replicates(study, size=150, seed=0))  # more than one batch
    assert len(drawn) == 150
    for replicate in drawn:
        for role, size in (("reference", 70), ("replication", 50)):
            cells = replicate.cells[role]
            assert cells.images.sum() == size
            np.testing.assert_array_equal(cells.selected, statistics.cells[role].selected)
    mean = np.mean([replicate.replication.images for replicate in drawn], axis=0)
    np.testing.assert_allclose(mean, statistics.replication.images, atol=1)


def test_replicates_count_the_drawn_images():
    """Against drawing image numbers and building the study anew."""
    one, other = ragged(0, 5, images=70), ragged(1, 3, images=50)
    (replicate,) = replicates(make_study(one, other), size=1, seed=9)
    order = np.lexsort((other["selected"], other["shown"]))
    drawn = order[np.random.default_rng([9, 1]).integers(50, size=50)]
    again = reduced(one, rows(other, drawn)).replication
    present = replicate.replication.images > 0
    for name in ("selected", "shown", "images", "correct"):
        np.testing.assert_array_equal(
            getattr(replicate.replication, name)[present], getattr(again, name)
        )


def test_the_bootstrap_keeps_the_fewest_annotators_of_the_study():
    """One image with few annotators must not turn the estimator on and off between replicates."""
    one, other = arrays(0, 5, shown=20), arrays(1, 2, shown=20)
    other["shown"] = np.where(np.arange(400) == 0, 1, 20)
    other["selected"] = np.minimum(other["selected"], other["shown"])
    study = make_study(one, other)
    few = naive(SufficientStatistics.from_study(study))
    spread = bootstrap(study, {"naive": naive}, size=100, seed=0)["naive"]
    many = naive(reduced(one, arrays(1, 2, shown=20)))
    assert (np.abs(spread.mean(axis=0) - few) < 0.25 * (many - few)).all()


def test_replicates_that_lack_a_cell_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study = make_study(at_counts([1, 4], {}), at_counts([1, 4], {1: 0.5}))
        few = make_study(rows(arrays(0, 2), slice(12)), rows(arrays(0, 2), slice(12)))
        for one in (study, few):
            estimate(one, bootstrap=100)


def test_estimates_need_no_jax():
    code = "import bayesrep.estimators, sys; assert not {'jax', 'numpyro'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
