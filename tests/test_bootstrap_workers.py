"""The bootstrap where it is known who answered: replicates are of other workers too."""

from dataclasses import replace

import numpy as np
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesrep
from bayesrep import SufficientStatistics, WorkerAnswers
from bayesrep.estimators.crowds import WorkerBootstrap, shift_counts, with_adjacent_cells
from bayesrep.estimators.replicates import bootstrap
from bayesrep.studies.crowds import frequency_covariance, residuals_of
from bayesrep.studies.statistics import Cells

ROLES = ("reference", "replication")
pytestmark = pytest.mark.filterwarnings("ignore::bayesrep.errors.InterpolationWarning")


def nameless(study):
    datasets = {role: replace(data, answers=None) for role, data in study.datasets.items()}
    return replace(study, datasets=datasets)


def of_strangers(study):
    datasets = {}
    for role, data in study.datasets.items():
        image = np.repeat(np.arange(len(data.images)), data.shown)
        number = np.concatenate([np.arange(n) for n in data.shown])
        names = [f"{role} {place}" for place in range(len(image))]
        answers = WorkerAnswers.of(image, names, number < data.selected[image])
        datasets[role] = replace(data, answers=answers)
    return replace(study, datasets=datasets)


def replicates_of(study, *, size, seed=0):
    (found,) = bootstrap(study, SufficientStatistics.of(study), size=size, seed=seed)
    return found


def frequencies(replicates):
    """Mean selection frequency of every version, by data set."""
    each = (replicates.reference, replicates.replication)
    return np.stack(
        [c.images @ (c.selected / c.shown) / c.images.sum(axis=1) for c in each], axis=1
    )


@pytest.fixture(scope="module")
def two_crowds():
    return zoo.study("workers")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_flow_is_of_selections_and_loses_no_image(data):
    """Of one cell's Z: as many images leave as come, and selections grow by Z (inside 0..n)."""
    shown = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3, unique=True))
    n = np.repeat(np.sort(shown), np.sort(shown) + 1)
    k = np.concatenate([np.arange(each + 1) for each in np.sort(shown)])
    more = np.array(data.draw(st.lists(st.floats(-5, 5), min_size=len(n), max_size=len(n))))
    grown = shift_counts(k, n, more[None, :])[0]
    for each in shown:
        assert grown[n == each].sum() == pytest.approx(0, abs=1e-9)
    assert k @ grown == pytest.approx(more.sum(), abs=1e-9)


def test_a_cells_neighbours_are_there_but_no_impossible_ones():
    cells = Cells(*(np.array(x) for x in ([0, 3, 4], [3, 3, 5], [1, 2, 1], [[1], [0], [1]])))
    more = with_adjacent_cells(cells)
    pairs = list(zip(more.selected.tolist(), more.shown.tolist(), strict=True))
    assert pairs == [(0, 3), (1, 3), (2, 3), (3, 3), (3, 5), (4, 5), (5, 5)]
    assert more.images.sum() == 4


def test_of_strangers_it_is_the_bootstrap_over_images(two_crowds):
    """To the bit: nobody answered twice, so nothing is known of anybody."""
    plain, strangers = nameless(two_crowds), of_strangers(two_crowds)
    tables = [
        bayesrep.estimate(study, ["raw", "jackknife"], bootstrap=20, seed=3)
        for study in (plain, strangers)
    ]
    for column in ("adjusted_accuracy", "lower", "upper"):
        np.testing.assert_allclose(*(table[column] for table in tables), rtol=1e-12)


def test_other_workers_select_more_by_as_much_as_workers_differ(two_crowds):
    """Of the mean frequencies, linear in what each worker adds: the covariance over workers."""
    datasets = [two_crowds.datasets[role] for role in ROLES]
    expected = frequency_covariance(datasets, residuals_of(datasets))
    shift = WorkerBootstrap.from_study(two_crowds).shifts
    means = [
        shift[role].T @ (1 / data.shown / len(data.images))
        for role, data in zip(ROLES, datasets, strict=True)
    ]
    np.testing.assert_allclose(np.stack(means) @ np.stack(means).T, expected, atol=1e-12)
    assert expected[0, 1] == 0  # nobody is in both crowds
    assert expected[0, 0] > 0


def test_of_a_data_set_without_workers_only_images_are_others(two_crowds):
    """Its replicates are those of a study without any worker, the other one's are not."""
    datasets = {**two_crowds.datasets, "replication": replace(two_crowds.replication, answers=None)}
    half = replace(two_crowds, datasets=datasets)
    assert list(WorkerBootstrap.from_study(half).shifts) == ["reference"]
    found, plain = (frequencies(replicates_of(s, size=10)) for s in (half, nameless(two_crowds)))
    np.testing.assert_array_equal(found[:, 1], plain[:, 1])
    assert (found[1:, 0] != plain[1:, 0]).all()


def test_replicates_are_possible_and_repeat(two_crowds):
    one, again, other = (replicates_of(two_crowds, size=50, seed=seed) for seed in (1, 1, 2))
    for role in ROLES:
        counts = getattr(one, role)
        assert (counts.images >= 0).all()
        assert (counts.correct >= 0).all()
        assert (counts.correct <= counts.images[:, :, None] * (1 + 1e-9)).all()
        np.testing.assert_allclose(counts.images.sum(axis=1), 600)
        np.testing.assert_array_equal(counts.images, getattr(again, role).images)
    assert np.abs(one.reference.images - other.reference.images).max() > 1


def test_one_worker_for_everything_adds_nothing(two_crowds):
    """He is his own crowd: of another one nothing can be known, and `answers crowd` says so."""
    datasets = {}
    for role, data in two_crowds.datasets.items():
        shown = np.ones_like(data.shown)
        selected = np.minimum(data.selected, 1)
        answers = WorkerAnswers.of(np.arange(len(shown)), ["he"] * len(shown), selected > 0)
        datasets[role] = replace(data, shown=shown, selected=selected, answers=answers)
    study = replace(two_crowds, datasets=datasets)
    for role in ROLES:
        counts = getattr(replicates_of(study, size=10), role)
        assert np.isfinite(counts.images).all()
