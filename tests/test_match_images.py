"""Choosing a replication's images: quotas, closed forms, and what is left of the gap."""

from functools import partial

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pools import drawn, world
from refusals import check, refusal, refused

from bayesrep.cli import main
from bayesrep.errors import OptionError, StudyError
from bayesrep.planning import MATCHING_METHODS, match_images, next_answers, remaining_gap

pytestmark = pytest.mark.filterwarnings("ignore::bayesrep.errors.IdentificationWarning")


@given(
    seed=st.integers(0, 1_000),
    n=st.sampled_from([1, 3, 10]),
    size=st.integers(1, 30),
    groups=st.integers(1, 4),
)
@settings(deadline=None, max_examples=15)
def test_quotas_hold_and_no_image_is_chosen_twice(seed, n, size, groups):
    rng = np.random.default_rng(seed)
    _, first = drawn(rng, 200, n, 6.0, 2.0)
    _, second = drawn(rng, 400, n, 2.0, 2.0)
    classes = np.arange(200) % groups, np.arange(400) % (groups + 1)  # one that nobody asked for
    names = tuple(each.astype(str) for each in classes)
    found = match_images(
        first, second, size=size, classes=names, components=1, replicates=2, seed=seed
    )
    for chosen in found.chosen.values():
        assert len(np.unique(chosen.images)) == len(chosen.images) == size * groups
        counted = np.bincount(classes[1][chosen.images], minlength=groups + 1)
        assert counted.tolist() == [size] * groups + [0]
        assert chosen.inclusion.min() >= 0
        assert chosen.inclusion.max() <= 1 + 1e-9
        assert chosen.inclusion.sum() == pytest.approx(size * groups)
    again = match_images(
        first, second, size=size, classes=names, components=1, replicates=2, seed=seed
    )
    assert all(
        np.array_equal(again.chosen[m].images, found.chosen[m].images) for m in MATCHING_METHODS
    )


def test_published_bins_have_the_references_shares():
    first, second, _ = world(reference=1_000, pool=5_000)
    found = match_images(first, second, size=1_000, components=1, replicates=2)
    for name, bins in (("published", [0, 2, 4, 6, 8, 11]), ("fine", np.arange(12))):
        chosen = second[0][found.chosen[name].images]
        ours, theirs = (np.histogram(k, bins)[0] for k in (chosen, first[0]))
        assert np.abs(ours - theirs).max() <= (0 if name == "published" else 1)
        assert found.chosen[name].moved == 0


def test_inclusion_is_how_often_an_image_is_chosen():
    """Of the images of a cell as many are chosen as their chances add up to, but for rounding."""
    first, second, _ = world(reference=500, pool=600)
    found = match_images(first, second, size=100, components=1, replicates=2)
    for chosen in found.chosen.values():
        cells = [second[0] == k for k in range(11)]
        assert all(len(np.unique(chosen.inclusion[rows])) <= 1 for rows in cells)
        numbers = np.array([np.isin(np.flatnonzero(rows), chosen.images).sum() for rows in cells])
        expected = np.array([chosen.inclusion[rows].sum() for rows in cells])
        assert (np.abs(numbers - expected) < 1 + 1e-9).all()


def test_where_a_bin_runs_empty_the_nearest_give():
    k = np.array([10] * 10), np.array([10] * 4 + [9] * 3 + [2] * 20)
    first, second = ((each, np.full(len(each), 10)) for each in k)
    found = match_images(first, second, size=10, components=1, replicates=2)
    fine = found.chosen["fine"]
    assert fine.moved == 6
    assert sorted(second[0][fine.images].tolist()) == [2] * 3 + [9] * 3 + [10] * 4


@pytest.mark.parametrize("n", [1, 3, 10, 40])
def test_what_other_numbers_of_answers_would_leave_is_the_closed_form(n):
    first, second, _ = world(reference=5_000, pool=5_000)
    found = match_images(first, second, size=500, components=1, replicates=2)
    a, b = single_beta(found.densities[1])
    left = remaining_gap(found, n, size=100, pool=100_000_000)
    expected = (found.reference_mean - found.pool_mean) * (a + b) / (a + b + n)
    # 100 images in n + 1 bins: rounding moves what is chosen by a hundredth of a bin's width.
    exact = remaining_gap(found, n, size=10_000_000, pool=100_000_000)["fine"]
    assert exact == pytest.approx(expected, abs=1e-4)
    assert left["published"] >= exact - 0.01
    assert abs(left["posterior"]) <= abs(left["fine"]) + 1e-3
    for size, answers in ((0, 3), (11, 3), (5, 0)):
        with refused(OptionError, "answers-or-size-out-of-range"):
            remaining_gap(found, answers, size=size, pool=10)


def single_beta(mass):
    """The parameters of a beta by its first two moments."""
    edges = np.sin(0.5 * np.pi * np.linspace(0, 1, len(mass) + 1)) ** 2
    s = (edges[1:] + edges[:-1]) / 2
    mean, variance = mass @ s, mass @ s**2 - (mass @ s) ** 2
    size = mean * (1 - mean) / variance - 1
    return mean * size, (1 - mean) * size


