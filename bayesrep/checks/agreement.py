"""Posterior predictive check of agreement: the model is a product over classifiers.

Simulated answers, given annotations and a draw, agree so often in pairs, and so many classifiers
are right on an image. The p-values are conservative for statistics that were fitted.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit

from bayesrep.checks.finding import ALPHA, Finding
from bayesrep.numerics.codes import decode
from bayesrep.numerics.estimands import INTERVAL
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior
from bayesrep.posterior.likelihood import thinned_codes
from bayesrep.studies.study import Study
from bayesrep.types import Floats

AGREEMENT_DRAWS = 100


@dataclass(frozen=True, eq=False)
class Agreement:
    """Observed and predicted agreement on the replication.

    Attributes
    ----------
    summary : polars.DataFrame
        statistic ("agreement", share of pairs of answers to an image that are both right or both
        wrong; "none right" and "all right", shares of images; "variance", of the number of right
        classifiers over images), observed, expected, lower and upper (95 % predictive), and p, the
        share of predictions on the farther side, twice.
    pairs : polars.DataFrame
        classifier, other, observed, expected, lower, upper.
    right : polars.DataFrame
        right (number of classifiers), observed (images), expected, lower, upper.
    """

    summary: pl.DataFrame
    pairs: pl.DataFrame
    right: pl.DataFrame


def check_agreement(
    study: Study, posterior: Posterior, *, draws: int = AGREEMENT_DRAWS, seed: int = 0
) -> Agreement:
    """Compare the agreement of classifiers with the model's.

    Parameters
    ----------
    study
        The study that was fitted.
    posterior
        From `bayesrep.fit`.
    draws
        Posterior draws to predict from, at most.
    seed
        Seed of the predictions.

    Raises
    ------
    PosteriorError
        If the posterior is of another study or lacks a group.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> posterior = bayesrep.fit(study, method="laplace", progress=False)
    >>> bayesrep.check_agreement(study, posterior).summary.columns
    ['statistic', 'observed', 'expected', 'lower', 'upper', 'p']
    """
    return agreement(Fitted(study, posterior), draws=draws, seed=seed)


def agreement(fitted: Fitted, *, draws: int = AGREEMENT_DRAWS, seed: int = 0) -> Agreement:
    """Compare the agreement as `check_agreement` does, for a posterior with its study."""
    random = np.random.default_rng(seed)
    observed = _statistics(fitted.images.replication.correct)
    # Answers are simulated draw by draw; classifiers are independent given the cell.
    cell, sample = fitted.cell_of_images("replication"), fitted.record.answers.sample_images
    logits = decode(thinned_codes(fitted.posterior, draws))[0]
    by_draw = [_statistics(sample(random, cell, expit(each.astype(float)))) for each in logits]
    predicted = [np.stack(part) for part in zip(*by_draw, strict=True)]
    names = np.array(fitted.images.classifiers)
    # Pairs in the same order as those of `_statistics`.
    first, second = np.triu_indices(len(names), k=1)
    tables = [_compare_counts(o, p) for o, p in zip(observed, predicted, strict=True)]
    # Two-sided p-values: twice the smaller tail.
    tail = (predicted[0] >= observed[0]).mean(axis=0)
    statistics = ["agreement", "none right", "all right", "variance"]
    summary = pl.DataFrame({"statistic": statistics, **tables[0]}).with_columns(
        p=pl.Series(np.minimum(1, 2 * np.minimum(tail, 1 - tail)))
    )
    return Agreement(
        summary,
        pl.DataFrame({"classifier": names[first], "other": names[second], **tables[1]}),
        pl.DataFrame({"right": np.arange(len(names) + 1), **tables[2]}),
    )


def _compare_counts(observed: Floats, predicted: Floats) -> dict[str, Floats]:
    lower, upper = np.quantile(predicted, INTERVAL, axis=0)
    return {
        "observed": observed,
        "expected": predicted.mean(axis=0),
        "lower": lower,
        "upper": upper,
    }


def _statistics(correct: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """Compute the summary, the agreement of pairs, and images by number of right classifiers."""
    images, classifiers = correct.shape
    answers = correct.astype(np.float32)
    both_right = (answers.T @ answers).astype(float)
    right_count = np.diag(both_right)
    # Right together or wrong together, by inclusion and exclusion.
    agree = (images - right_count[:, None] - right_count + 2 * both_right) / images
    pairs = agree[np.triu_indices(classifiers, k=1)]
    right = np.bincount(correct.sum(axis=1), minlength=classifiers + 1).astype(float)
    share, number = right / images, np.arange(classifiers + 1)
    variance = share @ number**2 - (share @ number) ** 2
    mean_agreement = pairs.mean() if len(pairs) else np.nan
    return np.array([mean_agreement, share[0], share[-1], variance]), pairs, right


def judge_agreement(fitted: Fitted) -> Finding:
    """Judge how often classifiers are right and wrong together, against the model."""
    summary = agreement(fitted).summary.row(0, named=True)
    observed, expected = (f"{100 * summary[name]:.1f} %" for name in ("observed", "expected"))
    check, value = "classifiers agree as predicted", f"{observed}, {expected} expected"
    criterion, words = f"p >= {ALPHA}", fitted.words
    if summary["p"] >= ALPHA:
        return Finding(check, value, criterion)
    sentence = (
        f"Two {words.classifiers} are right or wrong together on {observed} of the {words.images}, "
        f"where the model expects {expected}: they share what makes an {words.image} hard, which "
        f"the {fitted.record.name} model does not predict. Its draws allow for it."
    )
    return Finding(check, value, "allowed for", "yes", sentence)
