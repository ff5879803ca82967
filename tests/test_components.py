"""How many components the counts ask for, against integrals and likelihoods by other ways."""

from dataclasses import replace

import numpy as np
import pytest
import zoo
from count_peaks import ROLES, datasets_of, peaks, study_of
from refusals import refused
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logsumexp

import bayesrep
from bayesrep.errors import OptionError
from bayesrep.inference import data_driven
from bayesrep.inference.data_driven import MAX_COMPONENTS, choose_components, find_mixture_mode
from bayesrep.inference.problem import pose
from bayesrep.models.mixtures import contrasts
from bayesrep.models.options import JointOptions

pytestmark = pytest.mark.usefixtures("float64")


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


def by_importance(study, components, start, size=2_000):
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


@pytest.mark.parametrize(("components", "within"), [(1, 0.1), (2, 0.2)])
def test_evidence_is_the_integral_of_prior_and_likelihood(components, within):
    def draw(random):
        low = random.random(400) < 0.4
        return np.where(low, random.beta(3.0, 8.0, 400), random.beta(9.0, 1.5, 400))

    study = study_of((draw, draw), 20)
    k = components
    start = np.concatenate([[0.7], np.full(k - 1, 0.4), np.full(k, 2.5), np.zeros(4 * k - 2)])
    with np.errstate(over="ignore"):  # of components far from every count
        truth, effective = by_importance(study, components, start)
    assert effective > 300  # the estimate's own error is below 0.06
    options = JointOptions(components=components)
    found, _ = find_mixture_mode(datasets_of(study, options), options)
    assert found == pytest.approx(truth, abs=within)


def posed(monkeypatch, evidence, elsewhere=None):
    """The tiny study's problem, where so many components have this evidence; no climb is made."""
    asked = []

    def peak(datasets, options):
        assert [float(each.images.sum()) for each in datasets] == [500, 500]
        asked.append(options.components)
        return evidence[options.components], elsewhere or {}

    monkeypatch.setattr(data_driven, "find_mixture_mode", peak)
    return pose(zoo.study("tiny"), model="joint", options={}), asked


@pytest.mark.parametrize(
    ("evidence", "wanted", "looked_at"),
    [
        ({2: -100.0, 3: -80.0}, 2, [2, 3]),
        ({2: -100.0, 3: -79.9, 4: -60.0}, 3, [2, 3, 4]),
        ({2: -100.0, 3: -70.0, 4: -40.0}, MAX_COMPONENTS, [2, 3, 4]),
        ({2: -100.0, 3: np.nan}, 2, [2, 3]),
    ],
)
def test_a_component_is_taken_where_it_is_worth_what_is_decisive(
    monkeypatch, evidence, wanted, looked_at
):
    """The rule, by the evidence itself; there are never more than the most."""
    problem, asked = posed(monkeypatch, evidence)
    settled, why = choose_components(problem, choose=True)
    assert settled.options == replace(problem.options, components=wanted)
    assert asked == looked_at
    assert (why == "") == (wanted == 2)
    if why:
        gain = evidence[wanted] - evidence[2]
        assert (f"{wanted} components" in why, f"e^{gain:.0f} " in why) == (True, True)


def test_climbs_begin_below_the_higher_of_two_modes(monkeypatch):
    """Where no climb from the prior means leads there."""
    names = pose(zoo.study("tiny"), model="joint", options={})
    start = names.start(names.data())
    elsewhere = {"first_location": np.asarray(start["first_location"]) + 0.25}
    problem, _ = posed(monkeypatch, {2: -100.0}, elsewhere)
    settled, _ = choose_components(problem, choose=False)
    assert settled.mixtures == elsewhere
    begun = settled.start(settled.data())
    assert begun.keys() == start.keys()
    np.testing.assert_array_equal(begun["first_location"], elsewhere["first_location"])
    for name in start.keys() - elsewhere.keys():
        np.testing.assert_array_equal(begun[name], start[name])


def test_the_highest_of_several_climbs_is_the_peak(monkeypatch):
    """Its sites are named where it is better by `MIN_ADVANTAGE` than that of the prior means."""
    study = study_of((peaks(0.35, 0.9, images=100),) * 2, 8)
    options = JointOptions()
    datasets = datasets_of(study, options)
    for masses, far in (([1.0, 1.9, 0.0, np.nan], False), ([1.0, 0.0, 2.1, np.nan], True)):
        with monkeypatch.context() as patched:
            told = iter(masses)
            patched.setattr(data_driven, "log_mass", lambda _, told=told: next(told))
            evidence, elsewhere = find_mixture_mode(datasets, options)
        assert evidence == (2.1 if far else 1.0)
        assert bool(elsewhere) == far


def test_groups_begin_with_the_weights_of_their_data_set():
    problem = pose(zoo.study("grouped"), model="joint", options={}, groups="breed")
    weights = np.array([[0.3], [-0.8]])
    start = replace(problem, mixtures={"weight_logit": weights}).start(problem.data())
    assert np.shape(start["group_weight_logit"]) == (2, 2, 1)
    np.testing.assert_array_equal(start["group_weight_logit"], np.tile(weights[:, None], (1, 2, 1)))
    np.testing.assert_array_equal(problem.start(problem.data())["group_weight_logit"], 0)


def test_a_number_that_is_named_is_kept(monkeypatch):
    """What a fit makes of one that nobody names is in `test_fit.py`."""
    problem, looked_at = posed(monkeypatch, {2: -100.0, 3: -70.0, 4: -60.0})
    named, why = choose_components(problem, choose=False)
    assert (named.options.components, why, looked_at) == (2, "", [2])
    with refused(
        OptionError, "components-or-degree-out-of-range", {"most_components": 6, "components": 7}
    ):
        bayesrep.fit(zoo.study("tiny"), components=7, **zoo.SHORT)
