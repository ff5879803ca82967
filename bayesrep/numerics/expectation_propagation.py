"""Workers' leniencies, the densities of selection frequencies and the spread of leniencies, by EP.

The model is that of `leniency`. Every answer has a normal site on its worker's b (expectation
propagation, Minka 2001); m and v of an answer are those without its own site (the cavity). Images
are summed over nodes of s. The density of s in every data set is anything, and found with the
leniencies, by expectation maximisation; τ too, by what workers are told apart (MacKay 1992).

The leniencies' covariance comes from the observed information (Louis 1982) with the densities'
smooth changes taken out: a whole crowd that is more lenient and images that are more often fit to
be selected explain the same answers, unless one crowd rated both data sets.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.polynomial.legendre import legvander
from scipy import sparse
from scipy.sparse import csgraph
from scipy.special import expit, logsumexp

from bayesrep.numerics import logit_quadrature
from bayesrep.numerics.leniency import (
    CrowdAnswers,
    Leniencies,
    hermite,
    run_in_chunks,
    stretched_logit,
)
from bayesrep.types import Float, Floats, Ints

REACH = 12.0
"""Largest |logit s| where leniencies are found."""
SWEEPS = 30
DENSITY_SWEEPS = 5
DAMPING = 0.7
"""Share of the way to its new value that a site moves in one sweep."""
SETTLED_CHANGE = 5e-3
"""Largest change of a leniency in the last sweep, in logits."""
STARTING_SPREAD = 0.5
PRIOR_WORKERS = 0.1
"""Number of workers that the starting spread counts as: it decides where nobody answers twice."""
MOST_DENSE_WORKERS = 3_000
"""Workers whose leniencies have a covariance; of more, those with the most answers."""
SMOOTH = 5
"""Polynomials of s by which the log density of a data set may be wrong."""
PRIOR = 0.1
"""Prior precision of these polynomials' coefficients."""


class _Sites(NamedTuple):
    """What expectation propagation changes: every answer's site, τ and the densities of s."""

    precision: Floats
    pull: Floats
    spread: float
    log_density: Float[np.ndarray, "dataset node"]


class _Seen(NamedTuple):
    """What follows from the sites: of workers, of answers [A], and of images [I, node]."""

    alpha: Floats
    mean: Floats
    precision: Floats
    cavity_mean: Floats
    cavity_variance: Floats
    log_said: Floats
    log_image: Floats


def find_leniencies(answers: CrowdAnswers) -> Leniencies:
    """Leniencies of all workers.

    Parameters
    ----------
    answers
        Answers about all data sets.
    """
    log_s, log_rest, log_width = logit_quadrature.nodes()
    logit = log_s - log_rest
    kept = np.flatnonzero(np.abs(logit) <= REACH)[::2]
    uniform = (log_s + log_rest + log_width)[kept]
    datasets = int(answers.dataset.max()) + 1
    log_density = np.tile(uniform - logsumexp(uniform), (datasets, 1))
    nothing = np.zeros(len(answers.image))
    sites = _Sites(nothing, nothing, STARTING_SPREAD, log_density)
    seen = _see(answers, sites, logit[kept])
    for sweep in range(SWEEPS):
        sites = _swept(answers, sites, seen, part=DAMPING if sweep else 1.0)
        before, seen = seen.mean, _see(answers, sites, logit[kept])
        if np.abs(seen.mean - before).max() < SETTLED_CHANGE:
            break
    return Leniencies(
        sites.spread,
        seen.mean,
        1 / seen.precision,
        seen.cavity_mean,
        seen.cavity_variance,
        *_covariance(answers, sites, seen, logit[kept]),
    )


def _crowds(answers: CrowdAnswers) -> Ints:
    """Every worker's crowd: data sets are rated by one if they have workers in common.

    −1 for a worker with one answer or none, whose leniency cannot be told.
    """
    dataset = answers.dataset[answers.image]
    shape = (int(answers.dataset.max()) + 1, answers.workers)
    asked = sparse.csr_array((np.ones(len(dataset)), (dataset, answers.worker)), shape)
    _, of = csgraph.connected_components(asked @ asked.T)
    crowd = np.full(answers.workers, -1)
    crowd[answers.worker] = of[dataset]
    several = np.bincount(answers.worker, minlength=answers.workers) > 1
    return np.where(several, crowd, -1)


