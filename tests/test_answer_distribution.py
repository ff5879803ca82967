"""A model's distribution of right answers is that of everything that reads its fit."""

import sys
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType

import numpy as np
import numpyro.distributions as dist
import polars as pl
import pytest
import zoo
from refusals import refused
from scipy import stats
from scipy.special import expit, logit

import bayesrep
from bayesrep.checks.agreement import agreement
from bayesrep.checks.comparison import leave_out_predictions
from bayesrep.checks.discrepancy import check_answers
from bayesrep.checks.predictions import check_predictions
from bayesrep.errors import OptionError
from bayesrep.inference.methods import sample_around_mode
from bayesrep.inference.problem import pose, programs
from bayesrep.models import MODELS
from bayesrep.models.answers import BINOMIAL, NumPyroAnswers, overdispersion
from bayesrep.models.options import JointOptions
from bayesrep.models.workers import WorkerOptions
from bayesrep.numerics.codes import decode
from bayesrep.numerics.settings import own_settings
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.likelihood import answer_log_likelihoods, logit_codes
from bayesrep.studies.overlap import overlap_weight
from bayesrep.studies.statistics import SufficientStatistics

RHO = 0.2


def beta_binomial(q, m, rho):
    total = 1 / rho - 1
    return dist.BetaBinomial(q * total, (1 - q) * total, m)


@dataclass(frozen=True)
class BetaBinomialOptions(JointOptions):
    answer_rho: float = RHO

    def __post_init__(self):
        super().__post_init__()
        if not self.answer_rho < 1:
            raise ValueError("it is below 1")

    def answer_distribution(self):
        return NumPyroAnswers(partial(beta_binomial, rho=self.answer_rho))


BETA_BINOMIAL = BetaBinomialOptions().answer_distribution()


def scipy_beta_binomial(m, q):
    total = 1 / RHO - 1
    return stats.betabinom(m, q * total, (1 - q) * total)


@pytest.fixture(scope="module")
def model():
    """Registered as our own are, in a file of the package."""
    file = ModuleType("bayesrep.models.beta_binomial")
    file.MODEL = replace(MODELS["joint"], options=BetaBinomialOptions)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, file.__name__, file)
        patch.setitem(MODELS._ours, "beta-binomial", "MODEL")
        yield "beta-binomial"


@pytest.fixture(scope="module")
def study():
    """A study whose answers about a cell's images hang together."""
    drawn = zoo.study("tiny")
    random, data = np.random.default_rng(3), drawn.replication
    correct = data.correct.copy()
    for k in np.unique(data.selected):
        cell = data.selected == k
        q = np.clip(correct[cell].mean(axis=0), 0.1, 0.9) * (1 / RHO - 1)
        correct[cell] = random.random((cell.sum(), 3)) < random.beta(q, 1 / RHO - 1 - q)
    datasets = {**drawn.datasets, "replication": replace(data, correct=correct)}
    return replace(drawn, datasets=datasets, truth=None)


@pytest.fixture(scope="module")
def fits(study, model):
    facts = {"method": "laplace", "draws": 250, "seed": 0}
    return {name: bayesrep.fit(study, model=name, **facts) for name in ("joint", model)}


def test_a_binomial_of_numpyro_is_the_binomial():
    ours = NumPyroAnswers(lambda q, m: dist.Binomial(m, q))
    q = np.array([0.2, 0.5, 0.97])
    y, m = np.array([[1, 3, 28], [1, 7, 30]], dtype=np.int16)  # as cells have them
    for name in ("log_prob", "log_answers"):
        expected = getattr(BINOMIAL, name)(y, m, logit(q))
        np.testing.assert_allclose(getattr(ours, name)(y, m, logit(q)), expected, rtol=1e-9)
    for name in ("variance", "fourth_cumulant"):
        expected = getattr(BINOMIAL, name)(m, q)
        np.testing.assert_allclose(getattr(ours, name)(m, q), expected, rtol=1e-7)
    np.testing.assert_allclose(overdispersion(ours, m, q), 1)


