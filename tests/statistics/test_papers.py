"""The papers' numbers over repeated draws: a bootstrap, fewer annotators of a label."""

import numpy as np
import polars as pl
import pytest

from bayesrep import simulate_study
from bayesrep.estimators.finite_sample import mean_frequencies
from bayesrep.protocols import read_people
from bayesrep.studies.predictions import Predictions
from experiments.papers.tsipras2020.labels import draw_annotators

CLASSES = tuple("abcdef")


def test_the_bootstrap_of_a_mean_is_normal():
    study = simulate_study(seed=0, images=600, annotators=(8, 9), classifiers=4)
    table = mean_frequencies(study, bootstrap=4000)
    for row in table.iter_rows(named=True):
        data = study.datasets[row["dataset"]]
        values = data.selected / data.shown
        error = values.std(ddof=1) / np.sqrt(len(values))
        # 4,000 replicates find a quantile to about 2 % of the width: four of its errors.
        assert row["lower"] == pytest.approx(values.mean() - 1.96 * error, abs=0.15 * error)
        assert row["upper"] == pytest.approx(values.mean() + 1.96 * error, abs=0.15 * error)


def test_fewer_annotators_leave_frequencies_right_in_the_mean(tmp_path):
    rng = np.random.default_rng(2)
    labels = rng.integers(6, size=80)
    names = [f"{n}.png" for n in range(80)]
    ranked = np.argsort(rng.random((1, 80, 6)), axis=2)[:, :, :5]
    data = Predictions("v1", names, CLASSES, labels, ("p",), ranked)
    counts = [
        ("v1", name, CLASSES[label], int(rng.integers(0, 10)), 9)
        for name, own in zip(names, labels.tolist(), strict=True)
        for label in (own, (own + 1) % 6)
    ]
    columns = ["dataset", "image", "label", "selected", "shown"]
    pl.DataFrame(counts, columns, orient="row").write_csv(tmp_path / "counts.csv")
    people = read_people(data, counts=tmp_path / "counts.csv")
    drawn = [draw_annotators(people, 3, seed=seed) for seed in range(200)]
    values = np.array([each.frequency.values for each in drawn])
    # 160 labels' means of 200 draws each: the largest of so many is within 5 standard errors.
    error = np.sqrt(people.frequency.values * (1 - people.frequency.values) / 3 * (6 / 8) / 200)
    assert (np.abs(values.mean(axis=0) - people.frequency.values) <= 5 * error).all()
