"""The worker model: leniencies, the likelihood that they make, and what is uncertain about them."""

from dataclasses import replace
from functools import partial
from itertools import combinations, product
from math import comb

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import zoo
from leniencies import lenient_crowd
from numpyro import handlers
from refusals import check, refusal, refused
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import norm

import bayesrep
from bayesrep import OptionError, PosteriorError, StudyError, SufficientStatistics
from bayesrep.errors import IdentificationWarning
from bayesrep.files.netcdf import Group, Variable
from bayesrep.inference.problem import pose
from bayesrep.models import crowds
from bayesrep.numerics import logit_quadrature
from bayesrep.numerics.expectation_propagation import find_leniencies
from bayesrep.numerics.leniency import (
    CrowdAnswers,
    log_counts,
    log_given,
    panel_logit,
    stretched_logit,
)
from bayesrep.posterior.files import StoredPosterior
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.workers import leniency_covariance

FIT = {"model": "workers", **zoo.QUICK, "degree": 8, "terms": 3, "draws": 50}


def stretched_at_nodes(found):
    log_s, log_rest, _ = logit_quadrature.nodes()
    return np.tile(stretched_logit(log_s - log_rest, found.spread), (2, 1))


@pytest.mark.parametrize("spread", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("frequency", [0.02, 0.4, 0.9])
def test_the_mean_over_workers_is_the_frequency(spread, frequency):
    alpha = stretched_logit(np.array([logit(frequency)]), spread)[0]
    mean, _ = quad(lambda b: expit(alpha + b) * norm.pdf(b, scale=spread), -9, 9)
    assert mean == pytest.approx(frequency, rel=2e-3)


def test_far_out_a_stretched_logit_is_still_one():
    log_s, log_rest, _ = logit_quadrature.nodes()
    alpha = stretched_logit(log_s - log_rest, 0.8)
    assert np.isfinite(alpha).all()
    assert (np.diff(alpha) > 0).all()
    np.testing.assert_allclose(alpha, -alpha[::-1], atol=1e-9)


@pytest.mark.parametrize("reach", [0.5, 3.0, 12.0])
@pytest.mark.parametrize("workers", [2, 10, 400])
def test_the_mean_over_a_panel_is_the_frequency(workers, reach):
    """Also of judges who are nothing alike, where Newton's method alone would run away."""
    mean = np.random.default_rng(workers).uniform(-reach, reach, workers)
    at = np.linspace(-8, 8, 33)
    alpha = panel_logit(at, mean, np.zeros(workers))
    frequency = expit(alpha[:, None] + mean).mean(axis=1)
    np.testing.assert_allclose(logit(frequency), at, atol=1e-9 if workers < 50 else 2e-3)


def test_a_panel_of_all_judges_selects_s_of_them():
    """Of n judges the expected count is n s, and it varies less than a binomial one."""
    mean, size = np.array([-2.0, -0.5, 0.3, 1.7]), 4
    log_s, log_rest, _ = logit_quadrature.nodes()
    alpha = panel_logit(log_s - log_rest, mean, np.zeros(size))
    k = np.arange(size + 1)
    shown = np.full(size + 1, size)
    given = log_counts(k, shown, alpha, mean, np.zeros(size), np.ones(size, dtype=int))
    mass = np.exp(given) * np.array([comb(size, each) for each in k])[:, None]
    s = np.exp(log_s)
    np.testing.assert_allclose(mass.sum(axis=0), 1, rtol=1e-9)
    np.testing.assert_allclose(k @ mass, size * s, atol=1e-9)
    spread = np.square(k) @ mass - np.square(k @ mass)
    middle = (s > 0.01) & (s < 0.99)
    assert (spread < size * s * (1 - s))[middle].all()


def test_a_worker_with_one_answer_says_what_anybody_says():
    """F is s: whatever the spread, the model is the binomial."""
    random = np.random.default_rng(0)
    image, selected = np.repeat(np.arange(40), 5), random.random(200) < 0.7
    answers = CrowdAnswers(image, np.arange(200), selected, np.repeat([0, 1], 20), 200)
    found = find_leniencies(answers)
    log_s, log_rest, _ = logit_quadrature.nodes()
    yes = np.bincount(image, selected)[:, None]
    binomial = yes * log_s + (5 - yes) * log_rest
    given = log_given(answers, found, stretched_at_nodes(found))
    np.testing.assert_allclose(given, binomial, rtol=1e-6, atol=1e-6)
    assert len(found.known) == 0


@pytest.mark.parametrize("one_crowd", [False, True])
def test_what_is_known_of_crowds(one_crowd):
    """How lenient a crowd is, images do not tell; that two data sets had one crowd, answers do."""
    answers, _ = lenient_crowd(2, images=400, workers=40, shown=5, spread=0.7, one_crowd=one_crowd)
    found = find_leniencies(answers)
    size = len(found.known)
    assert size == (40 if one_crowd else 80)
    mean = np.ones(size) / size
    assert np.sqrt(mean @ found.covariance @ mean) == pytest.approx(
        found.spread / np.sqrt(size), rel=0.05
    )
    assert np.linalg.eigvalsh(found.covariance).min() > 0


def test_judges_who_answer_everything_have_the_spread_of_their_sample():
    """In crowds of four, each about a mean of its own: of n leniencies n − 1 are free."""
    answers, _ = lenient_crowd(4, images=400, workers=4, shown=4, spread=0.7)
    found = find_leniencies(answers)
    variance = found.mean.reshape(2, 4).var(axis=1, ddof=1).mean()
    assert found.spread == pytest.approx(np.sqrt(variance), rel=0.05)


@pytest.mark.parametrize("shown", [1, 3, 5])
def test_counts_of_a_panel_are_sums_over_its_members(shown):
    alpha, leniency = np.array([-0.4, 1.3]), np.random.default_rng(0).normal(size=5)
    selected = np.arange(shown + 1)
    shown_each = np.full(shown + 1, shown)
    ours = log_counts(selected, shown_each, alpha, leniency, np.zeros(5), np.ones(5, dtype=int))
    for node, chances in enumerate(expit(alpha[:, None] + leniency)):
        mass = np.zeros(shown + 1)
        for some in combinations(range(5), shown):
            for answers in product([0, 1], repeat=shown):
                p = np.where(answers, chances[list(some)], 1 - chances[list(some)]).prod()
                mass[sum(answers)] += p / comb(5, shown)
        choices = np.array([comb(shown, k) for k in selected])
        np.testing.assert_allclose(np.exp(ours[:, node]) * choices, mass, rtol=1e-10)


def test_counts_of_a_crowd_are_those_of_its_mean():
    alpha, leniency = np.array([0.7]), np.random.default_rng(1).normal(size=60)
    asked = np.arange(60)
    ours = log_counts(np.arange(4), np.full(4, 3), alpha, leniency, np.zeros(60), asked)
    mean = expit(alpha[0] + leniency) @ asked / asked.sum()
    k = np.arange(4)
    np.testing.assert_allclose(np.exp(ours[:, 0]), mean**k * (1 - mean) ** (3 - k), rtol=1e-4)


def test_leniencies_repeat_and_do_not_mind_the_order():
    answers, _ = lenient_crowd(3, images=200, workers=15, shown=4, spread=0.6)
    order = np.random.default_rng(0).permutation(len(answers.image))
    mixed = CrowdAnswers(
        answers.image[order],
        answers.worker[order],
        answers.selected[order],
        answers.dataset,
        answers.workers,
    )
    one, other = find_leniencies(answers), find_leniencies(mixed)
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-9)
    given = [log_given(a, f, stretched_at_nodes(f)) for a, f in ((answers, one), (mixed, other))]
    np.testing.assert_allclose(*given, rtol=1e-9, atol=1e-9)


