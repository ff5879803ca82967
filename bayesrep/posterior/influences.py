"""What answers do to the adjusted accuracies: influences as posterior covariances.

An image's influence on a posterior mean is a posterior covariance (Giordano and Broderick 2023,
"The Bayesian infinitesimal jackknife for variance", equation 7):

    influence of x on E[A]  =  (counts)  +  Σ_c r_cx φ_c,        r = correct − q.

φ_c is what one more right answer of classifier c would do. All of it reaches what is c's own, and w
of it what all share, ξ (`bayesrep.studies.overlap`):

    φ_c  =  w Cov(E[A | ξ], E[logit q_c | ξ])  +  E Cov(A, logit q_c | ξ),

where the latter moves c's own accuracy alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayesrep.types import Float, Floats

LogitRight: TypeAlias = Callable[[int], Float[np.ndarray, "chain draw classifier"]]
"""Draws of the logit of P(correct | cell), of a cell by its index."""
BLOCKS = 5
"""Parts of the draws; covariances of different parts have independent errors."""
DRAWS_A_COORDINATE = 5
"""Draws of a block for each direction of what is shared that is told apart from noise."""


def center_draws(draws: NDArray[np.floating]) -> Floats:
    """Draws [chain, draw, ...] less their mean, as [block, S, ...].

    Blocks have hardly anything to do with each other: mirrored draws, which lie half of all draws
    apart, are in one block.
    """
    flat = np.asarray(draws, dtype=float).reshape(-1, *draws.shape[2:])
    half = len(flat) // 2
    size = half // BLOCKS
    shape = (BLOCKS, size, *flat.shape[1:])
    pairs = [flat[start : start + size * BLOCKS].reshape(shape) for start in (0, half)]
    blocks = np.concatenate(pairs, axis=1)
    blocks -= blocks.mean(axis=1, keepdims=True)
    return blocks


@dataclass(frozen=True, eq=False)
class Influences:
    """What right answers do to posterior means of the adjusted accuracies.

    Attributes
    ----------
    moves
        Draws of these, centred, in blocks of S.
    basis, told
        An orthonormal basis of the draws of what all classifiers share, and its products with
        `moves`.
    weight
        w.
    """

    moves: Float[np.ndarray, "block draw classifier"]
    basis: Float[np.ndarray, "block draw coordinate"]
    told: Float[np.ndarray, "block coordinate classifier"]
    weight: float

    @classmethod
    def from_draws(
        cls,
        adjusted: Float[np.ndarray, "chain draw classifier"],
        shared: Float[np.ndarray, "chain draw shared"],
        weight: float,
    ) -> "Influences":
        """From draws of the adjusted accuracies and of all that classifiers share."""
        moves, basis = center_draws(adjusted), _basis(center_draws(shared))
        return cls(moves, basis, basis.swapaxes(1, 2) @ moves, weight)

    def covariances(
        self, logit: Float[np.ndarray, "block draw classifier"]
    ) -> tuple[
        Float[np.ndarray, "block coordinate classifier"], Float[np.ndarray, "block classifier"]
    ]:
        """Covariances of classifiers' logits, centred, with the basis and with their own A."""
        size = self.moves.shape[1]
        felt = self.basis.swapaxes(1, 2) @ logit
        own = np.sum(logit * self.moves, axis=1) - np.sum(felt * self.told, axis=1)
        return felt / size, own / size

    def project(
        self,
        logit: Float[np.ndarray, "block draw classifier"],
        directions: Float[np.ndarray, "classifier direction"],
    ) -> Float[np.ndarray, "block classifier direction"]:
        """φ of every classifier, as directions see it."""
        felt, own = self.covariances(logit)
        through = felt.swapaxes(1, 2) @ (self.told @ directions)
        return self.weight * through + own[:, :, None] * directions


def _basis(
    shared: Float[np.ndarray, "block draw shared"],
) -> Float[np.ndarray, "block draw coordinate"]:
    """An orthonormal basis of each block's draws, in their leading directions where few tell."""
    scaled = shared / np.maximum(shared.std(axis=(0, 1)), 1e-300)
    most = min(scaled.shape[2], scaled.shape[1] // DRAWS_A_COORDINATE)
    left, lengths, _ = np.linalg.svd(scaled, full_matrices=False)
    return left[:, :, :most] * (lengths[:, None, :most] > 1e-8 * lengths[:, None, :1])
