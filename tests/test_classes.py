"""Classes of images that were selected as often: the test, what it would do, what is said."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import zoo
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, chi2_contingency

import bayesrep
from bayesrep.checks import classes
from bayesrep.checks.classes import _test, assumed_of_images, class_shifts, judge_classes


def _fitted(study, sd=0.01, grouping=None):
    """What `judge_classes` looks at: adjusted accuracies whose mean has that sd."""
    adjusted = 0.7 + sd * np.random.default_rng(0).standard_normal((1, 4000, 1))
    return SimpleNamespace(
        study=study, adjusted=adjusted, recorded=SimpleNamespace(grouping=grouping)
    )


def _study(seed, *, shift, labels=False, images=2000):
    """Two classes, one 20 points easier; the replication has `shift` more of the hard one."""
    rng = np.random.default_rng(seed)
    sides = {}
    for role, extra in (("reference", 0.0), ("replication", shift)):
        s = rng.beta(6, 2, images)
        hard = rng.random(images) < 0.4 + extra
        correct = rng.random((images, 3)) < np.where(hard, 0.6, 0.8)[:, None]
        names = np.where(hard, "hard", "easy")
        known = {"labels": names} if labels else {"groups": {"kind": names}}
        shown = np.full(images, 10)
        sides[role] = {"selected": rng.binomial(10, s), "shown": shown, "correct": correct, **known}
    return bayesrep.Study.from_arrays(**sides, classifiers=["a", "b", "c"])


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
    (found,) = judge_classes(_fitted(_study(0, shift=0.15)))
    assert found.trust == "with care"
    assert found.value.endswith("(kind)")
    assert "(kind, " in found.sentence
    assert "smaller" in found.sentence
    assert "groups=" in found.sentence


def test_what_hardly_matters_is_said_but_changes_no_verdict():
    (found,) = judge_classes(_fitted(_study(0, shift=0.15), sd=0.1))
    assert found.trust == "yes"
    assert "hardly matters" in found.sentence


def test_labels_are_classes_too():
    (found,) = judge_classes(_fitted(_study(0, shift=0.15, labels=True)))
    assert found.value.endswith("(label)")
    assert found.trust == "with care"
    (sound,) = judge_classes(_fitted(_study(0, shift=0.0, labels=True)))
    assert sound.trust == "yes"
    told = sound.value.removesuffix(" (label)")
    assert told.startswith("p = ")
    assert f"(label: {told})" in sound.sentence


def test_what_the_fit_divides_by_is_not_looked_at():
    study = _study(0, shift=0.15)
    (found,) = judge_classes(_fitted(study, grouping="kind"))
    assert (found.value, found.wanted, found.trust) == ("assumed", "cannot be seen", "yes")
    assert found.sentence.startswith("Images of one group")
    assert assumed_of_images("kind").startswith("images of one group are alike")


def test_without_classes_the_assumption_is_named():
    study = zoo.cut(zoo.study("tiny"), images=20, classifiers=2)
    assert class_shifts(study) == []
    (found,) = judge_classes(_fitted(study))
    assert (found.value, found.wanted, found.trust) == ("assumed", "cannot be seen", "yes")
    assert found.sentence.startswith("Images selected as often")
    assert judge_classes(_fitted(None)) == []


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
    monkeypatch.setattr(classes, "MOST", 3)
    assert class_shifts(study)[0].classes == 4
