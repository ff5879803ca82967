"""The naive estimator: matching on observed selection frequencies as if they were the true ones.

Equation 4 of Engstrom et al. (2020), section 5.1:

    A_c = Σ_k E_rep[f_c | k of n] · p_ref(k of n)

A_c: adjusted accuracy of classifier c; f_c: 1 where it is right; k: annotators of n who select.

All images are thinned to n' annotators (`annotator_match`), in expectation over those dropped:
readings k / n of different n have different noise. Smaller n' give the curves of figure 5c.
"""

import warnings
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bayesrep.errors import InterpolationWarning
from bayesrep.estimators.annotator_match import AnnotatorMatch, take_annotated
from bayesrep.estimators.estimator import Estimates, Estimator
from bayesrep.estimators.replicates import Replicates
from bayesrep.numerics.thinning import thin_correct, thinning_matrix
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words
from bayesrep.types import Bool, Float, Floats, Int


class ThinnedCounts(NamedTuple):
    """Images of both data sets at counts k' of n' annotators, in expectation, in B versions."""

    annotators: int  # n'
    selected: Int[np.ndarray, "count"]  # possible counts k', increasing
    reference: Float[np.ndarray, "version count"]
    replication: Float[np.ndarray, "version count"]
    correct: Float[np.ndarray, "version count classifier"]  # of the replication


@dataclass(frozen=True)
class Naive(Estimator):
    """Accuracy of each classifier with the replication reweighted to the reference's counts.

    At a count k' of the reference at which the replication has no images, E_rep[f | k'] is
    interpolated linearly in k' between the nearest counts with images (constant beyond the first
    and last), and a warning says how much of the reference is concerned.

    Attributes
    ----------
    annotators
        n', the number of annotators per image to match with; images with fewer are left out. The
        default is the most that 99 % of the images of each data set have; fewer show how the
        estimate's bias depends on their number.
    """

    annotators: int | None = None
    name: ClassVar[str] = "naive"

    @property
    def min_annotators(self) -> int:
        """One: an image with a single annotator has a count."""
        return 1

    def __call__(
        self, replicates: Replicates, *, seed: int = 0, progress: bool = False
    ) -> Estimates:
        """Estimate every version, and warn where the study's own accuracies are interpolated."""
        match = AnnotatorMatch.from_replicates(replicates, self.annotators)
        counts = thinned_counts(take_annotated(replicates, match.annotators), match.annotators)
        return Estimates(matched_accuracy(counts, replicates.words), match=match)


def thinned_counts(replicates: Replicates, annotators: int) -> ThinnedCounts:
    """Thin every image to n' annotators, in expectation."""
    reference, replication = replicates.reference, replicates.replication
    selected = np.concatenate([reference.selected, replication.selected])
    n_annotators = np.concatenate([reference.shown, replication.shown])
    # Both data sets in one matrix, so that they share the possible counts.
    matrix = thinning_matrix(selected, n_annotators, annotators)
    counts = np.unique(matrix.indices)
    matrix = matrix[:, counts]
    cells = len(reference.shown)
    to_reference, to_replication = matrix[:cells], matrix[cells:]
    return ThinnedCounts(
        annotators,
        counts,
        reference.images @ to_reference,
        replication.images @ to_replication,
        thin_correct(to_replication, replication.correct),
    )


def at_every_count(counts: ThinnedCounts) -> ThinnedCounts:
    """Expand to all counts 0..n', with no images at the impossible ones."""
    every_count = np.arange(counts.annotators + 1)

    def expand(values: Floats) -> Floats:
        expanded = np.zeros((values.shape[0], len(every_count), *values.shape[2:]))
        expanded[:, counts.selected] = values
        return expanded

    return ThinnedCounts(counts.annotators, every_count, *map(expand, counts[2:]))


def forget_one_annotator(counts: ThinnedCounts) -> ThinnedCounts:
    """Drop one of n' annotators, in expectation: one who selected with probability k' / n'."""
    n = counts.annotators
    selected = np.arange(n)

    def thin_values(values: Floats) -> Floats:
        # The dropped annotator selected the image with probability k' / n'.
        k = selected.reshape(-1, *(1,) * (values.ndim - 2))
        return values[:, :-1] * ((n - k) / n) + values[:, 1:] * ((k + 1) / n)

    return ThinnedCounts(n - 1, selected, *map(thin_values, counts[2:]))


def matched_accuracy(
    counts: ThinnedCounts, words: Words = IMAGE_WORDS
) -> Float[np.ndarray, "version classifier"]:
    """Compute equation 4 for every version; a warning says what had to be interpolated."""
    # p_ref(k' of n'), then a warning for the study itself, version 0.
    mass = counts.reference / counts.reference.sum(axis=1, keepdims=True)
    accuracy, observed = accuracy_by_count(counts)
    missing = np.where(observed[0], 0.0, mass[0])
    if missing.any():
        lacking = counts.selected[missing > 0]
        named = ", ".join(map(str, lacking[:5])) + (", ..." if len(lacking) > 5 else "")
        text = (
            f"naive: {100 * missing.sum():.2f} % of the reference has selected = {named} of "
            f"{counts.annotators}, where the replication has no {words.image}; accuracies there "
            "are interpolated"
        )
        warnings.warn(InterpolationWarning(text), stacklevel=3)
    return np.einsum("bk,bkc->bc", mass, accuracy)


def accuracy_by_count(
    counts: ThinnedCounts,
) -> tuple[Float[np.ndarray, "version count classifier"], Bool[np.ndarray, "version count"]]:
    """Compute E_rep[f_c | k' of n'], interpolated linearly in k', and where it was observed."""
    observed = counts.replication > 0
    with np.errstate(invalid="ignore"):
        accuracy = counts.correct / counts.replication[:, :, None]
    for row in np.flatnonzero(~observed.all(axis=1)):
        places = np.flatnonzero(observed[row])
        position = np.interp(counts.selected, counts.selected[places], np.arange(len(places)))
        below = np.floor(position).astype(np.intp)
        above = np.minimum(below + 1, len(places) - 1)
        share = (position - below)[:, None]
        values = accuracy[row, places]
        accuracy[row] = (1 - share) * values[below] + share * values[above]
    return accuracy, observed
