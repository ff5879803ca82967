"""Tables of estimates by method: a row per classifier, or per estimand over all classifiers."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtri

from bayesrep.errors import EstimateWarning
from bayesrep.estimators.analysis import QUANTITIES, Analysis, Interval, analyse
from bayesrep.estimators.estimator import Estimator
from bayesrep.estimators.methods import METHODS
from bayesrep.numerics.estimands import INTERVAL, Z_975, bias_corrected_gap, selection_gap
from bayesrep.studies.representation import number
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.types import Floats

MIN_REPLICATES = 40
"""With fewer replicates none lies beyond an end of a 95 % interval."""
MAX_UNWARNED_SHORTFALL = 0.05
"""Largest shortfall from 1, for a classifier that is always right, without a warning."""


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
        bias. The paper uses 450. If the study says who answered, workers are resampled
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
    EstimateWarning
        If naive matching leaves out images that few annotators saw, the jackknife's noise is larger
        than the drop may be, a classifier that is always right would be given less than 95 %, or no
        classifier is ever right.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> table = bayesrep.estimate(study, ["raw", "jackknife"])
    >>> table["method"].unique().sort().to_list()
    ['jackknife', 'raw']
    """
    analyses = analyse(
        study, methods, bootstrap=bootstrap, interval=interval, seed=seed, progress=progress
    )
    _warn(analyses)
    return classifier_table(analyses)


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
        bootstrap, but for the jackknife, which always resamples the images some times; with one,
        the gap of `raw`, which is the drop as measured, has its standard error's over images). The
        quantities:
        bias_corrected_gap and selection_gap (means over classifiers of the terms of equation 2),
        share_explained (the second's share of the raw gap), slope and intercept of the line of
        adjusted on reference accuracy.

    Warns
    -----
    EstimateWarning
        As `estimate`.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> bayesrep.estimate_gaps(study, ["jackknife"]).columns
    ['method', 'quantity', 'estimate', 'lower', 'upper']
    """
    analyses = analyse(
        study, methods, bootstrap=bootstrap, interval=interval, seed=seed, progress=progress
    )
    _warn(analyses)
    return gap_table(analyses)


def classifier_table(analyses: Sequence[Analysis]) -> pl.DataFrame:
    """Build the table of [bayesrep.estimate][]."""
    count = len(analyses[0].statistics.classifiers)
    return pl.concat(
        classifier_rows(one.method, one.statistics, one.values[:count], *one.interval[:, :count])
        for one in analyses
    )


def gap_table(analyses: Sequence[Analysis]) -> pl.DataFrame:
    """Build the table of [bayesrep.estimate_gaps][]."""
    tables: list[pl.DataFrame] = []
    for one in analyses:
        last = np.s_[len(one.statistics.classifiers) :]
        values, interval = one.values[last], one.interval[:, last]
        # Without a bootstrap interval the standard error gives a normal one.
        normal = values + np.outer(ndtri(INTERVAL), one.error[last])
        ends = np.where(np.isnan(interval), normal, interval)
        tables.append(gap_rows(one.method, QUANTITIES, values, *ends))
    return pl.concat(tables)


def matching_sentences(analyses: Sequence[Analysis]) -> list[str]:
    """Describe the matching of images, and the noise that remains, in sentences.

    Also problems: no classifier is ever right, or replicates are too few.
    """
    sentences, count = list(_sentences(analyses, analyses)), analyses[0].replicates
    if 0 < count < MIN_REPLICATES:
        sentences.append(
            f"{count} replicates are too few: a 95 % interval has ends that {MIN_REPLICATES} or "
            "more can tell, and some hundreds tell well."
        )
    return sentences


def matching_facts(analyses: Sequence[Analysis]) -> list[dict[str, Any]]:
    """List the facts of `matching_sentences`, one row per method that matches counts."""
    return [
        {
            "method": one.method,
            "annotators": one.match.annotators,
            "images_left_out": dict(one.match.left_out),
            "fewest_annotators": one.match.fewest,
            "images_with_no_more": dict(one.match.limiting_images),
            "annotators_without_these": one.match.without,
            "gap_of_all_images": one.gap_of_all,
            "gap_standard_error": None if np.isnan(one.gap_error) else one.gap_error,
        }
        for one in analyses
        if one.match is not None
    ]


def _warn(analyses: Sequence[Analysis]) -> None:
    left_out = [one for one in analyses if one.match is not None and one.match.dropped_images]
    for sentence in _sentences(analyses, left_out):
        warnings.warn(EstimateWarning(sentence), stacklevel=3)


def _sentences(analyses: Sequence[Analysis], matched: Sequence[Analysis]) -> Iterator[str]:
    """Yield what is wrong with the labels, how images were matched, and what is mostly noise."""
    statistics = analyses[0].statistics
    wrong = [role for role in REQUIRED_ROLES if not statistics.accuracy(role).any()]
    if wrong:
        yield (
            f"No {statistics.words.classifier} is ever right on the {' and the '.join(wrong)}: "
            "check the labels."
        )
    yield from _match_sentences(matched)
    yield from _noise_sentences(analyses)


def _match_sentences(analyses: Sequence[Analysis]) -> Iterator[str]:
    groups: dict[tuple[int, int], list[Analysis]] = {}
    for one in analyses:
        if one.match is not None:
            groups.setdefault((one.match.annotators, one.match.dropped_images), []).append(one)
    # Methods that match the same images share one sentence.
    for (annotators, dropped), same in groups.items():
        words = same[0].statistics.words
        names = ", ".join(one.method for one in same)
        match = same[0].match
        if match is None or not (match.thins or dropped):
            continue
        have = "are thinned to n' =" if match.thins else "have"
        matched = f"{names}: {words.images} {have} {number(annotators, words.annotator)} each"
        if few := {role: size for role, size in match.limiting_images.items() if size}:
            count, each = sum(few.values()), ", ".join(f"{r} {size:,}" for r, size in few.items())
            matched += (
                f", since {count:,} of {match.images:,} {words.images} "
                f"{'has' if count == 1 else 'have'} no more ({each}), where most do; without "
                f"{'it' if count == 1 else 'them'} n' would be {match.without:,}"
            )
        if not dropped:
            yield f"{matched}."
            continue
        gaps = [
            f"{one.method} {100 * one.gap_of_all:.2f}" for one in same if one.gap_of_all is not None
        ]
        gap = f", and the gap: {', '.join(gaps)} points" if gaps else ""
        yield (
            f"{matched}; {dropped:,} of {match.images:,} {'has' if dropped == 1 else 'have'} fewer "
            f"and {'is' if dropped == 1 else 'are'} left out. With all images n' would be "
            f"{match.fewest:,}{gap}."
        )


def _noise_sentences(analyses: Sequence[Analysis]) -> Iterator[str]:
    for one in analyses:
        words = one.statistics.words
        if one.always_right < 1 - MAX_UNWARNED_SHORTFALL:
            yield (
                f"{one.method}: by the noise of the counts alone a {words.classifier} that is "
                f"always right would be given {100 * one.always_right:.1f} %; with loss=binomial "
                "it is given 100 %."
            )
        name, option = one.estimator.name, one.estimator.noise_option
        if one.match is None or option is None or not one.is_noisy:
            continue
        annotators, half = one.match.annotators, one.match.annotators // 2
        less = f"; {name}({option}={half}) is less noisy" if one.method == name else ""
        within = 100 * Z_975 * one.drop_error
        yield (
            f"{one.method}: its standard error over {words.images}, {100 * one.gap_error:.1f} "
            f"points, is larger than the drop of {100 * abs(one.drop):.2f} (give or take "
            f"{within:.2f}), since it multiplies the {words.images}' noise by n' = {annotators:,}: "
            f"it says nothing here{less if half > 1 else ''}."
        )


def classifier_rows(
    method: str, statistics: SufficientStatistics, adjusted: Floats, lower: Floats, upper: Floats
) -> pl.DataFrame:
    """Build the rows of one method's adjusted accuracies, one a classifier."""
    reference, replication = statistics.accuracy("reference"), statistics.accuracy("replication")
    return pl.DataFrame(
        {
            "method": [method] * len(adjusted),
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


def gap_rows(
    method: str, names: Sequence[str], values: Floats, lower: Floats, upper: Floats
) -> pl.DataFrame:
    """Build the rows of one method's estimands over all classifiers, one an estimand."""
    columns = {"estimate": values, "lower": lower, "upper": upper}
    named = {"method": [method] * len(names), "quantity": names}
    return pl.DataFrame(named | columns).fill_nan(None)
