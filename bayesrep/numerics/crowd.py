"""Covariance of estimates over workers who answered many images each.

k of n annotators is a binomial draw where every answer comes from a worker of its own. Where worker
w answers many images, what makes him stricter or more lenient moves all of them together, and with
other workers an estimate T would have been another one. Over repeated studies, with images and
workers both drawn anew, its covariance is (Cameron, Gelbach and Miller 2011, "Robust inference with
multiway clustering"; Owen 2007, "The pigeonhole bootstrap")

    images  +  workers  −  both,

where `images` is what is known without the workers. Of worker w what is left over is, linearly,

    U_w  =  Σ_x r_xw δ_x,        workers − both  =  Σ_w (U_w U_wᵀ − Σ_x r_xw² δ_x δ_xᵀ).

δ_x is by how much T moves when one of the image's answers turns from no to yes: with T(k) where k
are yes, the mean over its answers of T(k') − T(k' − 1), which is k' = k for the k that are yes and
k' = k + 1 for the others. r_xw is by how much worker w selected image x more often than its other
annotators did,

    r_xw  =  y_xw − (k − y_xw) / (n − 1).

These sum to zero over an image's workers, whatever k. So r_xw δ_x has mean zero where workers are
alike, whatever the image's s, and products over two images estimate the covariance of one worker's
leniencies. Where two workers meet on both images,
the other's leniency is in both residuals as well. Of independent workers of equal spread that makes
the product larger by a factor of

    1  +  c / ((n − 1) (n' − 1)),    c: other workers that the images have in common,

by whose mean over pairs of a worker's images the sum is divided. A worker of both data sets has one
U_w of both: one crowd's leniency moves the reference and the replication alike, and cancels.

Few workers estimate their spread badly: a standard deviation is stretched by the ratio of Student's
t to the normal's 97.5 % quantile, with one degree of freedom less than there are effective workers:
(Σ m)² / Σ m², where m is the sum of a worker's |δ| (after Carter, Schnepel and Steigerwald 2017,
"Asymptotic behavior of a t test robust to cluster heterogeneity").
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import stdtrit

from bayesrep.numerics.estimands import NORMAL
from bayesrep.types import Bool, Float, Floats, Int

LARGEST_SAMPLE = 20_000_000
"""Pairs of answers about one image that are looked at for workers who meet; of more, a sample."""


def residuals(
    image: Int[np.ndarray, "answer"],
    worker: Int[np.ndarray, "answer"],
    selected: Bool[np.ndarray, "answer"],
    images: int,
    workers: int,
) -> sparse.csr_array:
    """r_xw of every answer: [image, worker], sparse.

    Parameters
    ----------
    image, worker, selected
        Image, worker and selection of every answer.
    images, workers
        How many there are.

    Notes
    -----
    Of an image with one answer there is no other: there r is the answer less the mean of all.
    """
    shown = np.bincount(image, minlength=images)[image]
    others = np.bincount(image, selected, minlength=images)[image] - selected
    mean = selected.mean() if len(selected) else 0.0
    r = selected - np.where(shown > 1, others / np.maximum(shown - 1, 1), mean)
    return sparse.csr_array((r, (image, worker)), shape=(images, workers))


def meetings(datasets: Sequence[sparse.csr_array]) -> float:
    """Mean over pairs of a worker's images of 1 + c / ((n − 1) (n' − 1)); 1 where none has two.

    Parameters
    ----------
    datasets
        From `residuals`, of every data set, with the same workers.
    """
    met = sparse.csr_array(sparse.vstack(datasets), copy=True)
    met.data = np.ones(met.nnz)
    shown = met.sum(axis=1)
    several = np.flatnonzero(shown > 1)
    work = np.square(shown[several]).sum()
    if work > LARGEST_SAMPLE:
        size = max(2, int(len(several) * LARGEST_SAMPLE / work))
        several = np.random.default_rng(0).choice(several, size, replace=False)
    met, others = met[several], shown[several] - 1
    answered = met.sum(axis=0)
    pairs = np.sum(answered * (answered - 1))
    if not pairs > 0:
        return 1.0
    together = (met.T @ (sparse.diags_array(1 / others) @ met)).tocsr()
    together.setdiag(0)
    # Of an image with itself there are no two.
    common = together.power(2).sum() - np.sum((others + 1) / others)
    return float(1 + max(common, 0.0) / pairs)


class Clustered(NamedTuple):
    """Covariance of some quantities over workers.

    Attributes
    ----------
    covariance : [Q, Q]
        workers − both; positive semidefinite.
    effective : [Q]
        Effective number of workers behind each.
    """

    covariance: Float[np.ndarray, "quantity quantity"]
    effective: Float[np.ndarray, "quantity"]


def cluster_covariance(
    parts: Iterable[tuple[sparse.csr_array, Float[np.ndarray, "block _ quantity"]]],
    met: float,
) -> Clustered:
    """Covariance over workers.

    Parameters
    ----------
    parts
        Residuals r [image, worker] of some images and their δ (one row for all where they are
        alike), at least one; every block of δ has errors of its own, and is exact where there is
        one.
    met
        From `meetings`.
    """
    moves, both, weight = (np.zeros(()) for _ in range(3))
    for residual, steps in parts:
        total = steps.sum(axis=0)
        square = residual.power(2).sum(axis=1)
        times = sparse.csr_array(residual, copy=True)
        times.data = np.ones(times.nnz)
        if len(total) == 1:
            sums = (np.asarray(m.sum(axis=0)) for m in (residual, times))
            residual, times = (sparse.csr_array(each[np.newaxis]) for each in sums)
            square = square.sum(keepdims=True)
        moves = moves + np.stack([residual.T @ step for step in steps])
        both = both + np.stack([each.T @ (square[:, None] * each) for each in (*steps, total)])
        weight = weight + times.T @ np.abs(total)
    blocks, total = len(moves), moves.sum(axis=0)
    within = total.T @ total - both[-1]
    if blocks > 1:  # products of different blocks have no noise in common
        within -= sum(each.T @ each - own for each, own in zip(moves, both[:-1], strict=True))
        within /= blocks * (blocks - 1)
    effective, stretch = stretch_of_workers(weight)
    return Clustered(clip_eigenvalues(within / met) * np.outer(stretch, stretch), effective)


def stretch_of_workers(
    weight: Float[np.ndarray, "worker quantity"],
) -> tuple[Float[np.ndarray, "quantity"], Float[np.ndarray, "quantity"]]:
    """The effective number of workers, and by what few of them stretch a standard deviation.

    Parameters
    ----------
    weight
        Sums m of every worker's |δ|.
    """
    effective = weight.sum(axis=0) ** 2 / np.maximum(np.square(weight).sum(axis=0), 1e-300)
    return effective, stdtrit(np.maximum(effective - 1, 1.0), 0.975) / NORMAL


def clip_eigenvalues(matrix: Floats) -> Floats:
    """The nearest symmetric matrix without negative eigenvalues."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.maximum(values, 0)) @ vectors.T
