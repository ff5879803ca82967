"""All classifiers together: joint draws of their accuracies that know of the shared images.

A collapsed model's posterior is right about one classifier at a time. What it leaves out of the
covariance of two classifiers' adjusted accuracies is that they answer the same images. The
covariance of an estimate over repeated studies is the sum over images of the product of their
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

is the sandwich covariance with the prior's part kept; of one classifier nothing is added. Its
correlations are taken; a classifier's own spread stays as it is. Draws are moved by the linear map
that takes them from Cov_post to the new covariance with the least displacement.

The accuracy on the reference's *population* has influences (correct − accuracy) / N of its own; its
covariance with A comes from the reference's annotation counts. Both are taken as normal.

A model that has all classifiers' answers to an image in one likelihood needs none of this.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bayesrep.types import Bool, Bools, Float, Floats, Int, Ints

LogitRight: TypeAlias = Callable[[int], Float[np.ndarray, "chain draw classifier"]]
"""Draws of the logit of P(correct | cell), of a cell by its index."""
BLOCKS = 5
"""Parts of the draws; covariances of different parts have independent errors."""
LEAST_WHITE = 0.02
"""Least variance of a combination of classifiers, relative to the collapsed model's."""
MOST_WHOLE = 1_000
"""Classifiers whose covariance is moved as a whole; of more, in its leading directions."""
DIRECTIONS = 32
"""Leading directions of what shared images add."""
DRAWS_A_COORDINATE = 5
"""Draws of a block for each direction of what is shared that is told apart from noise."""
DRAWS_A_DIRECTION = 50
"""Draws that a direction of the moves needs before anything is regressed on it."""


class JointDraws(NamedTuple):
    """Draws of all classifiers' accuracies, as many as the posterior has.

    Attributes
    ----------
    adjusted : [chain, draw, classifier]
        Adjusted accuracy.
    reference : [chain, draw, classifier]
        Accuracy on the population that the reference is a sample of.
    """

    adjusted: Float[np.ndarray, "chain draw classifier"]
    reference: Float[np.ndarray, "chain draw classifier"]


def move_draws(
    adjusted: Float[np.ndarray, "chain draw classifier"],
    excess: Float[np.ndarray, "classifier classifier"],
    workers: Float[np.ndarray, "classifier classifier"] | None = None,
) -> Float[np.ndarray, "chain draw classifier"]:
    """Draws moved to the covariance with what shared images add to it.

    Parameters
    ----------
    adjusted
        Draws.
    excess
        From `excess_covariance`: of several classifiers; each one's own spread stays as it is.
    workers
        From `bayesrep.posterior.workers.worker_covariance`: added to that, own spreads and all.
    """
    flat = adjusted.reshape(-1, adjusted.shape[-1])
    center = flat.mean(axis=0)
    moves = flat - center
    root, inverse = _powers(np.atleast_2d(np.cov(moves.T)))
    target = _target(root, inverse, excess)
    spread = np.linalg.norm(root, axis=0) / np.sqrt(np.diag(target))
    target *= np.outer(spread, spread)
    if workers is not None:
        target += workers
    return (center + moves @ _move(root, inverse, target)).reshape(adjusted.shape)


def move_draws_along(
    adjusted: Float[np.ndarray, "chain draw classifier"],
    directions: Float[np.ndarray, "classifier direction"],
    excess: Float[np.ndarray, "direction direction"],
    workers: Float[np.ndarray, "direction direction"] | None = None,
) -> Float[np.ndarray, "chain draw classifier"]:
    """Draws moved as by `move_draws`, but in some orthonormal directions alone.

    Parameters
    ----------
    adjusted
        Draws.
    directions
        From `leading_excess`.
    excess, workers
        What shared images and workers add in these.
    """
    flat = adjusted.reshape(-1, adjusted.shape[-1])
    center = flat.mean(axis=0)
    moves = flat - center
    along = moves @ directions
    root, inverse = _powers(np.atleast_2d(np.cov(along.T)))
    move = _move(root, inverse, _target(root, inverse, excess))
    wanted = moves.std(axis=0)
    rest = moves - along @ directions.T
    moves = (along @ move) @ directions.T
    # What is common to classifiers is none of their own: so much less of the rest is left.
    square, cross = rest.var(axis=0), (rest * moves).mean(axis=0)
    missing = np.square(wanted) - moves.var(axis=0)
    real = np.sqrt(np.maximum(np.square(cross) + square * missing, 0))
    moves += np.maximum(real - cross, 0) / np.maximum(square, 1e-300) * rest
    moves *= wanted / np.maximum(moves.std(axis=0), 1e-300)
    if workers is not None:
        along = moves @ directions
        root, inverse = _powers(np.atleast_2d(np.cov(along.T)))
        more = _move(root, inverse, root @ root + workers) - np.eye(len(root))
        moves += along @ more @ directions.T
    return (center + moves).reshape(adjusted.shape)


def _target(root: Floats, inverse: Floats, excess: Floats) -> Floats:
    """The covariance with what is added to it, of the root of the one without."""
    white = np.eye(len(root)) + inverse @ excess @ inverse
    return root @ _floor_eigenvalues(white, LEAST_WHITE) @ root


