"""Analyses of a study by one method each: estimates, standard errors and intervals."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, get_args

import numpy as np
from scipy.special import ndtri

from bayesrep import bounds
from bayesrep.choices import FEW_REPLICATES
from bayesrep.choices import BootstrapInterval as Interval
from bayesrep.errors import EstimateWarning, InterpolationWarning, OptionError
from bayesrep.estimators.annotator_match import AnnotatorMatch, usual_annotators
from bayesrep.estimators.estimator import Estimator
from bayesrep.estimators.intervals import acceleration, bca, percentile
from bayesrep.estimators.methods import METHODS, resolve
from bayesrep.estimators.replicates import Replicates, without_each_image
from bayesrep.estimators.replicates import bootstrap as bootstrap_images
from bayesrep.numerics.estimands import (
    INTERVAL,
    Z_975,
    accuracy_line,
    bias_corrected_gap,
    measured_gap,
    selection_gap,
    share_explained,
)
from bayesrep.numerics.settings import refuse_fork
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.types import Float, Floats

QUANTITIES = ("bias_corrected_gap", "selection_gap", "share_explained", "slope", "intercept")
"""Estimands over all classifiers: the means over classifiers of the two terms of equation 2, the
second's share of the raw gap, and the line of adjusted on reference accuracy."""

_IMAGES_PER_CHUNK = 16_384  # images whose leave-one-out values are computed at a time

Accuracies: TypeAlias = tuple[Floats, Floats, Floats]
"""Reference, replication and adjusted accuracy of versions of a study, [B, C] each."""


@dataclass(frozen=True, eq=False)
class Analysis:
    """One method's estimates for a study of C classifiers.

    Attributes
    ----------
    method
        The method's name and options.
    estimator
        The method itself.
    statistics
        Counts of the study.
    values
        C adjusted accuracies, then the five estimands of `QUANTITIES`.
    interval
        95 % of each of them: of the bootstrap where there is one, else `own_interval`; NaN where
        there is none.
    own_interval
        95 % of the adjusted accuracies by the estimator's own standard error, such as the
        jackknife's over annotators; NaN where it has none.
    error
        Standard errors over images, by the bootstrap; NaN where there is none. The jackknife has
        them in any case, of `FEW_REPLICATES`, if there are images to resample: it multiplies
        the images' noise by the number of annotators.
    drop_error
        The standard error of the drop as measured, likewise.
    match
        The number of annotators that images were matched with, and the images left out; None for
        methods that take the counts as they are.
    gap_of_all
        The mean bias-corrected gap including the images left out, all thinned to the fewest
        annotators of any; None where none were left out, or where it is not defined.
    always_right
        Estimate for a classifier that is always right: less than 1 where the noise of the counts
        biases estimates.
    replicates
        Number of bootstrap replicates behind the interval; 0 without a bootstrap.
    """

    method: str
    estimator: Estimator
    statistics: SufficientStatistics
    values: Float[np.ndarray, "quantity"]
    interval: Float[np.ndarray, "2 quantity"]
    own_interval: Float[np.ndarray, "2 classifier"]
    error: Float[np.ndarray, "quantity"]
    drop_error: float = np.nan
    match: AnnotatorMatch | None = None
    gap_of_all: float | None = None
    always_right: float = 1.0
    replicates: int = 0

    @property
    def gap(self) -> float:
        """Mean bias-corrected gap."""
        return float(self.values[-len(QUANTITIES)])

    @property
    def gap_error(self) -> float:
        """Standard error of the gap over images; NaN where it is not known."""
        return float(self.error[-len(QUANTITIES)])

    @property
    def drop(self) -> float:
        """Mean accuracy drop as measured: the sum of both terms of equation 2."""
        return self.gap + float(self.values[1 - len(QUANTITIES)])

    @property
    def is_noisy(self) -> bool:
        """True if the gap's standard error over images exceeds the drop's upper 95 % limit."""
        return self.gap_error > abs(self.drop) + Z_975 * self.drop_error + 1e-9


