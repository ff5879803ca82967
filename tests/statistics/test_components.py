"""As many components as simulated studies were made of, and climbs that end at the higher mode."""

import json
from dataclasses import replace

import numpy as np
import pytest
from count_peaks import datasets_of, peaks, study_of

import bayesrep
from bayesrep.inference import data_driven
from bayesrep.inference.data_driven import MAX_COMPONENTS, choose_components, find_mixture_mode
from bayesrep.inference.problem import pose
from bayesrep.models.options import JointOptions

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.parametrize(
    ("means", "asked"),
    [((0.35, 0.9), 2), ((0.1, 0.55, 0.93), 3), ((0.06, 0.35, 0.68, 0.96), 4)],
)
def test_as_many_components_as_there_are_peaks(means, asked):
    draw = peaks(*means)
    problem = pose(study_of((draw, draw), 60), model="joint", options={})
    settled, why = choose_components(problem, choose=True)
    assert settled.options == replace(problem.options, components=asked)
    assert (why == "") == (asked == 2)


def test_many_peaks_ask_for_no_more_than_the_most():
    draw = peaks(0.03, 0.2, 0.4, 0.6, 0.8, 0.97, spread=0.01)
    problem = pose(study_of((draw, draw), 100), model="joint", options={})
    assert choose_components(problem, choose=True)[0].options.components == MAX_COMPONENTS


@pytest.mark.parametrize("scenario", ["plain", "unimodal", "u-shaped", "near-one", "pool"])
def test_studies_of_a_usual_size_keep_two(scenario):
    """Of 12 studies of every scenario none had more; the seed is fixed."""
    study = bayesrep.simulate_study(
        seed=5, images=2_000, classifiers=2, annotators=10, scenario=scenario
    )
    problem = pose(study, model="joint", options={})
    assert choose_components(problem, choose=True)[0].options.components == 2


@pytest.mark.parametrize("decisive", [1.0, 20.0])
def test_a_component_is_taken_where_it_is_worth_what_is_decisive(monkeypatch, decisive):
    """The rule, by the evidence itself."""
    monkeypatch.setattr(data_driven, "MIN_LOG_BAYES_FACTOR", decisive)
    for seed in range(2):
        study = bayesrep.simulate_study(
            seed=seed, images=3_000, classifiers=2, annotators=36, process="inside"
        )
        options = JointOptions()
        datasets = datasets_of(study, options)
        by_size = [
            find_mixture_mode(datasets, replace(options, components=k))[0] for k in (2, 3, 4)
        ]
        gains = np.diff(by_size) > decisive
        asked = 2 + (int(gains.argmin()) if not gains.all() else len(gains))
        settled, _ = choose_components(pose(study, model="joint", options={}), choose=True)
        assert settled.options.components == asked


def two_peaks(random, images=2_500):
    """A broad low component and a narrow high one: the prior means are between two modes."""
    low = random.random(images) < 0.12
    return np.where(low, random.beta(6.0, 1.2, images), random.beta(46.0, 0.85, images))


def test_climbs_begin_below_the_higher_of_two_modes(monkeypatch):
    found = []
    for seed in range(12):
        study = study_of((two_peaks, two_peaks), 20, seed)
        problem = pose(study, model="joint", options={})
        settled, _ = choose_components(problem, choose=False)
        if not settled.mixtures:
            continue
        found.append(seed)
        start = settled.start(settled.data())
        for name, value in settled.mixtures.items():
            np.testing.assert_array_equal(start[name], value)
        datasets = datasets_of(study, problem.options)
        highest, _ = find_mixture_mode(datasets, problem.options)
        with monkeypatch.context() as patched:
            patched.setattr(data_driven, "N_STARTS", 1)
            from_prior_means, elsewhere = find_mixture_mode(datasets, problem.options)
        assert elsewhere == {}
        assert from_prior_means < highest - data_driven.MIN_ADVANTAGE
    assert found


def test_a_fit_takes_as_many_components_as_there_are_peaks():
    draw = peaks(0.1, 0.55, 0.93)
    options = {"method": "laplace", "draws": 50, "progress": False, "warmup": 25}
    asked = bayesrep.fit(study_of((draw, draw), 60), **options).posterior.attrs
    assert json.loads(asked["options"])["components"] == 3
