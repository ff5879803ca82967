"""All classifiers together: joint draws of their accuracies that know of the shared images.

The joint model's posterior is right about one classifier at a time. What it leaves out of the
covariance of two classifiers' adjusted accuracies is that they answer the same images. The
covariance of an estimate over repeated studies is the sum over images of the product of their
influences, and an image's influence on a posterior mean is a posterior covariance (Giordano and
Broderick 2023, "The Bayesian infinitesimal jackknife for variance", equation 7)::

    influence of x on E[A]  =  Cov_post(A, log p(image x))
                            =  (counts)  +  Σ_c r_cx Cov_post(A, logit q_c[k, n]),  r = correct − q

In the sum over images of products the joint model has all terms but those of two different
classifiers, which it takes to be independent. So

    Cov  =  Cov_post  +  Σ_x Σ_{c ≠ c'} (influence of c's answer) (influence of c''s answer)ᵀ

is the sandwich covariance with the prior's part kept. Its correlations are taken; a classifier's
own spread stays as it is. Draws are moved by the linear map that takes them from Cov_post to the
new covariance with the least displacement.

The accuracy on the reference's *population* has influences (correct − accuracy) / N of its own; its
covariance with A comes from the reference's annotation counts. Both are taken as normal.

The shared-difficulty model needs none of this: its posterior is about all classifiers together.
"""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrep.inference.problem import check_study
from bayesrep.posterior.groups import cell_of_images, need_group
from bayesrep.studies.study import Study

Floats = NDArray[np.float64]
BLOCKS = 5
"""Parts of the draws; covariances of different parts have independent errors."""
LEAST_WHITE = 0.02
"""Least variance of a combination of classifiers, relative to the joint model's."""


DRAWS_A_DIRECTION = 50
"""Draws that a direction of the moves needs before anything is regressed on it."""


class Together(NamedTuple):
    """Draws of all classifiers' accuracies, as many as the posterior has.

    Attributes
    ----------
    adjusted : [chain, draw, C]
        Adjusted accuracy.
    reference : [chain, draw, C]
        Accuracy on the population that the reference is a sample of.
    """

    adjusted: Floats
    reference: Floats


def together(study: Study, posterior: Any, *, seed: int = 0) -> Together:
    """Joint draws of adjusted accuracies and of accuracies on the reference's population.

    Parameters
    ----------
    study
        The study that was fitted, with its images.
    posterior
        From :func:`bayesrep.fit`. Of the shared-difficulty model: its own draws; of the joint
        model: moved to the sandwich covariance.
    seed
        Of the reference accuracies' noise, where the model has none.

    Raises
    ------
    StudyError
        If the posterior belongs to another study or lacks a group.
    """
    check_study(study, posterior)
    group = need_group(posterior, "posterior", "adjusted_accuracy")
    adjusted = np.asarray(group["adjusted_accuracy"].values, dtype=float)
    if "population_reference_accuracy" in group:
        return Together(adjusted, np.asarray(group["population_reference_accuracy"].values))
    flat = adjusted.reshape(-1, adjusted.shape[-1])
    moves = flat - flat.mean(axis=0)
    if posterior.posterior.attrs["model"] == "joint":
        root, inverse = _powers(np.atleast_2d(np.cov(moves.T)))
        white = np.eye(len(root)) + inverse @ excess_covariance(study, posterior) @ inverse
        target = root @ _at_least(white, LEAST_WHITE) @ root
        spread = np.linalg.norm(root, axis=0) / np.sqrt(np.diag(target))
        target *= np.outer(spread, spread)
        # The symmetric map of least mean squared displacement (Knott and Smith 1984).
        moves = moves @ inverse @ _powers(root @ target @ root)[0] @ inverse
    reference = _reference_draws(study, posterior, moves, seed)
    center = flat.mean(axis=0)
    return Together((center + moves).reshape(adjusted.shape), reference.reshape(adjusted.shape))


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


def _centered(array: xr.DataArray) -> Floats:
    """Draws less their mean [block, S, ...] of an array [chain, draw, ...].

    Blocks have hardly anything to do with each other: mirrored draws, which lie half of all draws
    apart, are in one block.
    """
    flat = np.asarray(array.values, dtype=float).reshape(-1, *array.shape[2:])
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


def excess_covariance(study: Study, posterior: Any) -> Floats:
    """What shared images add to the covariance of adjusted accuracies, [C, C]: equation M7.

    Parameters
    ----------
    study, posterior
        As :func:`together`.
    """
    likelihood = need_group(posterior, "log_likelihood", "log_right")
    adjusted = _centered(posterior.posterior["adjusted_accuracy"])
    log_right = likelihood["log_right"]
    data = study.datasets["replication"]
    column = str(posterior.posterior.attrs["groups"])
    cell = cell_of_images(data, log_right["replication_cell"].values, column)
    order = np.argsort(cell, kind="stable")
    correct, cell = np.asarray(data.correct[order], dtype=float), cell[order]
    total = np.zeros((adjusted.shape[2],) * 2)
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    for start, stop in zip(starts, [*starts[1:], len(cell)], strict=True):
        log_q = log_right[..., cell[start]]
        logit = _centered(log_q - np.log(-np.expm1(log_q)))
        # Cov(A_l, logit q_c) [block, c, l]
        sway = logit.transpose(0, 2, 1) @ adjusted / logit.shape[1]
        residual = correct[start:stop] - np.exp(log_q.values.astype(float)).mean(axis=(0, 1))
        own = np.sqrt(np.square(residual).sum(axis=0))[:, None]
        total += _products(residual @ sway) - _products(own * sway)
    return total


def _reference_draws(study: Study, posterior: Any, moves: Floats, seed: int) -> Floats:
    """Draws [S, C] of accuracies on the reference's population, given the adjusted ones' moves.

    Reference images move the adjusted accuracies through their counts alone, all classifiers
    together: through the leading directions of the moves. In the others there is nothing to
    learn, and with as many classifiers as draws their inverse covariance would be noise.
    """
    likelihood = need_group(posterior, "log_likelihood", "reference_images")
    observed = need_group(posterior, "observed_data", "reference_images")
    data = study.datasets["reference"]
    correct = np.asarray(data.correct, dtype=float)
    accuracy = correct.mean(axis=0)
    residual = (correct - accuracy) / len(correct)
    images = np.maximum(observed["reference_images"].values, 1)
    adjusted = _centered(posterior.posterior["adjusted_accuracy"])
    log_mass = _centered(likelihood["reference_images"]) / images
    influence = (log_mass.transpose(0, 2, 1) @ adjusted).mean(axis=0) / log_mass.shape[1]  # [M, l]
    column = str(posterior.posterior.attrs["groups"])
    cell = cell_of_images(data, likelihood["reference_cell"].values, column)
    cross = residual.T @ influence[cell]  # [C, l]
    slope = cross @ _leading_precision(moves)
    noise = _powers(_at_least(residual.T @ residual - cross @ slope.T, 0.0))[0]
    random = np.random.default_rng(seed)
    return accuracy + moves @ slope.T + random.standard_normal(moves.shape) @ noise
