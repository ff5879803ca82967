"""How lenient each annotator is, and what an answer then says of an image's selection frequency.

Worker w selects an image of selection frequency s with probability

    P(select | s, w)  =  σ(α(s) + b_w),        b_w ~ Normal(0, τ²),        E_b σ(α(s) + b) = s,

so that s is the frequency in the population of workers, whoever happened to answer. α is the logit
of s, stretched (by about sqrt(1 + 0.35 τ²)): a worker is surer than the crowd. b_w is the leniency
of worker w, in logits, τ the standard deviation of leniencies, and σ the logistic function.

Leniencies are found by expectation propagation (Minka 2001): every answer has a normal site on its
worker's b; without its own site (the cavity, normal with mean m and variance v) an answer says of s

    F(s)  =  E_{b ~ Normal(m, v)} σ(± (α(s) + b)),

which is s itself for a worker with one answer: the model is then the binomial. Images are summed
over nodes of s. The density of s in every data set is anything, and found with the leniencies, by
expectation maximisation; τ too, by what workers are told apart (MacKay 1992).

The leniencies' covariance comes from the observed information (Louis 1982) with the densities'
smooth changes taken out: a whole crowd that is more lenient and images that are more often fit to
be selected explain the same answers, unless one crowd rated both data sets.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import legvander
from scipy import sparse
from scipy.sparse import csgraph
from scipy.special import expit, log_expit, logsumexp

from bayesrep.numerics import logit_quadrature
from bayesrep.numerics.binomial import log_binomial
from bayesrep.types import Bool, Float, Floats, Int, Ints

HERMITE = 9
ANSWERS_AT_ONCE = 4096
"""Answers that are integrated together."""
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
LARGEST_PANEL = 50
"""Workers of a crowd whose panels are without replacement; of more, as if with replacement."""
LENIENCIES = 400
"""Places at which a crowd's leniencies are counted."""
SMALLEST_POSITIVE = 1e-300
MOST_DENSE_WORKERS = 3_000
"""Workers whose leniencies have a covariance; of more, those with the most answers."""
SMOOTH = 5
"""Polynomials of s by which the log density of a data set may be wrong."""
PRIOR = 0.1
"""Prior precision of these polynomials' coefficients."""


@dataclass(frozen=True, eq=False)
class CrowdAnswers:
    """All answers of all data sets.

    Attributes
    ----------
    image, worker, selected : [A]
        Image, worker and selection of every answer; images of all data sets are numbered in one
        row.
    dataset : [I]
        Data set of every image.
    workers
        How many there are.
    """

    image: Int[np.ndarray, "answer"]
    worker: Int[np.ndarray, "answer"]
    selected: Bool[np.ndarray, "answer"]
    dataset: Int[np.ndarray, "image"]
    workers: int


@dataclass(frozen=True, eq=False)
class Leniencies:
    """The workers' leniencies when expectation propagation ended.

    Attributes
    ----------
    spread
        τ.
    mean, variance : [W]
        Mean and variance of every worker's b, in logits.
    cavity_mean, cavity_variance : [A]
        Mean and variance of the worker's b without the answer.
    known : [V]
        Workers with several answers, at most `MOST_DENSE_WORKERS`.
    covariance : [V, V]
        Covariance of the leniencies of these workers.
    """

    spread: float
    mean: Float[np.ndarray, "worker"]
    variance: Float[np.ndarray, "worker"]
    cavity_mean: Float[np.ndarray, "answer"]
    cavity_variance: Float[np.ndarray, "answer"]
    known: Int[np.ndarray, "known"]
    covariance: Float[np.ndarray, "known known"]


def stretched_logit(logit: Float[np.ndarray, "node"], spread: float) -> Float[np.ndarray, "node"]:
    """α of every logit t of s: where the mean over workers is s."""
    at, log_weight = _hermite()
    return _logit_where(logit, spread * at, log_weight)


def panel_logit(
    logit: Float[np.ndarray, "node"],
    mean: Float[np.ndarray, "worker"],
    variance: Float[np.ndarray, "worker"],
) -> Float[np.ndarray, "node"]:
    """α of every logit t of s where s is the mean over these workers, not over a population.

    Parameters
    ----------
    logit
        t.
    mean, variance
        Mean and variance of every worker's leniency.
    """
    leniency, share = _places(mean, variance, np.ones(len(mean)))
    return _logit_where(logit, leniency, np.log(share))


def _logit_where(
    logit: Float[np.ndarray, "node"],
    leniency: Float[np.ndarray, "place"],
    log_weight: Float[np.ndarray, "place"],
) -> Float[np.ndarray, "node"]:
    """α where the mean of σ(α + leniency) has the logit: Newton, between bounds that close."""
    low, high = logit - leniency.max(), logit - leniency.min()
    alpha = logit - leniency @ np.exp(log_weight)
    for _ in range(100):
        inner = alpha[:, None] + leniency
        log_yes = logsumexp(log_weight + log_expit(inner), axis=1)
        log_no = logsumexp(log_weight + log_expit(-inner), axis=1)
        log_slope = logsumexp(log_weight + log_expit(inner) + log_expit(-inner), axis=1)
        over = log_yes - log_no - logit
        low, high = np.where(over < 0, alpha, low), np.where(over > 0, alpha, high)
        moved = alpha - over / np.exp(log_slope - log_yes - log_no)
        moved = np.where((moved < low) | (moved > high), (low + high) / 2, moved)
        step = np.abs(moved - alpha).max()
        alpha = moved
        if step < 1e-12 * max(1.0, np.abs(alpha).max()):
            break
    return alpha


