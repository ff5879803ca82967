"""The jackknife over annotators: closed forms, brute force, random subsets, linearity in 1/n."""

import itertools

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from refusals import refused
from scipy import stats

from bayesrep import Study, SufficientStatistics, estimate, simulate_study
from bayesrep.errors import EstimateWarning, OptionError
from bayesrep.estimators import InterpolationWarning, Jackknife, Naive
from bayesrep.estimators.annotators import compare_annotators, linearity
from bayesrep.estimators.jackknife import corrected
from bayesrep.estimators.naive import ThinnedCounts, matched_accuracy
from bayesrep.estimators.replicates import CellCounts, Replicates
from bayesrep.studies.study import AnnotatedSet


def study_of(images: int = 300, annotators: int = 6, classifiers: int = 3, seed: int = 0) -> Study:
    rng = np.random.default_rng(seed)
    data = []
    for easiness in (4.0, 2.5):
        frequency = rng.beta(easiness, 1, size=images)
        correct = rng.random((images, classifiers)) < frequency[:, None] ** 2
        selected = rng.binomial(annotators, frequency)
        data.append({"selected": selected, "shown": annotators, "correct": correct})
    names = [f"c{number}" for number in range(classifiers)]
    return Study.from_arrays(reference=data[0], replication=data[1], classifiers=names)


def whole(study: Study) -> Replicates:
    return Replicates.of(SufficientStatistics.from_study(study))


# --- the estimate -----------------------------------------------------------------------------


@pytest.mark.parametrize("delete", [1, 2, 3])
def test_the_estimate_is_the_line_through_two_naive_estimates(delete: int):
    replicates = whole(study_of())
    full, part = (Naive(n)(replicates).value[0] for n in (6, 6 - delete))
    slope = (part - full) / (1 / (6 - delete) - 1 / 6)
    expected = full - slope / 6
    np.testing.assert_allclose(Jackknife(delete=delete)(replicates).value[0], expected, rtol=1e-12)


def population(annotators: int) -> Replicates:
    """A study without sampling noise: s ~ Beta(5, 1) and Beta(3, 1), g(s) = s."""
    k = np.arange(annotators + 1)
    mass = [stats.betabinom.pmf(k, annotators, a, 1) for a in (5, 3)]
    right = mass[1] * (3 + k) / (4 + annotators)  # E[s | k] under the replication's mixture
    shown = np.full(annotators + 1, annotators)
    cells = [
        CellCounts(k, shown, images[None] * 1e9, correct[None, :, None] * 1e9)
        for images, correct in zip(mass, (mass[0], right), strict=True)
    ]
    return Replicates(*cells)


def test_bias_in_one_over_n_is_removed():
    """Naive: E[(3 + k)/(4 + n) | s ~ Beta(5, 1)] = (3 + 5n/6)/(4 + n); truth 5/6."""
    for n in (10, 20, 40):
        replicates = population(n)
        naive, jackknife = Naive()(replicates).value[0, 0], Jackknife()(replicates).value[0, 0]
        assert naive == pytest.approx((3 + 5 * n / 6) / (4 + n), rel=1e-12)
        # the bias is -c/(n + 4) = -c/n + 4c/n² - ..., of which the first term goes
        c = 4 * 5 / 6 - 3
        expected = -n * c / (n + 4) + (n - 1) * c / (n + 3)
        assert jackknife - 5 / 6 == pytest.approx(expected, rel=1e-9)
        assert abs(jackknife - 5 / 6) < 4 * c / n**2


def test_every_way_to_leave_annotators_out_by_brute_force():
    """Where the replication's accuracy by count is known, θ is linear and averages exactly."""
    answers = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]])
    n, d = 4, 2
    replicates = whole(study_of(annotators=n, images=60))
    table = np.concatenate([np.repeat(answers, 12, axis=0)])
    reference = CellCounts(
        np.arange(n + 1),
        np.full(n + 1, n),
        np.bincount(table.sum(axis=1), minlength=n + 1)[None].astype(float),
        np.zeros((1, n + 1, 3)),
    )
    replicates = Replicates(reference, replicates.replication)
    ways = list(itertools.combinations(range(n), n - d))
    thinned = [np.bincount(table[:, list(way)].sum(axis=1), minlength=n - d + 1) for way in ways]
    part = np.mean([_theta(counts, replicates, n - d) for counts in thinned], axis=0)
    full = Naive()(replicates).value[0]
    expected = full - (n - d) / d * (part - full)
    np.testing.assert_allclose(Jackknife(delete=d)(replicates).value[0], expected, rtol=1e-12)


