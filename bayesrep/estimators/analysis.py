"""One method on one study: estimates of every classifier and of all together, with intervals."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from bayesrep import bounds
from bayesrep.choices import BootstrapInterval as Interval
from bayesrep.errors import EstimateWarning, OptionError
from bayesrep.estimators.intervals import LEVELS, acceleration, bca, percentile
from bayesrep.estimators.jackknife import Jackknife
from bayesrep.estimators.methods import Estimator, resolve
from bayesrep.estimators.naive import Naive
from bayesrep.estimators.replicates import Replicates, leave_one_out
from bayesrep.estimators.replicates import bootstrap as bootstrap_images
from bayesrep.estimators.subsets import jackknife_by_subsets, naive_by_subsets
from bayesrep.numerics.estimands import (
    accuracy_line,
    bias_corrected_gap,
    selection_gap,
    share_explained,
)
from bayesrep.studies.rules import REQUIRED_ROLES
from bayesrep.studies.statistics import Cells, SufficientStatistics
from bayesrep.studies.study import Study

__all__ = ["QUANTITIES", "Analysis", "Interval", "analyse"]

Floats = NDArray[np.float64]

QUANTITIES = ("bias_corrected_gap", "selection_gap", "share_explained", "slope", "intercept")
"""What is estimated of all classifiers together: the means over classifiers of the two terms of
equation 2, the second's share of the raw gap, and the line of adjusted on reference accuracy."""

_CHUNK = 16_384  # images whose leave-one-out values are computed at a time


@dataclass(frozen=True, eq=False)
class Analysis:
    """What one method says about a study of C classifiers.

    Attributes
    ----------
    method
        Its name and options.
    statistics
        Of the study.
    values : float64 [C + 5]
        Adjusted accuracies, then `QUANTITIES`.
    interval : float64 [2, C + 5]
        95 %; NaN where there is none.
    """

    method: str
    statistics: SufficientStatistics
    values: Floats
    interval: Floats


def analyse(
    study: Study | SufficientStatistics,
    methods: Sequence[str | Estimator] | str,
    *,
    bootstrap: int = 0,
    interval: Interval = "percentile",
    seed: int = 0,
    progress: bool = False,
) -> list[Analysis]:
    """Apply methods to a study; see :func:`bayesrep.estimate`."""
    estimators = resolve(methods)
    if bootstrap < 0:
        raise OptionError(f"bootstrap is {bootstrap}; give a number of replicates, 0 for none")
    bounds.at_most("bootstrap", bootstrap, bounds.BOOTSTRAP)
    if interval not in get_args(Interval):
        raise OptionError(f"interval is {interval!r}; choose from {', '.join(get_args(Interval))}")
    if bootstrap and not isinstance(study, Study):
        raise OptionError("the bootstrap resamples images, so it needs a Study, not statistics")
    statistics = SufficientStatistics.from_study(study) if isinstance(study, Study) else study
    whole = Replicates.of(statistics)
    estimates = {
        name: _estimate(estimator, study, whole, seed) for name, estimator in estimators.items()
    }
    values = {
        name: quantities(whole.reference.accuracy()[0], whole.replication.accuracy()[0], adjusted)
        for name, (adjusted, _) in estimates.items()
    }
    intervals = {name: own for name, (_, own) in estimates.items()}
    if bootstrap and isinstance(study, Study):
        _refuse_subsets(estimators)
        intervals = _bootstrap_intervals(
            study, statistics, estimators, values, bootstrap, interval, seed, progress=progress
        )
    return [Analysis(name, statistics, values[name], intervals[name]) for name in estimators]


def quantities(reference: Floats, replication: Floats, adjusted: Floats) -> Floats:
    """Adjusted accuracies and `QUANTITIES` from accuracies [..., C]; returns [..., C + 5]."""
    slope, intercept = accuracy_line(reference, adjusted)
    together = (
        bias_corrected_gap(reference, adjusted).mean(axis=-1),
        selection_gap(adjusted, replication).mean(axis=-1),
        share_explained(reference, replication, adjusted),
        slope,
        intercept,
    )
    return np.concatenate([adjusted, np.stack(together, axis=-1)], axis=-1)


