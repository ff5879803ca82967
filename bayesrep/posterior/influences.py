"""What shared images add to the covariance of classifiers' adjusted accuracies: the sandwich.

The covariance of an estimate over repeated studies is the sum over images of the product of their
influences, and an image's influence on a posterior mean is a posterior covariance (Giordano and
Broderick 2023, "The Bayesian infinitesimal jackknife for variance", equation 7):

    influence of x on E[A]  =  (counts)  +  Σ_c r_cx φ_c,        r = correct − q.

φ_c is what one more right answer of classifier c would do. All of it reaches what is c's own, and w
of it what all share, ξ (`bayesrep.studies.overlap`):

    φ_c  =  w Cov(E[A | ξ], E[logit q_c | ξ])  +  E Cov(A, logit q_c | ξ),

where the latter moves c's own accuracy alone. The posterior takes answers of different classifiers
for independent, and has for them the covariance

    Σ_x Σ_c r_cx² (w φ¹_c φ¹_cᵀ + (1 − w) (own part) (own part)ᵀ),        φ¹: φ for w = 1,

what is shared having the spread that answers of weight w leave. So

    Cov  =  Cov_post  +  Σ_x (Σ_c r_cx φ_c) (Σ_c r_cx φ_c)ᵀ  −  that

is the sandwich covariance with the prior's part kept; of one classifier nothing is added.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bayesrep.types import Bool, Bools, Float, Floats, Int, Ints

LogitRight: TypeAlias = Callable[[int], Float[np.ndarray, "chain draw classifier"]]
"""Draws of the logit of P(correct | cell), of a cell by its index."""
BLOCKS = 5
"""Parts of the draws; covariances of different parts have independent errors."""
DIRECTIONS = 32
"""Leading directions of what shared images add."""
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


def excess_covariance(
    influences: Influences,
    logit_right: LogitRight,
    cell: Int[np.ndarray, "image"],
    correct: Bool[np.ndarray, "image classifier"],
) -> Float[np.ndarray, "classifier classifier"]:
    """What shared images add to the covariance of adjusted accuracies: equation M7.

    Of a collapsed model, which takes the classifiers' answers for independent.

    Parameters
    ----------
    influences
        What answers do.
    logit_right
        Draws of the logit of P(correct | cell), of a cell.
    cell, correct
        Cell and correctness of the replication's images.
    """
    total = _excess_times(influences, logit_right, cell, correct, np.eye(influences.moves.shape[2]))
    return (total + total.T) / 2


def leading_excess(
    influences: Influences,
    logit_right: LogitRight,
    cell: Int[np.ndarray, "image"],
    correct: Bool[np.ndarray, "image classifier"],
    wanted: Float[np.ndarray, "classifier wanted"],
) -> tuple[Float[np.ndarray, "classifier direction"], Float[np.ndarray, "direction direction"]]:
    """The directions in which shared images add most, and what they add there.

    Of thousands of classifiers the whole matrix, which `excess_covariance` has, would take
    gigabytes and minutes, and the draws are too few to say what it is beyond its leading
    directions. These are found by its product with random ones (Halko, Martinsson and Tropp
    2011).

    Parameters
    ----------
    influences, logit_right, cell, correct
        As `excess_covariance` takes them.
    wanted
        Further directions that have to be among them, such as that of the mean.
    """
    among = influences, logit_right, cell, correct
    random = np.random.default_rng(0).standard_normal((influences.moves.shape[2], DIRECTIONS))
    image = _excess_times(*among, np.linalg.qr(random)[0])
    directions = np.linalg.qr(np.column_stack([wanted, image]))[0]
    excess = directions.T @ _excess_times(*among, directions)
    return directions, (excess + excess.T) / 2


def _excess_times(
    influences: Influences,
    logit_right: LogitRight,
    cell: Ints,
    correct: Bools,
    directions: Floats,
) -> Floats:
    """The product [C, K] of `excess_covariance` and directions [C, K]."""
    along = influences.told @ directions
    total = np.zeros(directions.shape)
    for logit, residual in _by_cell(logit_right, cell, correct):
        felt, own = influences.covariances(logit)
        through, alone = felt.swapaxes(1, 2) @ along, own[:, :, None] * directions
        # φ as it is and φ¹, of every answer; products of different blocks have no noise in common.
        weighted, whole = (
            each.sum(axis=0) - each
            for each in (influences.weight * through + alone, through + alone)
        )
        squares = np.square(residual).sum(axis=0)[:, None]
        together = np.stack([residual.T @ (residual @ each) for each in weighted])
        total += np.sum(own[:, :, None] * (together - squares * weighted), axis=0)
        both = felt @ (influences.weight * (together - squares * whole))
        total += np.sum(influences.told.swapaxes(1, 2) @ both, axis=0)
    return total / (BLOCKS * (BLOCKS - 1))


def _by_cell(
    logit_right: LogitRight, cell: Ints, correct: Bools
) -> Iterator[tuple[Floats, Floats]]:
    """Centered draws of logit q [block, S, C] of every cell, and its images' residuals [image, C].

    A covariance from finitely many draws is off by noise, whose square does not average out;
    products of different blocks have none.
    """
    order = np.argsort(cell, kind="stable")
    cell = cell[order]
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    for start, stop in zip(starts, [*starts[1:], len(cell)], strict=True):
        logit = np.asarray(logit_right(int(cell[start])), dtype=float)
        yield center_draws(logit), correct[order[start:stop]] - expit(logit).mean(axis=(0, 1))
