"""Tables of what methods say: a row per classifier, or per quantity of all together."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from bayesrep.estimators.analysis import QUANTITIES, Analysis, Interval, analyse
from bayesrep.estimators.estimator import Estimator
from bayesrep.estimators.methods import METHODS
from bayesrep.numerics.estimands import bias_corrected_gap, selection_gap
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study


def estimate(
    study: Study | SufficientStatistics,
    methods: Sequence[str | Estimator] | str = METHODS,
    *,
    bootstrap: int = 0,
    interval: Interval = "percentile",
    seed: int = 0,
    progress: bool = False,
) -> pl.DataFrame:
    """Estimate every classifier's adjusted accuracy by one or more methods.

    Parameters
    ----------
    study
        A study, or its sufficient statistics.
    methods
        Names of methods, with options where they differ from the defaults, as in
        `"naive(annotators=10)"` or `"em-spline(components=4, loss=binomial)"`; or estimators, as in
        `Naive(annotators=10)`. The methods and their options are the classes `Raw`, `Naive`,
        `Jackknife` and `EMSpline` of `bayesrep.estimators`.
    bootstrap
        B, the number of bootstrap replicates of the images behind the 95 % intervals of the
        adjusted accuracy; 0 for none. The interval covers the scatter of the estimate, not its
        bias. The paper uses 450. Where the study says who answered, replicates are of its workers
        too (`bayesrep.estimators.crowds`). Without a bootstrap only the jackknife has an interval,
        of its standard error over annotators, which leaves out the scatter from images.
    interval
        "percentile", the paper's, or "bca": corrected for median bias and skewness.
    seed
        Makes everything random repeatable; all methods see the same replicates.
    progress
        Show a bar on standard error while bootstrapping "em-spline".

    Returns
    -------
    polars.DataFrame
        One row per method and classifier: method, classifier, reference_accuracy,
        replication_accuracy, adjusted_accuracy, lower, upper (null where there is no interval),
        bias_corrected_gap (reference minus adjusted) and selection_gap (adjusted minus
        replication), all fractions.

    Raises
    ------
    OptionError
        For no or an unknown method, an impossible option, a bootstrap of statistics, which hold no
        images to resample, or "bca" where a data set has only one image to leave out.

    Warns
    -----
    InterpolationWarning, IdentificationWarning
        Where the counts do not determine an estimate; the text says what was done.
    """
    return classifier_table(
        analyse(
            study, methods, bootstrap=bootstrap, interval=interval, seed=seed, progress=progress
        )
    )


def estimate_gaps(
    study: Study | SufficientStatistics,
    methods: Sequence[str | Estimator] | str = METHODS,
    *,
    bootstrap: int = 0,
    interval: Interval = "percentile",
    seed: int = 0,
    progress: bool = False,
) -> pl.DataFrame:
    """Divide the mean accuracy drop by equation 2 and fit the line over classifiers, by method.

    Parameters
    ----------
    study, methods, bootstrap, interval, seed, progress
        As for [bayesrep.estimate][]; [bayesrep.estimators.analyse][] serves both tables at once.
        The bootstrap resamples images, the same for all classifiers, so these intervals hold for
        classifiers that err together.

    Returns
    -------
    polars.DataFrame
        One row per method and quantity: method, quantity, estimate, lower, upper (null without a
        bootstrap). The quantities: bias_corrected_gap and selection_gap (means over classifiers of
        the terms of equation 2), share_explained (the second's share of the raw gap), slope and
        intercept of the line of adjusted on reference accuracy.
    """
    return gap_table(
        analyse(
            study, methods, bootstrap=bootstrap, interval=interval, seed=seed, progress=progress
        )
    )


def classifier_table(analyses: Sequence[Analysis]) -> pl.DataFrame:
    """The table of [bayesrep.estimate][]."""
    return pl.concat([_classifiers(analysis) for analysis in analyses])


def gap_table(analyses: Sequence[Analysis]) -> pl.DataFrame:
    """The table of [bayesrep.estimate_gaps][]."""
    return pl.concat([_gaps(analysis) for analysis in analyses])


def _classifiers(analysis: Analysis) -> pl.DataFrame:
    statistics = analysis.statistics
    count = len(statistics.classifiers)
    adjusted, (lower, upper) = analysis.values[:count], analysis.interval[:, :count]
    reference, replication = statistics.accuracy("reference"), statistics.accuracy("replication")
    return pl.DataFrame(
        {
            "method": [analysis.method] * count,
            "classifier": list(statistics.classifiers),
            "reference_accuracy": reference,
            "replication_accuracy": replication,
            "adjusted_accuracy": adjusted,
            "lower": lower,
            "upper": upper,
            "bias_corrected_gap": bias_corrected_gap(reference, adjusted),
            "selection_gap": selection_gap(adjusted, replication),
        }
    ).fill_nan(None)


def _gaps(analysis: Analysis) -> pl.DataFrame:
    last = np.s_[len(analysis.statistics.classifiers) :]
    return pl.DataFrame(
        {
            "method": [analysis.method] * len(QUANTITIES),
            "quantity": QUANTITIES,
            "estimate": analysis.values[last],
            "lower": analysis.interval[0, last],
            "upper": analysis.interval[1, last],
        }
    ).fill_nan(None)
