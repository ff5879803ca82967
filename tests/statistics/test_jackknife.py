"""The jackknife over annotators: its spread, random subsets, a study whose truth is known."""

import numpy as np
import pytest
from numpy.typing import NDArray
from test_jackknife import study_of, whole

from bayesrep import Study, simulate_study
from bayesrep.estimators import Jackknife, Naive
from bayesrep.estimators.annotators import compare_annotators, linearity
from bayesrep.estimators.jackknife import correct_estimate
from bayesrep.estimators.naive import ThinnedCounts, matched_accuracy
from bayesrep.estimators.replicates import Replicates
from bayesrep.studies.study import AnnotatedSet


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
            estimates.append(correct_estimate(theta, parts[-1], n, d))
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
    parts = (reference[None], replication[None], correct[None])
    return matched_accuracy(ThinnedCounts(n, np.arange(n + 1), *parts))[0]


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


@pytest.mark.filterwarnings("ignore::bayesrep.estimators.InterpolationWarning")
def test_on_a_study_of_known_truth_the_jackknife_falls_short():
    """As appendix E.1 says: the naive estimates steepen towards 1/n = 0."""
    study = simulate_study(seed=0, classifiers=20)
    assert study.truth is not None
    line = linearity(compare_annotators(study))
    assert line is not None
    assert 0.99 < line.r_squared < 1
    assert 0 < line.left < float(study.truth.adjusted_accuracy.mean()) - line.jackknife
