"""Quantities of interest from adjusted accuracies: arrays in, arrays out.

Every function takes the classifiers along the last axis, so it serves one estimate [C] and draws
[draw, C] alike. Equation numbers are those of Engstrom et al. (2020).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def bias_corrected_gap(reference_accuracy: ArrayLike, adjusted_accuracy: ArrayLike) -> Floats:
    """The part of the accuracy drop that selection does not explain: equation 2, first term.

    Parameters
    ----------
    reference_accuracy
        [C] accuracy on the reference.
    adjusted_accuracy
        [..., C].

    Returns
    -------
    float64 [..., C]
    """
    return np.asarray(reference_accuracy, float) - np.asarray(adjusted_accuracy, float)


def selection_gap(adjusted_accuracy: ArrayLike, replication_accuracy: ArrayLike) -> Floats:
    """The part of the accuracy drop that selection explains: equation 2, second term.

    Parameters
    ----------
    adjusted_accuracy
        [..., C].
    replication_accuracy
        [C] accuracy on the replication.

    Returns
    -------
    float64 [..., C]
    """
    return np.asarray(adjusted_accuracy, float) - np.asarray(replication_accuracy, float)


def accuracy_line(reference_accuracy: ArrayLike, accuracy: ArrayLike) -> tuple[Floats, Floats]:
    """Least-squares line of ``accuracy`` on the reference accuracy over classifiers.

    Parameters
    ----------
    reference_accuracy
        [C], at least two different values.
    accuracy
        [..., C], replication or adjusted accuracy.

    Returns
    -------
    slope, intercept : float64 [...]
        NaN where all reference accuracies are equal.
    """
    x, y = np.asarray(reference_accuracy, float), np.asarray(accuracy, float)
    centered = x - x.mean()
    scale = np.sum(centered**2)
    slope = np.sum(centered * y, axis=-1) / (scale if scale > 0 else np.nan)
    return slope, y.mean(axis=-1) - slope * x.mean()