def _theta(counts: NDArray[np.int64], replicates: Replicates, n: int) -> NDArray[np.float64]:
    accuracy = np.zeros((n + 1, 3))
    weight = np.zeros(n + 1)
    cells = replicates.replication
    for k, shown, images, correct in zip(
        cells.selected, cells.shown, cells.images[0], cells.correct[0], strict=True
    ):
        share = stats.hypergeom.pmf(np.arange(n + 1), shown, k, n)
        weight += images * share
        accuracy += share[:, None] * correct
    return counts / counts.sum() @ (accuracy / weight[:, None])


@pytest.mark.parametrize("delete", [0, 6, -1])
def test_impossible_deletions(delete: int):
    with refused(ValueError, "jackknife-delete-out-of-range", {"most": 5}):
        Jackknife(delete=delete)(whole(study_of()))


# --- standard error ---------------------------------------------------------------------------


def test_standard_error_is_that_of_other_annotators():
    """The spread of the jackknife's naive estimate when the same images are annotated anew.

    400 repetitions: the standard deviation is known to 3.5 %; false alarm rate below 1e-4.
    """
    rng = np.random.default_rng(5)
    images, n, c = 3000, 12, 2
    frequency = [rng.beta(a, 1, size=images) for a in (5, 3)]
    correct = [rng.random((images, c)) < f[:, None] ** 2 for f in frequency]

    def annotated(seed: int) -> Replicates:
        again = np.random.default_rng(seed)
        data = [
            {"selected": again.binomial(n, f), "shown": n, "correct": right}
            for f, right in zip(frequency, correct, strict=True)
        ]
        return whole(
            Study.from_arrays(reference=data[0], replication=data[1], classifiers=["a", "b"])
        )

    naive = np.array([Naive()(annotated(seed)).value[0] for seed in range(400)])
    error = np.mean([Jackknife()(annotated(seed)).standard_error for seed in range(20)], axis=0)
    np.testing.assert_allclose(error, naive.std(axis=0), rtol=0.2)


def test_standard_error_without_a_choice_is_zero():
    """Where all annotators agree, leaving some out changes nothing."""
    data = {"selected": np.repeat([0, 8], 20), "shown": 8, "correct": np.eye(40, 2, dtype=bool)}
    study = Study.from_arrays(reference=data, replication=data, classifiers=["a", "b"])
    np.testing.assert_allclose(Jackknife()(whole(study)).standard_error, 0, atol=1e-12)
    jackknife, naive = (
        estimator(whole(study)).value for estimator in (Jackknife(delete=3), Naive())
    )
    np.testing.assert_allclose(jackknife, naive)


def test_the_interval_of_estimate_is_that_of_the_standard_error():
    study = study_of()
    table = estimate(study, "jackknife")
    error = Jackknife()(whole(study)).standard_error
    width = (table["upper"] - table["lower"]).to_numpy()
    np.testing.assert_allclose(width, 2 * stats.norm.ppf(0.975) * error, rtol=1e-9)
    middle = (table["upper"] + table["lower"]).to_numpy() / 2
    np.testing.assert_allclose(middle, table["adjusted_accuracy"].to_numpy(), rtol=1e-9)


# --- random subsets ---------------------------------------------------------------------------


def naive_by_subsets(study: Study, n: int, subsets: int, seed: int) -> NDArray[np.float64]:
    """Mean naive estimate over random subsets of n annotators per image, as published."""
    rng = np.random.default_rng(seed)
    draws = [asked(study, n, rng) for _ in range(subsets)]
    return np.mean([naive_of(study, selected, n) for selected in draws], axis=0)