def analyse(
    study: Study | SufficientStatistics,
    methods: Sequence[str | Estimator] | str = METHODS,
    *,
    bootstrap: int = 0,
    interval: Interval = "percentile",
    seed: int = 0,
    progress: bool = False,
) -> list[Analysis]:
    """Apply methods to a study once, for both tables, of classifiers and of gaps.

    Parameters
    ----------
    study, methods, bootstrap, interval, seed, progress
        As for [bayesrep.estimate][].

    Returns
    -------
    list of Analysis
        One for each method (of the default, without the jackknife where more than
        1 % of the images of a data set have one annotator), for
        [bayesrep.estimators.classifier_table][] and [bayesrep.estimators.gap_table][].
    """
    refuse_fork()
    estimators = resolve(methods)
    _check_resampling(study, bootstrap, interval)
    statistics = SufficientStatistics.of(study)
    words = statistics.words
    observed = Replicates.from_study(statistics)
    # The default methods leave out an impossible jackknife; named explicitly, it is refused.
    if methods == METHODS and usual_annotators(observed) == 1:
        for name in [name for name, each in estimators.items() if each.min_annotators > 1]:
            text = (
                f"{name}: left out, since it takes two {words.annotators} or more of an "
                f"{words.image}, and more than 1 % have one"
            )
            warnings.warn(EstimateWarning(text), stacklevel=2)
            del estimators[name]
    analyses = {
        name: _point_estimate(name, estimator, statistics, observed, seed)
        for name, estimator in estimators.items()
    }
    # Without a bootstrap, methods that multiply the images' noise have their scatter all the same.
    resampled = estimators
    if not bootstrap:
        resampled = {name: each for name, each in estimators.items() if each.noise_option}
    if not resampled or not isinstance(study, Study):
        return list(analyses.values())
    # All methods see the same replicates, so that their differences are comparable.
    blocks = bootstrap_images(study, statistics, size=bootstrap or FEW_REPLICATES, seed=seed)
    replicates = _apply(resampled, blocks, seed=seed, progress=progress)
    values = {name: quantities(*accuracies) for name, accuracies in replicates.items()}
    for name, value in values.items():
        # The first two estimands, both terms of equation 2, add up to the drop.
        first = len(statistics.classifiers)
        drop_error = float(value[:, first : first + 2].sum(axis=1).std(ddof=1))
        error = value.std(axis=0, ddof=1)
        analyses[name] = replace(analyses[name], error=error, drop_error=drop_error)
    if not bootstrap:
        return list(analyses.values())
    without: dict[str, Accuracies] = {}
    if interval == "bca":  # its acceleration takes the estimate without each image in turn
        # Leaving out one image per cell suffices: those of a cell have equal influence.
        blocks = without_each_image(statistics)
        without = _apply(estimators, blocks, seed=seed, progress=progress)
    for name, one in analyses.items():
        if interval == "bca":
            ends = bca(one.values, values[name], _skewness(study, statistics, without[name]))
        else:
            ends = percentile(values[name])
        # The measured drop has its analytic interval everywhere in the package, no bootstrap's.
        if one.estimator.is_measured:
            gap = measured_gap(study.reference.correct, study.replication.correct)
            ends[:, -len(QUANTITIES)] = gap[1:]
        analyses[name] = replace(one, interval=ends, replicates=bootstrap)
    return list(analyses.values())


def quantities(
    reference: Float[np.ndarray, "*#version classifier"],
    replication: Float[np.ndarray, "*#version classifier"],
    adjusted: Float[np.ndarray, "*#version classifier"],
) -> Float[np.ndarray, "*version quantity"]:
    """Stack adjusted accuracies and the five estimands of `QUANTITIES`."""
    return np.concatenate([adjusted, gap_quantities(reference, replication, adjusted)], axis=-1)


def gap_quantities(
    reference: Float[np.ndarray, "*#version classifier"],
    replication: Float[np.ndarray, "*#version classifier"],
    adjusted: Float[np.ndarray, "*#version classifier"],
) -> Float[np.ndarray, "*version quantity"]:
    """Compute the estimands of `QUANTITIES`, over all classifiers."""
    slope, intercept = accuracy_line(reference, adjusted)
    estimands = (
        bias_corrected_gap(reference, adjusted).mean(axis=-1),
        selection_gap(adjusted, replication).mean(axis=-1),
        share_explained(reference, replication, adjusted),
        slope,
        intercept,
    )
    return np.stack(estimands, axis=-1)


def _check_resampling(
    study: Study | SufficientStatistics, bootstrap: int, interval: Interval
) -> None:
    """Raise OptionError where the study cannot be resampled by these options."""
    check_bootstrap(bootstrap)
    if interval not in (known := get_args(Interval)):
        raise OptionError("unknown-bootstrap-interval", interval=interval, choices=", ".join(known))
    if not bootstrap:
        return
    if not isinstance(study, Study):
        raise OptionError("bootstrap-needs-study")
    for role in REQUIRED_ROLES if interval == "bca" else ():
        if len(study.datasets[role].images) < 2:
            raise OptionError("bca-with-one-image", dataset=role)


