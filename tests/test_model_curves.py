"""One law of every model: curves integrated against the reference's density are A, draw by draw."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import zoo
from numpyro import handlers
from scipy.special import betaln, log_expit

import bayesrep
from bayesrep.inference.assemble import attributes, coordinates, posterior_group
from bayesrep.inference.problem import pose
from bayesrep.models import MODELS
from bayesrep.models.curve_bases import CURVE_FAMILIES
from bayesrep.posterior.files import build_posterior
from bayesrep.posterior.fitted import Fitted
from bayesrep.report.sections import CurvesSection
from bayesrep.report.sections.curves import S_COARSE
from bayesrep.report.sections.section import Source

DRAWS = 20
SPREAD = 0.3
# Betas worth one or two annotators: most of their parameters are below 1, their densities infinite.
# Draws are about the priors' means: a monotone Gaussian process about a slope of 3 comes to 1.4e-6.
OPTIONS = {"log_concentration": (0.3, 0.8), "slope": (2.0, 1.5)}


@pytest.fixture(scope="module")
def study():
    """Of two groups and eleven workers."""
    kinds = np.where(np.arange(60) % 3 == 0, "few", "many")  # a third and two thirds
    image, number = np.repeat(np.arange(60), 8), np.tile(np.arange(8), 60)
    study, datasets = zoo.cut(zoo.study("tiny"), images=60), {}
    for role, data in study.datasets.items():
        selected = number < data.selected[image]
        answers = bayesrep.WorkerAnswers.of(image, (number + image) % 11, selected)
        kind = kinds if role == "reference" else kinds[::-1]
        datasets[role] = replace(data, answers=answers, groups={"kind": kind})
    return replace(study, datasets=datasets)


def some_draws(problem):
    """Sites about the prior means, and what the model says at them, [draw, ...]; without a fit."""
    data, random = problem.data(), np.random.default_rng(0)
    # Terms of curves scatter as their priors do, which may be much narrower.
    _, population, own, *_ = problem.options.curve_priors()
    sds = {"population_curve": np.minimum(population, 1), "classifier_curve": np.minimum(own, 1)}
    sites = {
        name: value + SPREAD * sds.get(name, 1) * random.standard_normal((DRAWS, *np.shape(value)))
        for name, value in problem.model.start(data, problem.options).items()
    }

    def one(values, data):
        with handlers.substitute(data=values), handlers.trace() as trace:
            problem.model.function(data, problem.options)
        return {name: trace[name]["value"] for name in problem.model.dims(data, problem.options)}

    return jax.jit(jax.vmap(one, in_axes=(0, None)))(sites, data)


def nodes():
    """log s and log(1 − s) at nodes, and the log of their widths in logit s."""
    u = np.linspace(-14, 14, 6001)
    t = 2 * np.sinh(u / 2)
    return log_expit(t), log_expit(-t), np.log(np.cosh(u / 2) * (u[1] - u[0]))


def integrals(curves, log_s, log_rest, log_width, draws):
    """∫ curve · p_ref ds [draw, C], on the scale on which a beta's poles are none."""
    mean, total, weight = (
        np.asarray(draws[f"component_{name}"])[:, 0] for name in ("mean", "concentration", "weight")
    )
    a, b = mean * total, (1 - mean) * total
    assert (np.minimum(a, b) < 1).any()
    along = a[..., None] * log_s + b[..., None] * log_rest - betaln(a, b)[..., None] + log_width
    mass = np.einsum("dk,dks->ds", weight, np.exp(along))
    np.testing.assert_allclose(mass.sum(axis=1), 1, rtol=1e-9)
    return np.einsum("dcs,ds->dc", curves, mass)


def check(study, model, groups=None, **options):
    with jax.enable_x64(new_val=True):
        problem = pose(study, model=model, options={**OPTIONS, **options}, groups=groups)
        draws = some_draws(problem)
        log_s, log_rest, log_width = nodes()
        share = np.array([1.0]) if len(problem.groups) == 1 else np.array([1, 2]) / 3
        curves = problem.model.curves(draws, problem.options, np.exp(log_s), share)
        assert curves.shape == (DRAWS, 3, len(log_s))
        assert curves.dtype == np.float64
        found = integrals(np.asarray(curves), log_s, log_rest, log_width, draws)
        wanted = np.asarray(draws["adjusted_accuracy"])
    assert wanted.dtype == np.float64
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)


def test_a_family_from_elsewhere_is_refused():
    with pytest.raises(TypeError):  # programs are kept by its name, whatever its bends are
        CURVE_FAMILIES["own"] = CURVE_FAMILIES["gp"]


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("curve", CURVE_FAMILIES)
@pytest.mark.parametrize("model", MODELS)
def test_curves_integrate_to_the_adjusted_accuracy(study, model, curve, monotone):
    check(study, model, curve=curve, monotone=monotone)


@pytest.mark.parametrize("curve", CURVE_FAMILIES)
def test_so_they_do_with_groups(study, curve):
    check(study, "joint", curve=curve, groups="kind")


def as_posterior(problem, draws):
    """What a fit that drew these would return."""
    chain = {name: np.asarray(value)[None] for name, value in draws.items()}
    contents = {"posterior": posterior_group(problem, problem.data(), chain)}
    facts = attributes(problem, problem.data(), method="none", seed=0)
    return build_posterior(contents, coordinates(problem), facts)


@pytest.mark.parametrize(
    ("model", "groups"), [*((name, None) for name in MODELS), ("joint", "kind")]
)
def test_the_report_draws_these_curves(study, model, groups):
    with jax.enable_x64(new_val=True):
        problem = pose(study, model=model, options=OPTIONS, groups=groups)
        draws = some_draws(problem)
        share = np.array([1.0]) if groups is None else np.array([1, 2]) / 3
        wanted = np.asarray(problem.model.curves(draws, problem.options, S_COARSE, share))
        posterior = as_posterior(problem, draws)
    drawn = CurvesSection.compute(Source(study, Fitted(study, posterior)))
    np.testing.assert_allclose(drawn.bands[0], wanted.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(drawn.bands[2], np.quantile(wanted, 0.975, axis=0), rtol=1e-12)