def _means(values: Floats, crowd: Ints) -> Floats:
    """Means by crowd, and 0 at the end for workers without one."""
    here = crowd >= 0
    total = np.bincount(crowd[here], values[here])
    return np.append(total / np.bincount(crowd[here]), 0.0)


def _see(answers: CrowdAnswers, sites: _Sites, logit: Floats) -> _Seen:
    """Cavities, and what is known of the images by them."""
    alpha = stretched_logit(logit, sites.spread)
    worker, size = answers.worker, answers.workers
    told = np.bincount(worker, sites.precision, minlength=size)
    precision = np.asarray(1 / sites.spread**2 + told, dtype=float)
    pull = np.bincount(worker, sites.pull, minlength=size)
    variance = 1 / (precision[worker] - sites.precision)
    crowd = _crowds(answers)
    # With densities that are free nothing but the prior speaks of a crowd's mean: it is 0.
    shift = _means(pull / precision, crowd)[crowd]
    mean = (pull[worker] - sites.pull) * variance - shift[worker]
    log_said = _run_in_parts(_chance, alpha, answers, mean, variance)
    numbers = np.arange(len(answers.image))
    sums = sparse.csr_array(
        (np.ones(len(numbers)), (answers.image, numbers)), (len(answers.dataset), len(numbers))
    )
    log_image = sites.log_density[answers.dataset] + sums @ log_said
    log_image -= logsumexp(log_image, axis=1, keepdims=True)
    return _Seen(alpha, pull / precision - shift, precision, mean, variance, log_said, log_image)


def _swept(answers: CrowdAnswers, sites: _Sites, seen: _Seen, *, part: float) -> _Sites:
    """New sites, a part of the way; new densities and spread."""
    without = seen.log_image[answers.image] - seen.log_said
    without = np.exp(without - without.max(axis=1, keepdims=True))
    mean, variance = seen.cavity_mean, seen.cavity_variance
    tilted = _run_in_parts(_moments, seen.alpha, answers, mean, variance, without)
    precision = np.maximum(1 / np.maximum(tilted[:, 1], 1e-12) - 1 / variance, 1e-9)
    pull = tilted[:, 0] * (precision + 1 / variance) - mean / variance
    log_density = sites.log_density
    said = seen.log_image - log_density[answers.dataset]
    for _ in range(DENSITY_SWEEPS):
        log_given = said + log_density[answers.dataset]
        given = np.exp(log_given - logsumexp(log_given, axis=1, keepdims=True))
        density = [given[answers.dataset == each].mean(axis=0) for each in range(len(log_density))]
        log_density = np.log(np.stack(density) + 1e-12)
    # MacKay (1992): of a worker of whom nothing is known there is nothing to learn, nor of the mean
    # of a crowd.
    crowds = int(_crowds(answers).max()) + 1
    told = float(np.sum(1 - 1 / (seen.precision * sites.spread**2))) - crowds
    square = seen.mean @ seen.mean + PRIOR_WORKERS * STARTING_SPREAD**2
    return _Sites(
        sites.precision + part * (precision - sites.precision),
        sites.pull + part * (pull - sites.pull),
        float(np.sqrt(square / (max(told, 0.0) + PRIOR_WORKERS))),
        log_density,
    )


def _run_in_parts(
    program: Callable[..., Array],
    alpha: Floats,
    answers: CrowdAnswers,
    mean: Floats,
    variance: Floats,
    *more: Floats,
) -> Floats:
    """A program's results for all answers."""
    sign = np.where(answers.selected, 1.0, -1.0)
    parts = run_in_chunks(program, alpha, mean, np.sqrt(variance), sign, *more)
    return np.concatenate([np.asarray(part) for part in parts])


@jax.jit
def _chance(
    alpha: Float[Array, "node"],
    mean: Float[Array, "answer"],
    deviation: Float[Array, "answer"],
    sign: Float[Array, "answer"],
) -> Float[Array, "answer node"]:
    """log F where s is not near an end, in half the time."""
    at, log_weight = hermite()
    b = mean[:, None] + deviation[:, None] * at[None, :]
    total = sum(
        weight * _sigmoid(alpha, b[:, number], sign)
        for number, weight in enumerate(np.exp(log_weight))
    )
    return jnp.log(total)


