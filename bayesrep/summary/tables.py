"""Tables that a person reads: every classifier, all together, pair by pair, and by rank.

What combines classifiers is taken from :func:`bayesrep.summary.joint_draws.together`, whose draws
know that classifiers answer the same images.
"""

from typing import Any

import numpy as np
import polars as pl

from bayesrep.errors import ConvergenceError
from bayesrep.inference.problem import check_study
from bayesrep.numerics.estimands import (
    accuracy_line,
    bias_corrected_gap,
    ranks,
    selection_gap,
    share_explained,
)
from bayesrep.posterior.files import arviz
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study
from bayesrep.summary.joint_draws import Together, together

INTERVAL = (0.025, 0.975)
MEAN_ROW = "(mean)"
SLOPE_ROW = "(slope)"


def summarize(
    study: Study | SufficientStatistics,
    posterior: Any,
    *,
    allow_unconverged: bool = False,
    draws: Together | None = None,
) -> pl.DataFrame:
    """Adjusted accuracies with 95 % credible intervals and convergence diagnostics.

    Parameters
    ----------
    study
        The study that was fitted.
    posterior
        From :func:`bayesrep.fit` or :func:`bayesrep.read_posterior`.
    allow_unconverged
        Return the table even if the fit did not converge.
    draws
        From :func:`bayesrep.summary.joint_draws.together`, where they are at hand.

    Returns
    -------
    polars.DataFrame
        The columns of :func:`bayesrep.estimate` and ``rhat``, ``ess_bulk``, ``ess_tail`` of the
        adjusted accuracy. ``adjusted_accuracy`` is the posterior mean, ``lower`` and ``upper``
        the 2.5 % and 97.5 % quantiles. Two rows follow the classifiers: "(mean)", every column
        averaged over classifiers, and "(slope)", the slope of adjusted on reference accuracy in
        ``adjusted_accuracy`` (beside that of the raw accuracy in ``replication_accuracy``). A line
        takes two classifiers whose reference accuracies differ; without them there is no
        "(slope)". Two lie on their line whatever they are: its interval is that of their images,
        and says nothing of other classifiers. The rows' intervals know of the images that
        classifiers share; for the joint model that takes the study itself, and from its sufficient
        statistics they are null.

    Raises
    ------
    ConvergenceError
        If the fit did not converge and ``allow_unconverged`` is false; carries the verdict.
    StudyError
        If the posterior belongs to another study.
    """
    statistics = _checked(study, posterior, allow_unconverged=allow_unconverged)
    adjusted = posterior.posterior["adjusted_accuracy"]
    own = adjusted.values.reshape(-1, adjusted.shape[-1])  # [draw, C]
    combined = own
    known = posterior.posterior.attrs["model"] != "joint"
    if isinstance(study, Study):
        all_of_them = draws or together(study, posterior)
        combined, known = all_of_them.adjusted.reshape(own.shape), True
    reference, replication = statistics.accuracy("reference"), statistics.accuracy("replication")
    slope, _ = accuracy_line(reference, combined)
    raw_slope, _ = accuracy_line(reference, replication)
    names = [*statistics.classifiers, MEAN_ROW]
    rows = np.column_stack([own, combined.mean(axis=1)])
    mean_reference = np.append(reference, reference.mean())
    mean_replication = np.append(replication, replication.mean())
    if np.ptp(reference) > 0:  # a line takes two different classifiers
        names.append(SLOPE_ROW)
        rows = np.column_stack([rows, slope])
        mean_reference = np.append(mean_reference, np.nan)
        mean_replication = np.append(mean_replication, raw_slope)
    estimate = rows.mean(axis=0)
    lower, upper = np.quantile(rows, INTERVAL, axis=0)
    if not known:
        lower[len(reference) :] = upper[len(reference) :] = np.nan
    is_slope = np.array(names) == SLOPE_ROW
    table = pl.DataFrame(
        {
            "method": [str(posterior.posterior.attrs["model"])] * len(estimate),
            "classifier": names,
            "reference_accuracy": mean_reference,
            "replication_accuracy": mean_replication,
            "adjusted_accuracy": estimate,
            "lower": lower,
            "upper": upper,
            "bias_corrected_gap": mean_reference - estimate,
            "selection_gap": np.where(is_slope, np.nan, estimate - mean_replication),
            **_diagnostics(rows.reshape(*adjusted.shape[:2], -1)),
        }
    )
    return table.fill_nan(None)


