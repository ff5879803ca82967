"""How many components the counts ask for, against integrals and likelihoods by other ways."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logsumexp

import bayesrep
from bayesrep.errors import OptionError
from bayesrep.inference import components
from bayesrep.inference.components import MOST, peak_of, settled_by_counts
from bayesrep.inference.problem import pose
from bayesrep.models.counts import complete, counts_of
from bayesrep.models.mixtures import contrasts
from bayesrep.models.options import JointOptions
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study

ROLES = ("reference", "replication")


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(new_val=True):
        yield


def datasets_of(study, options):
    statistics = SufficientStatistics.of(study)
    return tuple(
        counts_of(complete([statistics.cells[role]]), options.dependence) for role in ROLES
    )


def study_of(draws, shown, seed=0):
    """A study of selection frequencies drawn by functions of a generator, one for each data set."""
    random = np.random.default_rng(seed)
    datasets = {}
    for role, draw in zip(ROLES, draws, strict=True):
        s = draw(random)
        datasets[role] = {
            "selected": random.binomial(shown, s),
            "shown": np.full(len(s), shown),
            "correct": random.random((len(s), 2)) < s[:, None],
        }
    return Study.from_arrays(**datasets, classifiers=["a", "b"], name="odd")


def peaks(*means, spread=0.03, images=1_500):
    """Frequencies near some values, each as often."""

    def draw(random):
        middle = random.choice(means, size=images)
        return np.clip(middle + spread * random.standard_normal(images), 0, 1)

    return draw


def log_joint(flat, study, components):
    """Prior and likelihood of points [S, P] for two data sets of one n, by SciPy; without C(n, k).

    Parameters in the order first location, log steps, log concentrations, deviations of locations
    and of concentrations, log weights of each data set.
    """
    options, k = JointOptions(components=components), components
    sizes = (1, k - 1, k, k, k, k - 1, k - 1)
    parts = np.split(flat, np.cumsum(sizes)[:-1], axis=1)
    priors = [
        options.first_location,
        options.log_steps,
        options.log_concentration,
        (0, options.location_deviation),
        (0, options.concentration_deviation),
        (0, options.weight),
        (0, options.weight),
    ]
    density = sum(
        stats.norm.logpdf(part, *prior).sum(axis=1)
        for part, prior in zip(parts, priors, strict=True)
    )
    first, steps, total, of_location, of_total, *weights = parts
    nothing = np.zeros((len(flat), 1))
    location = first + np.hstack([nothing, np.cumsum(np.exp(steps), axis=1)])
    signs = np.sign(contrasts(2)[:, 0]) / 2
    for sign, weight, role in zip(signs, weights, ROLES, strict=True):
        mean = expit(location + sign * of_location)[:, :, None]
        concentration = np.exp(total + sign * of_total)[:, :, None]
        data = study.datasets[role]
        images = np.bincount(data.selected)
        count, n = np.arange(len(images)), int(data.shown[0])
        beta = stats.betabinom(n, mean * concentration, (1 - mean) * concentration)
        log_weight = log_softmax(np.hstack([nothing, weight]), axis=1)[:, :, None]
        mass = logsumexp(log_weight + beta.logpmf(count), axis=1)
        choices = stats.binom(n, 0.5).logpmf(count) - n * np.log(0.5)
        density = density + (mass - choices) @ images
    return density


def by_importance(study, components, start, size=4_000):
    """log evidence, and the effective number of its draws.

    They are of a Student t whose shape is learnt from weighted draws, wide ones at first.
    """
    random = np.random.default_rng(0)
    center = minimize(lambda x: -log_joint(x[None], study, components)[0], start).x
    size_of, step = len(start), 1e-3 * np.eye(len(start))
    both, apart = (
        log_joint((center + step[:, None] + sign * step).reshape(-1, size_of), study, components)
        for sign in (1, -1)
    )
    hessian = (apart - both).reshape(size_of, size_of) / 2e-6  # of minus the log density, at a mode
    root = np.linalg.cholesky(1.5 * np.linalg.inv((hessian + hessian.T) / 2))
    for _ in range(6):
        law = stats.multivariate_t(center, root @ root.T, df=7, seed=random)
        draws = law.rvs(size)
        log_weight = log_joint(draws, study, components) - law.logpdf(draws)
        weight = np.exp(log_weight - logsumexp(log_weight))
        effective = 1 / np.square(weight).sum()
        center = weight @ draws
        around = draws - center
        learnt = effective / (effective + 100)
        root = np.linalg.cholesky(
            learnt * (around.T * weight) @ around + (1 - learnt) * root @ root.T
        )
    return logsumexp(log_weight) - np.log(size), effective


@pytest.mark.parametrize(("components", "within"), [(1, 0.1), (2, 0.35)])
def test_evidence_is_the_integral_of_prior_and_likelihood(components, within):
    study = bayesrep.simulate_study(seed=3, images=400, classifiers=2, annotators=20)
    k = components
    start = np.concatenate([[0.7], np.full(k - 1, 0.4), np.full(k, 2.5), np.zeros(4 * k - 2)])
    truth, effective = by_importance(study, components, start)
    assert effective > 300  # the estimate's own error is below 0.06
    options = JointOptions(components=components)
    found = peak_of(datasets_of(study, options), options).log_evidence
    assert found == pytest.approx(truth, abs=within)


@pytest.mark.parametrize(
    ("means", "asked"),
    [((0.35, 0.9), 2), ((0.1, 0.55, 0.93), 3), ((0.06, 0.35, 0.68, 0.96), 4)],
)
def test_as_many_components_as_there_are_peaks(means, asked):
    draw = peaks(*means)
    problem = pose(study_of((draw, draw), 60), model="joint", options={})
    settled, why = settled_by_counts(problem, choose=True)
    assert settled.options == replace(problem.options, components=asked)
    assert (why == "") == (asked == 2)
    if why:
        assert "components: for 2 their evidence is e^" in why


def test_many_peaks_ask_for_no_more_than_the_most():
    draw = peaks(0.03, 0.2, 0.4, 0.6, 0.8, 0.97, spread=0.01)
    problem = pose(study_of((draw, draw), 100), model="joint", options={})
    assert settled_by_counts(problem, choose=True)[0].options.components == MOST


@pytest.mark.parametrize("scenario", ["plain", "unimodal", "u-shaped", "near-one", "pool"])
def test_studies_of_a_usual_size_keep_two(scenario):
    """Of 12 studies of every scenario none had more; the seed is fixed."""
    study = bayesrep.simulate_study(
        seed=5, images=2_000, classifiers=2, annotators=10, scenario=scenario
    )
    problem = pose(study, model="joint", options={})
    assert settled_by_counts(problem, choose=True)[0].options.components == 2


@pytest.mark.parametrize("decisive", [1.0, 20.0])
def test_a_component_is_taken_where_it_is_worth_what_is_decisive(monkeypatch, decisive):
    """The rule, by the evidence itself."""
    monkeypatch.setattr(components, "DECISIVE", decisive)
    for seed in range(2):
        study = bayesrep.simulate_study(
            seed=seed, images=3_000, classifiers=2, annotators=36, process="inside"
        )
        options = JointOptions()
        datasets = datasets_of(study, options)
        by_size = [
            peak_of(datasets, replace(options, components=k)).log_evidence for k in (2, 3, 4)
        ]
        gains = np.diff(by_size) > decisive
        asked = 2 + (int(gains.argmin()) if not gains.all() else len(gains))
        settled, _ = settled_by_counts(pose(study, model="joint", options={}), choose=True)
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
        settled, _ = settled_by_counts(problem, choose=False)
        if not settled.mixtures:
            continue
        found.append(seed)
        start = settled.start(settled.data())
        for name, value in settled.mixtures.items():
            np.testing.assert_array_equal(start[name], value)
        datasets = datasets_of(study, problem.options)
        highest = peak_of(datasets, problem.options).log_evidence
        with monkeypatch.context() as patched:
            patched.setattr(components, "STARTS", 1)
            from_prior_means = peak_of(datasets, problem.options)
        assert from_prior_means.elsewhere == {}
        assert from_prior_means.log_evidence < highest - components.BETTER
    assert found


def test_groups_begin_with_the_weights_of_their_data_set():
    study = bayesrep.simulate_study(seed=2, images=300, classifiers=2)
    kinds = np.array(["bird", "dog", "ship"])
    datasets = {
        role: replace(data, groups={"kind": kinds[np.arange(300) % 3]})
        for role, data in study.datasets.items()
    }
    problem = pose(replace(study, datasets=datasets), model="joint", options={}, groups="kind")
    weights = np.array([[0.3], [-0.8]])
    start = replace(problem, mixtures={"weight_logit": weights}).start(problem.data())
    assert np.shape(start["group_weight_logit"]) == (2, 3, 1)
    np.testing.assert_array_equal(start["group_weight_logit"], np.tile(weights[:, None], (1, 3, 1)))
    np.testing.assert_array_equal(problem.start(problem.data())["group_weight_logit"], 0)


def test_a_number_that_is_named_is_kept():
    draw = peaks(0.1, 0.55, 0.93)
    study = study_of((draw, draw), 60)
    options = {"method": "laplace", "draws": 50, "progress": False, "warmup": 25}
    asked = bayesrep.fit(study, **options).posterior.attrs
    assert json.loads(asked["options"])["components"] == 3
    assert asked["components_choice"].startswith("The counts ask for mixtures of 3 components")
    two = pose(study, model="joint", options={"components": 2})
    named, why = settled_by_counts(two, choose=False)
    assert (named.options.components, why) == (2, "")
    with pytest.raises(OptionError, match="components from 1 to 6"):
        bayesrep.fit(study, components=7, **options)
