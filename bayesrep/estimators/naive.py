"""The naive estimator: match on observed selection frequencies as if they were the true ones.

Equation 4 of Engstrom et al. (2020), section 5.1:

    A_c = Σ_k E_rep[f_c | k of n] · p_ref(k of n)

It needs every image to have the same n. Matching on k / n across different n would compare
readings of different noise: 3 of 3 is weaker evidence of s near 1 than 40 of 40, yet has the same
k / n. So all images are thinned to n' annotators, at most the fewest that any image of either data
set has, in exact expectation over which annotators are forgotten. Where all images share n and
n' = n, that is equation 4 itself; smaller n' give the curves of the paper's figure 5c.
"""

import warnings
from operator import index

import numpy as np
from numpy.typing import NDArray

from bayesrep.numerics.thinning import thinning_matrix
from bayesrep.statistics import SufficientStatistics

__all__ = ["InterpolationWarning", "naive"]


class InterpolationWarning(UserWarning):
    """The reference has images at counts at which the replication has none."""


def naive(
    statistics: SufficientStatistics, *, annotators: int | None = None
) -> NDArray[np.float64]:
    """Return each classifier's accuracy with the replication reweighted to the reference's counts.

    Where the reference has images at a count k' at which the replication has none, E_rep[f | k'] is
    interpolated linearly in k' between the nearest counts that have images (beyond the first and
    last, the nearest value is kept), and a warning says how much of the reference is concerned.

    Parameters
    ----------
    statistics
        A study's sufficient statistics.
    annotators
        n', the number of annotators per image to match with. The default is the most that every
        image has; fewer show how the estimate's bias depends on their number.

    Returns
    -------
    float64 [C]

    Raises
    ------
    ValueError
        Where ``annotators`` is less than 1, or more than some image has.

    Warns
    -----
    InterpolationWarning
        Where accuracies had to be interpolated.
    """
    reference, replication = statistics.reference, statistics.replication
    selected = np.concatenate([reference.selected, replication.selected])
    shown = np.concatenate([reference.shown, replication.shown])
    kept = int(shown.min()) if annotators is None else index(annotators)
    thinning = thinning_matrix(selected, shown, kept)
    to_reference, to_replication = np.split(thinning, [len(reference.shown)])
    mass = reference.images @ to_reference / reference.images.sum()
    images = replication.images @ to_replication
    correct = to_replication.T @ replication.correct

    known = np.flatnonzero(images > 0)
    if missing := float(mass[images == 0].sum()):
        warnings.warn(_interpolated(missing, (images == 0) & (mass > 0)), stacklevel=2)
    accuracy = correct[known] / images[known, None]
    return _moved(mass, known) @ accuracy


def _moved(mass: NDArray[np.float64], known: NDArray[np.intp]) -> NDArray[np.float64]:
    """Move the mass [n' + 1] of all counts to the known ones [K], as linear interpolation would."""
    position = np.interp(np.arange(len(mass)), known, np.arange(len(known)))
    below = np.floor(position).astype(np.intp)
    above = np.minimum(below + 1, len(known) - 1)
    share = position - below
    moved = np.zeros(len(known))
    np.add.at(moved, below, mass * (1 - share))
    np.add.at(moved, above, mass * share)
    return moved


def _interpolated(missing: float, concerned: NDArray[np.bool_]) -> InterpolationWarning:
    counts = np.flatnonzero(concerned)
    named = ", ".join(str(count) for count in counts[:5]) + (", ..." if len(counts) > 5 else "")
    return InterpolationWarning(
        f"naive: {missing:.2%} of the reference has selected = {named} of {len(concerned) - 1}, "
        "where the replication has no image; accuracies there are interpolated"
    )
