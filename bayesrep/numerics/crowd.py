"""Cluster-robust covariance of estimates over workers who answered many images each.

With images and workers both drawn anew, an estimate T has the covariance (Cameron, Gelbach and
Miller 2011, "Robust inference with multiway clustering"; Owen 2007, "The pigeonhole bootstrap")

    images  +  workers  −  both,

where `images` is the covariance without the workers. Worker w contributes, to first order,

    U_w  =  Σ_x r_xw δ_x,        workers − both  =  Σ_w (U_w U_wᵀ − Σ_x r_xw² δ_x δ_xᵀ).

δ_x is by how much T moves when one of the image's answers turns from no to yes: with T(k) where k
are yes, the mean over its answers of T(k') − T(k' − 1), which is k' = k for the k that are yes and
k' = k + 1 for the others. r_xw is by how much worker w selected image x more often than its other
annotators did,

    r_xw  =  y_xw − (k − y_xw) / (n − 1).

Where two workers meet on two images, the other's leniency is in both residuals as well. Of
independent workers of equal spread that makes the product larger by a factor of

    1  +  c / ((n − 1) (n' − 1)),    c: other workers that the images have in common,

by whose mean over pairs of a worker's images the sum is divided. A worker of both data sets has one
U_w of both.

A standard deviation is stretched by the ratio of Student's t to the normal's 97.5 % quantile, with
one degree of freedom less than there are effective workers: (Σ m)² / Σ m², where m is the sum of a
worker's |δ| (after Carter, Schnepel and Steigerwald 2017, "Asymptotic behavior of a t test robust
to cluster heterogeneity").
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import stdtrit

from bayesrep.numerics.constants import SMALLEST_POSITIVE
from bayesrep.numerics.estimands import INTERVAL, Z_975
from bayesrep.types import Bool, Float, Floats, Int

MAX_PAIRS = 20_000_000  # pairs of answers about an image that count overlaps; of more, a sample


def residuals(
    image: Int[np.ndarray, "answer"],
    worker: Int[np.ndarray, "answer"],
    selected: Bool[np.ndarray, "answer"],
    images: int,
    workers: int,
) -> sparse.csr_array:
    """Compute the residual r_xw of every answer, a single one's to the mean: [image, worker]."""
    n_annotators = np.bincount(image, minlength=images)[image]
    others = np.bincount(image, selected, minlength=images)[image] - selected
    mean = selected.mean() if len(selected) else 0.0
    # The answer minus the mean of the image's other answers.
    r = selected - np.where(n_annotators > 1, others / np.maximum(n_annotators - 1, 1), mean)
    return sparse.csr_array((r, (image, worker)), shape=(images, workers))


def overlap_correction(datasets: Sequence[sparse.csr_array]) -> float:
    """Average 1 + c / ((n − 1) (n' − 1)) over pairs of a worker's images; 1 where none has two."""
    answered = sparse.csr_array(sparse.vstack(datasets), copy=True)
    answered.data = np.ones(answered.nnz)
    n_annotators = answered.sum(axis=1)
    several = np.flatnonzero(n_annotators > 1)
    work = np.square(n_annotators[several]).sum()
    if work > MAX_PAIRS:
        size = max(2, int(len(several) * MAX_PAIRS / work))
        several = np.random.default_rng(0).choice(several, size, replace=False)
    answered, others = answered[several], n_annotators[several] - 1
    n_by_worker = answered.sum(axis=0)
    pairs = np.sum(n_by_worker * (n_by_worker - 1))
    if not pairs > 0:
        return 1.0
    # shared[w, w']: the images that two workers both answered, each weighted by 1 / (n − 1).
    shared = (answered.T @ (sparse.diags_array(1 / others) @ answered)).tocsr()
    shared.setdiag(0)
    # An image paired with itself does not count.
    common = shared.power(2).sum() - np.sum((others + 1) / others)
    return float(1 + max(common, 0.0) / pairs)


class Clustered(NamedTuple):
    """Covariance of some quantities over workers."""

    covariance: Float[np.ndarray, "quantity quantity"]  # workers − both; psd
    effective: Float[np.ndarray, "quantity"]  # number of workers behind each


def cluster_covariance(
    parts: Iterable[tuple[sparse.csr_array, Float[np.ndarray, "block _ quantity"]]], overlap: float
) -> Clustered:
    """Compute the covariance over workers, corrected for overlap and for few clusters.

    Parts are residuals r [image, worker] and their δ (one row where equal), in blocks of
    independent errors; a single block is exact.
    """
    score, diag, weight = (np.zeros(()) for _ in range(3))
    for residual, steps in parts:
        total = steps.sum(axis=0)
        square = residual.power(2).sum(axis=1)
        # The pattern of answers, and one row in place of all where δ is the same for every image.
        pattern = sparse.csr_array(residual, copy=True)
        pattern.data = np.ones(pattern.nnz)
        if len(total) == 1:
            sums = (np.asarray(m.sum(axis=0)) for m in (residual, pattern))
            residual, pattern = (sparse.csr_array(each[np.newaxis]) for each in sums)
            square = square.sum(keepdims=True)
        score = score + np.stack([residual.T @ step for step in steps])
        diag = diag + np.stack([each.T @ (square[:, None] * each) for each in (*steps, total)])
        weight = weight + pattern.T @ np.abs(total)
    blocks, total = len(score), score.sum(axis=0)
    # Σ U Uᵀ minus each answer's product with itself.
    within = total.T @ total - diag[-1]
    if blocks > 1:  # products of different blocks have no noise in common
        within -= sum(each.T @ each - own for each, own in zip(score, diag[:-1], strict=True))
        within /= blocks * (blocks - 1)
    effective, stretch = few_clusters_stretch(weight)
    return Clustered(clip_eigenvalues(within / overlap) * np.outer(stretch, stretch), effective)


def few_clusters_stretch(
    weight: Float[np.ndarray, "worker quantity"],
) -> tuple[Float[np.ndarray, "quantity"], Float[np.ndarray, "quantity"]]:
    """Compute the workers behind sums m of |δ|, and the t factor on a standard deviation."""
    effective = weight.sum(axis=0) ** 2 / np.maximum(
        np.square(weight).sum(axis=0), SMALLEST_POSITIVE
    )
    return effective, stdtrit(np.maximum(effective - 1, 1.0), INTERVAL[1]) / Z_975


def clip_eigenvalues(matrix: Floats) -> Floats:
    """Return the nearest symmetric positive semidefinite matrix."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.maximum(values, 0)) @ vectors.T
