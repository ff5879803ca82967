"""Predictive checks over studies: uniform p-values where a model holds, small ones elsewhere."""

import numpy as np
import pytest
from scipy import stats

import bayesrep
from bayesrep.checks import discrepancy, misfits, predictions
from bayesrep.checks.finding import family_wise
from bayesrep.posterior.groups import CellNames

# The toy: 36 cells in six blocks; blocks have unknown probabilities with exact
# conjugate posteriors, cells inside a block have known shares of it.

BLOCK = np.arange(36) // 6
STRATA = discrepancy.Strata(np.zeros(36, dtype=np.int64), np.arange(36) / 35)


def _toy_counts(rng, images, bend, draws=100):
    inner = np.full((6, 6), 1 / 6)
    truth = rng.dirichlet(np.full(6, 4.0))
    mass = (truth[:, None] * inner).ravel() * np.exp(bend * np.sin(np.arange(36)))
    seen = rng.multinomial(images, mass / mass.sum())
    block = rng.dirichlet(4.0 + np.bincount(BLOCK, seen), size=draws)
    return discrepancy.check_counts(seen, (block[:, :, None] * inner).reshape(draws, -1), STRATA).p


def _toy_answers(rng, images, bend, draws=100):
    truth = rng.beta(2, 2, size=6)[BLOCK]
    logit = np.log(truth / (1 - truth)) + bend * np.tile(np.linspace(-1, 1, 6), 6)
    shown = np.full(36, images)
    right = rng.binomial(shown, 1 / (1 + np.exp(-logit)))
    sums = np.bincount(BLOCK, right)
    accuracy = rng.beta(2 + sums, 2 + 6 * images - sums, size=(draws, 6))[:, BLOCK]
    return discrepancy.check_answers(right, shown, accuracy, STRATA.position).p


@pytest.mark.parametrize(("toy", "images"), [(_toy_counts, 1500), (_toy_answers, 60)])
def test_p_values_are_uniform_where_the_model_holds(toy, images):
    """Of 1,500 studies 4.5 % (counts) and 5.2 % (answers) have p-values below 5 %."""
    rng = np.random.default_rng(1)
    p = np.array([toy(rng, images, 0.0) for _ in range(400)])
    assert stats.kstest(p, "uniform").pvalue > 0.01
    assert 0.02 < (p < 0.05).mean() < 0.08


@pytest.mark.parametrize(("toy", "images"), [(_toy_counts, 3000), (_toy_answers, 100)])
def test_p_values_are_small_where_it_does_not(toy, images):
    rng = np.random.default_rng(2)
    p = np.array([toy(rng, images, 0.5) for _ in range(40)])
    assert (p < 0.01).mean() > 0.9


def test_several_numbers_of_annotators_and_empty_cells():
    """Known parameters: one draw repeated has p from the plain χ² distribution."""
    rng = np.random.default_rng(4)
    shown = np.repeat([5, 8], [6, 9])
    strata = discrepancy.strata_of(CellNames(np.full(15, ""), np.r_[:6, :9], shown))
    mass = np.concatenate([stats.betabinom.pmf(np.arange(n + 1), n, 3, 1) for n in (5, 8)])
    p = []
    for _ in range(300):
        seen = np.concatenate([rng.multinomial(60, mass[:6]), rng.multinomial(90, mass[6:])])
        fit = discrepancy.check_counts(seen, np.tile(mass, (2, 1)), strata)
        p.append(fit.p)
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_bins_of_one_number_of_annotators_each():
    """No bin holds counts of 2 and of 3 annotators: five sums are given. False alarm rate 0.01."""
    rng = np.random.default_rng(6)
    sizes = np.arange(2, 7)
    shown = np.repeat(sizes, sizes + 1)
    selected = np.concatenate([np.arange(n + 1) for n in sizes])
    strata = discrepancy.strata_of(CellNames(np.full(len(shown), ""), selected, shown))
    mass = stats.betabinom.pmf(selected, shown, 2, 1)
    p = []
    for _ in range(200):
        seen = np.concatenate([rng.multinomial(400, mass[shown == n]) for n in sizes])
        fit = discrepancy.check_counts(seen, np.tile(mass, (2, 1)), strata)
        p.append(fit.p)
    assert fit.bins == len(shown)
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_images_that_each_have_another_number_of_annotators_are_no_misfit():
    """36 numbers of annotators, 1,000 images: most cells are empty. False alarm rate 0.01."""
    rng = np.random.default_rng(5)
    sizes = np.arange(5, 41)
    shown = np.repeat(sizes, sizes + 1)
    selected = np.concatenate([np.arange(n + 1) for n in sizes])
    every = CellNames(np.full(len(shown), ""), selected, shown)
    strata = discrepancy.strata_of(every)
    mass = stats.betabinom.pmf(selected, shown, 3, 1)
    p = []
    for _ in range(60):
        seen = np.concatenate([rng.multinomial(28, mass[shown == n]) for n in sizes])
        p.append(discrepancy.check_counts(seen, np.tile(mass, (2, 1)), strata).p)
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_annotators_added_until_it_is_clear_are_no_misfit():
    adaptive = bayesrep.simulate_study(images=1000, classifiers=2, scenario="adaptive")
    table, findings = misfits.judge_predictions(
        bayesrep.fit(adaptive, method="laplace", progress=False)
    )
    assert table is not None
    assert (table.filter(kind="counts")["unfilled"] > 0.1).all()
    assert {finding.trust for finding in findings} == {"yes"}
    assert "were added depending on the answers so far: " in findings[1].sentence
    ragged = bayesrep.simulate_study(images=1000, classifiers=2, annotators=(2, 6))
    table = predictions.check_predictions(bayesrep.fit(ragged, method="laplace", progress=False))
    assert (table.filter(kind="counts")["unfilled"] == 0).all()


def test_sound_families_keep_their_level():
    """The least of a family is below 5 % in 5 % at most. False alarm rate: 1e-6."""
    random = np.random.default_rng(0)
    kinds = ["counts"] * 2 + ["answers"] * 10
    least = [family_wise(random.random(12), kinds).min() for _ in range(4000)]
    assert np.mean(np.array(least) < 0.05) < 0.05 + 4.9 * np.sqrt(0.05 * 0.95 / 4000)