def _estimate(
    estimator: Estimator, study: Study | SufficientStatistics, whole: Replicates, seed: int
) -> tuple[Floats, Floats]:
    """The estimate [C] and what interval it has without a bootstrap, [2, C + 5]."""
    adjusted = error = None
    if isinstance(estimator, Naive | Jackknife) and estimator.subsets is not None:
        if not isinstance(study, Study):
            raise OptionError("random subsets are drawn image by image: give a Study")
        if isinstance(estimator, Naive):
            adjusted = naive_by_subsets(estimator, study, seed)
        else:
            adjusted, error = jackknife_by_subsets(estimator, study, seed)
    else:
        adjusted = estimator(whole, seed=seed)[0]
        if isinstance(estimator, Jackknife):
            error = estimator.standard_error(whole)
    own = np.full((2, len(adjusted) + len(QUANTITIES)), np.nan)
    if error is not None:
        own[:, : len(adjusted)] = adjusted + np.outer(ndtri(LEVELS), error)
    return adjusted, own


def _refuse_subsets(estimators: Mapping[str, Estimator]) -> None:
    for name, estimator in estimators.items():
        if isinstance(estimator, Naive | Jackknife) and estimator.subsets is not None:
            raise OptionError(
                f"{name}: random subsets are not bootstrapped; leave subsets out for the exact form"
            )


def _bootstrap_intervals(
    study: Study,
    statistics: SufficientStatistics,
    estimators: Mapping[str, Estimator],
    values: Mapping[str, Floats],
    size: int,
    interval: Interval,
    seed: int,
    *,
    progress: bool,
) -> dict[str, Floats]:
    blocks = bootstrap_images(study, size=size, seed=seed)
    replicates = _replicate(estimators, blocks, seed, progress=progress)
    if interval == "percentile":
        return {
            name: percentile(quantities(*accuracies)) for name, accuracies in replicates.items()
        }
    for role in REQUIRED_ROLES:
        if len(study.datasets[role].images) < 2:
            raise OptionError(
                f"interval 'bca' leaves out every image in turn, but the {role} has only one; "
                "use 'percentile'"
            )
    without = _replicate(estimators, leave_one_out(statistics), seed, progress=progress)
    return {
        name: bca(
            values[name], quantities(*accuracies), _skewness(study, statistics, without[name])
        )
        for name, accuracies in replicates.items()
    }


Accuracies: TypeAlias = tuple[Floats, Floats, Floats]
"""Reference, replication and adjusted accuracy of versions of a study, [B, C] each."""


def _replicate(
    estimators: Mapping[str, Estimator], blocks: Iterable[Replicates], seed: int, *, progress: bool
) -> dict[str, Accuracies]:
    """Apply estimators to blocks of replicates, the same for each."""
    rows: dict[str, list[Accuracies]] = {name: [] for name in estimators}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EstimateWarning)  # the study's own estimate has warned
        for block in blocks:
            plain = block.reference.accuracy()[1:], block.replication.accuracy()[1:]
            for name, estimator in estimators.items():
                adjusted = estimator(block, seed=seed, progress=progress)[1:]
                rows[name].append((*plain, adjusted))
    return {
        name: tuple(np.concatenate(column) for column in zip(*parts, strict=True))  # type: ignore[misc]
        for name, parts in rows.items()
    }


def _skewness(study: Study, statistics: SufficientStatistics, without: Accuracies) -> Floats:
    """BCa's acceleration of every quantity, [C + 5], from `leave_one_out`'s estimates."""
    m1, m2 = len(statistics.reference.images), len(statistics.replication.images)
    from_reference, right, wrong = np.split(without[2], [m1, m1 + m2])
    plain = {role: statistics.accuracy(role) for role in REQUIRED_ROLES}

    def left_out(role: str, rows: slice) -> Floats:
        data = study.datasets[role]
        cell = _cell_of(data.selected[rows], data.shown[rows], statistics.cells[role])
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
                    left_out(role, slice(start, start + _CHUNK))
                    for start in range(0, len(study.datasets[role].images), _CHUNK)
                ]
            )
            for role in REQUIRED_ROLES
        ]
    )


def _cell_of(
    selected: NDArray[np.int64], shown: NDArray[np.int64], cells: Cells
) -> NDArray[np.intp]:
    """The cell of every image, [N]."""
    base = int(cells.shown.max()) + 1  # above every count selected, too
    return np.searchsorted(cells.shown * base + cells.selected, shown * base + selected)