@pytest.fixture(scope="module")
def strangers():
    return zoo.study("strangers")


@pytest.fixture(scope="module")
def two_panels():
    return zoo.study("panels")


@partial(jax.jit, static_argnames=("function", "options", "site"))
def traced(values, data, function, options, site):
    trace = handlers.trace(handlers.substitute(function, data=values)).get_trace(data, options)
    if site is not None:
        return trace[site]["value"]
    random = (each for each in trace.values() if each["type"] == "sample")
    return sum(jnp.sum(each["fn"].log_prob(each["value"])) for each in random)


def density_of(problem):
    """Log density of the model at values of its sites; or what it reports at one of them."""
    with jax.enable_x64(new_val=True):
        data = problem.data()

    def log_density(values, site=None):
        with jax.enable_x64(new_val=True):
            return np.asarray(traced(values, data, problem.model.function, problem.options, site))

    return log_density


def some_values(problem, count):
    with jax.enable_x64(new_val=True):
        start = problem.model.start(problem.data(), problem.options)
    for seed in range(count):
        random = np.random.default_rng(seed)
        yield {
            name: np.asarray(each) + 0.3 * random.standard_normal(np.shape(each))
            for name, each in start.items()
        }


def test_of_strangers_it_is_the_joint_model(strangers):
    """To a constant, at any values of the sites."""
    with pytest.warns(IdentificationWarning, match="twice"):
        ours = pose(strangers, model="workers", options={})
    joint = pose(strangers, model="joint", options={})
    one, other = density_of(ours), density_of(joint)
    differences = [one(values) - other(values) for values in some_values(joint, 3)]
    assert np.ptp(differences) < 1e-3