def _move(root: Floats, inverse: Floats, target: Floats) -> Floats:
    """The symmetric map of least mean squared displacement (Knott and Smith 1984)."""
    return inverse @ _powers(root @ target @ root)[0] @ inverse


def _powers(matrix: Floats) -> tuple[Floats, Floats]:
    """Square root of a positive semidefinite matrix and its (pseudo-)inverse."""
    values, vectors = np.linalg.eigh(matrix)
    values = np.clip(values, values.max() * 1e-12, None)
    return (vectors * np.sqrt(values)) @ vectors.T, (vectors / np.sqrt(values)) @ vectors.T


def _leading_precision(moves: Floats) -> Floats:
    """Inverse covariance [C, C] of draws [S, C] in as many directions as they determine well."""
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(moves.T)))
    kept = slice(-max(1, min(len(values), len(moves) // DRAWS_A_DIRECTION)), None)
    values, vectors = np.clip(values[kept], values.max() * 1e-12, None), vectors[:, kept]
    return (vectors / values) @ vectors.T


def _floor_eigenvalues(matrix: Floats, floor: float) -> Floats:
    """The nearest symmetric matrix without eigenvalues below a floor."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.clip(values, floor, None)) @ vectors.T


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


def reference_draws(
    adjusted: Float[np.ndarray, "chain kept classifier"],
    together: Float[np.ndarray, "chain draw classifier"],
    log_mass: Float[np.ndarray, "chain kept cell"],
    cell: Int[np.ndarray, "image"],
    correct: Bool[np.ndarray, "image classifier"],
    *,
    seed: int,
) -> Float[np.ndarray, "chain draw classifier"]:
    """Draws of accuracies on the reference's population, given joint draws of the adjusted ones.

    Reference images move the adjusted accuracies through their counts alone, all classifiers
    together: through the leading directions of the joint draws. In the others there is nothing to
    learn, and with as many classifiers as draws their inverse covariance would be noise.

    Parameters
    ----------
    adjusted
        Draws of the posterior: those of which there is `log_mass`.
    together
        All of them, as joint draws.
    log_mass
        Draws of log P(k | n), for one image of each cell.
    cell, correct
        Cell and correctness of the reference's images.
    seed
        Seed of what these images' answers leave open.
    """
    flat = together.reshape(-1, together.shape[-1])
    moves = flat - flat.mean(axis=0)
    answers = np.asarray(correct, dtype=float)
    accuracy = answers.mean(axis=0)
    residual = (answers - accuracy) / len(answers)
    mass = center_draws(log_mass)
    influence = (mass.transpose(0, 2, 1) @ center_draws(adjusted)).mean(axis=0) / mass.shape[1]
    random = np.random.default_rng(seed)
    if moves.shape[1] > MOST_WHOLE:
        draws = _along_images(moves, residual, influence, cell, random)
        return (accuracy + draws).reshape(together.shape)
    cross = residual.T @ influence[cell]  # [C, l]
    slope = cross @ _leading_precision(moves)
    noise = _powers(_floor_eigenvalues(residual.T @ residual - cross @ slope.T, 0.0))[0]
    draws = accuracy + moves @ slope.T + random.standard_normal(moves.shape) @ noise
    return draws.reshape(together.shape)


def _along_images(
    moves: Floats, residual: Floats, influence: Floats, cell: Ints, random: np.random.Generator
) -> Floats:
    """The same draws [S, C] less their mean, without a matrix of classifiers by classifiers.

    With leading directions V of the moves and their variances Λ the answers leave open
    Rᵀ (I − J Λ⁻¹ Jᵀ) R of the residuals R [image, C], where J are the images' influences on V:
    a covariance of weights of images.
    """
    variances, vectors = _leading_directions(moves)
    scaled = influence[cell] @ vectors / np.sqrt(variances)  # J Λ^(−1/2)
    basis, lengths, right = np.linalg.svd(scaled, full_matrices=False)
    lengths = np.minimum(lengths, 1)  # more than all is noise: nothing explains so much
    scaled = basis * lengths @ right
    shrunk = 1 - np.sqrt(1 - np.square(lengths))
    draws = (moves @ vectors / np.sqrt(variances)) @ (scaled.T @ residual)
    for rows in np.array_split(np.arange(len(moves)), -(-len(moves) // 200)):
        weights = random.standard_normal((len(rows), len(cell)))
        weights -= (weights @ basis * shrunk) @ basis.T
        draws[rows] += weights @ residual
    return draws


def _leading_directions(moves: Floats) -> tuple[Floats, Floats]:
    """Variances [K] and directions [C, K] of draws [S, C] that these determine well, of many."""
    draws, classifiers = moves.shape
    few = draws < classifiers  # the smaller of the two matrices has the same eigenvalues
    values, vectors = np.linalg.eigh(moves @ moves.T if few else moves.T @ moves)
    kept = slice(-max(1, min(len(values), draws // DRAWS_A_DIRECTION)), None)
    values, vectors = np.clip(values[kept], values.max() * 1e-12, None), vectors[:, kept]
    return values / (draws - 1), moves.T @ vectors / np.sqrt(values) if few else vectors
