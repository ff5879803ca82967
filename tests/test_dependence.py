"""Answers that depend on each other: the likelihood, what it recovers, and the posterior."""

from collections import Counter
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
import zoo
from refusals import refused
from scipy import integrate, stats
from scipy.special import logsumexp

import bayesrep
from bayesrep.checks.dependence import assumption
from bayesrep.errors import OptionError
from bayesrep.inference import annotators
from bayesrep.inference.problem import pose, programs
from bayesrep.models import MODELS
from bayesrep.models.counts import (
    DependentPairs,
    counts_of,
    lay_out,
    log_likelihood_of,
    log_nodes,
    log_pair_masses,
)
from bayesrep.models.mixtures import Mixtures
from bayesrep.numerics import logit_quadrature
from bayesrep.numerics.binomial import log_binomial
from bayesrep.numerics.settings import own_settings
from bayesrep.studies.statistics import Cells, Contexts, SufficientStatistics
from bayesrep.studies.worker_answers import WorkerAnswers


def _cells(shown: int) -> Cells:
    k = np.arange(shown + 1)
    return Cells(k, np.full(shown + 1, shown), np.ones_like(k), np.zeros((shown + 1, 1), int))


def test_a_correlation_that_a_model_reports_itself_is_not_integrated_once_more():
    problem = pose(zoo.study("tiny"), model="joint", options={})
    own = replace(problem.model, dims=lambda *_: {"dependence": ()})
    assert annotators.learns_dependence(problem)
    assert not annotators.learns_dependence(replace(problem, model=own))


@pytest.mark.parametrize("rho", [1e-6, 0.05, 0.5])
def test_answers_given_s_are_beta_binomial(rho):
    s, k = np.exp(logit_quadrature.nodes()[0]), np.arange(13)
    some = np.flatnonzero((s > 1e-3) & (s < 0.999))
    table = logit_quadrature.log_dependent(k, 12 - k, rho)[:, some] + log_binomial(12, k)[:, None]
    total = 1 / rho - 1
    wanted = stats.betabinom.logpmf(k[:, None], 12, s[some] * total, (1 - s[some]) * total)
    np.testing.assert_allclose(table, wanted, rtol=1e-6, atol=1e-7)


def test_masses_are_integrals_over_s():
    """Two components and ρ = 0.1, held against adaptive quadrature over s."""
    weights, a, b, rho = np.array([0.3, 0.7]), np.array([2.0, 8.0]), np.array([3.0, 1.5]), 0.1
    with jax.enable_x64(new_val=True):
        mixtures = Mixtures(*map(jnp.asarray, (np.log(weights)[None], a, b)))
        pairs = lay_out([_cells(6)], rho)
        assert isinstance(pairs, DependentPairs)
        masses = np.exp(np.asarray(log_pair_masses(mixtures, pairs)[0] + pairs.log_choices))

    def joint(s: float, k: int) -> float:
        density = float(weights @ stats.beta.pdf(s, a, b))
        return density * stats.betabinom.pmf(k, 6, 9 * s, 9 * (1 - s))

    for k in (0, 3, 6):
        assert abs(masses[k] - integrate.quad(joint, 0, 1, args=(k,))[0]) < 1e-8


def _in_contexts(division: tuple[int, ...], images: int = 40) -> WorkerAnswers:
    """Answers about images that are each seen in contexts of so many annotators."""
    rng = np.random.default_rng(3)
    context = np.repeat(np.arange(len(division)), division)
    image = np.repeat(np.arange(images), len(context))
    of_answer = 10 * image + np.tile(context, images)
    order = rng.permutation(len(image))  # nothing depends on the order of the rows
    chosen = rng.random(len(image)) < 0.6
    return WorkerAnswers.of(
        image[order], np.arange(len(image)), chosen[order], context=of_answer[order]
    )