def test_a_fit_of_strangers_has_no_leniency_to_tell(strangers):
    posterior = zoo.posterior("strangers", **FIT)
    assert "leniency_score" not in posterior.posterior
    fitted = Fitted(strangers, posterior)
    np.testing.assert_allclose(
        fitted.draws_over_crowds.std(axis=(0, 1)), fitted.adjusted_draws.std(axis=(0, 1))
    )


def test_images_that_are_merged_are_alike(monkeypatch):
    """The log density of 600 images in 360 parts is that of the images to a constant."""
    study = zoo.study("workers")
    merged = pose(study, model="workers", options={})
    monkeypatch.setattr(crowds, "MEAN_BINS", 600)
    whole = pose(study, model="workers", options={})
    assert whole.distinct["clusters"]["reference"].log_given.shape[0] == 600
    alike = merged.distinct["clusters"]["replication"]
    assert alike.log_given.shape[0] == 360
    assert alike.images.sum() == 600
    np.testing.assert_array_equal(alike.correct.sum(axis=0), study.replication.correct.sum(axis=0))
    one, other = density_of(merged), density_of(whole)
    differences = [one(values) - other(values) for values in some_values(whole, 3)]
    assert np.ptp(differences) < 0.5


@pytest.mark.parametrize("panel", [False, True], ids=["population", "panel"])
def test_the_score_is_a_derivative(two_panels, panel):
    """Between two draws, of the log likelihood by the leniency of a crowd, or of one worker."""
    problem = pose(two_panels, model="workers", options={"panel": panel})
    crowd = problem.distinct["crowd"]
    found = crowd.leniencies
    draws, log_density = [*some_values(problem, 2)], density_of(problem)
    score = np.subtract(*(log_density(each, "leniency_score") for each in draws))

    def difference(shift):
        moved = replace(
            found,
            cavity_mean=found.cavity_mean + np.isin(answers.worker, some) * shift,
            mean=found.mean + np.isin(np.arange(answers.workers), some) * shift,
        )
        alpha = crowds.logits(crowd._replace(leniencies=moved), panel=panel)
        given = log_given(answers, moved, alpha)
        alike = {
            role: each._replace(log_given=given[answers.dataset == number])
            for number, (role, each) in enumerate(problem.distinct["clusters"].items())
        }
        again = density_of(replace(problem, distinct={**problem.distinct, "clusters": alike}))
        return np.subtract(*map(again, draws))

    answers = crowd.answers
    most = np.abs(score).argmax()
    for some in (found.known[:12], found.known[12:], found.known[[most]]):
        step = 0.02
        slope = (difference(step) - difference(-step)) / (2 * step)
        among = np.isin(found.known, some)
        assert score[among].sum() == pytest.approx(slope, rel=0.1, abs=0.05)


@pytest.fixture(scope="module")
def fitted(two_panels):
    return Fitted(two_panels, zoo.posterior("panels", **FIT))