def _checked(
    study: Study | SufficientStatistics, posterior: Any, *, allow_unconverged: bool
) -> SufficientStatistics:
    """The study's statistics, once the posterior is known to be of it and fit for use."""
    statistics = check_study(study, posterior)
    attributes = posterior.posterior.attrs
    if not attributes.get("converged") and not allow_unconverged:
        raise ConvergenceError(str(attributes.get("verdict", "the fit carries no verdict")))
    return statistics


def _flat_draws(
    study: Study,
    posterior: Any,
    seed: int,
    *,
    allow_unconverged: bool,
    draws: Together | None = None,
) -> tuple[np.ndarray, np.ndarray, SufficientStatistics]:
    """Joint draws [S, C] of adjusted and of population reference accuracies."""
    statistics = _checked(study, posterior, allow_unconverged=allow_unconverged)
    draws = draws or together(study, posterior, seed=seed)
    size = draws.adjusted.shape[-1]
    return draws.adjusted.reshape(-1, size), draws.reference.reshape(-1, size), statistics


def summarize_gaps(
    study: Study,
    posterior: Any,
    *,
    seed: int = 0,
    allow_unconverged: bool = False,
    draws: Together | None = None,
) -> pl.DataFrame:
    """The mean accuracy drop divided, and the line over classifiers, with 95 % intervals.

    Parameters
    ----------
    study
        The study that was fitted.
    posterior
        From :func:`bayesrep.fit` or :func:`bayesrep.read_posterior`.
    seed
        See :func:`bayesrep.summary.joint_draws.together`.
    allow_unconverged
        Return the table even if the fit did not converge.
    draws
        As for :func:`bayesrep.summarize`; then ``seed`` is theirs.

    Returns
    -------
    polars.DataFrame
        The columns of :func:`bayesrep.estimate_gaps`: method, quantity, estimate, lower, upper.
        Its quantities are bias_corrected_gap and selection_gap (means over classifiers),
        share_explained, slope and intercept of adjusted on reference accuracy; they compare with
        the accuracies measured on the reference. Then population_gap, population_slope and
        population_intercept compare with the accuracies on the population that the reference is
        a sample of, and their intervals hold for another sample of images.

    Raises
    ------
    ConvergenceError, StudyError
        As :func:`bayesrep.summarize`.
    """
    adjusted, population, statistics = _flat_draws(
        study, posterior, seed, allow_unconverged=allow_unconverged, draws=draws
    )
    reference, replication = statistics.accuracy("reference"), statistics.accuracy("replication")
    slope, intercept = accuracy_line(reference, adjusted)
    population_slope, population_intercept = accuracy_line(population, adjusted)
    rows = {
        "bias_corrected_gap": bias_corrected_gap(reference, adjusted).mean(axis=1),
        "selection_gap": selection_gap(adjusted, replication).mean(axis=1),
        "share_explained": share_explained(reference, replication, adjusted),
        "slope": slope,
        "intercept": intercept,
        "population_gap": (population - adjusted).mean(axis=1),
        "population_slope": population_slope,
        "population_intercept": population_intercept,
    }
    values = np.stack(list(rows.values()))
    lower, upper = np.quantile(values, INTERVAL, axis=1)
    return pl.DataFrame(
        {
            "method": [str(posterior.posterior.attrs["model"])] * len(rows),
            "quantity": list(rows),
            "estimate": values.mean(axis=1),
            "lower": lower,
            "upper": upper,
        }
    ).fill_nan(None)