def test_counts_by_context_are_integrals_over_s():
    """Of 3 + 2 + 1 answers, ρ = 0.1: each pattern by adaptive quadrature, totals by their sum."""
    weights, a, b = np.array([0.3, 0.7]), np.array([2.0, 8.0]), np.array([3.0, 1.5])
    every = np.array(list(np.ndindex(4, 3, 2)))
    contexts = Contexts(every, np.broadcast_to([3, 2, 1], every.shape), np.ones(len(every), int))
    with jax.enable_x64(new_val=True):
        mixtures = Mixtures(*map(jnp.asarray, (np.log(weights)[None], a, b)))
        counts = counts_of([replace(_cells(6), contexts=contexts)], 0.1)
        assert isinstance(counts.pairs, DependentPairs)
        assert counts.pairs.patterns is not None
        masses = log_pair_masses(mixtures, counts.pairs)
        total = np.exp(np.asarray(masses[0] + counts.pairs.log_choices))
        by_pattern = logsumexp(log_nodes(mixtures, counts.pairs.patterns)[0], axis=-1)
        likelihood = float(log_likelihood_of(counts, masses, mixtures))
    n_choices = log_binomial(np.array([3, 2, 1]), every).sum(axis=1)
    by_pattern = np.exp(by_pattern + n_choices)

    def joint(s: float, pattern: np.ndarray) -> float:
        law = stats.betabinom.pmf(pattern, [3, 2, 1], 9 * s, 9 * (1 - s)).prod()
        return float(weights @ stats.beta.pdf(s, a, b)) * law

    wanted = [integrate.quad(joint, 0, 1, args=(pattern,))[0] for pattern in every]
    np.testing.assert_allclose(by_pattern, wanted, atol=1e-8)
    np.testing.assert_allclose(total, np.bincount(every.sum(axis=1), wanted), atol=1e-8)
    assert abs(likelihood - (np.log(wanted) - n_choices).sum()) < 1e-5


def test_patterns_of_contexts_are_counted():
    """Whatever the order of contexts and answers; shards have the patterns of the whole."""
    answers = _in_contexts((2, 3))
    found = Contexts.of_answers(answers)
    np.testing.assert_array_equal(found.shown, np.broadcast_to([3, 2], found.shown.shape))
    context = np.asarray(answers.context)
    chosen = np.bincount(context[answers.selected], minlength=context.max() + 1).reshape(-1, 2)
    wanted = Counter((three, two) for two, three in chosen.tolist())
    patterns = map(tuple, found.selected.tolist())
    assert dict(zip(patterns, found.images.tolist(), strict=True)) == wanted
    shards = (Contexts.of_answers(answers, np.arange(*ends)) for ends in ((0, 15), (15, 40)))
    assert all(map(np.array_equal, next(shards).merge(next(shards)), found))
    more = found.merge(Contexts.of_answers(_in_contexts((1, 1, 1, 1))))
    assert more.shown.shape[1] == 4
    assert set(map(tuple, more.shown.tolist())) == {(3, 2, 0, 0), (1, 1, 1, 1)}


def test_groups_have_patterns_of_their_own():
    """Groups of equal densities have the likelihood of all images together."""
    answers = _in_contexts((2, 3))
    groups = [np.arange(15), np.arange(15, 40)]
    parts = [replace(_cells(5), contexts=Contexts.of_answers(answers, rows)) for rows in groups]
    whole = replace(_cells(5), contexts=Contexts.of_answers(answers))
    found = []
    with jax.enable_x64(new_val=True):
        for tables in (parts, [whole]):
            weights = jnp.log(jnp.broadcast_to(jnp.array([0.3, 0.7]), (len(tables), 2)))
            mixtures = Mixtures(weights, jnp.array([2.0, 8.0]), jnp.array([3.0, 1.5]))
            counts = counts_of(tables, 0.1)
            masses = log_pair_masses(mixtures, counts.pairs)
            found.append(float(log_likelihood_of(counts, masses, mixtures)))
    assert found[0] == pytest.approx(found[1], abs=1e-8)


def _with_contexts(study, division):
    """The study with answers of so many annotators about each of its images."""
    datasets = {}
    for role, data in study.datasets.items():
        answers = _in_contexts(division, len(data.images))
        selected, shown = answers.counts(len(data.images))
        datasets[role] = replace(data, selected=selected, shown=shown, answers=answers)
    return replace(study, datasets=datasets)


