"""The workers of several data sets together."""

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from bayesrep.numerics.crowd import cluster_covariance, overlap_correction, residuals
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.types import Float, Floats


def residuals_of(datasets: Sequence[AnnotatedSet]) -> list[sparse.csr_array]:
    """Residuals [image, worker] of data sets' answers, among all workers with two at least.

    Who answered once adds nothing to a covariance over workers, and there may be a million of them.
    """
    answers = [data.answers for data in datasets if data.answers is not None]
    names = np.unique(np.concatenate([of.workers for of in answers]))
    places = [np.searchsorted(names, of.workers)[of.worker] for of in answers]
    several = np.bincount(np.concatenate(places), minlength=len(names)) > 1
    every = [
        residuals(of.image, place, of.selected, len(data.images), len(names))
        for data, of, place in zip(datasets, answers, places, strict=True)
    ]
    return [sparse.csr_array(each[:, several]) for each in every]


def frequency_covariance(
    datasets: Sequence[AnnotatedSet], residuals: Sequence[sparse.csr_array]
) -> Float[np.ndarray, "dataset dataset"]:
    """Covariance over workers of the data sets' mean selection frequencies."""
    parts: list[tuple[sparse.csr_array, Floats]] = []
    for at, (data, residual) in enumerate(zip(datasets, residuals, strict=True)):
        steps = np.zeros((1, len(data.images), len(datasets)))
        steps[0, :, at] = 1 / (data.shown * len(data.images))
        parts.append((residual, steps))
    return cluster_covariance(parts, overlap_correction(residuals)).covariance
