"""What classifiers' draws have in common: one weight of every image for all of them."""

import numpy as np
import pytest
import zoo

from bayesrep import SufficientStatistics
from bayesrep.inference.cells import completed_cells
from bayesrep.inference.image_weights import (
    _leading_factors,
    answer_factors,
    images_of_cells,
    population_accuracy,
)
from bayesrep.inference.problem import pose
from bayesrep.models.counts import pair_of_cells

GROUPS = [None, "breed"]


def posed(study, groups=None):
    return pose(study, model="joint", options={}, groups=groups)


def pairs_of(problem):
    return 1 + max(int(pair_of_cells(t).max()) for t in completed_cells(problem)["replication"])


@pytest.mark.parametrize("groups", GROUPS)
def test_factors_have_the_correlations_of_residuals(groups):
    """Image by image, with no table of cells."""
    study = zoo.study("grouped")
    problem = posed(study, groups)
    shape = (len(study.classifiers), len(problem.groups), pairs_of(problem))
    right = np.random.default_rng(0).uniform(0.3, 0.9, shape)
    data = study.replication
    found = 0
    for g, pair, factor in answer_factors(problem, images_of_cells(problem, "replication"), right):
        table = completed_cells(problem)["replication"][g]
        (cell,) = np.flatnonzero(pair_of_cells(table) == pair)
        rows = (data.selected == table.selected[cell]) & (data.shown == table.shown[cell])
        if groups:
            rows &= data.groups[groups] == problem.groups[g]
        residual = data.correct[rows] - right[:, g, pair]
        scale = np.sqrt(np.square(residual).sum(axis=0))
        wanted = residual.T @ residual / np.outer(scale, scale)
        np.testing.assert_allclose(factor.T @ factor, wanted, atol=1e-5)
        found += rows.sum()
    assert found == len(data.shown)


def test_statistics_tell_the_mean_correlation():
    """Of residuals of all pairs of classifiers, weighted by their standard deviations."""
    study = zoo.study("grouped")
    whole, counts = posed(study), posed(SufficientStatistics.from_study(study))
    right = np.full((len(study.classifiers), 1, pairs_of(whole)), 0.6)
    (table,) = completed_cells(whole)["replication"]
    for (_, pair, known), (_, _, equal) in zip(
        *(
            answer_factors(each, images_of_cells(each, "replication"), right)
            for each in (whole, counts)
        ),
        strict=True,
    ):
        (cell,) = np.flatnonzero(pair_of_cells(table) == pair)
        squares = table.correct[cell] * (1 - 2 * 0.6) + table.images[cell] * 0.6**2
        pairs = np.sqrt(np.outer(squares, squares)) * (1 - np.eye(len(squares)))
        mean = float((known.T @ known * pairs).sum() / pairs.sum())
        assert equal.shape == (1, len(study.classifiers))
        np.testing.assert_allclose(equal**2, max(mean, 0.0), atol=1e-5)


def test_every_classifiers_noise_is_standard_and_correlated_as_its_answers():
    """Of few classifiers exactly: the sum over cells of loadings times correlations."""
    rng = np.random.default_rng(1)
    classifiers, own, cells, images = 4, 3, 5, 40
    loading = 0.2 * rng.standard_normal((classifiers, own, 1, cells))
    factors = rng.standard_normal((cells, images, classifiers)) + rng.standard_normal(
        (cells, images, 1)
    )
    factors /= np.sqrt(np.square(factors).sum(axis=1, keepdims=True))
    common, rest = _leading_factors(
        loading, lambda: ((0, cell, factors[cell]) for cell in range(cells))
    )
    at = loading[:, :, 0]
    wanted = np.einsum("cqm,mxc,mxd,drm->cqdr", at, factors, factors, at)
    found = np.einsum("cqf,drf->cqdr", common, common)
    np.testing.assert_allclose(found, wanted, atol=1e-10)
    whole = common @ common.swapaxes(1, 2) + rest @ rest.swapaxes(1, 2)
    np.testing.assert_allclose(whole, np.tile(np.eye(own), (classifiers, 1, 1)), atol=1e-10)


def test_noise_that_would_be_too_wide_is_standard():
    loading = np.full((3, 1, 1, 1), 2.0)
    common, rest = _leading_factors(loading, lambda: iter([(0, 0, np.full((1, 3), 1.0))]))
    np.testing.assert_allclose(common @ common.swapaxes(1, 2), 1)
    np.testing.assert_allclose(rest, 0, atol=1e-7)


def test_population_accuracies_follow_the_masses_of_their_cells():
    """Masses that are as wide as a sample's determine a classifier's accuracy between cells."""
    problem, rng = posed(zoo.study("grouped")), np.random.default_rng(2)
    (table,) = completed_cells(problem)["reference"]
    some = np.flatnonzero(table.images)
    # log P(k | n) of multinomial samples of the reference, to first order.
    share = table.images[some] / table.images.sum()
    samples = rng.multinomial(10**6, share, 4000) / 1e6 / share - 1
    log_mass = np.zeros((4000, 1, pairs_of(problem)))
    log_mass[:, 0, pair_of_cells(table)[some]] = samples * np.sqrt(1e6 / table.images.sum())
    found = population_accuracy(problem, log_mass, rng)
    right = table.correct[some] / table.images[some][:, None]
    masses = log_mass[:, 0, pair_of_cells(table)[some]]
    slopes = np.linalg.lstsq(masses, found - found.mean(axis=0), rcond=1e-6)[0]
    wanted = share[:, None] * (right - table.correct.sum(axis=0) / table.images.sum())
    # Shares sum to 1, so that slopes are determined but for a multiple of these.
    wanted -= np.outer(share, share @ wanted) / (share @ share)
    error = np.sqrt(np.square(slopes - wanted).sum(axis=0) / np.square(wanted).sum(axis=0))
    assert (error < 0.25).all()


@pytest.mark.parametrize("of_counts", [False, True])
def test_population_accuracies_scatter_as_means_of_images_do(of_counts):
    """Draws of the mixtures that say nothing: p (1 - p) / N, to 4.5 standard errors."""
    study = zoo.study("grouped")
    problem = posed(SufficientStatistics.from_study(study) if of_counts else study)
    draws = 4000
    found = population_accuracy(
        problem, np.zeros((draws, 1, pairs_of(problem))), np.random.default_rng(0)
    )
    answers = study.reference.correct.astype(float)
    wanted = np.cov(answers.T, bias=True) / len(answers)
    error = 4.5 * np.sqrt(np.diag(wanted) / draws)
    assert (np.abs(found.mean(axis=0) - answers.mean(axis=0)) < error).all()
    np.testing.assert_allclose(found.var(axis=0), np.diag(wanted), rtol=4.5 * np.sqrt(2 / draws))
    if not of_counts:
        scale = np.sqrt(np.diag(wanted))
        apart = (np.cov(found.T) - wanted) / np.outer(scale, scale)
        assert np.abs(apart).max() < 4.5 * np.sqrt(2 / draws)
