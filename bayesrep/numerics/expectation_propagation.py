"""Expectation propagation for workers' leniencies, their spread and the densities of s.

The model is that of `leniency`. Every answer has a normal site on its worker's b (Minka 2001); m
and v of an answer are those without its own site (the cavity). The density of s of every data set
is found by expectation maximisation, τ by evidence maximisation (MacKay 1992).

The leniencies' covariance is from the observed information (Louis 1982), the densities' smooth
perturbations projected out: a more lenient crowd and images of higher s explain the same answers.
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

MAX_LOGIT = 12.0  # largest |logit s| of the nodes over which images are summed
MAX_SWEEPS = 30
DENSITY_SWEEPS = 5  # EM steps on the densities of s in each sweep
DAMPING_FACTOR = 0.7  # fraction of its update by which a site moves in one sweep
SWEEP_TOLERANCE = 5e-3  # converged when no leniency changes by more in a sweep, in logits
INITIAL_SPREAD = 0.5  # τ, in logits
PRIOR_WORKERS = 0.1  # prior sample size of the initial τ², for where nobody answers twice
MAX_DENSE_WORKERS = 3_000  # workers of the dense covariance: of more, those with the most answers
N_SMOOTH_TERMS = 5  # polynomials of s that span the errors of a data set's log density
SMOOTH_PRECISION = 0.1  # prior precision of these polynomials' coefficients


class _Sites(NamedTuple):
    """State of expectation propagation: every answer's site, τ and the log densities of s."""

    precision: Floats
    pull: Floats
    spread: float
    log_density: Float[np.ndarray, "dataset node"]


class _Moments(NamedTuple):
    """Moments that follow from the sites: of workers, of answers [A] and of images [I, node]."""

    alpha: Floats
    mean: Floats
    precision: Floats
    cavity_mean: Floats
    cavity_variance: Floats
    log_f: Floats
    log_image: Floats


def find_leniencies(answers: CrowdAnswers) -> Leniencies:
    """Fit the leniencies b_w of all workers, τ and the densities of s."""
    log_s, log_rest, log_width = logit_quadrature.nodes()
    logit = log_s - log_rest
    selected = np.flatnonzero(np.abs(logit) <= MAX_LOGIT)[::2]
    # s starts uniform on [0, 1]: the nodes' quadrature weights.
    uniform = (log_s + log_rest + log_width)[selected]
    datasets = int(answers.dataset.max()) + 1
    log_density = np.tile(uniform - logsumexp(uniform), (datasets, 1))
    zeros = np.zeros(len(answers.image))
    sites = _Sites(zeros, zeros, INITIAL_SPREAD, log_density)
    state = _update_moments(answers, sites, logit[selected])
    for sweep in range(MAX_SWEEPS):
        sites = _update_sites(answers, sites, state, part=DAMPING_FACTOR if sweep else 1.0)
        previous, state = state.mean, _update_moments(answers, sites, logit[selected])
        if np.abs(state.mean - previous).max() < SWEEP_TOLERANCE:
            break
    return Leniencies(
        sites.spread,
        state.mean,
        1 / state.precision,
        state.cavity_mean,
        state.cavity_variance,
        *_covariance(answers, sites, state, logit[selected]),
    )


def _crowds(answers: CrowdAnswers) -> Ints:
    """Number workers' crowds, of data sets that share workers; −1 of fewer than two answers."""
    dataset = answers.dataset[answers.image]
    shape = (int(answers.dataset.max()) + 1, answers.workers)
    answered = sparse.csr_array((np.ones(len(dataset)), (dataset, answers.worker)), shape)
    _, component = csgraph.connected_components(answered @ answered.T)
    crowd = np.full(answers.workers, -1)
    crowd[answers.worker] = component[dataset]
    several = np.bincount(answers.worker, minlength=answers.workers) > 1
    return np.where(several, crowd, -1)


