"""Scenarios, by many images: the truth that each states, and how it departs from plain."""

import numpy as np
import pytest

from bayesrep import simulate_study
from bayesrep.studies.scenarios import SCENARIOS, draw_counts, draw_crowds, find_scenario

MANY = 100_000


@pytest.mark.parametrize(
    ("name", "process"),
    [*((name, "outside") for name in sorted(SCENARIOS)), ("label-shift", "inside")],
)
def test_truth_is_the_population_value(name, process):
    """Accuracies and mean frequencies of many images; false alarm rate about 1e-6 a value.

    Crowds are the exception: their mean frequency is that of their workers, not of all. And what
    kept the images looks better than it is.
    """
    study = simulate_study(
        seed=2, images=MANY, classifiers=3, scenario=name, process=process, annotators=10
    )
    truth, error = study.truth, 5 * np.sqrt(0.25 / MANY)
    assert np.abs(study.reference.correct.mean(axis=0) - truth.reference_accuracy).max() < error
    assert np.abs(study.replication.correct.mean(axis=0) - truth.replication_accuracy).max() < error
    if not (SCENARIOS[name].crowd or SCENARIOS[name].adaptive or SCENARIOS[name].selection):
        for data in (study.reference, study.replication):
            shared = np.sqrt(0.25 / MANY) * 5
            mean = (data.selected / data.shown).mean()
            assert abs(mean - truth.mean_selection_frequency[data.name]) < shared


@pytest.mark.parametrize("name", ["spike", "u-shaped", "pool", "waves"])
def test_adjusted_truth_is_the_replications_curve_on_the_reference(name):
    """Σ over reference-like images of the curve, by simulation; false alarm rate 1e-6 a value."""
    from bayesrep.studies.populations import PROCESS_OF_NAME, make_world

    scenario = find_scenario(name)
    world = make_world(PROCESS_OF_NAME[scenario.process or "outside"], scenario, 3, 36)
    s = world.draw(np.random.default_rng(0), "reference", MANY, 36)
    for (a, b), truth in zip(
        world.curves["replication"], world.truth.adjusted_accuracy, strict=True
    ):
        values = world.process.curve(s, a, b)
        assert abs(values.mean() - truth) < 5 * values.std() / np.sqrt(MANY)


@pytest.mark.parametrize("rho", [0.05, 0.2])
def test_dependent_answers_have_the_intraclass_correlation(rho):
    """Var k = n s (1 − s) (1 + (n − 1) ρ); 5 standard errors of a variance, near 1e-6."""
    scenario = find_scenario("crowded-grid")
    scenario = type(scenario)(says="", dependence=rho)
    s = np.full(MANY, 0.7)
    selected, *_ = draw_counts(np.random.default_rng(1), scenario, s, 10, 10)
    wanted = 10 * 0.21 * (1 + 9 * rho)
    assert abs(selected.mean() - 7) < 5 * np.sqrt(wanted / MANY)
    assert abs(selected.var() / wanted - 1) < 5 * np.sqrt(2.5 / MANY)


@pytest.mark.parametrize("size", [10, 25])
def test_lenient_workers_drawn_afresh_are_binomial_on_average_over_crowds(size):
    """Over 400 crowds an image's mean rate is s: workers' thresholds average out."""
    scenario = type(find_scenario("plain"))(says="", crowd=size, leniency=0.5)
    s = np.array([0.2, 0.5, 0.9, 1.0])
    counts = []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        crowd, other = draw_crowds(rng, scenario, 10)
        selected, shown, answers = draw_counts(rng, scenario, s, 10, 10, crowd)
        assert (shown == 10).all()
        assert len(crowd.workers) == size
        assert not set(crowd.workers) & set(other.workers)
        assert (np.array(answers.counts(4)) == [selected, shown]).all()
        counts.append(selected)
    counts = np.array(counts)
    assert (counts[:, 3] == 10).all()
    error = counts.std(axis=0) / 20
    assert (np.abs(counts.mean(axis=0) - 10 * s) <= 5 * error).all()


def test_matched_images_measure_as_the_reference_and_are_worse():
    """Selection by a noisy count: measured again, the kept images' mean is below the reference's.

    The nodes' density has the moments of the images drawn; false alarm rate 1e-6 each.
    """
    from bayesrep.studies.populations import PROCESS_OF_NAME, make_world

    world = make_world(PROCESS_OF_NAME["outside"], find_scenario("pool"), 1, 10)
    means = world.truth.mean_selection_frequency
    assert means["replication"] < means["reference"] - 0.005
    s, weight = world.frequencies["replication"]
    drawn = world.draw(np.random.default_rng(3), "replication", MANY, 10)
    for power in (1, 2, 4, 8):
        error = 5 * (drawn**power).std() / np.sqrt(MANY)
        assert abs((drawn**power).mean() - s**power @ weight) < error
