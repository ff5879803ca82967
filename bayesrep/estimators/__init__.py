"""Point estimates of the adjusted accuracy, and the table that sets them side by side.

An estimator is a function from sufficient statistics to the adjusted accuracy of every classifier,
registered by name in `ESTIMATORS`.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.estimators.bootstrap import bootstrap as bootstrap_images
from bayesrep.estimators.naive import InterpolationWarning, naive
from bayesrep.estimators.raw import raw
from bayesrep.statistics import SufficientStatistics
from bayesrep.study import Study

__all__ = ["ESTIMATORS", "InterpolationWarning", "estimate", "naive", "raw"]

ESTIMATORS: Mapping[str, Callable[[SufficientStatistics], NDArray[np.float64]]] = {
    "raw": raw,
    "naive": naive,
}

_INTERVAL = (2.5, 97.5)


def estimate(
    study: Study | SufficientStatistics,
    methods: Sequence[str] = ("raw", "naive"),
    *,
    bootstrap: int = 0,
    seed: int = 0,
) -> pl.DataFrame:
    """Estimate every classifier's adjusted accuracy by one or more methods.

    Parameters
    ----------
    study
        A study, or its sufficient statistics.
    methods
        Names from `ESTIMATORS`.
    bootstrap
        B, the number of bootstrap replicates of the images behind the 95 % percentile intervals of
        the adjusted accuracy; 0 for none. The interval covers the scatter of the estimate, not its
        bias. The paper uses 450.
    seed
        Makes the replicates repeatable; all methods see the same ones.

    Returns
    -------
    polars.DataFrame
        One row per method and classifier: method, classifier, reference_accuracy,
        replication_accuracy, adjusted_accuracy, lower, upper (null without bootstrap),
        bias_corrected_gap (reference minus adjusted) and selection_gap (adjusted minus
        replication), all fractions.

    Raises
    ------
    ValueError
        For no or an unknown method, or a bootstrap of statistics, which hold no images to resample.
    """
    names = [methods] if isinstance(methods, str) else list(methods)
    if not names:
        raise ValueError(f"no method is given; the methods are {', '.join(ESTIMATORS)}")
    if unknown := [name for name in names if name not in ESTIMATORS]:
        raise ValueError(f"unknown method {unknown[0]!r}; the methods are {', '.join(ESTIMATORS)}")
    if bootstrap < 0:
        raise ValueError(f"bootstrap is {bootstrap}; give a number of replicates, 0 for none")
    chosen = {name: ESTIMATORS[name] for name in names}
    intervals: dict[str, NDArray[np.float64]] = {}
    if bootstrap:
        if not isinstance(study, Study):
            raise ValueError("the bootstrap resamples images, so it needs a Study, not statistics")
        rows = bootstrap_images(study, chosen, size=bootstrap, seed=seed)
        intervals = {name: np.percentile(rows[name], _INTERVAL, axis=0) for name in names}
    statistics = SufficientStatistics.from_study(study) if isinstance(study, Study) else study
    return pl.concat(
        [
            _table(name, statistics, estimator(statistics), intervals.get(name))
            for name, estimator in chosen.items()
        ]
    )


def _table(
    method: str,
    statistics: SufficientStatistics,
    adjusted: NDArray[np.float64],
    interval: NDArray[np.float64] | None,
) -> pl.DataFrame:
    """Set one method's estimates [C] and its interval [2, C] beside the plain accuracies."""
    classifiers = len(statistics.classifiers)
    reference, replication = statistics.accuracy("reference"), statistics.accuracy("replication")
    lower, upper = ([None] * classifiers, [None] * classifiers) if interval is None else interval
    return pl.DataFrame(
        {
            "method": [method] * classifiers,
            "classifier": list(statistics.classifiers),
            "reference_accuracy": reference,
            "replication_accuracy": replication,
            "adjusted_accuracy": adjusted,
            "lower": pl.Series(lower, dtype=pl.Float64),
            "upper": pl.Series(upper, dtype=pl.Float64),
            "bias_corrected_gap": reference - adjusted,
            "selection_gap": adjusted - replication,
        }
    )
