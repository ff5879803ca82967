"""Analyses of a study by one method each: estimates, standard errors and intervals."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, get_args

import numpy as np
from scipy.special import ndtri

from bayesrep import bounds
from bayesrep.choices import REPLICATES
from bayesrep.choices import BootstrapInterval as Interval
from bayesrep.errors import EstimateWarning, InterpolationWarning, OptionError
from bayesrep.estimators.annotator_match import AnnotatorMatch, usual_annotators
from bayesrep.estimators.estimator import Estimator
from bayesrep.estimators.intervals import acceleration, bca, percentile
from bayesrep.estimators.jackknife import Jackknife
from bayesrep.estimators.methods import METHODS, resolve
from bayesrep.estimators.naive import Naive
from bayesrep.estimators.raw import Raw
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
        them in any case, of `REPLICATES` replicates, if there are images to resample: it multiplies
        the images' noise by the number of annotators.
    drop_error
        The standard error of the drop as measured, likewise.
    kept
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
    statistics: SufficientStatistics
    values: Float[np.ndarray, "quantity"]
    interval: Float[np.ndarray, "2 quantity"]
    own_interval: Float[np.ndarray, "2 classifier"]
    error: Float[np.ndarray, "quantity"]
    drop_error: float = np.nan
    kept: AnnotatorMatch | None = None
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
    resampled = _to_resample(study, bootstrap, interval)
    statistics = SufficientStatistics.of(study)
    words = statistics.words
    whole = Replicates.from_study(statistics)
    # The default methods leave out an impossible jackknife; named explicitly, it is refused.
    if methods == METHODS and usual_annotators(whole) == 1:
        warnings.warn(
            EstimateWarning(
                f"jackknife: left out, since it takes two {words.annotators} or more of an "
                f"{words.image}, and more than 1 % have one"
            ),
            stacklevel=2,
        )
        del estimators[Jackknife.name]
    analyses = [
        _without_bootstrap(name, statistics, whole, estimator, seed)
        for name, estimator in estimators.items()
    ]
    # Without a bootstrap there are only the estimators' own standard errors.
    if resampled is None:
        return _use_jackknife_scatter(analyses, estimators, study, seed=seed)
    # All methods see the same replicates, so that their differences are comparable.
    apply = partial(_apply, estimators, seed=seed, progress=progress)
    replicates = apply(bootstrap_images(resampled, statistics, size=bootstrap, seed=seed))
    values = {name: quantities(*accuracies) for name, accuracies in replicates.items()}
    analyses = [
        replace(_with_scatter(one, values[one.method]), replicates=bootstrap) for one in analyses
    ]
    if interval == "percentile":
        intervals = {name: percentile(value) for name, value in values.items()}
    else:  # BCa intervals need the estimate without each image, for their acceleration
        # Leaving out one image per cell suffices: those of a cell have equal influence.
        leave_one_out = apply(without_each_image(statistics))
        intervals = {
            one.method: bca(
                one.values,
                values[one.method],
                _skewness(resampled, statistics, leave_one_out[one.method]),
            )
            for one in analyses
        }
    # The measured drop has its analytic interval everywhere in the package, no bootstrap's.
    for name, estimator in estimators.items():
        if isinstance(estimator, Raw):
            gap = measured_gap(resampled.reference.correct, resampled.replication.correct)
            intervals[name][:, -len(QUANTITIES)] = gap[1:]
    return [replace(one, interval=intervals[one.method]) for one in analyses]


def _use_jackknife_scatter(
    analyses: list[Analysis],
    estimators: Mapping[str, Estimator],
    study: Study | SufficientStatistics,
    *,
    seed: int,
) -> list[Analysis]:
    """Add the jackknife's standard errors over images, from a bootstrap of its own."""
    jackknives = {name: each for name, each in estimators.items() if isinstance(each, Jackknife)}
    if not jackknives or not isinstance(study, Study):
        return analyses
    blocks = bootstrap_images(study, analyses[0].statistics, size=REPLICATES, seed=seed)
    replicates = _apply(jackknives, blocks, seed=seed, progress=False)

    return [
        _with_scatter(one, quantities(*replicates[one.method])) if one.method in replicates else one
        for one in analyses
    ]


def _with_scatter(one: Analysis, values: Float[np.ndarray, "version quantity"]) -> Analysis:
    """Add standard errors over replicates; a single replicate has none."""
    if len(values) < 2:
        return one
    # The estimands come after the classifiers; the first two add up to the drop.
    first = values.shape[1] - len(QUANTITIES)
    drop = values[:, first : first + 2].sum(axis=1)  # both terms of equation 2
    return replace(one, error=values.std(axis=0, ddof=1), drop_error=float(drop.std(ddof=1)))