def test_intervals_know_what_is_not_known_of_crowds(two_panels, fitted):
    assert fitted.posterior.posterior.attrs["model"] == "workers"
    assert fitted.knows_workers
    assert (
        fitted.draws_over_crowds.std(axis=(0, 1)) > fitted.adjusted_draws.std(axis=(0, 1))
    ).all()
    table = bayesrep.summarize(two_panels, fitted.posterior)
    assert (table["lower"] < table["upper"]).all()
    checks = bayesrep.diagnose(fitted.posterior, two_panels).checks
    assert "workers who answered many images" in checks["check"].to_list()


def test_what_each_answer_may_err_by_alone_is_in_the_draws_already(two_panels):
    """A leniency that errs as the mean of independent answers does adds nothing to theirs."""
    crowd = pose(two_panels, model="workers", options={}).distinct["crowd"]
    found = crowd.leniencies
    random = np.random.default_rng(0)
    scores = random.normal(size=(4, 500, len(found.known)))
    adjusted = scores[:, :, :3] + random.normal(size=(4, 500, 3))
    alone = np.diag(0.2 / np.bincount(crowd.answers.worker)[found.known])

    def of(covariance, variance):
        changed = replace(
            found,
            covariance=covariance,
            cavity_variance=np.full(len(crowd.answers.worker), variance),
        )
        return leniency_covariance(scores, crowd._replace(leniencies=changed), adjusted, np.eye(3))

    np.testing.assert_allclose(of(alone, 0.2), 0, atol=1e-12)
    np.testing.assert_allclose(
        of(found.covariance + alone, 0.2), of(found.covariance, 0.0), rtol=1e-9
    )


def test_a_posterior_with_other_workers_is_refused(fitted, two_panels):
    group = fitted.need("posterior", "leniency_score")
    score = group["leniency_score"]
    fewer = {**group.data_vars, "leniency_score": Variable(score.dims, score.values[:, :, :5])}
    coords = {name: each for name, each in group.coords.items() if name != "known_worker"}
    groups = {
        "log_density": fitted.need("log_density"),
        "observed_data": fitted.need("observed_data"),
    }
    posterior = StoredPosterior(
        {**groups, "posterior": Group(fewer, coords, group.attrs)}, group.attrs
    )
    with refused(PosteriorError, "posterior-of-other-workers"):
        bayesrep.summarize(two_panels, posterior)


def test_one_data_set_may_lack_its_workers(two_panels):
    datasets = {**two_panels.datasets, "replication": replace(two_panels.replication, answers=None)}
    problem = pose(replace(two_panels, datasets=datasets), model="workers", options={})
    alike = problem.distinct["clusters"]["replication"]
    assert len(alike.images) == len(
        np.unique(two_panels.replication.selected + 1000 * two_panels.replication.shown)
    )
    assert not alike.answered.any()


def test_who_answered_must_be_known():
    study = zoo.study("tiny")
    with refused(StudyError, "workers-of-answers-unknown", {"study": study.name}):
        bayesrep.fit(study, model="workers", progress=False)
    with refused(OptionError, "model-needs-study", {"model": "workers"}):
        bayesrep.fit(SufficientStatistics.of(study), model="workers", progress=False)


@pytest.mark.parametrize(
    ("options", "broken"),
    [
        ({"dependence": 0.1}, ("workers-model-with-dependence",)),
        ({"groups": "superclass"}, ("model-takes-no-groups", {"model": "workers"})),
        ({"devices": 2}, ("device-count-out-of-range", {"count": 2})),
    ],
)
def test_what_the_model_does_not_take(two_panels, options, broken):
    with refused(OptionError, *broken):
        bayesrep.fit(two_panels, model="workers", progress=False, **options)


def test_one_worker_for_everything():
    """His leniency cannot be told: it stays as uncertain as the first spread has it."""
    image = np.arange(100)
    dataset = np.repeat([0, 1], 50)
    found = find_leniencies(CrowdAnswers(image, 0 * image, image % 3 > 0, dataset, 1))
    assert found.spread == pytest.approx(0.5, abs=0.1)
    assert found.covariance[0, 0] == pytest.approx(found.spread**2, rel=0.1)


def test_the_command_line_says_what_is_missing(tmp_path):
    zoo.cut(zoo.study("tiny"), images=50, classifiers=2).write(tmp_path / "s")
    command = ["fit", tmp_path / "s", "--out", tmp_path / "p.nc", "--model", "workers"]
    check(refusal(command), "workers-of-answers-unknown")
