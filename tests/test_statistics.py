"""Cells count every image once, whatever its order, and add up over shards."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

import bayesrep.studies.statistics as statistics_module
from bayesrep import Study, StudyError, SufficientStatistics
from bayesrep.studies.statistics import Cells

CLASSIFIERS = ["a", "b", "c"]


def random_arrays(rng: np.random.Generator, images: int, largest: int = 6) -> dict[str, Any]:
    shown = rng.integers(1, largest, size=images, endpoint=True)
    return {
        "selected": rng.binomial(shown, 0.7),
        "shown": shown,
        "correct": rng.random((images, len(CLASSIFIERS))) < 0.6,
    }


def reduced(reference: dict[str, Any], replication: dict[str, Any]) -> SufficientStatistics:
    study = Study.from_arrays(reference=reference, replication=replication, classifiers=CLASSIFIERS)
    return SufficientStatistics.from_study(study)


def assert_same(one: SufficientStatistics, other: SufficientStatistics) -> None:
    assert one.classifiers == other.classifiers
    for role, cells in one.cells.items():
        assert_same_cells(cells, other.cells[role])


def assert_same_cells(one: Cells, other: Cells) -> None:
    for name in ("selected", "shown", "images", "correct"):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert mine.dtype == theirs.dtype == np.int64
        np.testing.assert_array_equal(mine, theirs)


def rows(arrays: dict[str, Any], which: Any) -> dict[str, Any]:
    return {name: values[which] for name, values in arrays.items()}


studies = st.builds(
    lambda seed, images: random_arrays(np.random.default_rng(seed), images),
    st.integers(0, 2**32 - 1),
    st.integers(2, 60),
)


@given(studies)
def test_cells_count_by_brute_force(arrays: dict[str, Any]):
    cells = reduced(arrays, arrays).reference
    pairs = np.stack([cells.shown, cells.selected], axis=1).tolist()
    assert pairs == np.unique([arrays["shown"], arrays["selected"]], axis=1).T.tolist()
    for row, (shown, selected) in enumerate(pairs):
        inside = (arrays["shown"] == shown) & (arrays["selected"] == selected)
        assert cells.images[row] == inside.sum()
        np.testing.assert_array_equal(cells.correct[row], arrays["correct"][inside].sum(axis=0))


@given(studies)
def test_images_find_their_cell(arrays: dict[str, Any]):
    cells = reduced(arrays, arrays).reference
    cell = cells.find(arrays["selected"], arrays["shown"])
    np.testing.assert_array_equal(cells.selected[cell], arrays["selected"])
    np.testing.assert_array_equal(cells.shown[cell], arrays["shown"])
    np.testing.assert_array_equal(np.bincount(cell), cells.images)


@pytest.mark.parametrize("pair", [(1, 4), (3, 3), (0, 9), (9, 1), (11, 0)])
def test_a_pair_without_a_cell_is_named(pair: tuple[int, int]):
    cells = Cells(*(np.array(each) for each in ([1, 2], [3, 4], [1, 1], [[0], [1]])))
    selected, shown = (np.array([*own, each]) for own, each in zip(([1], [3]), pair, strict=True))
    with refused(StudyError, "pair-without-cell", {"pairs": [f"{pair[0]}/{pair[1]}"]}):
        cells.find(selected, shown)


@given(studies)
def test_completed_cells_hold_the_same_images(arrays: dict[str, Any]):
    cells = reduced(arrays, arrays).reference
    shown = np.union1d(cells.shown, [2, 7])
    completed = cells.completed(shown)
    assert len(completed.shown) == (shown + 1).sum()
    cell = completed.find(cells.selected, cells.shown)
    np.testing.assert_array_equal(completed.images[cell], cells.images)
    np.testing.assert_array_equal(completed.correct[cell], cells.correct)
    assert completed.images.sum() == cells.images.sum()
    assert_same_cells(cells.on(cells.selected, cells.shown), cells)


@given(studies, st.randoms(use_true_random=False))
def test_the_order_of_images_does_not_matter(arrays: dict[str, Any], random: Any):
    order = list(range(len(arrays["shown"])))
    random.shuffle(order)
    assert_same(reduced(arrays, arrays), reduced(rows(arrays, order), arrays))


@given(studies, st.data())
def test_shards_add_up_to_the_whole(arrays: dict[str, Any], data: st.DataObject):
    cut = data.draw(st.integers(1, len(arrays["shown"]) - 1))
    first, last = rows(arrays, slice(cut)), rows(arrays, slice(cut, None))
    assert_same(reduced(first, last) + reduced(last, first), reduced(arrays, arrays))


@given(studies, st.permutations(range(len(CLASSIFIERS))))
def test_permuting_classifiers_permutes_the_columns(arrays: dict[str, Any], order: list[int]):
    cells = reduced(arrays, arrays).reference
    permuted = reduced({**arrays, "correct": arrays["correct"][:, order]}, arrays).reference
    np.testing.assert_array_equal(permuted.correct, cells.correct[:, order])
    np.testing.assert_array_equal(permuted.images, cells.images)


def test_chunks_leave_no_seam(monkeypatch: pytest.MonkeyPatch):
    arrays = random_arrays(np.random.default_rng(0), 1000)
    whole = reduced(arrays, arrays)
    monkeypatch.setattr(statistics_module, "_CHUNK_IMAGES", 7)
    assert_same(whole, reduced(arrays, arrays))


def test_accuracies_and_mean_selection_frequencies_are_those_of_the_images():
    rng = np.random.default_rng(1)
    one, other = random_arrays(rng, 500), random_arrays(rng, 300)
    statistics = reduced(one, other)
    for role, arrays in (("reference", one), ("replication", other)):
        expected = arrays["correct"].mean(axis=0)
        np.testing.assert_allclose(statistics.accuracy(role), expected, rtol=1e-14)
        frequency = (arrays["selected"] / arrays["shown"]).mean()
        assert statistics.mean_selection_frequency(role) == pytest.approx(frequency, rel=1e-12)


def test_all_images_in_one_cell():
    arrays = {"selected": 3, "shown": 4, "correct": np.ones((5, 3))}
    cells = reduced(arrays, arrays).reference
    assert (cells.selected.tolist(), cells.shown.tolist(), cells.images.tolist()) == ([3], [4], [5])
    assert cells.correct.tolist() == [[5, 5, 5]]


def test_shards_of_different_studies_do_not_add_up():
    arrays = random_arrays(np.random.default_rng(2), 10)
    mine = reduced(arrays, arrays)
    with refused(StudyError, "shards-classifiers-differ"):
        mine + SufficientStatistics(("a", "c", "b"), mine.cells)
    more = SufficientStatistics(mine.classifiers, {**mine.cells, "candidates": mine.reference})
    with refused(StudyError, "shards-roles-differ"):
        mine + more


def test_both_roles_and_all_columns_are_needed():
    cells = reduced(*[random_arrays(np.random.default_rng(3), 10)] * 2).cells
    with refused(StudyError, "role-without-cells", {"role": "replication"}):
        SufficientStatistics(("a", "b", "c"), {"reference": cells["reference"]})
    with refused(
        StudyError, "cells-columns-not-classifiers", {"column_count": 3, "classifier_count": 1}
    ):
        SufficientStatistics(("a",), cells)


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({"selected": [1]}, ("cells-shapes-differ",)),
        ({"selected": [3, 3]}, ("cells-counts-out-of-range",)),
        ({"selected": [2, 2]}, ("cells-not-sorted",)),
        ({"selected": [2, 1]}, ("cells-not-sorted",)),
        ({"correct": [[6], [1]]}, ("cells-correct-out-of-range",)),
        ({"correct": [1, 1]}, ("cells-correct-shape-wrong",)),
        ({"shown": [], "selected": [], "images": []}, ("cells-shown-shape-wrong",)),
    ],
)
def test_impossible_cells_are_refused(changes: dict[str, Any], broken: tuple[Any, ...]):
    sound = {"selected": [1, 2], "shown": [2, 2], "images": [5, 5], "correct": [[1], [5]]}
    arrays = {name: np.array(value) for name, value in {**sound, **changes}.items()}
    with refused(StudyError, *broken):
        Cells(**arrays)