def test_the_workers_model_refuses_answers_that_it_would_read_as_binomial():
    class DependentWorkers(WorkerOptions):
        def answer_distribution(self):
            return BETA_BINOMIAL

    with refused(OptionError, "workers-answers-not-binomial"):
        DependentWorkers()


def test_options_that_are_wrong_are_told_in_a_line(model, study):
    with refused(OptionError, "answers-without-law"):  # 1 / 0
        BetaBinomialOptions(answer_rho=0.0).answer_distribution().variance(
            np.ones(1, int), np.ones(1)
        )
    with refused(OptionError, "model-options-refused", {"problem": "it is below 1"}):
        pose(study, model=model, options={"answer_rho": 2.0})
    with pytest.raises(LookupError, match="no sentence of the rule 'a-rule-of-mine'"):
        OptionError("a-rule-of-mine")


def test_answers_of_images_make_up_the_distribution():
    """Conditional probabilities of one image after the other multiply to that of a sequence."""
    q, total = 0.3, 0.0
    answers = [True, False, True, True, False]
    for place, right in enumerate(answers):
        before = sum(answers[:place])
        facts = np.array([before]), np.array([place]), np.array([logit(q)])
        both = BETA_BINOMIAL.log_answers(*facts)
        np.testing.assert_allclose(np.exp(both).sum(), 1)
        total += both[int(right)].item()
    choices = 10  # of 3 right among 5
    expected = scipy_beta_binomial(5, q).logpmf(3) - np.log(choices)
    np.testing.assert_allclose(total, expected)


def test_moments_are_scipys():
    m, q = np.array([4, 25]), np.array([[0.3, 0.8]])
    of = scipy_beta_binomial(m, q[0])
    np.testing.assert_allclose(BETA_BINOMIAL.variance(m, q), of.var()[None])
    np.testing.assert_allclose(overdispersion(BETA_BINOMIAL, m, q[0]), 1 + (m - 1) * RHO)
    fourth = of.stats(moments="k") * of.var() ** 2
    np.testing.assert_allclose(BETA_BINOMIAL.fourth_cumulant(m, q), fourth, rtol=1e-6)


