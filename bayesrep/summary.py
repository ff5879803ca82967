"""The table a person reads: one row per classifier, then the mean and the slope."""

from typing import Any

import numpy as np
import polars as pl

from bayesrep.errors import ConvergenceError, StudyError
from bayesrep.estimands import accuracy_line
from bayesrep.inference.posterior import arviz
from bayesrep.statistics import SufficientStatistics
from bayesrep.study import Study

INTERVAL = (0.025, 0.975)
MEAN_ROW = "(mean)"
SLOPE_ROW = "(slope)"


def summarize(
    study: Study | SufficientStatistics, posterior: Any, *, allow_unconverged: bool = False
) -> pl.DataFrame:
    """Adjusted accuracies with 95 % credible intervals and convergence diagnostics.

    Parameters
    ----------
    study
        The study that was fitted.
    posterior
        From :func:`bayesrep.fit` or :func:`bayesrep.inference.read_posterior`.
    allow_unconverged
        Return the table even if the fit did not converge.

    Returns
    -------
    polars.DataFrame
        The columns of :func:`bayesrep.estimate` and ``rhat``, ``ess_bulk``, ``ess_tail`` of the
        adjusted accuracy. ``adjusted_accuracy`` is the posterior mean, ``lower`` and ``upper``
        the 2.5 % and 97.5 % quantiles. Two rows follow the classifiers: "(mean)", every column
        averaged over classifiers, and "(slope)", the slope of adjusted on reference accuracy in
        ``adjusted_accuracy`` (beside that of the raw accuracy in ``replication_accuracy``). The
        joint model treats classifiers as independent given the selection frequency, so the
        intervals of these two rows are too narrow where classifiers err on the same images.

    Raises
    ------
    ConvergenceError
        If the fit did not converge and ``allow_unconverged`` is false; carries the verdict.
    StudyError
        If the posterior belongs to another study.
    """
    statistics = SufficientStatistics.from_study(study) if isinstance(study, Study) else study
    attributes = posterior.posterior.attrs
    if attributes.get("study_fingerprint") != statistics.fingerprint():
        raise StudyError(
            "the posterior was fitted to another study (fingerprints differ); fit this one"
        )
    if not attributes.get("converged") and not allow_unconverged:
        raise ConvergenceError(str(attributes.get("verdict", "the fit carries no verdict")))
    adjusted = posterior.posterior["adjusted_accuracy"]
    draws = adjusted.values.reshape(-1, adjusted.shape[-1])  # [draw, C]
    reference, replication = statistics.accuracy("reference"), statistics.accuracy("replication")
    slope, _ = accuracy_line(reference, draws)
    raw_slope, _ = accuracy_line(reference, replication)
    rows = np.column_stack([draws, draws.mean(axis=1), slope])
    estimate = rows.mean(axis=0)
    lower, upper = np.quantile(rows, INTERVAL, axis=0)
    mean_reference = np.append(reference, [reference.mean(), np.nan])
    mean_replication = np.append(replication, [replication.mean(), raw_slope])
    is_slope = np.arange(len(estimate)) == len(reference) + 1
    table = pl.DataFrame(
        {
            "method": [str(attributes["model"])] * len(estimate),
            "classifier": [*statistics.classifiers, MEAN_ROW, SLOPE_ROW],
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


def _diagnostics(rows: np.ndarray) -> dict[str, np.ndarray]:
    """R-hat and effective sizes of [chain, draw, row]."""
    module = arviz()
    draws = module.convert_to_dataset({"row": rows})
    return {
        "rhat": module.rhat(draws)["row"].values,
        "ess_bulk": module.ess(draws, method="bulk")["row"].values,
        "ess_tail": module.ess(draws, method="tail")["row"].values,
    }
