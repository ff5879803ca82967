"""Annotators' leniencies and the likelihood of an image's selection frequency s given an answer.

    P(select | s, w)  =  σ(α(s) + b_w),        b_w ~ Normal(0, τ²),        E_b σ(α(s) + b) = s,

so s is the marginal frequency in the population of workers, and α the logit of s stretched by about
sqrt(1 + 0.35 τ²). The likelihood of s from an answer of a worker with b ~ Normal(m, v) is

    F(s)  =  E_{b ~ Normal(m, v)} σ(± (α(s) + b)),

s or 1 − s itself under the prior of b. `expectation_propagation` fits the leniencies.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax
import numpy as np
from jax import Array
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import expit, log_expit, logsumexp

from bayesrep.numerics.binomial import log_binomial
from bayesrep.numerics.constants import SMALLEST_POSITIVE
from bayesrep.numerics.settings import own_settings
from bayesrep.types import Bool, Float, Floats, Int

HERMITE_NODES = 9  # of the quadrature over a leniency
ANSWERS_AT_ONCE = 4096  # answers integrated in one batch
MAX_EXACT_PANEL = 50  # largest crowd whose panels are drawn without replacement
LENIENCY_BINS = 400  # bins of the histogram of a larger crowd's leniencies


@dataclass(frozen=True, eq=False)
class CrowdAnswers:
    """All answers of all data sets; images are numbered across data sets."""

    image: Int[np.ndarray, "answer"]
    worker: Int[np.ndarray, "answer"]
    selected: Bool[np.ndarray, "answer"]
    dataset: Int[np.ndarray, "image"]  # of every image
    workers: int  # their number


@dataclass(frozen=True, eq=False)
class Leniencies:
    """Workers' leniencies b, in logits; an answer's cavity moments are without that answer."""

    spread: float  # τ
    mean: Float[np.ndarray, "worker"]
    variance: Float[np.ndarray, "worker"]
    cavity_mean: Float[np.ndarray, "answer"]
    cavity_variance: Float[np.ndarray, "answer"]
    known: Int[np.ndarray, "known"]  # workers with several answers, at most `MAX_DENSE_WORKERS`
    covariance: Float[np.ndarray, "known known"]  # of their leniencies


def stretched_logit(logit: Float[np.ndarray, "node"], spread: float) -> Float[np.ndarray, "node"]:
    """Compute the conditional logit α for every logit t of s, the mean over a population."""
    points, log_weight = hermite()
    return _solve_logit(logit, spread * points, log_weight)


def panel_logit(
    logit: Float[np.ndarray, "node"],
    mean: Float[np.ndarray, "worker"],
    variance: Float[np.ndarray, "worker"],
) -> Float[np.ndarray, "node"]:
    """Compute the conditional logit α for every logit t of s, the mean over these workers."""
    leniency, share = _leniency_nodes(mean, variance, np.ones(len(mean)))
    return _solve_logit(logit, leniency, np.log(share))


def _solve_logit(
    logit: Float[np.ndarray, "node"],
    leniency: Float[np.ndarray, "place"],
    log_weight: Float[np.ndarray, "place"],
) -> Float[np.ndarray, "node"]:
    """Solve E σ(α + leniency) = σ(logit) for α, by Newton's method safeguarded by bisection."""
    # α lies between the logits shifted by the extreme leniencies.
    low, high = logit - leniency.max(), logit - leniency.min()
    alpha = logit - leniency @ np.exp(log_weight)
    for _ in range(100):
        inner = alpha[:, None] + leniency
        log_yes = logsumexp(log_weight + log_expit(inner), axis=1)
        log_no = logsumexp(log_weight + log_expit(-inner), axis=1)
        log_slope = logsumexp(log_weight + log_expit(inner) + log_expit(-inner), axis=1)
        error = log_yes - log_no - logit
        low, high = np.where(error < 0, alpha, low), np.where(error > 0, alpha, high)
        proposal = alpha - error / np.exp(log_slope - log_yes - log_no)
        # A Newton step outside the bracket is replaced by bisection.
        proposal = np.where((proposal < low) | (proposal > high), (low + high) / 2, proposal)
        step = np.abs(proposal - alpha).max()
        alpha = proposal
        if step < 1e-12 * max(1.0, np.abs(alpha).max()):
            break
    return alpha


