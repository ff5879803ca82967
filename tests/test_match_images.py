"""Choosing a replication's images: quotas, closed forms, and what is left of the gap."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesrep.cli import main
from bayesrep.errors import OptionError, StudyError
from bayesrep.lab import METHODS, left_with, match_images, next_answers

pytestmark = pytest.mark.filterwarnings("ignore::bayesrep.errors.IdentificationWarning")


def drawn(rng, size, n, a, b):
    s = rng.beta(a, b, size)
    return s, (rng.binomial(n, s), np.full(size, n))


def world(seed=0, n=10, reference=20_000, pool=20_000):
    """A reference of clear images and a pool of harder ones."""
    rng = np.random.default_rng(seed)
    _, first = drawn(rng, reference, n, 8.0, 2.0)
    s, second = drawn(rng, pool, n, 3.0, 2.0)
    return first, second, s


def test_what_is_left_is_the_closed_form_of_one_beta():
    """E[s | k] = (a + k) / (a + b + n), whose mean under the reference's counts is known.

    20,000 images each: the fitted means are within 0.004 of the true ones (5 standard errors).
    """
    first, second, s = world()
    found = match_images(first, second, size=2_000, components=1, replicates=20)
    assert found.reference_mean == pytest.approx(0.8, abs=0.004)
    assert found.pool_mean == pytest.approx(0.6, abs=0.006)
    fine = found.chosen["fine"]
    expected = 0.8 - (3 + 10 * 0.8) / (3 + 2 + 10)
    assert fine.gap == pytest.approx(expected, abs=0.006)
    assert fine.lower < fine.gap < fine.upper
    # Of what is chosen: the true frequencies, whose mean over 2,000 has an error of 0.003.
    for chosen in found.chosen.values():
        assert 0.8 - s[chosen.images].mean() == pytest.approx(chosen.gap, abs=0.015)
    assert abs(found.chosen["posterior"].gap) < 0.002
    assert found.chosen["posterior"].distance < 0.2 * fine.distance


def test_intervals_hold_the_expected_gap():
    """95 % intervals of 40 studies, by the true densities: fewer than 33 in 1 of 2,000 runs."""
    held = 0
    for seed in range(40):
        first, second, _ = world(seed, reference=1_500, pool=1_500)
        chosen = match_images(first, second, size=500, components=1, replicates=40, seed=seed)
        fine = chosen.chosen["fine"]
        k = second[0][fine.images]
        truth = 0.8 - ((3 + k) / 15).mean()
        held += fine.lower <= truth <= fine.upper
    assert held >= 33


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
    assert all(np.array_equal(again.chosen[m].images, found.chosen[m].images) for m in METHODS)


def test_published_bins_have_the_references_shares():
    first, second, _ = world(reference=1_000, pool=5_000)
    found = match_images(first, second, size=1_000, components=1, replicates=2)
    for name, bins in (("published", [0, 2, 4, 6, 8, 11]), ("fine", np.arange(12))):
        chosen = second[0][found.chosen[name].images]
        ours, theirs = (np.histogram(k, bins)[0] for k in (chosen, first[0]))
        assert np.abs(ours - theirs).max() <= (0 if name == "published" else 1)
        assert found.chosen[name].moved == 0


def test_where_a_bin_runs_empty_the_nearest_give():
    k = np.array([10] * 10), np.array([10] * 4 + [9] * 3 + [2] * 20)
    first, second = ((each, np.full(len(each), 10)) for each in k)
    found = match_images(first, second, size=10, components=1, replicates=2)
    fine = found.chosen["fine"]
    assert fine.moved == 6
    assert sorted(second[0][fine.images].tolist()) == [2] * 3 + [9] * 3 + [10] * 4


def test_inclusion_is_how_often_an_image_is_chosen():
    """200 choices: every cell's share within 5 standard errors."""
    first, second, _ = world(reference=500, pool=600)
    counted = np.zeros(600)
    for seed in range(200):
        chosen = match_images(
            first, second, size=100, components=1, replicates=2, seed=seed
        ).chosen["published"]
        counted[chosen.images] += 1
    for k in range(11):
        rows = second[0] == k
        if rows.any():
            p = chosen.inclusion[rows].mean()
            error = np.sqrt(p * (1 - p) / (200 * rows.sum())) + 1e-3
            assert abs(counted[rows].mean() / 200 - p) < 5 * error


def test_other_numbers_of_answers_than_the_references():
    rng = np.random.default_rng(0)
    _, first = drawn(rng, 5_000, 20, 8.0, 2.0)
    s, second = drawn(rng, 5_000, 5, 3.0, 2.0)
    found = match_images(first, second, size=500, components=1, replicates=5)
    assert abs(found.chosen["posterior"].gap) < 0.5 * found.chosen["published"].gap
    chosen = found.chosen["posterior"]
    assert 0.8 - s[chosen.images].mean() == pytest.approx(chosen.gap, abs=0.03)


