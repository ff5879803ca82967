"""Estimands computed from adjusted accuracies: arrays in, arrays out.

Every function takes the classifiers along the last axis, for one estimate [C] as well as for draws
[draw, C]. Equation numbers are those of Engstrom et al. (2020).
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from bayesrep.types import Float, Floats

INTERVAL = (0.025, 0.975)  # the quantiles that bound a 95 % interval
MEDIAN_AND_INTERVAL = (INTERVAL[0], 0.5, INTERVAL[1])  # of a median and its 95 % interval
Z_975 = 1.959963984540054  # the 97.5 % quantile of the standard normal

Values: TypeAlias = Float[np.ndarray, "*draw classifier"]
Summaries: TypeAlias = Float[np.ndarray, "*draw"] | np.float64


def bias_corrected_gap(reference_accuracy: ArrayLike, adjusted_accuracy: ArrayLike) -> Values:
    """Compute the accuracy drop that selection does not explain: equation 2, first term."""
    return np.asarray(reference_accuracy, float) - np.asarray(adjusted_accuracy, float)


def selection_gap(adjusted_accuracy: ArrayLike, replication_accuracy: ArrayLike) -> Values:
    """Compute the accuracy drop that selection explains: equation 2, second term."""
    return np.asarray(adjusted_accuracy, float) - np.asarray(replication_accuracy, float)


def share_explained(
    reference_accuracy: ArrayLike, replication_accuracy: ArrayLike, adjusted_accuracy: ArrayLike
) -> Summaries:
    """Compute the share of the mean selection gap in the mean raw gap; NaN where that is 0."""
    raw = np.subtract(reference_accuracy, replication_accuracy).mean(axis=-1)
    selected = selection_gap(adjusted_accuracy, replication_accuracy).mean(axis=-1)
    return selected / np.where(raw == 0, np.nan, raw)


def measured_gap(
    reference_correct: ArrayLike, replication_correct: ArrayLike
) -> Float[np.ndarray, "3"]:
    """Compute the measured mean gap, and its 95 % interval over images (NaN of a single one)."""
    sides = [
        np.asarray(side, float).mean(axis=1) for side in (reference_correct, replication_correct)
    ]
    value = sides[0].mean() - sides[1].mean()
    if min(map(len, sides)) < 2:
        return np.array([value, np.nan, np.nan])
    # Both data sets are independent samples of images.
    error = np.sqrt(sum(side.var(ddof=1) / len(side) for side in sides))
    return value + Z_975 * error * np.array([0.0, -1.0, 1.0])


def accuracy_line(
    reference_accuracy: ArrayLike, accuracy: ArrayLike
) -> tuple[Summaries, Summaries]:
    """Fit the least-squares line on reference accuracies: slope, intercept; NaN of equal ones."""
    x, y = np.asarray(reference_accuracy, float), np.asarray(accuracy, float)
    mean = x.mean(axis=-1)
    centered = x - mean[..., None]
    scale = np.sum(centered**2, axis=-1)
    slope = np.sum(centered * y, axis=-1) / np.where(scale > 0, scale, np.nan)
    return slope, y.mean(axis=-1) - slope * mean


MIN_RELIABILITY = 0.8  # reliability ratio of reference accuracies below which no line is reported


def errors_in_variables_line(
    reference_accuracy: Float[np.ndarray, "chain draw classifier"],
    accuracy: Float[np.ndarray, "chain draw classifier"],
) -> tuple[Floats, Floats]:
    """Fit the line of accuracies on reference accuracies in every draw, by errors in variables.

    Draws deviate from the posterior mean as much as that does from the truth, so moments lose twice
    the draws' own covariances V (Fuller 1987, "Measurement Error Models", section 1.2):

        slope  =  (S_xy − 2 V_xy) / (S_xx − 2 V_xx),

    NaN where the posterior means' reliability ratio is below `MIN_RELIABILITY`.
    """
    x, y = (each - each.mean(axis=2, keepdims=True) for each in (reference_accuracy, accuracy))
    square, product = np.square(x).sum(axis=2), (x * y).sum(axis=2)
    # V: the mean square of the draws minus the square of their mean.
    means = [each.mean(axis=(0, 1)) for each in (x, y)]
    own_square = square.mean() - float(means[0] @ means[0])
    own_product = product.mean() - float(means[0] @ means[1])
    reliable_square = square.mean() - 2 * own_square
    if not reliable_square > MIN_RELIABILITY * (square.mean() - own_square):
        undefined = np.full(square.shape, np.nan)
        return undefined, undefined
    # A draw's S_xx is bounded away from 0 by that of the means, so the ratio has no heavy tails.
    scale = np.maximum(square - 2 * own_square, reliable_square / 2)
    slope = (product - 2 * own_product) / scale
    return slope, accuracy.mean(axis=2) - slope * reference_accuracy.mean(axis=2)


def slope_standard_error(reference_accuracy: ArrayLike, accuracy: ArrayLike) -> Summaries:
    """Compute the standard error of `accuracy_line`'s slope by ordinary regression."""
    x, y = np.asarray(reference_accuracy, float), np.asarray(accuracy, float)
    slope, intercept = map(np.asarray, accuracy_line(x, y))
    # As if errors were independent: classifiers share the images, so resample those for the line's.
    residual = y - slope[..., None] * x - intercept[..., None]
    scale = np.sum((x - x.mean(axis=-1, keepdims=True)) ** 2, axis=-1)
    freedom = x.shape[-1] - 2
    variance = np.sum(residual**2, axis=-1) / (freedom if freedom > 0 else np.nan)
    return np.sqrt(variance / np.where(scale > 0, scale, np.nan))


def ranks(accuracy: ArrayLike) -> Values:
    """Rank every classifier, 1 for the most accurate; ties share their mean rank."""
    from scipy.stats import rankdata  # takes long to import

    return rankdata(-np.asarray(accuracy, float), axis=-1)