def compare_classifiers(
    study: Study, posterior: Any, *, seed: int = 0, allow_unconverged: bool = False
) -> pl.DataFrame:
    """Every pair of classifiers: by how much one is better once selection is removed.

    Parameters
    ----------
    study, posterior, seed, allow_unconverged
        As :func:`summarize_gaps`.

    Returns
    -------
    polars.DataFrame
        One row a pair, in the order of the study: classifier, other, ``raw_difference`` of their
        replication accuracies, ``difference`` of their adjusted accuracies (classifier less other)
        with lower and upper (95 %), and ``probability``, that the first is the better one. Of many
        pairs some will be far apart by chance: each interval is for one pair.

    Raises
    ------
    ConvergenceError, StudyError
        As :func:`bayesrep.summarize`.
    """
    adjusted, _, statistics = _flat_draws(
        study, posterior, seed, allow_unconverged=allow_unconverged
    )
    replication, names = statistics.accuracy("replication"), np.array(statistics.classifiers)
    first, second = np.triu_indices(len(names), k=1)
    interval = np.empty((2, len(first)))
    mean, probability = np.empty(len(first)), np.empty(len(first))
    for one in range(len(names) - 1):  # pairs of a row at a time: all at once need too much memory
        here = first == one
        apart = adjusted[:, one, None] - adjusted[:, one + 1 :]
        mean[here], probability[here] = apart.mean(axis=0), (apart > 0).mean(axis=0)
        interval[:, here] = np.quantile(apart, INTERVAL, axis=0)
    return pl.DataFrame(
        {
            "classifier": names[first],
            "other": names[second],
            "raw_difference": replication[first] - replication[second],
            "difference": mean,
            "lower": interval[0],
            "upper": interval[1],
            "probability": probability,
        }
    )


def rank_classifiers(
    study: Study, posterior: Any, *, seed: int = 0, allow_unconverged: bool = False
) -> pl.DataFrame:
    """Ranks by adjusted accuracy, 1 the best, with 95 % intervals.

    Parameters
    ----------
    study, posterior, seed, allow_unconverged
        As :func:`summarize_gaps`.

    Returns
    -------
    polars.DataFrame
        One row a classifier, the best first: classifier, adjusted_accuracy, ``reference_rank`` and
        ``replication_rank`` by the measured accuracies, ``rank`` (posterior mean), lower and upper,
        and ``best``, the probability to be the first.

    Raises
    ------
    ConvergenceError, StudyError
        As :func:`bayesrep.summarize`.
    """
    adjusted, _, statistics = _flat_draws(
        study, posterior, seed, allow_unconverged=allow_unconverged
    )
    places = ranks(adjusted)
    lower, upper = np.quantile(places, INTERVAL, axis=0, method="nearest")
    best = places == places.min(axis=1, keepdims=True)
    return pl.DataFrame(
        {
            "classifier": list(statistics.classifiers),
            "adjusted_accuracy": adjusted.mean(axis=0),
            "reference_rank": ranks(statistics.accuracy("reference")),
            "replication_rank": ranks(statistics.accuracy("replication")),
            "rank": places.mean(axis=0),
            "lower": lower,
            "upper": upper,
            "best": (best / best.sum(axis=1, keepdims=True)).mean(axis=0),
        }
    ).sort("rank")


def _diagnostics(rows: np.ndarray) -> dict[str, np.ndarray]:
    """R-hat and effective sizes of [chain, draw, row]."""
    module = arviz()
    draws = module.convert_to_dataset({"row": rows})
    return {
        "rhat": module.rhat(draws)["row"].values,
        "ess_bulk": module.ess(draws, method="bulk")["row"].values,
        "ess_tail": module.ess(draws, method="tail")["row"].values,
    }