def test_contexts_are_read_as_they_were_written(tmp_path):
    study = _with_contexts(zoo.study("tiny"), (2, 3))
    study.write(tmp_path / "study")
    again = bayesrep.read_study(tmp_path / "study")
    one, two = map(SufficientStatistics.of, (study, again))
    assert one == two
    assert one.reference.contexts is not None
    # Statistics of other contexts are other statistics, since a fit depends on them.
    other = replace(study.reference, answers=_in_contexts((5,), len(study.reference.images)))
    other = replace(study, datasets={**study.datasets, "reference": other})
    assert SufficientStatistics.of(other).digest() != one.digest()


@pytest.mark.parametrize(("division", "learns"), [((1, 1, 1), False), ((2, 1), True)])
def test_answers_that_are_all_of_other_contexts_are_independent(division, learns):
    study = _with_contexts(zoo.study("tiny"), division)
    assert annotators.learns_dependence(pose(study, model="joint", options={})) == learns


@pytest.mark.parametrize("curve", ["bernstein", "spline"])
@pytest.mark.parametrize("name", ["tiny", "ragged"])
def test_independent_answers_are_its_limit(curve, name):
    """With ρ = 10⁻⁹ the density is the exact one but for quadrature, whatever the n."""
    study = zoo.cut(zoo.study(name), images=200, classifiers=3)
    values = []
    with jax.enable_x64(new_val=True):
        for rho in (0.0, 1e-9):
            problem = pose(study, model="joint", options={"curve": curve, "dependence": rho})
            data = problem.data()
            tools = programs(problem, data)
            start = tools.start(problem.model.start(data, problem.options))
            values.append(
                [
                    float(tools.density.potential({n: x + by for n, x in start.items()}, data))
                    for by in (0.0, 0.3, -0.2)
                ]
            )
    np.testing.assert_allclose(values[1], values[0], rtol=1e-6)


@pytest.fixture(scope="module")
def plain():
    return zoo.posterior("tiny", method="laplace")


def _mean_gap(posterior):
    return posterior["posterior"]["bias_corrected_gap"].values.mean(axis=2).ravel()


def test_draws_of_a_correlation_are_those_of_a_fit_at_it(monkeypatch):
    """Of two correlations, both likely: means within 0.2 sd, sds within 15 % (alarm < 0.1 %)."""
    monkeypatch.setattr(annotators, "DEPENDENCE_GRID", (0.0, 0.03))
    study = zoo.cut(zoo.study("tiny"), images=300, classifiers=3)
    learnt = bayesrep.fit(study, method="laplace", dependence_prior=9.0, progress=False)
    at = learnt["posterior"]["dependence"].values.ravel()
    assert set(at.tolist()) == {0.0, 0.03}
    for rho in (0.0, 0.03):
        fixed = _mean_gap(bayesrep.fit(study, method="laplace", dependence=rho, progress=False))
        some = _mean_gap(learnt)[at == rho]
        assert len(some) > 300
        assert abs(some.mean() - fixed.mean()) < 0.2 * fixed.std()
        assert abs(np.log(some.std() / fixed.std())) < 0.15


def test_log_density_of_a_correlation_is_that_of_importance_sampling(monkeypatch):
    """One classifier, whose weight is 1: log P(y | ρ) from draws at the other ρ, within 0.15."""
    monkeypatch.setattr(annotators, "DEPENDENCE_GRID", (0.02, 0.03))
    study = zoo.cut(zoo.study("tiny"), images=300, classifiers=1)
    posterior = bayesrep.fit(study, method="laplace", dependence=0.02, progress=False)
    with own_settings():
        problem = pose(study, model="joint", options={"dependence_prior": 1e6})
        first, second = (
            replace(problem, options=replace(problem.options, dependence=rho)).data()
            for rho in (0.02, 0.03)
        )
        tools = programs(problem, first)
        sites = {name: posterior["posterior"][name].values[0] for name in tools.density.sites}
        position = jax.vmap(tools.density.to_position)(sites)
        change = jax.vmap(
            lambda x: tools.density.potential(x, first) - tools.density.potential(x, second)
        )(position)
        mean = {name: np.mean(leaf, axis=0) for name, leaf in position.items()}
        _, grid = annotators.scan_dependence(problem, mean)
    wanted = float(logsumexp(change) - np.log(len(change)))
    assert abs(grid.levels[1].log_density - grid.levels[0].log_density - wanted) < 0.15