def _sigmoid(
    alpha: Float[Array, "node"], b: Float[Array, "answer"], sign: Float[Array, "answer"]
) -> Float[Array, "answer node"]:
    """P(answer | node, b)."""
    return jax.nn.sigmoid(sign[:, None] * (alpha[None, :] + b[:, None]))


@jax.jit
def _moments(
    alpha: Float[Array, "node"],
    mean: Float[Array, "answer"],
    deviation: Float[Array, "answer"],
    sign: Float[Array, "answer"],
    without: Float[Array, "answer node"],
) -> Float[Array, "answer moment"]:
    """Mean and variance of b given the answer and what others say of its image."""
    at, log_weight = hermite()
    b = mean[:, None] + deviation[:, None] * at[None, :]
    mass = jnp.stack(
        [
            weight * jnp.sum(without * _sigmoid(alpha, b[:, number], sign), axis=1)
            for number, weight in enumerate(np.exp(log_weight))
        ],
        axis=1,
    )
    mass = mass / mass.sum(axis=1, keepdims=True)
    first = mass @ at
    second = mass @ jnp.square(at) - jnp.square(first)
    return jnp.stack([mean + deviation * first, jnp.square(deviation) * second], axis=1)


def _covariance(
    answers: CrowdAnswers, sites: _Sites, seen: _Seen, logit: Floats
) -> tuple[Ints, Floats]:
    """The workers who are known, and the covariance of their leniencies."""
    given, density = np.exp(seen.log_image), np.exp(sites.log_density)
    asked = np.bincount(answers.worker, minlength=answers.workers)
    known = np.sort(
        np.argsort(-asked, kind="stable")[: min(int((asked > 1).sum()), MOST_DENSE_WORKERS)]
    )
    place = np.full(answers.workers, -1)
    place[known] = np.arange(len(known))
    kept = np.flatnonzero(place[answers.worker] >= 0)
    image, of = answers.image[kept], place[answers.worker][kept]
    shape = (len(answers.dataset), len(known))
    smooth = legvander(2 * expit(logit) - 1, SMOOTH)[:, 1:]

    noise, expected = np.zeros((2, len(kept)))
    expected_smooth = np.zeros((len(kept), SMOOTH))
    information = np.zeros((len(known), len(known)))
    # Σ_i Cov_r(p_a, p_a') of an image's answers a, a', as products of sparse matrices.
    for node, at in enumerate(seen.alpha):
        chance = expit(at + seen.mean[known][of])
        weight = given[image, node]
        product = weight * chance
        noise += product * (1 - chance)
        expected += product
        expected_smooth += product[:, None] * smooth[node]
        root = np.sqrt(weight) * chance
        each = sparse.csr_array((root, (image, of)), shape=shape)
        information -= (each.T @ each).toarray()
    middle = sparse.csr_array((expected, (image, of)), shape=shape)
    information += (middle.T @ middle).toarray()
    information[np.diag_indices(len(known))] += np.bincount(of, noise, minlength=len(known))

    number = answers.dataset[image]
    for dataset, own in enumerate(density / density.sum(axis=1, keepdims=True)):
        among, here = given[answers.dataset == dataset], number == dataset
        basis = smooth - own @ smooth
        inside = among @ basis
        curvature = len(among) * (basis * own[:, None]).T @ basis + PRIOR * np.eye(SMOOTH)
        curvature -= (basis * among.sum(axis=0)[:, None]).T @ basis - inside.T @ inside
        # Cov_r(p_a, T); what is taken off T does not matter.
        both = expected_smooth[here] - expected[here, None] * (given @ smooth)[image[here]]
        cross = np.stack(
            [np.bincount(of[here], each, minlength=len(known)) for each in both.T], axis=1
        )
        information -= cross @ np.linalg.solve(curvature, cross.T)
    # What differences of large numbers leave of a direction of which nothing is known may be < 0.
    values, vectors = np.linalg.eigh(information)
    return known, (vectors / (np.maximum(values, 0) + 1 / sites.spread**2)) @ vectors.T
