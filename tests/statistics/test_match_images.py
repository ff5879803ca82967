"""Choosing a replication's images: what is left of the gap, by simulation."""

import numpy as np
import pytest
from pools import drawn, world

from bayesrep.planning import match_images, next_answers

pytestmark = pytest.mark.filterwarnings("ignore::bayesrep.errors.IdentificationWarning")


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