def test_the_next_answers_are_about_what_may_be_chosen():
    first, second, _ = world(reference=1_000, pool=1_000, n=5)
    found = match_images(first, second, size=300, components=1, replicates=2)
    asked = next_answers(found, second, count=200, most=6)
    inclusion = found.chosen["posterior"].inclusion
    assert len(np.unique(asked)) == 200
    assert (np.diff(inclusion[asked]) <= 0).all()
    assert inclusion[asked].min() >= np.sort(inclusion)[-200]
    assert len(next_answers(found, second, count=200, most=5)) == 0
    with refused(OptionError, "next-answers-below-one"):
        next_answers(found, second, count=0, most=5)


IMPOSSIBLE, SMALL = "matched-counts-impossible", "size-or-replicates-too-small"
HELD = {"size": 3, "classes": "", "held": "2"}


@pytest.mark.parametrize(
    ("pool", "options", "rule", "facts"),
    [
        (([1, 2], [3, 3]), {"size": 3}, "too-few-pool-images", HELD),
        (([1, 4], [3, 3]), {}, IMPOSSIBLE, {"role": "pool"}),
        (([1, 2], [3, 0]), {}, IMPOSSIBLE, {"role": "pool"}),
        (([], []), {}, IMPOSSIBLE, {"role": "pool"}),
        (([1, 2], [3, 3]), {"size": 0}, SMALL, {}),
        (([1, 2], [3, 3]), {"replicates": 1}, SMALL, {}),
        (([1, 2], [3, 3]), {"components": 0}, "components-or-starts-below-one", {"components": 0}),
    ],
)
def test_what_cannot_be_is_refused(pool, options, rule, facts):
    first = np.array([3, 2, 3, 1]), np.full(4, 3)
    second = tuple(np.array(each, dtype=int) for each in pool)
    kind = StudyError if rule in (IMPOSSIBLE, "too-few-pool-images") else OptionError
    with refused(kind, rule, facts):
        match_images(first, second, **{"size": 1} | options)


def test_a_class_with_too_few_candidates_is_named():
    first = np.array([3, 2]), np.full(2, 3)
    second = np.array([3, 2, 1]), np.full(3, 3)
    classes = np.array(["cat", "dog"]), np.array(["cat", "cat", "dog"])
    facts = {"size": 2, "classes": " of dog (1 in all)", "held": "1"}
    with refused(StudyError, "too-few-pool-images", facts):
        match_images(first, second, size=2, classes=classes)


def test_as_it_is_typed(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("bayesrep.planning.match_images", partial(match_images, replicates=5))
    rng = np.random.default_rng(0)
    rows = []
    for name, number, most, a in (("v1", 300, 11, 8.0), ("pool", 600, 10, 3.0)):
        _, (k, n) = drawn(rng, number, most, a, 2.0)
        rows += [
            (name, f"{i}.jpg", int(x), int(m), "cd"[i % 2])
            for i, (x, m) in enumerate(zip(k, n, strict=True))
        ]
    columns = ["dataset", "image", "selected", "shown", "label"]
    pl.DataFrame(rows, columns, orient="row").write_csv(tmp_path / "counts.csv")

    def run(*words):
        status = main(["collect", "match", str(tmp_path / "counts.csv"), *map(str, words)])
        return status, *capsys.readouterr()

    both = ("--reference", "v1", "--pool", "pool")
    status, out, err = run(*both, "--per-class", 50, "--out", tmp_path / "o.csv")
    assert (status, err) == (0, "")
    assert "bias left (points)" in out
    status, out, _ = run(*both, "--images", 9, "--answers", "3,20", "--out", tmp_path / "q.csv")
    assert "Left with other numbers of answers" in out
    table = pl.read_csv(tmp_path / "o.csv")
    assert table.group_by("label").len().sort("label").rows() == [("c", 50), ("d", 50)]
    assert set(table["dataset"]) == {"pool"}
    status, out, _ = run(*both, "--images", 9, "--ask", 30, "--out", tmp_path / "n.csv")
    assert status == 0
    assert "30 candidates to ask about once more" in out
    assert len(pl.read_csv(tmp_path / "n.csv")) == 30
    unknown = ("--reference", "v1", "--pool", "x", "--images", 5)
    for words, rule, facts in (
        (both, "match-needs-sets-and-size", {}),
        ((*both, "--images", 5, "--per-class", 2), "images-and-per-class-given", {}),
        ((*both, "--images", 5, "--check"), "check-of-matching-options", {}),
        (unknown, "no-images-of-dataset", {"dataset": "x"}),
        ((*both, "--images", 5_000), "too-few-pool-images", {"size": 5_000}),
    ):
        command = ["collect", "match", tmp_path / "counts.csv", *words, "--out", tmp_path / "p.csv"]
        check(refusal(command), rule, facts)
    assert not (tmp_path / "p.csv").exists()
