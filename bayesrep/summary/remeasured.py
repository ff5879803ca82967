"""Selection frequencies of a data set's images if they were measured again.

Images that a rule on noisy counts kept were lucky on average: measured again, they are selected
less often than they were (regression to the mean), and some would not pass the same rule. With the
mixture of a draw, and P(s | k, n) of every image by it,

    mean of s              =  Σ_x E[s | k_x, n_x] / N
    share that would drop  =  Σ_x (1 − Σ_k' a(k', n') P(k' | n', k_x, n_x)) / N

Given the mixture, single images are independent, which adds their own variance to that of the
draws: the intervals are about these images, not about others like them.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
from scipy.special import logsumexp

from bayesrep.errors import StudyError
from bayesrep.numerics import logit_quadrature
from bayesrep.numerics.binomial import log_binomial
from bayesrep.numerics.settings import own_settings
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior, thinned_draws
from bayesrep.studies.selection import Selection, truncating
from bayesrep.studies.study import AnnotatedSet, Study
from bayesrep.types import Float, Floats, Int, Ints

N_DRAWS = 400
QUANTILE_LEVELS = (0.025, 0.5, 0.975)
MAX_SIZES = 50
"""Limit on distinct numbers of annotators, each of which takes a sum over all its counts."""


class Moments(NamedTuple):
    """Mean and variance of a sum over images given the mixture of a draw, over their number."""

    mean: Float[np.ndarray, "draw"]
    variance: Float[np.ndarray, "draw"]


def remeasure(study: Study, posterior: Posterior, *, seed: int = 0) -> pl.DataFrame:
    """Estimate true selection frequencies of every data set, and the share a rule would drop.

    Parameters
    ----------
    study
        The study that was fitted. A data set whose `selection` names no rule is measured again
        all the same, and drops nothing.
    posterior
        From `bayesrep.fit`.
    seed
        Seed of the draws of single images given the mixture.

    Returns
    -------
    polars.DataFrame
        One row a data set: dataset, role, selection (the rule, or null), images, `measured` (mean
        of selected / shown), `frequency` with `frequency_lower` and `frequency_upper` (posterior
        median and 95 % interval of the mean true selection frequency of these very images),
        `regression` (frequency − measured, likewise) and, with a rule, `dropped` (share of the
        images that would not pass it again, on as many answers as the rule or else their own
        counts have, likewise).

    Raises
    ------
    PosteriorError
        If the posterior is another study's.
    """
    fitted = Fitted(study, posterior)
    rng = np.random.default_rng(seed)
    draws = {role: log_densities(fitted, d, N_DRAWS) for d, role in enumerate(fitted.record.roles)}
    dependence = fitted.record.dependence
    rows = [_row(study, role, draws[role], dependence, rng) for role in draws]
    return pl.DataFrame(rows)


def log_densities(fitted: Fitted, which: int, draws: int) -> Float[np.ndarray, "draw node"]:
    """Evaluate a data set's log density of s before selection, at the nodes, for some draws."""
    names = [f"component_{name}" for name in ("mean", "concentration", "weight")]
    group = fitted.need("posterior", *names)
    mean, total, weight = (thinned_draws(group[name], draws)[:, which] for name in names)
    with own_settings():
        mixtures = map(jnp.asarray, (np.log(weight), mean * total, (1 - mean) * total))
        return np.asarray(jax.vmap(logit_quadrature.log_mixture_weights)(*mixtures))


def _row(
    study: Study, role: str, log_density: Floats, dependence: float, rng: np.random.Generator
) -> dict[str, object]:
    data = study.datasets[role]
    # Images with equal counts have one distribution of s.
    pairs, images = np.unique(
        np.stack([data.shown, data.selected], axis=1), axis=0, return_counts=True
    )
    n_shown, selected = pairs.T
    mass = frequency_given_counts(log_density, selected, n_shown - selected, dependence)
    measured = float((data.selected / data.shown).mean())
    s = np.exp(logit_quadrature.nodes()[0])
    frequency = _draw_means(_moments(mass, s[None, :], images, binary=False), rng)
    row: dict[str, object] = {
        "dataset": data.name,
        "role": role,
        "selection": None if data.selection is None else data.selection.rule,
        "images": len(data.images),
        "measured": measured,
        **_columns("frequency", frequency),
        **_columns("regression", frequency - measured),
        **_columns("dropped", None),
    }
    if data.selection is not None:
        keeps = _keeps_again(data, n_shown, dependence)
        row |= _columns("dropped", 1 - _draw_means(_moments(mass, keeps, images, binary=True), rng))
    return row