def _places(mean: Floats, variance: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Leniencies of weighted workers, and their shares: of many workers at `LENIENCIES` places."""
    at, log_weight = _hermite()
    b = mean[:, None] + np.sqrt(variance)[:, None] * at
    each = weight[:, None] * np.exp(log_weight) / weight.sum()
    if len(mean) <= LARGEST_PANEL:
        return b.ravel(), each.ravel()
    share, edges = np.histogram(b, bins=LENIENCIES, weights=each)
    sums, _ = np.histogram(b, bins=edges, weights=each * b)
    some = share > 0
    return sums[some] / share[some], share[some]


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


def log_given(
    answers: CrowdAnswers, found: Leniencies, alpha: Float[np.ndarray, "dataset node"]
) -> Float[np.ndarray, "image node"]:
    """log P(answers | s) of every image.

    Parameters
    ----------
    answers, found
        As `find_leniencies` takes and returns them.
    alpha
        α of every data set at nodes of s.
    """
    order = np.argsort(answers.image, kind="stable")
    dataset = answers.dataset[answers.image]
    total = np.zeros((len(answers.dataset), alpha.shape[1]))
    for number, each in enumerate(alpha):
        mine = order[dataset[order] == number]
        image, sign = answers.image[mine], np.where(answers.selected[mine], 1.0, -1.0)
        cavity = found.cavity_mean[mine], np.sqrt(found.cavity_variance[mine])
        start = 0
        for part in _chunks(_log_answer_probability, each, *cavity, sign):
            of = image[start : start + len(part)]
            first = np.flatnonzero(np.diff(of, prepend=-1))
            total[of[first]] += np.add.reduceat(np.asarray(part), first, axis=0)
            start += len(part)
    return total


def log_counts(
    selected: Int[np.ndarray, "cell"],
    shown: Int[np.ndarray, "cell"],
    alpha: Float[np.ndarray, "node"],
    mean: Float[np.ndarray, "worker"],
    variance: Float[np.ndarray, "worker"],
    asked: Int[np.ndarray, "worker"],
) -> Float[np.ndarray, "cell node"]:
    """log P(k of n | s) without C(n, k), where any n of some workers were asked.

    Of few workers (a panel) exactly, all sets of n alike: the generating function
    Π_w (1 + y (x p_w + 1 − p_w)). Of many the binomial of their mean, by how much each answered.

    Parameters
    ----------
    selected, shown
        k and n.
    alpha
        From `stretched_logit`.
    mean, variance, asked
        Mean and variance of every worker's leniency, and how many answers each gave.
    """
    if len(mean) > LARGEST_PANEL:
        leniency, share = _places(mean, variance, asked.astype(float))
        logit = alpha[:, None] + leniency
        log_yes, log_no = (
            np.log(np.maximum(expit(each) @ share, SMALLEST_POSITIVE)) for each in (logit, -logit)
        )
        return selected[:, None] * log_yes + (shown - selected)[:, None] * log_no
    at, log_weight = _hermite()
    logit = alpha[:, None, None] + mean[:, None] + np.sqrt(variance)[:, None] * at
    yes, no = (expit(each) @ np.exp(log_weight) for each in (logit, -logit))
    most = int(shown.max())
    total = np.zeros((most + 1, most + 1, len(alpha)))  # [n, k, node]
    total[0, 0] = 1
    for p, q in zip(yes.T, no.T, strict=True):
        more = total[:-1] * q
        more[:, 1:] += total[:-1, :-1] * p
        total[1:] += more
    sets = log_binomial(np.full_like(shown, len(mean)), shown) + log_binomial(shown, selected)
    return np.log(np.maximum(total[shown, selected], SMALLEST_POSITIVE)) - sets[:, None]


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
    parts = _chunks(program, alpha, mean, np.sqrt(variance), sign, *more)
    return np.concatenate([np.asarray(part) for part in parts])


def _chunks(program: Callable[..., Array], alpha: Floats, *columns: Floats) -> Iterator[Array]:
    """A program's results for some answers at a time, of one shape."""
    answers = len(columns[0])
    size = min(ANSWERS_AT_ONCE, 1 << max(answers - 1, 1).bit_length())
    with jax.enable_x64(new_val=True):
        for start in range(0, answers, size):
            part = [each[start : start + size] for each in columns]
            short = size - len(part[0])
            filled = [np.pad(p, [(0, short)] + [(0, 0)] * (p.ndim - 1)) for p in part]
            yield program(alpha, *filled)[: size - short]


def _hermite() -> tuple[Floats, Floats]:
    """Nodes of a standard normal and their log weights."""
    at, weight = hermegauss(HERMITE)
    return at, np.log(weight / weight.sum())


@jax.jit
def _log_answer_probability(
    alpha: Float[Array, "node"],
    mean: Float[Array, "answer"],
    deviation: Float[Array, "answer"],
    sign: Float[Array, "answer"],
) -> Float[Array, "answer node"]:
    return jax.nn.logsumexp(_log_joint(alpha, mean, deviation, sign), axis=-1)


def _log_joint(
    alpha: Float[Array, "node"],
    mean: Float[Array, "answer"],
    deviation: Float[Array, "answer"],
    sign: Float[Array, "answer"],
) -> Float[Array, "answer node hermite"]:
    at, log_weight = _hermite()
    b = mean[:, None] + deviation[:, None] * at[None, :]
    inner = sign[:, None, None] * (alpha[None, :, None] + b[:, None, :])
    return jax.nn.log_sigmoid(inner) + log_weight[None, None, :]


@jax.jit
def _chance(
    alpha: Float[Array, "node"],
    mean: Float[Array, "answer"],
    deviation: Float[Array, "answer"],
    sign: Float[Array, "answer"],
) -> Float[Array, "answer node"]:
    """log F where s is not near an end, in half the time."""
    at, log_weight = _hermite()
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
    at, log_weight = _hermite()
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
