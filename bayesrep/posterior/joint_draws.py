"""All classifiers together: joint draws of their accuracies that know of the shared images.

A collapsed model's posterior is right about one classifier at a time. What it leaves out of the
covariance of two classifiers' adjusted accuracies is that they answer the same images: `influences`
has what that adds. Of the sandwich covariance the correlations are taken; a classifier's own spread
stays as it is. Draws are moved by the linear map that takes them from the posterior's covariance to
the new one with the least displacement.

The accuracy on the reference's *population* has influences (correct − accuracy) / N of its own; its
covariance with A comes from the reference's annotation counts. Both are taken as normal.

A model that has all classifiers' answers to an image in one likelihood needs none of this.
"""

from typing import NamedTuple

import numpy as np

from bayesrep.posterior.influences import center_draws
from bayesrep.types import Bool, Float, Floats, Int, Ints

LEAST_WHITE = 0.02
"""Least variance of a combination of classifiers, relative to the collapsed model's."""
MOST_WHOLE = 1_000
"""Classifiers whose covariance is moved as a whole; of more, in its leading directions."""
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
    return inverse @ _square_root(root @ target @ root) @ inverse


def _powers(matrix: Floats) -> tuple[Floats, Floats]:
    """Square root of a positive definite matrix, and its inverse."""
    roots, vectors = _roots_of_eigenvalues(matrix)
    return (vectors * roots) @ vectors.T, (vectors / roots) @ vectors.T


def _square_root(matrix: Floats) -> Floats:
    """That of a positive semidefinite matrix, which may be zero."""
    roots, vectors = _roots_of_eigenvalues(matrix)
    return (vectors * roots) @ vectors.T


def _roots_of_eigenvalues(matrix: Floats) -> tuple[Floats, Floats]:
    values, vectors = np.linalg.eigh(matrix)
    return np.sqrt(np.clip(values, values.max() * 1e-12, None)), vectors


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
    noise = _square_root(_floor_eigenvalues(residual.T @ residual - cross @ slope.T, 0.0))
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