def check_bootstrap(bootstrap: int) -> None:
    """Raise OptionError where the number of replicates is impossible."""
    if bootstrap < 0 or bootstrap == 1:
        raise OptionError("bootstrap-too-small", bootstrap=bootstrap)
    bounds.refuse_above("bootstrap", bootstrap, bounds.MAX_BOOTSTRAP)


def _point_estimate(
    name: str,
    estimator: Estimator,
    statistics: SufficientStatistics,
    observed: Replicates,
    seed: int,
) -> Analysis:
    """Estimate the study itself, with the standard error that the estimator has of its own."""
    estimates = estimator(observed, seed=seed)
    adjusted, error = estimates.value[0], estimates.standard_error
    if error is None:
        error = np.full_like(adjusted, np.nan)
    # Normal interval of the estimator's own standard error, such as the jackknife's.
    own_interval = adjusted + np.outer(ndtri(INTERVAL), error)
    accuracies = observed.reference.accuracy()[0], observed.replication.accuracy()[0], adjusted
    values = quantities(*accuracies)
    return Analysis(
        name,
        estimator,
        statistics,
        values,
        interval=np.pad(own_interval, ((0, 0), (0, len(QUANTITIES))), constant_values=np.nan),
        own_interval=own_interval,
        error=np.full_like(values, np.nan),
        match=estimates.match,
        gap_of_all=_gap_of_all(estimator, observed, estimates.match),
        always_right=estimates.always_right,
    )


def _gap_of_all(
    estimator: Estimator, observed: Replicates, match: AnnotatorMatch | None
) -> float | None:
    """Estimate the mean bias-corrected gap from all images, thinned to the fewest annotators."""
    # None where no image was left out, or where the method takes more annotators, or any number.
    if match is None or not match.dropped_images:
        return None
    if not 0 < estimator.min_annotators <= match.fewest:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InterpolationWarning)  # raised for the matched images
        adjusted = replace(estimator, annotators=match.fewest)(observed).value
    return float(bias_corrected_gap(observed.reference.accuracy(), adjusted).mean())


def _apply(
    estimators: Mapping[str, Estimator], blocks: Iterable[Replicates], *, seed: int, progress: bool
) -> dict[str, Accuracies]:
    """Apply estimators to the same blocks of replicates: accuracies by method."""
    rows: dict[str, list[Accuracies]] = {name: [] for name in estimators}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EstimateWarning)  # the study's own estimate has warned
        for block in blocks:
            # Row 0 of every block is the study itself, not a replicate.
            plain = block.reference.accuracy()[1:], block.replication.accuracy()[1:]
            for name, estimator in estimators.items():
                adjusted = estimator(block, seed=seed, progress=progress).value[1:]
                rows[name].append((*plain, adjusted))
    return {
        name: tuple(np.concatenate(column) for column in zip(*parts, strict=True))  # type: ignore[misc]
        for name, parts in rows.items()
    }


def _skewness(
    study: Study, statistics: SufficientStatistics, without: Accuracies
) -> Float[np.ndarray, "quantity"]:
    """Compute BCa's acceleration of every quantity from estimates `without_each_image`."""
    m1, m2 = len(statistics.reference.images), len(statistics.replication.images)
    # Versions in the order of `without_each_image`.
    from_reference, right, wrong = np.split(without[2], [m1, m1 + m2])
    plain = {role: statistics.accuracy(role) for role in REQUIRED_ROLES}

    samples: list[Floats] = []
    for role in REQUIRED_ROLES:
        data = study.datasets[role]
        # Images of a cell share one estimate: leaving out any of them has the same effect.
        cell, size = statistics.cells[role].find(data.selected, data.shown), len(data.images)
        hits, misses = (from_reference,) * 2 if role == "reference" else (right, wrong)
        parts: list[Floats] = []
        for start in range(0, size, _IMAGES_PER_CHUNK):
            rows = slice(start, start + _IMAGES_PER_CHUNK)
            correct = data.correct[rows]
            accuracy = {**plain, role: (plain[role] * size - correct) / (size - 1)}
            adjusted = np.where(correct, hits[cell[rows]], misses[cell[rows]])
            parts.append(quantities(accuracy["reference"], accuracy["replication"], adjusted))
        samples.append(np.concatenate(parts))
    return acceleration(samples)