@pytest.mark.parametrize("n", [1, 3, 10, 40])
def test_what_other_numbers_of_answers_would_leave_is_the_closed_form(n):
    first, second, _ = world(reference=5_000, pool=5_000)
    found = match_images(first, second, size=500, components=1, replicates=2)
    a, b = single_beta(found.densities[1])
    left = left_with(found, n, size=100, pool=100_000_000)
    expected = (found.reference_mean - found.pool_mean) * (a + b) / (a + b + n)
    # 100 images in n + 1 bins: rounding moves what is chosen by a hundredth of a bin's width.
    exact = left_with(found, n, size=10_000_000, pool=100_000_000)["fine"]
    assert exact == pytest.approx(expected, abs=1e-4)
    assert left["published"] >= exact - 0.01
    assert abs(left["posterior"]) <= abs(left["fine"]) + 1e-3
    for size, answers in ((0, 3), (11, 3), (5, 0)):
        with pytest.raises(OptionError, match="answers must be 1 at least"):
            left_with(found, answers, size=size, pool=10)


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
    with pytest.raises(OptionError, match="1 at least"):
        next_answers(found, second, count=0, most=5)


def test_answers_asked_where_they_count_leave_less():
    """Three answers an image on average, of 3,000: by rounds, and of every image alike.

    Differences of about 2 points with an error of 0.5.
    """
    rng = np.random.default_rng(0)
    _, first = drawn(rng, 5_000, 10, 8.0, 2.0)
    s = rng.beta(3.0, 2.0, 3_000)
    answers = rng.random((3_000, 10)) < s[:, None]

    def left(n):
        counts = np.array([row[:m].sum() for row, m in zip(answers, n, strict=True)]), n
        return match_images(first, counts, size=500, components=1, replicates=2), counts

    alike, _ = left(np.full(3_000, 3))
    n = np.full(3_000, 2)
    while n.sum() < 9_000:
        found, counts = left(n)
        n[next_answers(found, counts, count=min(600, 9_000 - n.sum()), most=10)] += 1
    rounds, _ = left(n)
    gaps = [0.8 - s[each.chosen["posterior"].images].mean() for each in (alike, rounds)]
    assert gaps[1] < gaps[0] - 0.01


@pytest.mark.parametrize(
    ("pool", "options", "error", "message"),
    [
        (([1, 2], [3, 3]), {"size": 3}, StudyError, "the pool: fewer than 3 images; ask for fewer"),
        (([1, 4], [3, 3]), {"size": 1}, StudyError, "the pool: selected must be from 0 to shown"),
        (([1, 2], [3, 0]), {"size": 1}, StudyError, "shown above 0"),
        (([], []), {"size": 1}, StudyError, "the pool"),
        (([1, 2], [3, 3]), {"size": 0}, OptionError, "size must be 1"),
        (([1, 2], [3, 3]), {"size": 1, "replicates": 1}, OptionError, "replicates 2"),
        (([1, 2], [3, 3]), {"size": 1, "components": 0}, OptionError, "components is 0"),
    ],
)
def test_what_cannot_be_is_refused(pool, options, error, message):
    first = np.array([3, 2, 3, 1]), np.full(4, 3)
    with pytest.raises(error, match=message):
        match_images(first, tuple(np.array(each, dtype=int) for each in pool), **options)


def test_a_class_with_too_few_candidates_is_named():
    first = np.array([3, 2]), np.full(2, 3)
    second = np.array([3, 2, 1]), np.full(3, 3)
    classes = np.array(["cat", "dog"]), np.array(["cat", "cat", "dog"])
    with pytest.raises(StudyError, match="fewer than 2 images of dog"):
        match_images(first, second, size=2, classes=classes)


def test_as_it_is_typed(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = []
    for name, number, a in (("v1", 300, 8.0), ("pool", 600, 3.0)):
        _, (k, n) = drawn(rng, number, 10, a, 2.0)
        rows += [
            (name, f"{i}.jpg", int(x), int(m), "cd"[i % 2])
            for i, (x, m) in enumerate(zip(k, n, strict=True))
        ]
    columns = ["dataset", "image", "selected", "shown", "label"]
    pl.DataFrame(rows, columns, orient="row").write_csv(tmp_path / "counts.csv")

    def run(*words):
        status = main(["match-images", str(tmp_path / "counts.csv"), *map(str, words)])
        return status, *capsys.readouterr()

    both = ("--reference", "v1", "--pool", "pool", "--replicates", 5)
    status, out, err = run(*both, "--per-class", 50, "--out", tmp_path / "o.csv")
    assert (status, err) == (0, "")
    assert "left of the gap" in out
    status, out, _ = run(*both, "--images", 9, "--answers", "3,20", "--out", tmp_path / "q.csv")
    assert "Left with other numbers of answers" in out
    table = pl.read_csv(tmp_path / "o.csv")
    assert table.group_by("label").len().sort("label").rows() == [("c", 50), ("d", 50)]
    assert set(table["dataset"]) == {"pool"}
    status, out, _ = run(
        *both, "--images", 9, "--ask", 30, "--most", 11, "--out", tmp_path / "n.csv"
    )
    assert status == 0
    assert "30 candidates to ask about once more" in out
    assert len(pl.read_csv(tmp_path / "n.csv")) == 30
    for words, message in (
        ((*both, "--out", tmp_path / "p.csv"), "give either --images or --per-class"),
        (("--reference", "v1", "--pool", "x", "--images", 5, "--out", tmp_path / "p.csv"), "'x'"),
        ((*both, "--images", 5_000, "--out", tmp_path / "p.csv"), "fewer than 5000 images"),
    ):
        status, out, err = run(*words)
        assert status == 2
        assert message in err
        assert err.count("\n") == 1
    assert not (tmp_path / "p.csv").exists()