def quantities(
    reference: Float[np.ndarray, "*#version classifier"],
    replication: Float[np.ndarray, "*#version classifier"],
    adjusted: Float[np.ndarray, "*#version classifier"],
) -> Float[np.ndarray, "*version quantity"]:
    """Stack adjusted accuracies and the five estimands of `QUANTITIES`."""
    slope, intercept = accuracy_line(reference, adjusted)
    estimands = (
        bias_corrected_gap(reference, adjusted).mean(axis=-1),
        selection_gap(adjusted, replication).mean(axis=-1),
        share_explained(reference, replication, adjusted),
        slope,
        intercept,
    )
    return np.concatenate([adjusted, np.stack(estimands, axis=-1)], axis=-1)


def _to_resample(
    study: Study | SufficientStatistics, bootstrap: int, interval: Interval
) -> Study | None:
    """Check the options of the bootstrap and return the study to resample; None without one."""
    check_bootstrap(bootstrap)
    if interval not in get_args(Interval):
        raise OptionError(
            "unknown-bootstrap-interval", interval=interval, choices=", ".join(get_args(Interval))
        )
    if not bootstrap:
        return None
    if not isinstance(study, Study):
        raise OptionError("bootstrap-needs-study")
    for role in REQUIRED_ROLES if interval == "bca" else ():
        if len(study.datasets[role].images) < 2:
            raise OptionError("bca-with-one-image", dataset=role)
    return study


def check_bootstrap(bootstrap: int) -> None:
    """Raise OptionError where the number of replicates is impossible."""
    if bootstrap < 0 or bootstrap == 1:
        raise OptionError("bootstrap-too-small", bootstrap=bootstrap)
    bounds.refuse_above("bootstrap", bootstrap, bounds.BOOTSTRAP)


def _without_bootstrap(
    name: str, statistics: SufficientStatistics, whole: Replicates, estimator: Estimator, seed: int
) -> Analysis:
    estimates = estimator(whole, seed=seed)
    adjusted, error = estimates.value[0], estimates.standard_error
    if error is None:
        error = np.full_like(adjusted, np.nan)
    # Normal interval of the estimator's own standard error, such as the jackknife's.
    own_interval = adjusted + np.outer(ndtri(INTERVAL), error)
    accuracies = whole.reference.accuracy()[0], whole.replication.accuracy()[0], adjusted
    values = quantities(*accuracies)
    interval = np.pad(own_interval, ((0, 0), (0, len(QUANTITIES))), constant_values=np.nan)
    no_error, match = np.full_like(values, np.nan), estimates.kept
    gap = (
        _gap_of_all(estimator, whole, match) if match is not None and match.dropped_images else None
    )
    return Analysis(
        *(name, statistics, values, interval, own_interval, no_error),
        kept=match,
        gap_of_all=gap,
        always_right=estimates.always_right,
    )


def _gap_of_all(estimator: Estimator, whole: Replicates, match: AnnotatorMatch) -> float | None:
    """Estimate the mean bias-corrected gap from all images, thinned to the fewest annotators."""
    if not isinstance(estimator, Naive | Jackknife):
        return None
    if isinstance(estimator, Jackknife) and match.fewest <= estimator.delete:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InterpolationWarning)  # raised for the matched images
        adjusted = replace(estimator, annotators=match.fewest)(whole).value
    return float(bias_corrected_gap(whole.reference.accuracy(), adjusted).mean())


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

    def leave_one_out(role: str, rows: slice) -> Float[np.ndarray, "image quantity"]:
        data = study.datasets[role]
        # Images of a cell share one estimate: leaving out any of them has the same effect.
        cell = statistics.cells[role].find(data.selected[rows], data.shown[rows])
        correct, size = data.correct[rows], len(data.images)
        accuracy = {**plain, role: (plain[role] * size - correct) / (size - 1)}
        adjusted = (
            from_reference[cell]
            if role == "reference"
            else np.where(correct, right[cell], wrong[cell])
        )
        return quantities(accuracy["reference"], accuracy["replication"], adjusted)

    return acceleration(
        [
            np.concatenate(
                [
                    leave_one_out(role, slice(start, start + _IMAGES_PER_CHUNK))
                    for start in range(0, len(study.datasets[role].images), _IMAGES_PER_CHUNK)
                ]
            )
            for role in REQUIRED_ROLES
        ]
    )
