"""Monte-Carlo forms: ask random subsets of the annotators of every image.

The published code works this way. It needs the images, not only their counts, because all
classifiers see the same draw. The exact forms are what these converge to.
"""

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import OptionError
from bayesrep.estimators.jackknife import Jackknife, corrected
from bayesrep.estimators.naive import Naive, ThinnedCounts, kept, matched_accuracy
from bayesrep.estimators.replicates import Replicates
from bayesrep.numerics.thinning import check_annotators
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import AnnotatedSet, Study

__all__ = ["jackknife_by_subsets", "naive_by_subsets"]

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def naive_by_subsets(estimator: Naive, study: Study, seed: int) -> Floats:
    """Mean naive estimate over R random subsets of n' annotators per image, [C]."""
    whole = Replicates.of(SufficientStatistics.from_study(study))
    n = kept(estimator.annotators, whole)
    rng = np.random.default_rng(seed)
    draws = [
        [_asked(data, n, rng) for data in (study.reference, study.replication)]
        for _ in range(_checked(estimator.subsets))
    ]
    return np.mean([matched_accuracy(_counts(study, pair, n))[0] for pair in draws], axis=0)


def jackknife_by_subsets(estimator: Jackknife, study: Study, seed: int) -> tuple[Floats, Floats]:
    """Jackknife estimate and standard error [C] from R deletions of d annotators per image.

    Every image's annotators are put into a random order and left out d at a time, so that within an
    order no annotator is left out twice; further orders follow until R subsets are reached.
    """
    whole = Replicates.of(SufficientStatistics.from_study(study))
    n, d, size = estimator.sample(whole), estimator.delete, _checked(estimator.subsets)
    rng = np.random.default_rng(seed)
    estimates, parts = [], []
    while len(parts) < size:
        full = [_asked(data, n, rng) for data in (study.reference, study.replication)]
        theta = matched_accuracy(_counts(study, full, n))[0]
        left = [selected.copy() for selected in full]
        mine = []
        for group in range(min(n // d, size - len(parts))):
            gone = [rng.hypergeometric(k, n - group * d - k, d) for k in left]
            pair = [k - lost for k, lost in zip(full, gone, strict=True)]
            mine.append(matched_accuracy(_counts(study, pair, n - d))[0])
            left = [k - lost for k, lost in zip(left, gone, strict=True)]
        parts.extend(mine)
        estimates.extend(corrected(theta, part, n, d) for part in mine)
    spread = np.var(parts, axis=0)
    return np.mean(estimates, axis=0), np.sqrt((n - d) / d * spread)


def _checked(subsets: int | None) -> int:
    if subsets is None or subsets < 1:
        raise OptionError(f"subsets is {subsets}; give a number of random subsets, at least 1")
    return subsets


def _asked(data: AnnotatedSet, annotators: int, rng: np.random.Generator) -> Counts:
    """How many of ``annotators`` random annotators of each image selected it, [N]."""
    check_annotators(annotators, data.shown)
    return rng.hypergeometric(data.selected, data.shown - data.selected, annotators)


def _counts(study: Study, selected: list[Counts], annotators: int) -> ThinnedCounts:
    """The counts table of one draw for the reference and the replication."""
    reference, replication = (np.bincount(k, minlength=annotators + 1) for k in selected)
    member = (selected[1][None, :] == np.arange(annotators + 1)[:, None]).astype(np.float32)
    correct = member @ study.replication.correct.astype(np.float32)
    return ThinnedCounts(
        reference[None].astype(float), replication[None].astype(float), correct[None].astype(float)
    )