def _columns(name: str, draws: Floats | None) -> dict[str, float | None]:
    lower, middle, upper = (
        (None,) * 3 if draws is None else map(float, np.quantile(draws, QUANTILE_LEVELS))
    )
    return {name: middle, f"{name}_lower": lower, f"{name}_upper": upper}


def frequency_given_counts(
    log_density: Floats, selected: Ints, rejected: Ints, dependence: float
) -> Float[np.ndarray, "draw cell node"]:
    """Compute P(node | k, n) under every draw's mixture."""
    log_answers = _log_answers(selected, rejected, dependence)
    log_joint = log_density[:, None, :] + log_answers[None]
    return np.exp(log_joint - logsumexp(log_joint, axis=-1, keepdims=True))


def _log_answers(
    selected: Ints, rejected: Ints, dependence: float
) -> Float[np.ndarray, "cell node"]:
    """Compute log P(answers | s) at the nodes, up to the binomial coefficient."""
    if dependence > 0:
        return logit_quadrature.log_dependent(selected, rejected, dependence)
    log_s, log_rest, _ = logit_quadrature.nodes()
    return selected[:, None] * log_s[None, :] + rejected[:, None] * log_rest[None, :]


def _moments(
    mass: Float[np.ndarray, "draw cell node"],
    values: Float[np.ndarray, "#cell node"],
    images: Int[np.ndarray, "cell"],
    *,
    binary: bool,
) -> Moments:
    """Compute moments of an image mean of values at s; `binary`: of events so probable."""
    mean = np.einsum("dcn,cn->dc", mass, np.broadcast_to(values, mass.shape[1:]))
    # An event is its own square.
    square = (
        mean
        if binary
        else np.einsum("dcn,cn->dc", mass, np.broadcast_to(values**2, mass.shape[1:]))
    )
    total = images.sum()
    return Moments(mean @ images / total, (square - mean**2) @ images / total**2)


def _draw_means(moments: Moments, rng: np.random.Generator) -> Float[np.ndarray, "draw"]:
    """Draw a mean for every draw: given the mixture, sums over many images are normal."""
    # Clipped, as a mean of frequencies lies in [0, 1].
    noise = rng.standard_normal(len(moments.mean))
    return np.clip(moments.mean + np.sqrt(np.maximum(moments.variance, 0)) * noise, 0, 1)


def _keeps_again(
    data: AnnotatedSet, n_shown: Ints, dependence: float
) -> Float[np.ndarray, "cell node"]:
    """Compute the probability that an image at a node passes the rule on fresh answers."""
    selection = data.selection
    assert selection is not None
    n_answers = selection.count_answers(n_shown)
    sizes = np.unique(n_answers)
    if (count := len(sizes)) > MAX_SIZES:
        facts = {"dataset": data.name, "number_count": count, "largest": MAX_SIZES}
        raise StudyError("too-many-annotator-numbers", **facts)
    table = {size: _chance(selection, int(size), dependence) for size in sizes.tolist()}
    return np.stack([table[size] for size in n_answers.tolist()])


def _chance(selection: Selection, size: int, dependence: float) -> Float[np.ndarray, "node"]:
    """Compute Σ_k a(k, n) P(k | n, s) at the nodes."""
    k = np.arange(size + 1)
    log_answers = _log_answers(k, size - k, dependence)
    keeps = selection.probability(k, np.full(size + 1, size))
    return keeps @ np.exp(log_answers + log_binomial(size, k)[:, None])


def kept_factor(
    a: Floats, b: Floats, weight: Floats, data: AnnotatedSet, s: Floats
) -> Float[np.ndarray, "draw point"]:
    """Compute the factor that truncates a density of s to images whose counts pass the rule.

    Σ_n P(n) a_n(s) / ∫ a_n p, with a_n(s) = Σ_k a(k, n) P(k | n, s) and p the beta mixture before
    selection; 1 without a rule.
    """
    rule = truncating(data.selection)
    factor = np.ones((len(a), len(s)))
    if rule is None:
        return factor
    from scipy.stats import betabinom, binom  # takes long to import

    # A mixture over numbers of annotators, each truncated by the rule.
    sizes, count = np.unique(data.shown, return_counts=True)
    factor[:] = 0.0
    for n, share in zip(sizes.tolist(), (count / count.sum()).tolist(), strict=True):
        k = np.arange(n + 1)
        keeps = rule.probability(k, np.full(n + 1, n))
        chance = keeps @ binom.pmf(k[:, None], n, s[None, :])
        passing = betabinom.pmf(k, n, a[..., None], b[..., None]) @ keeps
        factor += share * chance / (weight * passing).sum(axis=1)[:, None]
    return factor