def _update_moments(answers: CrowdAnswers, sites: _Sites, logit: Floats) -> _Moments:
    """Compute the cavities, and the images' posteriors of s from them."""
    alpha = stretched_logit(logit, sites.spread)
    worker, size = answers.worker, answers.workers
    site_sums = np.bincount(worker, sites.precision, minlength=size)
    precision = np.asarray(1 / sites.spread**2 + site_sums, dtype=float)
    pull = np.bincount(worker, sites.pull, minlength=size)
    variance = 1 / (precision[worker] - sites.precision)
    crowd = _crowds(answers)
    # With nonparametric densities only the prior identifies a crowd's mean leniency: it is 0.
    has_crowd = crowd >= 0
    total = np.bincount(crowd[has_crowd], (pull / precision)[has_crowd])
    # A worker without a crowd has −1, the place of the 0 at the end.
    shift = np.append(total / np.bincount(crowd[has_crowd]), 0.0)[crowd]
    mean = (pull[worker] - sites.pull) * variance - shift[worker]
    log_f = _run_on_answers(_log_chance, alpha, answers, mean, variance)
    numbers = np.arange(len(answers.image))
    sums = sparse.csr_array(
        (np.ones(len(numbers)), (answers.image, numbers)), (len(answers.dataset), len(numbers))
    )
    log_image = sites.log_density[answers.dataset] + sums @ log_f
    log_image -= logsumexp(log_image, axis=1, keepdims=True)
    return _Moments(alpha, pull / precision - shift, precision, mean, variance, log_f, log_image)


def _update_sites(answers: CrowdAnswers, sites: _Sites, state: _Moments, *, part: float) -> _Sites:
    """Update the sites by a damped step, then the densities of s and τ."""
    # Other answers about the image: its posterior without the answer's own factor.
    without = state.log_image[answers.image] - state.log_f
    without = np.exp(without - without.max(axis=1, keepdims=True))
    mean, variance = state.cavity_mean, state.cavity_variance
    tilted = _run_on_answers(_tilted_moments, state.alpha, answers, mean, variance, without)
    # Moment matching: the site is the tilted normal divided by the cavity.
    precision = np.maximum(1 / np.maximum(tilted[:, 1], 1e-12) - 1 / variance, 1e-9)
    pull = tilted[:, 0] * (precision + 1 / variance) - mean / variance
    # EM for the density of s in each data set, given the answers' likelihoods.
    log_density = sites.log_density
    log_likelihood = state.log_image - log_density[answers.dataset]
    for _ in range(DENSITY_SWEEPS):
        log_r = log_likelihood + log_density[answers.dataset]
        r = np.exp(log_r - logsumexp(log_r, axis=1, keepdims=True))
        density = [r[answers.dataset == each].mean(axis=0) for each in range(len(log_density))]
        log_density = np.log(np.stack(density) + 1e-12)
    # MacKay (1992): the effective number of leniencies, minus one mean for each crowd.
    crowds = int(_crowds(answers).max()) + 1
    freedom = float(np.sum(1 - 1 / (state.precision * sites.spread**2))) - crowds
    square = state.mean @ state.mean + PRIOR_WORKERS * INITIAL_SPREAD**2
    return _Sites(
        sites.precision + part * (precision - sites.precision),
        sites.pull + part * (pull - sites.pull),
        float(np.sqrt(square / (max(freedom, 0.0) + PRIOR_WORKERS))),
        log_density,
    )


def _run_on_answers(
    program: Callable[..., Array],
    alpha: Floats,
    answers: CrowdAnswers,
    mean: Floats,
    variance: Floats,
    *more: Floats,
) -> Floats:
    """Evaluate a program on the cavities of all answers."""
    sign = np.where(answers.selected, 1.0, -1.0)
    parts = run_in_chunks(program, alpha, mean, np.sqrt(variance), sign, *more)
    return np.concatenate([np.asarray(part) for part in parts])


@jax.jit
def _log_chance(
    alpha: Float[Array, "node"],
    mean: Float[Array, "answer"],
    deviation: Float[Array, "answer"],
    sign: Float[Array, "answer"],
) -> Float[Array, "answer node"]:
    """Compute log F(s); fast, and exact only where s is not near 0 or 1."""
    points, log_weight = hermite()
    b = mean[:, None] + deviation[:, None] * points[None, :]
    total = sum(
        weight * _sigmoid(alpha, b[:, number], sign)
        for number, weight in enumerate(np.exp(log_weight))
    )
    return jnp.log(total)


