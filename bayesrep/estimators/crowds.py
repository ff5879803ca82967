"""Bootstrap of workers: random shifts of the counts that other workers would have caused.

Worker w selected image x by r_xw more often than its other annotators did
(`bayesrep.numerics.crowd`): over all images in proportion to s (1 − s), by

    b_w v_x,        b_w = Σ_x r_xw / Σ_x v_x,        v = f (1 − f),  f = (k + 1) / (n + 2)

Perturbing each worker's weight by e_w ~ Normal(0, 1) changes image x's selection frequency by
z_x = Σ_w e_w b_w v_x, scaled so that the mean has the workers' covariance. The residuals
themselves, of a worker's few answers about a cell, would be mostly noise.

Of the total Z of a cell (k, n), with the share of "no" that may become "yes" and of "yes",

    shift_counts from k to k + 1  =  (1 − k/n) Z_k  +  (k + 1)/n Z_{k+1}

images flow, and those that a classifier gets right with their own Z: the distribution of the counts
is shifted, and no noisier.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bayesrep.numerics.constants import SMALLEST_POSITIVE
from bayesrep.studies.crowds import frequency_covariance, residuals_of
from bayesrep.studies.statistics import Cells
from bayesrep.studies.study import Study
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.types import Float, Ints


@dataclass(frozen=True, eq=False)
class WorkerBootstrap:
    """Directions in which other workers would have shifted the counts, by role."""

    shifts: dict[str, sparse.csr_array]  # b_w v_x [image, worker], scaled, where workers are known
    workers: int  # their number, the same in all data sets

    @classmethod
    def from_study(cls, study: Study) -> "WorkerBootstrap":
        """Compute the shifts of a study's workers; none where the workers are not known."""
        roles = [role for role in REQUIRED_ROLES if study.datasets[role].answers is not None]
        if not roles:
            return cls({}, 0)
        datasets = [study.datasets[role] for role in roles]
        residuals = residuals_of(datasets)
        covariance = frequency_covariance(datasets, residuals)
        scaled = {}
        for i, (role, data, r) in enumerate(zip(roles, datasets, residuals, strict=True)):
            frequency = (data.selected + 1) / (data.shown + 2)
            variance = frequency * (1 - frequency)
            answered = sparse.csr_array((np.ones(r.nnz), r.indices, r.indptr), r.shape)
            leniency = r.sum(axis=0) / np.maximum(variance @ answered, SMALLEST_POSITIVE)
            shift = answered * variance[:, None] * leniency[None, :]
            # Scaled so that the mean frequency has its variance over workers.
            mean = (1 / data.shown / len(data.images)) @ shift
            scale = np.sqrt(covariance[i, i] / max(float(mean @ mean), SMALLEST_POSITIVE))
            scaled[role] = sparse.csr_array(shift * scale)
        return cls(scaled, len(residuals[0].sum(axis=0)))


def with_adjacent_cells(cells: Cells) -> Cells:
    """Add empty cells with one selection more and one less."""
    n_annotators = np.tile(cells.shown, 3)
    k = np.concatenate([cells.selected + step for step in (-1, 0, 1)])
    possible = (k >= 0) & (k <= n_annotators)
    distinct_n, distinct_k = np.unique(np.stack([n_annotators[possible], k[possible]]), axis=1)
    return cells.on(distinct_k, distinct_n)


def shift_counts(
    selected: Ints,
    n_annotators: Ints,
    extra: Float[np.ndarray, "version cell *classifier"],
) -> Float[np.ndarray, "version cell *classifier"]:
    """Compute the change of each cell's number of images from Z; cells by (n, k), adjacent."""
    tail = (1,) * (extra.ndim - 2)
    frequency = (selected / n_annotators).reshape(-1, *tail)
    adjacent = (np.diff(n_annotators) == 0) & (np.diff(selected) == 1)
    moving = (1 - frequency[:-1]) * extra[:, :-1] + frequency[1:] * extra[:, 1:]
    moving = moving * adjacent.reshape(-1, *tail)
    # What flows from k to k + 1 leaves the one cell and enters the other.
    growth = np.zeros_like(extra)
    growth[:, 1:] += moving
    growth[:, :-1] -= moving
    return growth
