"""Single images: how often people select them, and how hard classifiers find them beyond that.

    P(correct_xc | z)  =  σ(a_c − τ z),        z ~ Normal(0, 1),        E_z σ(a_c − τ z) = q_c

with q_c the probability of a right answer in the cell, a_c = logit q_c √(1 + κ τ²), which keeps the
mean to about a hundredth, and τ, the standard deviation between images of a cell on the logit
scale, estimated by maximum marginal likelihood (empirical Bayes). Within a cell z depends on the
number of right answers alone.

Zeger, Liang, Albert (1988), "Models for longitudinal data: a generalized estimating equation
approach", Biometrics 44: κ = (16 √3 / 15 π)².
"""

from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp, softmax

from bayesrep.numerics import logit_quadrature
from bayesrep.numerics.codes import decode
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior
from bayesrep.posterior.likelihood import thinned_codes
from bayesrep.studies.study import Study
from bayesrep.summary.remeasured import annotator_draws, frequency_given_counts, log_densities
from bayesrep.types import Bools, Float, Floats, Ints

MAX_DRAWS = 100
Z_NODES = np.linspace(-5, 5, 41)  # grid of z, an image's difficulty in standard deviations
MAX_SPREAD = 8.0  # upper bound of τ in its search
PROBIT_KAPPA = (16 * 3**0.5 / (15 * np.pi)) ** 2


def describe_images(study: Study, posterior: Posterior, *, draws: int = MAX_DRAWS) -> pl.DataFrame:
    """Estimate every image's selection frequency and difficulty from annotations and answers.

    Parameters
    ----------
    study
        The study that was fitted.
    posterior
        From `bayesrep.fit`.
    draws
        Posterior draws to average over, at most.

    Returns
    -------
    polars.DataFrame
        One row an image of the replication, whose answers are modelled: dataset, image, label
        (where there are labels), selected, shown, `right` (share of the classifiers that are),
        `expected` (mean over classifiers of their probability to be right on images of its
        counts); `selection_frequency` and its `selection_frequency_sd`: posterior mean and standard
        deviation of s, given its counts; `difficulty` and `difficulty_sd`, of z: 0 for an average
        image of its counts, 1 for one that is harder for classifiers by a standard deviation of
        such images. Few classifiers leave much open, and then it is drawn to 0.

    Raises
    ------
    PosteriorError
        If the posterior is of another study or lacks a group.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> posterior = bayesrep.fit(study, method="laplace", progress=False)
    >>> images = bayesrep.describe_images(study, posterior)
    >>> hardest = images.sort("difficulty", descending=True).head(10)
    """
    fitted = Fitted(study, posterior)
    data, cell = fitted.images.replication, fitted.cell_of_images("replication")
    # Both averages: 1 − P(right) would lose all digits of a classifier that is nearly always right.
    logits = decode(thinned_codes(fitted.posterior, draws))[0].astype(float)
    right, wrong = expit(logits).mean(axis=0), expit(-logits).mean(axis=0)
    logit = np.log(right) - np.log(wrong)
    difficulty, difficulty_sd = _difficulties(data.correct, logit, cell)
    frequency, frequency_sd = _frequencies(fitted, draws)
    columns: dict[str, Any] = {
        "dataset": [data.name] * len(cell),
        "image": data.images,
        **({} if data.labels is None else {"label": data.labels}),
        "selected": data.selected,
        "shown": data.shown,
        "right": data.correct.mean(axis=1),
        "expected": right.mean(axis=0)[cell],
        "selection_frequency": frequency,
        "selection_frequency_sd": frequency_sd,
        "difficulty": difficulty,
        "difficulty_sd": difficulty_sd,
    }
    return pl.DataFrame(columns)


def _frequencies(fitted: Fitted, draws: int) -> tuple[Floats, Floats]:
    data, cells = fitted.images.replication, fitted.statistics.replication
    density = log_densities(fitted, fitted.record.roles.index("replication"), draws)
    rejected = cells.shown - cells.selected
    annotators = annotator_draws(fitted, "replication", draws)
    by_draw = frequency_given_counts(density, cells.selected, rejected, annotators)
    # Averaged over draws: the posterior of s given the counts.
    s, mass = np.exp(logit_quadrature.nodes()[0]), by_draw.mean(axis=0)
    mean, square = mass @ s, mass @ np.square(s)
    place = cells.find(data.selected, data.shown)
    return mean[place], np.sqrt(np.clip(square - np.square(mean), 0, None))[place]


def _difficulties(
    correct: Bools, logit: Float[np.ndarray, "classifier cell"], cell: Ints
) -> tuple[Floats, Floats]:
    right = correct.sum(axis=1)
    # Images of a cell with as many right answers have one posterior of z: compute it once.
    base = len(logit) + 1
    pairs, place, images = np.unique(cell * base + right, return_inverse=True, return_counts=True)
    cells, number = np.divmod(pairs, base)
    right_logits = sum(
        correct[cell == each].sum(axis=0) @ logit[:, each] for each in np.unique(cells)
    )

    # log P(answers | z) = Σ_c y_c (a_c − τ z) − log(1 + exp(a_c − τ z)): only Σ y_c meets z.
    def log_joint(spread: float) -> Float[np.ndarray, "pair node"]:
        """Log P(answers, z) up to a constant in z."""
        level = _stretch(spread) * logit
        wrong = [np.logaddexp(0, level - spread * z).sum(axis=0) for z in Z_NODES]
        return -spread * np.outer(number, Z_NODES) - np.stack(wrong, axis=1)[cells] - Z_NODES**2 / 2

    def negative_log_likelihood(spread: float) -> float:
        return -_stretch(spread) * right_logits - images @ logsumexp(log_joint(spread), axis=1)

    optimum: Any = minimize_scalar(
        negative_log_likelihood, bounds=(0, MAX_SPREAD), method="bounded"
    )
    # Plug in the estimate of τ (empirical Bayes).
    posterior = softmax(log_joint(float(optimum.x)), axis=1)
    mean, square = posterior @ Z_NODES, posterior @ Z_NODES**2
    return mean[place], np.sqrt(np.clip(square - mean**2, 0, None))[place]


def _stretch(spread: float) -> float:
    """Compute √(1 + κ τ²), by which a conditional logit exceeds the marginal one."""
    return float(np.sqrt(1 + PROBIT_KAPPA * spread**2))