def test_likelihood_predictions_and_loo_are_of_the_models_distribution(fits, study, model):
    posterior = fits[model]
    logits = decode(logit_codes(posterior)).astype(float)
    observed = posterior["observed_data"]
    images = observed["replication_images"].values
    some = np.flatnonzero(images)
    for index, found in enumerate(answer_log_likelihoods(posterior)):
        y, eta = observed["correct"].values[index], logits[:, :, index][..., some]
        expected = scipy_beta_binomial(images[some], expit(eta)).logpmf(y)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    predicted = posterior["posterior_predictive"]["correct"].values
    every = predicted.shape[1]
    q = expit(logits[:, :: logits.shape[1] // every][:, :every][..., some])
    variance = BETA_BINOMIAL.variance(images[some], q)
    z = (predicted - images[some] * q) / np.sqrt(variance)
    # 250 draws of 3 classifiers in 11 cells: the mean square is 1 to 0.05 (kurtosis below 3).
    assert abs(np.square(z).mean() - 1) < 0.1
    name = study.classifiers[0]
    loo = leave_out_predictions(posterior)[f"answers {name}"]
    y, eta = observed["correct"].values[0], logits[:, :, 0][..., some].reshape(-1, len(some))
    right = [
        scipy_beta_binomial(m, q).logpmf(k)
        - scipy_beta_binomial(m - 1, q).logpmf(k - 1)
        + np.log(k / m)
        for m, k, q in zip(images[some], y, expit(eta).T, strict=True)
        if k
    ]
    lppd = np.log(np.exp(right).mean(axis=1))
    np.testing.assert_allclose(loo.lppd[: len(right)], lppd, rtol=1e-6)
    assert loo.units.sum() == images.sum()


def test_less_is_known_where_answers_hang_together(fits, model):
    widths = {
        name: posterior["posterior"]["adjusted_accuracy"].std(("chain", "draw")).values
        for name, posterior in fits.items()
    }
    assert (widths[model] > 1.5 * widths["joint"]).all()


def test_discrepancies_find_what_the_distribution_explains(fits, study, model):
    """False-alarm rate of the first assertion 1 in 1,000 and of the second below 1 in 100."""
    p = {
        name: check_predictions(posterior).filter(kind="answers")["p"].min()
        for name, posterior in fits.items()
    }
    assert p["joint"] < 1e-3
    assert p[model] > 0.01 / 3


def test_pearsons_discrepancy_has_the_mean_of_its_bins():
    random, m = np.random.default_rng(0), np.full(12, 60)
    q = np.linspace(0.2, 0.9, 12)
    fits = [
        check_answers(y, m, q[None], q, BETA_BINOMIAL)
        for y in scipy_beta_binomial(m, q).rvs((400, 12), random_state=random)
    ]
    ratio = np.mean([fit.discrepancy / fit.bins for fit in fits])
    assert abs(ratio - 1) < 4 * np.sqrt(2 / 12 / 400)


def test_agreement_is_simulated_by_the_models_distribution():
    random, m, q = np.random.default_rng(1), 50, np.array([[0.3, 0.8], [0.5, 0.5]])
    cell = np.repeat([0, 1], m)
    drawn = [BETA_BINOMIAL.sample_images(random, cell, q) for _ in range(200)]
    right = np.array([[each[cell == c].sum(axis=0) for c in (0, 1)] for each in drawn])
    z = (right - m * q.T) / np.sqrt(BETA_BINOMIAL.variance(np.array([m, m]), q)).T
    assert abs(z.mean()) < 0.15
    assert abs(np.square(z).mean() - 1) < 0.25
    # All images of a cell are right equally often.
    share = np.mean(drawn, axis=0)[cell == 0, 0]
    assert abs(share - share.mean()).max() < 5 * np.sqrt(0.25 / 200)


def test_agreement_takes_it_from_the_fit(fits, study, model):
    spread = {
        name: agreement(Fitted(study, posterior)).pairs.select(pl.col("upper") - pl.col("lower"))
        for name, posterior in fits.items()
    }
    assert spread[model].mean().item() > 1.2 * spread["joint"].mean().item()


def score_weight(data):
    """The variance of the classifiers' scores alone, over that of their sum."""
    alone = together = 0.0
    for k in np.unique(data.selected):
        rows = data.correct[data.selected == k].astype(float)
        residual = rows - rows.mean(axis=0)
        v = 1 + (len(rows) - 1) * RHO
        product = residual.T @ residual
        alone += np.trace(product) / v
        together += np.trace(product) / v + (product.sum() - np.trace(product)) / v**2
    return np.clip(alone / together, 1 / 3, 1)


def test_w_counts_residuals_by_their_scores(study, fits, model):
    shared = zoo.study("tiny")  # whose images are hard for all classifiers
    cells = SufficientStatistics.of(shared).replication
    expected = score_weight(shared.replication)
    found = overlap_weight([cells], partial(overdispersion, BETA_BINOMIAL))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert overlap_weight([cells]) < found
    recorded = fits[model]["posterior"].attrs["classifier_weight"]
    np.testing.assert_allclose(recorded, score_weight(study.replication), rtol=1e-6)


@pytest.mark.parametrize(("rho", "least", "most"), [(0.0, 0.9, 1.0), (0.2, 0.0, 0.3)])
def test_copies_of_a_classifier_share_the_noise_of_their_images(rho, least, most):
    """Two copies, 500 images: nearly all of it, or 1/v of it where a cell's answers correlate."""
    single = zoo.cut(zoo.study("tiny"), classifiers=1)
    datasets = {
        role: replace(data, correct=np.repeat(data.correct, 2, axis=1))
        for role, data in single.datasets.items()
    }
    study = replace(single, datasets=datasets, classifiers=("one", "other"), truth=None)
    with own_settings():
        problem = pose(study, model="joint", options={})
        if rho:
            problem = replace(problem, options=BetaBinomialOptions(answer_rho=rho))
        data = problem.data()
        sample = sample_around_mode(problem, programs(problem, data), data, [0])
    one, other = np.asarray(sample.setting.noise.common)
    # The direction in which the answers say most.
    assert least <= np.linalg.svd(one @ other.T, compute_uv=False).max() <= most + 1e-9