def jackknife_by_subsets(
    study: Study, n: int, d: int, subsets: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Jackknife estimate and standard error from random deletions of d of n annotators per image.

    Every image's annotators are put into a random order and left out d at a time, so that within an
    order no annotator is left out twice; further orders follow.
    """
    rng = np.random.default_rng(seed)
    estimates, parts = [], []
    while len(parts) < subsets:
        full = asked(study, n, rng)
        theta = naive_of(study, full, n)
        left = full
        for group in range(min(n // d, subsets - len(parts))):
            gone = [rng.hypergeometric(k, n - group * d - k, d) for k in left]
            parts.append(naive_of(study, [k - g for k, g in zip(full, gone, strict=True)], n - d))
            estimates.append(corrected(theta, parts[-1], n, d))
            left = [k - g for k, g in zip(left, gone, strict=True)]
    return np.mean(estimates, axis=0), np.sqrt((n - d) / d * np.var(parts, axis=0))


def asked(study: Study, n: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """How many of n random annotators selected each image of both data sets."""

    def of(data: AnnotatedSet) -> NDArray[np.int64]:
        return rng.hypergeometric(data.selected, data.shown - data.selected, n)

    return [of(study.reference), of(study.replication)]


def naive_of(study: Study, selected: list[NDArray[np.int64]], n: int) -> NDArray[np.float64]:
    reference, replication = (np.bincount(k, minlength=n + 1) * 1.0 for k in selected)
    member = (selected[1] == np.arange(n + 1)[:, None]) * 1.0
    correct = member @ study.replication.correct
    return matched_accuracy(ThinnedCounts(reference[None], replication[None], correct[None]))[0]


def test_random_subsets_come_near_the_exact_forms():
    """5,000 images, 400 subsets; random subsets also average a bias of second order, small here.

    Scatter of the mean over subsets about 1e-4 (naive); the tolerance is ten times that.
    """
    study = study_of(images=5000, annotators=8)
    replicates = whole(study)
    by_subsets = naive_by_subsets(study, 5, 400, 0)
    np.testing.assert_allclose(by_subsets, Naive(5)(replicates).value[0], atol=1e-3)
    estimate_, error = jackknife_by_subsets(study, 8, 2, 400, 0)
    exact = Jackknife(delete=2)(replicates)
    np.testing.assert_allclose(estimate_, exact.value[0], atol=3e-3)
    np.testing.assert_allclose(error, exact.standard_error, rtol=0.35)


def test_subsets_that_keep_all_annotators_are_exact():
    study = study_of()
    np.testing.assert_allclose(naive_by_subsets(study, 6, 3, 1), Naive()(whole(study)).value[0])


# --- the line in 1/n --------------------------------------------------------------------------


def test_all_numbers_of_annotators_in_one_table():
    study = study_of()
    replicates = whole(study)
    table = compare_annotators(study)
    assert table.columns == ["annotators", "classifier", "reference_accuracy", "naive", "jackknife"]
    for n in range(1, 7):
        rows = table.filter(pl.col("annotators") == n)
        np.testing.assert_allclose(
            rows["naive"].to_numpy(), Naive(n)(replicates).value[0], rtol=1e-12
        )
        if n == 1:
            assert rows["jackknife"].null_count() == 3
        else:
            expected = Jackknife(n)(replicates).value[0]
            np.testing.assert_allclose(rows["jackknife"].to_numpy(), expected, rtol=1e-10)


def table_of(naive: NDArray[np.float64]) -> pl.DataFrame:
    n = np.arange(1, len(naive) + 1)
    jackknife = np.append(np.nan, n[1:] * naive[1:] - (n[1:] - 1) * naive[:-1])
    return pl.DataFrame(
        {
            "annotators": n,
            "classifier": ["c"] * len(n),
            "reference_accuracy": [0.9] * len(n),
            "naive": naive,
            "jackknife": jackknife,
        }
    ).fill_nan(None)


def test_a_line_is_a_line():
    line = linearity(table_of(0.8 - 0.5 / np.arange(1, 13)))
    assert line is not None
    assert line.r_squared == pytest.approx(1)
    assert line.jackknife == pytest.approx(0.8)
    assert line.left == pytest.approx(0, abs=1e-12)


def test_what_a_parabola_leaves_is_found():
    n = np.arange(1, 13)
    line = linearity(table_of(0.8 - 0.5 / n + 0.3 / n**2))
    assert line is not None
    assert (line.annotators, line.half) == (12, 6)
    assert line.r_squared < 1
    assert line.jackknife + line.left == pytest.approx(0.8, abs=1e-12)


def test_three_annotators_show_no_curve():
    assert linearity(compare_annotators(study_of(annotators=3))) is None


@pytest.mark.filterwarnings("ignore::bayesrep.estimators.InterpolationWarning")
def test_on_a_study_of_known_truth_the_jackknife_falls_short():
    """As appendix E.1 says: the naive estimates steepen towards 1/n = 0."""
    study = simulate_study(seed=0, classifiers=20)
    assert study.truth is not None
    line = linearity(compare_annotators(study))
    assert line is not None
    assert 0.99 < line.r_squared < 1
    assert 0 < line.left < float(study.truth.adjusted_accuracy.mean()) - line.jackknife


def test_the_table_warns_once():
    first = {"selected": np.array([0, 4, 4]), "shown": 4, "correct": np.ones((3, 1), bool)}
    other = {"selected": np.array([2, 4, 4]), "shown": 4, "correct": np.ones((3, 1), bool)}
    study = Study.from_arrays(reference=first, replication=other, classifiers=["c"])
    with pytest.warns(InterpolationWarning) as caught:
        compare_annotators(study)
    assert len(caught) == 1


def test_one_annotator_leaves_the_jackknife_out_of_the_default():
    """It cannot be had; asked for by name it is refused."""
    study = simulate_study(seed=0, images=200, annotators=1, classifiers=2)
    with pytest.warns(EstimateWarning) as said:
        table = estimate(study)
    assert any("jackknife: left out, since" in str(warning.message) for warning in said)
    assert set(table["method"]) == {"raw", "naive", "em-spline"}
    with pytest.raises(OptionError, match="leave jackknife out"):
        estimate(study, methods="jackknife")