def test_a_model_whose_data_do_not_know_the_correlation_has_none(monkeypatch):
    joint = MODELS["joint"]

    def data(groups, distinct, options):
        return joint.data(groups, distinct, replace(options, dependence=0.0))

    monkeypatch.setitem(MODELS, "deaf", replace(joint, data=data))
    assert (
        "dependence" not in bayesrep.fit(zoo.study("one"), model="deaf", **zoo.QUICK)["posterior"]
    )


def test_the_table_begins_at_independent_answers(plain):
    """Its gap there is that of a fit of independent answers, within 0.2 sd."""
    table = bayesrep.dependence_table(plain)
    assert table["dependence"][0] == 0
    assert table["dependence"].is_sorted()
    assert 0.99 < table["probability"].sum() <= 1 + 1e-9
    assert (table["lower"] < table["gap"]).all()
    independent = _mean_gap(zoo.posterior("tiny", method="laplace", dependence=0.0))
    assert abs(table["gap"][0] - independent.mean()) < 0.2 * independent.std()


def test_a_verdict_rests_on_the_correlation_only_where_it_was_given(plain):
    check = pl.col("check") == "dependence of annotators' answers"
    learnt = bayesrep.diagnose(plain)
    assert "independently" not in learnt.assumption
    assert learnt.checks.filter(check)["trust"].to_list() == ["yes"]
    assert learnt.dependence.equals(bayesrep.dependence_table(plain))
    given = zoo.posterior("tiny", dependence=0.1, **zoo.QUICK)
    assert "dependence" not in given["posterior"]
    diagnosis = bayesrep.diagnose(given)
    assert diagnosis.assumption.startswith(assumption(given))
    assert " 0.1" in assumption(given)
    assert diagnosis.dependence is None
    assert diagnosis.checks.filter(check)["value"].to_list() == ["0.1 assumed"]


def test_counts_speak_against_a_correlation():
    """Hundreds of images with 36 independent answers each scatter too little for 0.1."""
    posterior = zoo.posterior("images", method="laplace")
    assert posterior["posterior"]["dependence"].values.max() < 0.1


def test_fewer_than_five_answers_leave_the_correlation_to_its_prior():
    """On the grid's range, to four standard errors of its draws."""
    study = zoo.cut(zoo.study("tiny"), images=300, classifiers=1)
    halved = {
        role: replace(data, selected=data.selected // 2, shown=data.shown // 2)
        for role, data in study.datasets.items()
    }
    posterior = bayesrep.fit(replace(study, datasets=halved), **zoo.QUICK)["posterior"]
    prior = stats.truncnorm(0, annotators.DEPENDENCE_GRID[-1] / 0.15, scale=0.15)
    error = prior.std() / np.sqrt(posterior.attrs["ess"])
    assert abs(posterior["dependence"].values.mean() - prior.mean()) < 4 * error


@pytest.mark.parametrize(
    ("value", "broken"),
    [
        (-0.1, ("dependence-out-of-range", {"dependence": -0.1})),
        (1.0, ("dependence-out-of-range", {"dependence": 1.0})),
        (float("nan"), ("option-not-number",)),
        ("much", ("option-not-number", {"value": "much"})),
        (True, ("option-not-number", {"value": True})),
        ((0.1, 0.2), ("option-not-number",)),
    ],
)
def test_impossible_correlations_are_refused(value, broken):
    with refused(OptionError, *broken):
        bayesrep.fit(zoo.study("tiny"), dependence=value, progress=False)
