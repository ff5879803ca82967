"""Influences of answers on the adjusted accuracies, as posterior covariances.

Giordano and Broderick (2023), "The Bayesian infinitesimal jackknife for variance", equation 7:

    influence of x on E[A]  =  (counts)  +  Σ_c r_cx φ_c,        r = correct − q,

for binomial answers; other distributions have the log probability of x's answer given those about
the other images in place of that. With w for the global parameters ξ (`bayesrep.studies.overlap`),
the effect of one more right answer of classifier c is

    φ_c  =  w Cov(E[A | ξ], E[logit q_c | ξ])  +  E Cov(A, logit q_c | ξ),

where the latter moves c's own accuracy alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayesrep.types import Float, Floats

LogAnswers: TypeAlias = Callable[[int], tuple[Float[np.ndarray, "chain draw classifier"], ...]]
"""Draws of log P(wrong) and log P(right) of one more image of a cell, by the cell's index."""
N_BLOCKS = 5  # blocks of draws; covariances of different blocks have independent errors
DRAWS_PER_DIRECTION = 5  # a block's draws per estimated direction of the global parameters


def center_draws(draws: NDArray[np.floating]) -> Floats:
    """Center draws [chain, draw, ...] within nearly independent blocks [block, S, ...]."""
    flat = np.asarray(draws, dtype=float).reshape(-1, *draws.shape[2:])
    half = len(flat) // 2
    size = half // N_BLOCKS
    shape = (N_BLOCKS, size, *flat.shape[1:])
    # Each block takes a slice of both halves, so that antithetic pairs stay together.
    pairs = [flat[start : start + size * N_BLOCKS].reshape(shape) for start in (0, half)]
    blocks = np.concatenate(pairs, axis=1)
    blocks -= blocks.mean(axis=1, keepdims=True)
    return blocks


@dataclass(frozen=True, eq=False)
class Influences:
    """Influences of right answers on posterior means of the adjusted accuracies."""

    deviations: Float[np.ndarray, "block draw classifier"]  # of the draws
    basis: Float[np.ndarray, "block draw coordinate"]  # of the global parameters
    coefs: Float[np.ndarray, "block coordinate classifier"]  # basis' deviations
    weight: float  # w of each classifier's likelihood for the global parameters

    @classmethod
    def from_draws(
        cls,
        adjusted: Float[np.ndarray, "chain draw classifier"],
        shared: Float[np.ndarray, "chain draw shared"],
        weight: float,
    ) -> "Influences":
        """Build from draws of the adjusted accuracies and of the global parameters."""
        deviations, basis = center_draws(adjusted), _basis(center_draws(shared))
        return cls(deviations, basis, basis.swapaxes(1, 2) @ deviations, weight)

    def covariances(
        self, logit: Float[np.ndarray, "block draw classifier"]
    ) -> tuple[
        Float[np.ndarray, "block coordinate classifier"], Float[np.ndarray, "block classifier"]
    ]:
        """Compute covariances of centred logits with the basis, and with their own A given it."""
        size = self.deviations.shape[1]
        global_cov = self.basis.swapaxes(1, 2) @ logit
        # The remainder given the global parameters: the covariance of c's own part.
        own = np.sum(logit * self.deviations, axis=1) - np.sum(global_cov * self.coefs, axis=1)
        return global_cov / size, own / size

    def project(
        self,
        logit: Float[np.ndarray, "block draw classifier"],
        directions: Float[np.ndarray, "classifier direction"],
    ) -> Float[np.ndarray, "block classifier direction"]:
        """Compute φ of every classifier in some directions of the adjusted accuracies."""
        global_cov, own = self.covariances(logit)
        global_effect = global_cov.swapaxes(1, 2) @ (self.coefs @ directions)
        return self.weight * global_effect + own[:, :, None] * directions


def _basis(
    shared: Float[np.ndarray, "block draw shared"],
) -> Float[np.ndarray, "block draw coordinate"]:
    """Compute an orthonormal basis of each block's draws, of their leading directions."""
    # Parameters have different scales, and few draws estimate few directions.
    scaled = shared / np.maximum(shared.std(axis=(0, 1)), 1e-300)
    rank = min(scaled.shape[2], scaled.shape[1] // DRAWS_PER_DIRECTION)
    vectors, lengths, _ = np.linalg.svd(scaled, full_matrices=False)
    # Null directions, such as those of constants, are set to zero.
    return vectors[:, :, :rank] * (lengths[:, None, :rank] > 1e-8 * lengths[:, None, :1])
