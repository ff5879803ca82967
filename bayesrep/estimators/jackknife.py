"""The jackknife over annotators: the naive estimator with its bias in 1/n removed.

Engstrom et al. (2020), section 5.2; for d = 1 the paper's. Over all C(n, d) ways of leaving out d
annotators of every image, taken exactly by thinning the counts,

    θ_J = θ_n − b,   b = (n − d)/d · (mean θ_{n−d} − θ_n).

The standard error, over annotators and not over images, is

    SE² = (n − d)/d · mean over ways of (θ_{n−d} − mean θ_{n−d})²,

and in its exact form, θ being linearised in the counts,

    SE² = (n − d)/d · Σ_x Var(h_x(k') | k_x of n),

with h the change of θ when image x is counted at k'.
"""

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bayesrep.errors import InterpolationWarning, OptionError
from bayesrep.estimators.annotator_match import AnnotatorMatch, take_annotated
from bayesrep.estimators.estimator import Estimates, Estimator
from bayesrep.estimators.naive import (
    ThinnedCounts,
    accuracy_by_count,
    matched_accuracy,
    thinned_counts,
)
from bayesrep.estimators.replicates import Replicates
from bayesrep.numerics.thinning import thin_correct, thinning_matrix
from bayesrep.types import Float, Floats, Ints


@dataclass(frozen=True)
class Jackknife(Estimator):
    """The naive estimate, extrapolated linearly in 1/n to infinitely many annotators.

    Not bounded by 0 and 1: the extrapolation may exceed them.

    Attributes
    ----------
    annotators
        n, the number of annotators per image to start from, images with fewer being left out; by
        default the most that 99 % of the images of each data set have.
    delete
        d, the number of them to leave out: 1 is the paper's; more is less noisy and more biased.
    """

    annotators: int | None = None
    delete: int = 1
    name: ClassVar[str] = "jackknife"
    noise_option: ClassVar[str | None] = "delete"

    @property
    def min_annotators(self) -> int:
        """One more than are left out."""
        return self.delete + 1

    def __call__(
        self, replicates: Replicates, *, seed: int = 0, progress: bool = False
    ) -> Estimates:
        """Estimate every version, with the study's standard error over annotators."""
        match = AnnotatorMatch.from_replicates(replicates, self.annotators)
        n = match.annotators
        if not 1 <= self.delete < n:
            raise OptionError(
                "jackknife-of-one-annotator" if n == 1 else "jackknife-delete-out-of-range",
                delete=self.delete,
                most=n - 1,
                annotators=n,
            )
        matched = take_annotated(replicates, n)
        counts = thinned_counts(matched, n)
        full = matched_accuracy(counts, replicates.words)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InterpolationWarning)  # raised once, for n
            reduced = matched_accuracy(thinned_counts(matched, n - self.delete))
        study = ThinnedCounts(n, counts.selected, *(field[:1] for field in counts[2:]))
        # Only version 0, the study itself, needs a standard error.
        error = _standard_error(study, self.delete)
        return Estimates(correct_estimate(full, reduced, n, self.delete), error, match)


def correct_estimate(full: Floats, reduced: Floats, annotators: int | Ints, delete: int) -> Floats:
    """Extrapolate to θ_J from the estimates with n annotators and with n − d of them."""
    return full - (annotators - delete) / delete * (reduced - full)


def _standard_error(study: ThinnedCounts, delete: int) -> Float[np.ndarray, "classifier"]:
    """Compute the jackknife standard error over annotators of a study, its only version."""
    n = study.annotators
    thinning = thinning_matrix(study.selected, np.full(len(study.selected), n), n - delete)
    # Columns of counts that no image can have are left out.
    counts = np.unique(thinning.indices)
    thinning = thinning[:, counts]
    reduced = ThinnedCounts(
        n - delete,
        counts,
        study.reference @ thinning,
        study.replication @ thinning,
        thin_correct(thinning, study.correct),
    )
    (accuracy,), _ = accuracy_by_count(reduced)
    reference = reduced.reference[0] / reduced.reference.sum()
    # p_ref(k') / p_rep(k'): the weight of a replication image at a thinned count.
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(reduced.replication[0] > 0, reference / reduced.replication[0], 0.0)
    # h for a reference image, a correctly and a wrongly classified image of the replication
    kinds = (
        (study.reference[0][:, None] / study.reference.sum() ** 2, accuracy),
        (study.correct[0], ratio[:, None] * (1 - accuracy)),
        (study.replication[0][:, None] - study.correct[0], -ratio[:, None] * accuracy),
    )
    variance = np.zeros(accuracy.shape[1])
    for images, h in kinds:
        # Var(h(k') | k of n), of the count k' that is left of each count k.
        spread = np.maximum(thinning @ h**2 - (thinning @ h) ** 2, 0.0)
        variance += (images * spread).sum(axis=0)
    return np.sqrt((n - delete) / delete * variance)