def _leniency_nodes(mean: Floats, variance: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Discretise the leniencies of weighted workers: nodes and weights, binned for large crowds."""
    points, log_weight = hermite()
    b = mean[:, None] + np.sqrt(variance)[:, None] * points
    each = weight[:, None] * np.exp(log_weight) / weight.sum()
    if len(mean) <= MAX_EXACT_PANEL:
        return b.ravel(), each.ravel()
    # Of many workers the histogram of leniencies, each bin at its mean.
    share, edges = np.histogram(b, bins=LENIENCY_BINS, weights=each)
    sums, _ = np.histogram(b, bins=edges, weights=each * b)
    some = share > 0
    return sums[some] / share[some], share[some]


def log_given(
    answers: CrowdAnswers, leniencies: Leniencies, alpha: Float[np.ndarray, "dataset node"]
) -> Float[np.ndarray, "image node"]:
    """Compute log P(answers | s) of every image at nodes of s, of which α is given by data set."""
    order = np.argsort(answers.image, kind="stable")
    dataset = answers.dataset[answers.image]
    total = np.zeros((len(answers.dataset), alpha.shape[1]))
    for number, alpha_row in enumerate(alpha):
        rows = order[dataset[order] == number]
        image, sign = answers.image[rows], np.where(answers.selected[rows], 1.0, -1.0)
        cavity = leniencies.cavity_mean[rows], np.sqrt(leniencies.cavity_variance[rows])
        start = 0
        for part in run_in_chunks(_log_answer_probability, alpha_row, *cavity, sign):
            images = image[start : start + len(part)]
            # Answers are sorted by image: each run is summed into its image.
            first = np.flatnonzero(np.diff(images, prepend=-1))
            total[images[first]] += np.add.reduceat(np.asarray(part), first, axis=0)
            start += len(part)
    return total


def log_counts(
    selected: Int[np.ndarray, "cell"],
    n: Int[np.ndarray, "cell"],
    alpha: Float[np.ndarray, "node"],
    mean: Float[np.ndarray, "worker"],
    variance: Float[np.ndarray, "worker"],
    n_answers: Int[np.ndarray, "worker"],
) -> Float[np.ndarray, "cell node"]:
    """Compute log P(k of n | s) without C(n, k), for n annotators drawn from these workers.

    For a small panel by the generating function Π_w (1 + y (x p_w + 1 − p_w)); for a larger crowd
    the binomial of the mean weighted by the number of each worker's answers.
    """
    if len(mean) > MAX_EXACT_PANEL:
        leniency, share = _leniency_nodes(mean, variance, n_answers.astype(float))
        logit = alpha[:, None] + leniency
        log_yes, log_no = (
            np.log(np.maximum(expit(each) @ share, SMALLEST_POSITIVE)) for each in (logit, -logit)
        )
        return selected[:, None] * log_yes + (n - selected)[:, None] * log_no
    points, log_weight = hermite()
    logit = alpha[:, None, None] + mean[:, None] + np.sqrt(variance)[:, None] * points
    yes, no = (expit(each) @ np.exp(log_weight) for each in (logit, -logit))
    most = int(n.max())
    total = np.zeros((most + 1, most + 1, len(alpha)))  # [n, k, node]
    total[0, 0] = 1
    # One worker at a time: each was either not asked, or asked and said yes or no.
    for p, q in zip(yes.T, no.T, strict=True):
        extended = total[:-1] * q
        extended[:, 1:] += total[:-1, :-1] * p
        total[1:] += extended
    # The generating function counts every set of n workers and every choice of k among them.
    sets = log_binomial(np.full_like(n, len(mean)), n) + log_binomial(n, selected)
    return np.log(np.maximum(total[n, selected], SMALLEST_POSITIVE)) - sets[:, None]


def run_in_chunks(
    program: Callable[..., Array], alpha: Floats, *columns: Floats
) -> Iterator[Array]:
    """Evaluate a program on chunks of answers padded to one shape."""
    answers = len(columns[0])
    size = min(ANSWERS_AT_ONCE, 1 << max(answers - 1, 1).bit_length())
    with own_settings():
        for start in range(0, answers, size):
            part = [each[start : start + size] for each in columns]
            short = size - len(part[0])
            filled = [np.pad(p, [(0, short)] + [(0, 0)] * (p.ndim - 1)) for p in part]
            yield program(alpha, *filled)[: size - short]


def hermite() -> tuple[Floats, Floats]:
    """Return Gauss–Hermite nodes of the standard normal and their log weights."""
    points, weight = hermegauss(HERMITE_NODES)
    return points, np.log(weight / weight.sum())


@jax.jit
def _log_answer_probability(
    alpha: Float[Array, "node"],
    mean: Float[Array, "answer"],
    deviation: Float[Array, "answer"],
    sign: Float[Array, "answer"],
) -> Float[Array, "answer node"]:
    """Compute log F(s) on the log scale, exact also where s is near 0 or 1."""
    points, log_weight = hermite()
    b = mean[:, None] + deviation[:, None] * points[None, :]
    # [answer, node, quadrature point]
    inner = sign[:, None, None] * (alpha[None, :, None] + b[:, None, :])
    return jax.nn.logsumexp(jax.nn.log_sigmoid(inner) + log_weight[None, None, :], axis=-1)
