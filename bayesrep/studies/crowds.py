"""Covariances over the workers of several data sets."""

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from bayesrep.numerics.crowd import cluster_covariance, overlap_correction, residuals
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.types import Float, Floats


def residuals_of(datasets: Sequence[AnnotatedSet]) -> list[sparse.csr_array]:
    """Compute data sets' residuals [image, worker], of all workers with at least two answers."""
    answers = [data.answers for data in datasets if data.answers is not None]
    names = np.unique(np.concatenate([each.workers for each in answers]))
    places = [np.searchsorted(names, each.workers)[each.worker] for each in answers]
    # Workers with one answer add nothing to a covariance over workers, and may be a million.
    several = np.bincount(np.concatenate(places), minlength=len(names)) > 1
    every = [
        residuals(each.image, place, each.selected, len(data.images), len(names))
        for data, each, place in zip(datasets, answers, places, strict=True)
    ]
    return [sparse.csr_array(each[:, several]) for each in every]


def frequency_covariance(
    datasets: Sequence[AnnotatedSet], residuals: Sequence[sparse.csr_array]
) -> Float[np.ndarray, "dataset dataset"]:
    """Compute the covariance over workers of the data sets' mean selection frequencies."""
    parts: list[tuple[sparse.csr_array, Floats]] = []
    for column, (data, residual) in enumerate(zip(datasets, residuals, strict=True)):
        steps = np.zeros((1, len(data.images), len(datasets)))
        steps[0, :, column] = 1 / (data.shown * len(data.images))
        parts.append((residual, steps))
    return cluster_covariance(parts, overlap_correction(residuals)).covariance