def _sigmoid(
    alpha: Float[Array, "node"], b: Float[Array, "answer"], sign: Float[Array, "answer"]
) -> Float[Array, "answer node"]:
    """Compute P(answer | node of s, leniency b)."""
    return jax.nn.sigmoid(sign[:, None] * (alpha[None, :] + b[:, None]))


@jax.jit
def _tilted_moments(
    alpha: Float[Array, "node"],
    mean: Float[Array, "answer"],
    deviation: Float[Array, "answer"],
    sign: Float[Array, "answer"],
    without: Float[Array, "answer node"],
) -> Float[Array, "answer moment"]:
    """Compute mean and variance of b given the answer and the other answers about its image."""
    points, log_weight = hermite()
    b = mean[:, None] + deviation[:, None] * points[None, :]
    mass = jnp.stack(
        [
            weight * jnp.sum(without * _sigmoid(alpha, b[:, number], sign), axis=1)
            for number, weight in enumerate(np.exp(log_weight))
        ],
        axis=1,
    )
    mass = mass / mass.sum(axis=1, keepdims=True)
    first = mass @ points
    second = mass @ jnp.square(points) - jnp.square(first)
    return jnp.stack([mean + deviation * first, jnp.square(deviation) * second], axis=1)


def _covariance(
    answers: CrowdAnswers, sites: _Sites, state: _Moments, logit: Floats
) -> tuple[Ints, Floats]:
    r, density = np.exp(state.log_image), np.exp(sites.log_density)
    n_answers = np.bincount(answers.worker, minlength=answers.workers)
    workers = np.sort(
        np.argsort(-n_answers, kind="stable")[: min(int((n_answers > 1).sum()), MAX_DENSE_WORKERS)]
    )
    place = np.full(answers.workers, -1)
    place[workers] = np.arange(len(workers))
    rows = np.flatnonzero(place[answers.worker] >= 0)
    image, worker = answers.image[rows], place[answers.worker][rows]
    shape = (len(answers.dataset), len(workers))
    smooth = legvander(2 * expit(logit) - 1, N_SMOOTH_TERMS)[:, 1:]

    noise, expected = np.zeros((2, len(rows)))
    expected_smooth = np.zeros((len(rows), N_SMOOTH_TERMS))
    information = np.zeros((len(workers), len(workers)))
    # Σ_i Cov_r(p_a, p_a') of an image's answers a, a', as products of sparse matrices.
    for node, alpha in enumerate(state.alpha):
        chance = expit(alpha + state.mean[workers][worker])
        weight = r[image, node]
        product = weight * chance
        noise += product * (1 - chance)
        expected += product
        expected_smooth += product[:, None] * smooth[node]
        root = np.sqrt(weight) * chance
        weighted = sparse.csr_array((root, (image, worker)), shape=shape)
        information -= (weighted.T @ weighted).toarray()
    # Cov(p_a, p_a') = E[p_a p_a'] − E[p_a] E[p_a']: the second term.
    expectation = sparse.csr_array((expected, (image, worker)), shape=shape)
    information += (expectation.T @ expectation).toarray()
    information[np.diag_indices(len(workers))] += np.bincount(worker, noise, minlength=len(workers))

    number = answers.dataset[image]
    for dataset, masses in enumerate(density / density.sum(axis=1, keepdims=True)):
        members, mask = r[answers.dataset == dataset], number == dataset
        basis = smooth - masses @ smooth
        # The Schur complement removes what errors of the density explain as well.
        inside = members @ basis
        curvature = len(members) * (basis * masses[:, None]).T @ basis
        curvature += SMOOTH_PRECISION * np.eye(N_SMOOTH_TERMS)
        curvature -= (basis * members.sum(axis=0)[:, None]).T @ basis - inside.T @ inside
        # Cov_r(p_a, T); a constant taken off T does not matter.
        cov = expected_smooth[mask] - expected[mask, None] * (r @ smooth)[image[mask]]
        cross = np.stack(
            [np.bincount(worker[mask], each, minlength=len(workers)) for each in cov.T], axis=1
        )
        information -= cross @ np.linalg.solve(curvature, cross.T)
    # Cancellation may leave unidentified directions with negative eigenvalues.
    values, vectors = np.linalg.eigh(information)
    return workers, (vectors / (np.maximum(values, 0) + 1 / sites.spread**2)) @ vectors.T
