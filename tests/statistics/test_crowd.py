"""What workers who answer many images add to errors, held against many crowds and fits."""

from dataclasses import replace

import numpy as np
import pytest
from crowds import asked_of, widening

import bayesrep
from bayesrep import Study, WorkerAnswers
from bayesrep.answers import describe_crowd
from bayesrep.numerics.crowd import overlap_correction, residuals


@pytest.mark.parametrize(
    ("workers", "annotators", "sd", "grid"),
    [(30, 5, 0.7, 1), (30, 5, 0.7, 20), (10, 10, 0.7, 1), (40, 2, 1.0, 1), (30, 3, 0.0, 10)],
)
def test_the_variance_of_the_mean_over_workers_is_unbiased(workers, annotators, sd, grid):
    """400 crowds; within 4.5 standard errors of both (false alarm rate below 1e-4)."""
    images, means, within, found = 300, [], [], []
    for seed in range(400):
        asked = asked_of(np.random.default_rng(seed), images, annotators, workers, sd, grid)
        r = residuals(*asked, images, workers)
        share = np.bincount(asked[0], asked[2], minlength=images) / annotators
        means.append(share.mean())
        within.append(share.var(ddof=1) / images)
        # Not cut off at 0, which would be a bias where workers are alike.
        total = r.sum(axis=0)
        moved = np.square(total).sum() - r.power(2).sum()
        found.append(moved / overlap_correction([r]) / (annotators * images) ** 2)
    squares = np.square(np.array(means) - np.mean(means))
    differences = squares - np.array(within) - np.array(found)
    error = differences.std() / np.sqrt(len(found))
    assert abs(differences.mean()) < 4.5 * error


@pytest.fixture(scope="module")
def crowds():
    """A study of two crowds and one of one crowd, and fits of them."""
    found = {}
    for scenario in ("two-crowds", "one-crowd"):
        study = bayesrep.simulate_study(
            seed=500, images=1500, classifiers=6, scenario=scenario, annotators=8
        )
        found[scenario] = study, bayesrep.fit(study, method="laplace", seed=0, progress=False)
    return found


def test_two_crowds_widen_intervals_and_one_crowd_hardly(crowds):
    two, one = (widening(*crowds[name]) for name in ("two-crowds", "one-crowd"))
    assert two > 1.4
    assert 1 <= one < 1.25


def test_known_workers_widen_the_intervals_of_classifiers(crowds):
    study, posterior = crowds["two-crowds"]
    unknown = replace(
        study, datasets={r: replace(d, answers=None) for r, d in study.datasets.items()}
    )
    width, alone = (
        table["upper"] - table["lower"]
        for table in (
            bayesrep.summarize(each, posterior, allow_unconverged=True) for each in (study, unknown)
        )
    )
    assert (width > 1.2 * alone).all()


def test_one_crowd_adds_less_to_the_error_of_a_difference(crowds):
    two, one = (describe_crowd(crowds[name][0]) for name in ("two-crowds", "one-crowd"))
    assert two.difference_workers > 3 * one.difference_workers
    assert two.difference_images == pytest.approx(one.difference_images, rel=0.1)
    row = two.datasets.row(0, named=True)
    assert row["effective_answers"] < 0.3 * row["answers"] == 0.3 * 12_000
    assert two.workers["answers"].sum() == 24_000


@pytest.mark.parametrize("by", [0.0, 0.2])
def test_drift_is_found(by):
    """Every worker selects `by` more often in the end.

    Within 3.5 standard errors of two data sets: a false alarm in 1,000.
    """
    random = np.random.default_rng(0)
    sides = [([], [], [], []), ([], [], [], [])]
    for worker in range(60):
        for place, image in enumerate(random.permutation(400)[:40]):
            yes = random.random() < 0.7 + by * (place / 39 - 0.5)
            for column, value in zip(
                sides[int(image >= 200)], (image % 200, f"w{worker}", yes, place), strict=True
            ):
                column.append(value)
    made = {}
    for role, (image, worker, selected, place) in zip(
        ("reference", "replication"), sides, strict=True
    ):
        rows, at = np.unique(image, return_inverse=True)
        answers = WorkerAnswers.of(at, worker, selected, place)
        k, n = answers.counts(len(rows))
        right = np.ones((len(rows), 1), dtype=bool)
        made[role] = {"selected": k, "shown": n, "correct": right, "answers": answers}
    study = Study.from_arrays(**made, classifiers=["c"])
    for row in describe_crowd(study).datasets.to_dicts():
        assert row["drift"] == pytest.approx(by, abs=3.5 * row["drift_error"])
