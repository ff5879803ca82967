"""All classifiers together: joint draws of their accuracies that know of the shared images.

A collapsed model's posterior is right about one classifier at a time. What it leaves out of the
covariance of two classifiers' adjusted accuracies is that they answer the same images. The
covariance of an estimate over repeated studies is the sum over images of the product of their
influences, and an image's influence on a posterior mean is a posterior covariance (Giordano and
Broderick 2023, "The Bayesian infinitesimal jackknife for variance", equation 7):

    influence of x on E[A]  =  Cov_post(A, log p(image x))
                            =  (counts)  +  Σ_c r_cx Cov_post(A, logit q_c[k, n]),  r = correct − q

In the sum over images of products the model has all terms but those of two different classifiers,
which it takes to be independent. So

    Cov  =  Cov_post  +  Σ_x Σ_{c ≠ c'} (influence of c's answer) (influence of c''s answer)ᵀ

is the sandwich covariance with the prior's part kept. Its correlations are taken; a classifier's
own spread stays as it is. Draws are moved by the linear map that takes them from Cov_post to the
new covariance with the least displacement.

The accuracy on the reference's *population* has influences (correct − accuracy) / N of its own; its
covariance with A comes from the reference's annotation counts. Both are taken as normal.

A model that has all classifiers' answers to an image in one likelihood needs none of this.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrep.types import Bool, Float, Floats, Int

BLOCKS = 5
"""Parts of the draws; covariances of different parts have independent errors."""
LEAST_WHITE = 0.02
"""Least variance of a combination of classifiers, relative to the collapsed model's."""
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


def moved(
    adjusted: Float[np.ndarray, "chain draw classifier"],
    excess: Float[np.ndarray, "classifier classifier"],
) -> Float[np.ndarray, "chain draw classifier"]:
    """Draws moved to the covariance with what shared images add to it, `excess_covariance`."""
    flat = adjusted.reshape(-1, adjusted.shape[-1])
    center = flat.mean(axis=0)
    moves = flat - center
    root, inverse = _powers(np.atleast_2d(np.cov(moves.T)))
    white = np.eye(len(root)) + inverse @ excess @ inverse
    target = root @ _at_least(white, LEAST_WHITE) @ root
    spread = np.linalg.norm(root, axis=0) / np.sqrt(np.diag(target))
    target *= np.outer(spread, spread)
    # The symmetric map of least mean squared displacement (Knott and Smith 1984).
    moves = moves @ inverse @ _powers(root @ target @ root)[0] @ inverse
    return (center + moves).reshape(adjusted.shape)


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


def _at_least(matrix: Floats, floor: float) -> Floats:
    """The nearest symmetric matrix without eigenvalues below a floor."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.clip(values, floor, None)) @ vectors.T


def _centered(draws: NDArray[np.floating]) -> Floats:
    """Draws [chain, draw, ...] less their mean, as [block, S, ...].

    Blocks have hardly anything to do with each other: mirrored draws, which lie half of all draws
    apart, are in one block.
    """
    flat = np.asarray(draws, dtype=float).reshape(-1, *draws.shape[2:])
    half = len(flat) // 2
    size = half // BLOCKS
    pairs = np.stack([flat[:half], flat[half : 2 * half]])[:, : size * BLOCKS]
    blocks = pairs.reshape(2, BLOCKS, size, *flat.shape[1:]).swapaxes(0, 1)
    blocks = blocks.reshape(BLOCKS, 2 * size, *flat.shape[1:])
    return blocks - blocks.mean(axis=1, keepdims=True)


def _products(parts: Floats) -> Floats:
    """Σ_x aᵀ a of the mean over blocks a [x, l] of parts [block, x, l], without bias.

    A covariance from finitely many draws is off by noise, whose square does not average out;
    products of different blocks have none.
    """
    whole = parts.sum(axis=0)
    same = sum(part.T @ part for part in parts)
    return (whole.T @ whole - same) / (BLOCKS * (BLOCKS - 1))


def excess_covariance(
    adjusted: Float[np.ndarray, "chain draw classifier"],
    log_right: Float[np.ndarray, "chain draw classifier cell"],
    cell: Int[np.ndarray, "image"],
    correct: Bool[np.ndarray, "image classifier"],
) -> Float[np.ndarray, "classifier classifier"]:
    """What shared images add to the covariance of adjusted accuracies: equation M7.

    Of a collapsed model, which takes the classifiers' answers for independent.

    Parameters
    ----------
    adjusted, log_right
        Draws of the adjusted accuracies and of log P(correct | cell).
    cell, correct
        Of the replication's images.
    """
    centered = _centered(adjusted)
    order = np.argsort(cell, kind="stable")
    answers, cell = np.asarray(correct[order], dtype=float), cell[order]
    total = np.zeros((adjusted.shape[2],) * 2)
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    for start, stop in zip(starts, [*starts[1:], len(cell)], strict=True):
        log_q = log_right[..., cell[start]]
        logit = _centered(log_q - np.log(-np.expm1(log_q)))
        # Cov(A_l, logit q_c) [block, c, l]
        sway = logit.transpose(0, 2, 1) @ centered / logit.shape[1]
        residual = answers[start:stop] - np.exp(log_q.astype(float)).mean(axis=(0, 1))
        own = np.sqrt(np.square(residual).sum(axis=0))[:, None]
        total += _products(residual @ sway) - _products(own * sway)
    return total


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
        Of the reference's images.
    seed
        Of what their answers leave open.
    """
    flat = together.reshape(-1, together.shape[-1])
    moves = flat - flat.mean(axis=0)
    answers = np.asarray(correct, dtype=float)
    accuracy = answers.mean(axis=0)
    residual = (answers - accuracy) / len(answers)
    mass = _centered(log_mass)
    influence = (mass.transpose(0, 2, 1) @ _centered(adjusted)).mean(axis=0) / mass.shape[1]
    cross = residual.T @ influence[cell]  # [C, l]
    slope = cross @ _leading_precision(moves)
    noise = _powers(_at_least(residual.T @ residual - cross @ slope.T, 0.0))[0]
    random = np.random.default_rng(seed)
    draws = accuracy + moves @ slope.T + random.standard_normal(moves.shape) @ noise
    return draws.reshape(together.shape)
