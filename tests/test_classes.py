"""Classes of images that were selected as often: the test, what it would do, what is said."""

from dataclasses import replace

import numpy as np
import pytest
import zoo
from class_studies import fit_of, study_of_classes
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, chi2_contingency

import bayesrep
from bayesrep.checks import classes
from bayesrep.checks.classes import _test, assumed_of_images, class_shifts, judge_classes
from bayesrep.numerics.post_stratification import post_stratify
from bayesrep.posterior.fitted import Fitted


@given(st.lists(st.tuples(st.integers(5, 60), st.integers(5, 60)), min_size=2, max_size=6))
def test_of_one_stratum_it_is_pearsons(counts):
    table = np.array(counts, dtype=float).T
    total = table.sum()
    pearson = chi2_contingency(table, correction=False)
    # The hypergeometric variance is the multinomial one by N / (N - 1).
    expected = chi2.sf(pearson.statistic * (total - 1) / total, table.shape[1] - 1)
    assert _test(table[:1], table[1:]) == pytest.approx(expected, rel=1e-6)


def test_strata_of_opposite_differences_cancel_and_alike_ones_add_up():
    one, other = np.array([[40.0, 60.0]]), np.array([[60.0, 40.0]])
    alone = _test(one, other)
    assert _test(np.vstack([one, other]), np.vstack([other, one])) == pytest.approx(1.0)
    assert _test(np.vstack([one, one]), np.vstack([other, other])) < alone
    # Where one data set has no images nothing is compared.
    nothing = np.zeros((1, 2))
    assert _test(np.vstack([one, one]), np.vstack([other, nothing])) == pytest.approx(alone)


