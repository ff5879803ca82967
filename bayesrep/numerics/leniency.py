"""How lenient each annotator is, and what an answer then says of an image's selection frequency.

Worker w selects an image of selection frequency s with probability

    P(select | s, w)  =  σ(α(s) + b_w),        b_w ~ Normal(0, τ²),        E_b σ(α(s) + b) = s,

so that s is the frequency in the population of workers, whoever happened to answer. α is the logit
of s, stretched (by about sqrt(1 + 0.35 τ²)): a worker is surer than the crowd. b_w is the leniency
of worker w, in logits, τ the standard deviation of leniencies, and σ the logistic function.

An answer of a worker whose leniency is known to be normal, with mean m and variance v, says of s

    F(s)  =  E_{b ~ Normal(m, v)} σ(± (α(s) + b)),

which is s itself for a worker of whom nothing else is known: the model is then the binomial.
`expectation_propagation` finds the leniencies.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax
import numpy as np
from jax import Array
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import expit, log_expit, logsumexp

from bayesrep.numerics.binomial import log_binomial
from bayesrep.numerics.settings import own_settings
from bayesrep.types import Bool, Float, Floats, Int

HERMITE = 9
ANSWERS_AT_ONCE = 4096
"""Answers that are integrated together."""
LARGEST_PANEL = 50
"""Workers of a crowd whose panels are without replacement; of more, as if with replacement."""
LENIENCIES = 400
"""Places at which a crowd's leniencies are counted."""
SMALLEST_POSITIVE = 1e-300


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
    at, log_weight = hermite()
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
    at, log_weight = hermite()
    b = mean[:, None] + np.sqrt(variance)[:, None] * at
    each = weight[:, None] * np.exp(log_weight) / weight.sum()
    if len(mean) <= LARGEST_PANEL:
        return b.ravel(), each.ravel()
    share, edges = np.histogram(b, bins=LENIENCIES, weights=each)
    sums, _ = np.histogram(b, bins=edges, weights=each * b)
    some = share > 0
    return sums[some] / share[some], share[some]


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
        for part in run_in_chunks(_log_answer_probability, each, *cavity, sign):
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
    at, log_weight = hermite()
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


def run_in_chunks(
    program: Callable[..., Array], alpha: Floats, *columns: Floats
) -> Iterator[Array]:
    """A program's results for some answers at a time, of one shape."""
    answers = len(columns[0])
    size = min(ANSWERS_AT_ONCE, 1 << max(answers - 1, 1).bit_length())
    with own_settings():
        for start in range(0, answers, size):
            part = [each[start : start + size] for each in columns]
            short = size - len(part[0])
            filled = [np.pad(p, [(0, short)] + [(0, 0)] * (p.ndim - 1)) for p in part]
            yield program(alpha, *filled)[: size - short]


def hermite() -> tuple[Floats, Floats]:
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
    at, log_weight = hermite()
    b = mean[:, None] + deviation[:, None] * at[None, :]
    inner = sign[:, None, None] * (alpha[None, :, None] + b[:, None, :])
    return jax.nn.log_sigmoid(inner) + log_weight[None, None, :]
