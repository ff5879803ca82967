"""How hard single images are, for people and for classifiers."""

from dataclasses import replace

import numpy as np
import pytest
import zoo
from scipy.special import expit, log_expit

from bayesrep.studies import simulate
from bayesrep.summary import images
from bayesrep.summary.images import PROBIT_KAPPA, describe_images


@pytest.fixture(scope="module")
def table():
    return describe_images(zoo.study("tiny"), zoo.posterior("tiny", **zoo.QUICK))


def test_a_row_an_image_of_the_replication(table):
    data = zoo.study("tiny").replication
    assert table["image"].to_list() == data.images.tolist()
    assert table["selected"].to_list() == data.selected.tolist()
    np.testing.assert_allclose(table["right"], data.correct.mean(axis=1))
    assert table["dataset"].unique().to_list() == [data.name]
    assert table["expected"].mean() == pytest.approx(table["right"].mean(), abs=0.05)


def test_frequencies_are_drawn_to_their_mean(table):
    measured = (table["selected"] / table["shown"]).to_numpy()
    frequency = table["selection_frequency"].to_numpy()
    assert np.corrcoef(frequency, measured)[0, 1] > 0.95
    assert frequency.std() < measured.std()
    assert (table["selection_frequency_sd"] < 0.15).all()


def test_of_images_with_equal_counts_fewer_right_answers_are_harder(table):
    for _, rows in table.group_by("selected", "shown"):
        order = rows.sort("right")
        assert (np.diff(order["difficulty"]) <= 1e-9).all()
        assert rows["selection_frequency"].n_unique() == 1


def test_the_order_of_images_does_not_matter(table):
    study, fit = zoo.study("tiny"), zoo.posterior("tiny", **zoo.QUICK)
    order = np.random.default_rng(0).permutation(len(table))
    data = study.replication
    kept = ("images", "selected", "shown", "correct")
    moved = replace(data, **{name: getattr(data, name)[order] for name in kept})
    other = replace(study, datasets={**study.datasets, "replication": moved})
    fit = fit.copy()
    fit["posterior"].attrs = {**fit["posterior"].attrs, "study_fingerprint": ""}
    found = describe_images(other, fit)
    np.testing.assert_allclose(found["difficulty"], table["difficulty"].to_numpy()[order])


def test_difficulties_are_posterior_moments():
    """Beside a sum over every answer of one image on other nodes."""
    random = np.random.default_rng(1)
    logit = random.normal(1.0, 0.7, (12, 3))
    cell, z = random.integers(3, size=800), random.standard_normal(800)
    spread = 2.0
    level = np.sqrt(1 + PROBIT_KAPPA * spread**2) * logit[:, cell].T
    correct = random.random(level.shape) < expit(level - spread * z[:, None])
    mean, sd = images._difficulties(correct, logit, cell)
    assert np.corrcoef(mean, z)[0, 1] > 0.8
    assert np.mean(np.abs(mean - z) < 1.96 * sd) == pytest.approx(0.95, abs=0.03)
    at = np.linspace(-7, 7, 701)
    sign = 2 * correct[0] - 1
    log = log_expit(sign * (level[0] - spread * at[:, None])).sum(axis=1) - at**2 / 2
    weight = np.exp(log - log.max()) / np.exp(log - log.max()).sum()
    assert mean[0] == pytest.approx(weight @ at, abs=0.1)  # of the spread that was found
    assert sd[0] == pytest.approx(np.sqrt(weight @ at**2 - (weight @ at) ** 2), abs=0.05)


def test_answers_that_chance_explains_tell_of_no_difficulty():
    random = np.random.default_rng(2)
    logit, cell = np.full((8, 1), 0.5), np.zeros(2_000, dtype=int)
    mean, sd = images._difficulties(random.random((2_000, 8)) < expit(0.5), logit, cell)
    assert mean.std() < 0.25
    assert sd.min() > 0.8


def test_difficulties_follow_those_that_answers_were_drawn_with(table, monkeypatch):
    drawn = {}

    def draw(seed, world, role, s, ease):
        fresh, again = (
            np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key) for _ in range(2)
        )
        drawn[role] = np.random.default_rng(fresh.spawn(2)[0]).standard_normal(len(s))
        return original(again, world, role, s, ease)

    original = simulate.draw_correct
    monkeypatch.setattr(simulate, "draw_correct", draw)
    assert zoo._tiny().fingerprint() == zoo.study("tiny").fingerprint()
    assert np.corrcoef(table["difficulty"], -drawn["replication"])[0, 1] > 0.5


@pytest.mark.parametrize(
    ("name", "options"),
    [("workers", {"model": "workers", **zoo.QUICK}), ("grouped", {"groups": "breed", **zoo.SHORT})],
)
def test_so_are_images_of_other_fits(name, options):
    study = zoo.study(name)
    found = describe_images(study, zoo.posterior(name, **options))
    assert len(found) == len(study.replication.images)
    assert found["expected"].mean() == pytest.approx(found["right"].mean(), abs=0.05)
    assert found["difficulty"].mean() == pytest.approx(0, abs=0.1)
    assert found["difficulty_sd"].is_between(0.2, 1).all()
