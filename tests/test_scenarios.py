"""Scenarios: every one has the truth it states, and departs from the plain world as it says."""

from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from scipy.stats import binom

from bayesrep import simulate_study
from bayesrep.errors import OptionError
from bayesrep.studies.populations import PROCESS_OF_NAME, _logit_normal_nodes, make_world
from bayesrep.studies.scenarios import (
    SCENARIOS,
    class_ease,
    draw_counts,
    draw_crowds,
    find_scenario,
)


@pytest.mark.parametrize(
    ("name", "process"),
    [
        *((name, "outside") for name in sorted(SCENARIOS)),
        *(("plain", process) for process in PROCESS_OF_NAME if process != "outside"),
        ("label-shift", "inside"),
    ],
)
def test_truth_is_the_population_value(name, process):
    """Accuracies and mean frequencies are integrals of curves over the densities at their nodes."""
    scenario = find_scenario(name)
    world = make_world(PROCESS_OF_NAME[scenario.process or process], scenario, 3, 10)
    truth = world.truth

    def accuracies(role, density):
        s, weight = world.frequencies[density]
        eases, shares = [0.0], [1.0]
        if scenario.class_shift:
            eases, shares = class_ease(), world.shares(density)
        return [
            np.dot([world.process.curve(s, a + ease, b) @ weight for ease in eases], shares)
            for a, b in world.curves[role]
        ]

    for role, density, wanted in (
        ("reference", "reference", truth.reference_accuracy),
        ("replication", "replication", truth.replication_accuracy),
        ("replication", "reference", truth.adjusted_accuracy),
    ):
        assert accuracies(role, density) == pytest.approx(list(wanted), abs=1e-6)
    for role, (s, weight) in world.frequencies.items():
        assert weight.sum() == pytest.approx(1)
        assert s @ weight == pytest.approx(truth.mean_selection_frequency[role], abs=1e-6)


def test_plain_is_what_it_was():
    """A scenario that departs in nothing draws the very same study."""

    def fingerprint(**options):
        return simulate_study(images=200, classifiers=4, **options).fingerprint()

    assert fingerprint(scenario="plain") == fingerprint()
    same = fingerprint(annotators=10, scenario="crowded-grid", dependence=0.0)
    assert same == fingerprint(annotators=10)


def test_dependent_answers_have_the_intraclass_correlation():
    """Counts are binomial of a beta with the image's mean: where ρ is nearly 1, all or none."""
    scenario = type(find_scenario("plain"))(says="", dependence=1 - 1e-9)
    selected, shown, _ = draw_counts(np.random.default_rng(1), scenario, np.full(50, 0.7), 10, 10)
    assert (shown == 10).all()
    assert set(selected) == {0, 10}


@pytest.mark.parametrize("size", [10, 25])
def test_lenient_workers_are_of_one_crowd_each_and_add_up(size):
    scenario = type(find_scenario("plain"))(says="", crowd=size, leniency=0.5)
    s = np.array([0.2, 0.5, 0.9, 1.0])
    rng = np.random.default_rng(0)
    crowd, other = draw_crowds(rng, scenario, 10)
    selected, shown, answers = draw_counts(rng, scenario, s, 10, 10, crowd)
    assert (shown == 10).all()
    assert len(crowd.workers) == size
    assert not set(crowd.workers) & set(other.workers)
    assert (np.array(answers.counts(4)) == [selected, shown]).all()
    assert selected[3] == 10


def test_annotators_are_asked_until_the_answer_is_clear():
    study = simulate_study(images=2000, classifiers=1, scenario="adaptive")
    selected, shown = study.reference.selected, study.reference.shown
    assert set(shown) == {5, 10, 20, 40}
    dissent = np.minimum(selected, shown - selected) / shown
    assert (dissent[shown < 40] <= 0.2).all()


def test_matched_images_measure_as_the_reference_and_are_worse():
    """Selection by a noisy count: measured again, the kept images' mean is below the reference's.

    Their density is Σ_k P_ref(k) p(s | k): the pool's given the count, of all counts that the
    reference has.
    """
    scenario = find_scenario("pool")
    world = make_world(PROCESS_OF_NAME["outside"], scenario, 1, 10)
    means = world.truth.mean_selection_frequency
    assert means["replication"] < means["reference"] - 0.005
    s, weight = world.frequencies["replication"]
    (first, of), k = world.frequencies["reference"], np.arange(11)[:, None]
    reference = binom.pmf(k, 10, first) @ of
    pool, share = _logit_normal_nodes(scenario.pool)
    given = binom.pmf(k, 10, pool) * share
    given /= given.sum(axis=1, keepdims=True)
    for power in (1, 2, 4, 8):
        assert s**power @ weight == pytest.approx(reference @ (given @ pool**power), rel=1e-9)


def test_every_scenario_is_in_the_docs():
    page = Path(__file__).parents[1] / "docs" / "reference" / "command-line.md"
    text = page.read_text(encoding="utf-8")
    for name, scenario in SCENARIOS.items():
        assert f"| `{name}` | {scenario.says} |" in text


RANGE = "dependence-out-of-range"


@pytest.mark.parametrize(
    ("arguments", "rule", "facts"),
    [
        ({"scenario": "crowded"}, "unknown-scenario", {"choices": ", ".join(SCENARIOS)}),
        ({"dependence": 1.0}, RANGE, {"dependence": 1.0}),
        ({"dependence": -0.1}, RANGE, {"dependence": -0.1}),
        ({"dependence": float("nan")}, RANGE, {}),
        ({"scenario": "two-panels", "dependence": 0.1}, "scenario-without-dependence", {}),
        ({"scenario": "u-shaped", "process": "inside"}, "scenario-fixes-frequencies", {}),
        (
            {"scenario": "waves", "process": "inside"},
            "scenario-of-another-process",
            {"process": "non-monotone"},
        ),
    ],
)
def test_contradictions_are_refused(arguments, rule, facts):
    named = {key: arguments[key] for key in ("scenario",) if key in arguments}
    with refused(OptionError, rule, named | facts):
        simulate_study(images=10, **arguments)


def test_a_simulated_study_keeps_what_its_rule_keeps():
    made = simulate_study(seed=1, images=200, classifiers=2, scenario="kept")
    for data in made.datasets.values():
        assert data.selected.min() == 7
    with refused(OptionError, "scenario-takes-one-annotator-number"):
        simulate_study(images=10, classifiers=1, scenario="kept", annotators=(5, 10))