def test_the_shift_is_what_classes_do():
    """By hand, of one stratum: half of the reference is hard, three quarters of the replication.

    Easy images are answered right, hard ones are not, so that a quarter is of the classes; and of
    two strata that are alike it is the same.
    """
    many = 80

    def side(hard, counts):
        names = np.where(np.arange(many) % 4 < hard, "hard", "easy")
        return {
            "selected": counts,
            "shown": np.full(many, 10),
            "correct": (names == "easy")[:, None],
            "groups": {"kind": names},
        }

    for strata, counts in ((1, np.full(many, 8)), (2, np.repeat([4, 9], many // 2))):
        study = bayesrep.Study.from_arrays(
            reference=side(2, counts), replication=side(3, counts), classifiers=["a"]
        )
        (found,) = class_shifts(study)
        assert found.shift == pytest.approx(0.25)
        assert found.p == pytest.approx(chi2.sf(_of_halves(many, strata), 1), rel=1e-9)


def _of_halves(many, strata):
    """The statistic of two classes, half and three quarters of them hard in every stratum."""
    each = many / strata
    hard, total = each * 5 / 4, 2 * each
    variance = each * each * hard * (total - hard) / (total**2 * (total - 1))
    return (many / 8) ** 2 / (strata * variance)


def test_a_shift_that_matters_is_told_with_what_to_do():
    (found,) = judge_classes(fit_of(study_of_classes(0, shift=0.15)))
    assert found.trust == "with care"
    assert found.value.endswith("(kind)")
    assert "(kind, " in found.sentence
    assert "smaller" in found.sentence
    assert "as groups" in found.sentence


def test_what_hardly_matters_is_said_but_changes_no_verdict():
    (found,) = judge_classes(fit_of(study_of_classes(0, shift=0.15), sd=0.1))
    assert found.trust == "yes"
    assert "hardly matters" in found.sentence


def test_labels_are_classes_too():
    (found,) = judge_classes(fit_of(study_of_classes(0, shift=0.15, labels=True)))
    assert found.value.endswith("(label)")
    assert found.trust == "with care"
    (sound,) = judge_classes(fit_of(study_of_classes(0, shift=0.0, labels=True)))
    assert sound.trust == "yes"
    told = sound.value.removesuffix(" (label)")
    assert told.startswith("p = ")
    assert f"(label: {told})" in sound.sentence


def test_a_fit_corrects_for_classes_draw_by_draw_and_says_so():
    """`class_shift` is what the only column of groups moves the mean by; without, nothing is."""
    study = zoo.study("grouped")
    corrected, plain = (
        zoo.posterior("grouped", **zoo.QUICK, classes=classes) for classes in (True, False)
    )
    moved, kept = (p["posterior"]["adjusted_accuracy"].values for p in (corrected, plain))
    shift = corrected["posterior"]["class_shift"].values
    np.testing.assert_allclose((moved - kept).mean(axis=2), shift, atol=1e-12)
    (found,) = judge_classes(Fitted(study, corrected))
    assert (found.wanted, found.trust) == ("corrected", "yes")
    assert found.value.endswith("(breed)")
    assert "class_shift" not in plain["posterior"]
    assert judge_classes(Fitted(study, plain))[0].wanted != "corrected"


def test_a_post_stratified_shift_is_as_far_off_as_its_influences_say():
    """400 studies of 30 classes whose true shift is 0, in three strata: sd within 15 % (8 s.e.)."""
    rng = np.random.default_rng(0)
    shift, spread = np.empty((400, 2)), np.empty((400, 2))
    difficulty = rng.uniform(0.2, 0.9, 30)
    for n in range(400):
        kinds = rng.integers(0, 30, 1000)
        right = rng.random((500, 2)) < difficulty[kinds[500:], None]
        result = post_stratify(rng.integers(0, 3, 1000), kinds, right)
        shift[n], spread[n] = result.shift, np.square(result.influence).sum(axis=0)
        np.testing.assert_allclose(result.influence[500:].sum(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(shift.std(axis=0), np.sqrt(spread.mean(axis=0)), rtol=0.15)
    assert (abs(shift.mean(axis=0)) < 4 * shift.std(axis=0) / 20).all()


def test_what_the_fit_divides_by_is_not_looked_at():
    study = study_of_classes(0, shift=0.15)
    (found,) = judge_classes(fit_of(study, grouping="kind"))
    assert (found.value, found.wanted, found.trust) == ("assumed", "cannot be seen", "yes")
    assert "frequency and group" in found.sentence
    assert "frequency and group" in assumed_of_images("kind")


def test_without_classes_the_assumption_is_named():
    study = zoo.cut(zoo.study("tiny"), images=20, classifiers=2)
    assert class_shifts(study) == []
    (found,) = judge_classes(fit_of(study))
    assert (found.value, found.wanted, found.trust) == ("assumed", "cannot be seen", "yes")
    assert "Add a column label" in found.sentence
    assert judge_classes(fit_of(None)) == []


def test_rare_classes_are_compared_as_one_and_one_class_not_at_all():
    rng = np.random.default_rng(0)

    def side(names):
        return {
            "selected": rng.binomial(10, 0.8, 100),
            "shown": np.full(100, 10),
            "correct": rng.random((100, 1)) < 0.7,
            "groups": {"kind": names, "own": np.arange(100).astype(str)},
        }

    names = np.array(["often"] * 60 + [f"rare {n}" for n in range(40)])
    study = bayesrep.Study.from_arrays(
        reference=side(names), replication=side(names), classifiers=["a"]
    )
    (found,) = class_shifts(study)  # of "own" every value is rare
    assert (found.column, found.classes) == ("kind", 2)
    assert found.p > 0.05


def test_of_many_classes_the_most_frequent_are_compared(monkeypatch):
    study = zoo.study("tiny")
    kinds = np.array([f"kind {n % 10}" for n in range(500)])
    sets = {role: replace(data, groups={"kind": kinds}) for role, data in study.datasets.items()}
    study = replace(study, datasets=sets)
    assert class_shifts(study)[0].classes == 10
    monkeypatch.setattr(classes, "MAX_TESTED_CLASSES", 3)
    assert class_shifts(study)[0].classes == 4
