"""Selection frequencies of a data set's images if they were measured again.

With the mixture of a draw, and P(s | k, n) of every image by it,

    mean of s              =  Σ_x E[s | k_x, n_x] / N
    share that would drop  =  Σ_x (1 − Σ_k' a(k', n') P(k' | n', k_x, n_x)) / N

Given the mixture, single images are independent, which adds their own variance to that of the
draws: the intervals are about these images, not about others like them.
"""

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
from scipy.special import logsumexp

from bayesrep.errors import StudyError
from bayesrep.estimators.remeasured import Remeasured, as_row, summarize_mean
from bayesrep.numerics import logit_quadrature
from bayesrep.numerics.binomial import log_binomial
from bayesrep.numerics.settings import own_settings
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior, thinned_draws
from bayesrep.studies.selection import Selection, truncating
from bayesrep.studies.study import AnnotatedSet, Study
from bayesrep.types import Float, Floats, Ints

N_DRAWS = 400
MAX_SIZES = 50  # distinct numbers of annotators, each of which takes a sum over its counts


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

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> posterior = bayesrep.fit(study, method="laplace", progress=False)
    >>> bayesrep.remeasure(study, posterior)["role"].to_list()
    ['reference', 'replication']
    """
    fitted = Fitted(study, posterior)
    rng = np.random.default_rng(seed)
    draws = {role: log_densities(fitted, d, N_DRAWS) for d, role in enumerate(fitted.record.roles)}
    rows = [
        _row(study, role, draws[role], annotator_draws(fitted, role, N_DRAWS), rng)
        for role in draws
    ]
    return pl.DataFrame(rows)


def log_densities(fitted: Fitted, which: int, draws: int) -> Float[np.ndarray, "draw node"]:
    """Evaluate a data set's log density of s before selection, at the nodes, for some draws."""
    names = [f"component_{name}" for name in ("mean", "concentration", "weight")]
    group = fitted.need("posterior", *names)
    # Betas by mean and concentration: a = m φ, b = (1 − m) φ.
    mean, total, weight = (thinned_draws(group[name], draws)[:, which] for name in names)
    with own_settings():
        mixtures = map(jnp.asarray, (np.log(weight), mean * total, (1 - mean) * total))
        return np.asarray(jax.vmap(logit_quadrature.log_mixture_weights)(*mixtures))


def annotator_draws(fitted: Fitted, role: str, draws: int) -> Float[np.ndarray, "draw 2"]:
    """Select correlation and leniency of a data set's answers in the draws of `log_densities`."""
    group = fitted.need("posterior", "component_mean")
    size = len(thinned_draws(group["component_mean"], draws))
    columns = [
        thinned_draws(group[name], draws)
        if name in group
        else np.full(size, float(fitted.record.recorded_options.get(name) or 0.0))
        for name in ("dependence", "leniency")
    ]
    # Leniency is that of the replication's crowd, more than the others'.
    return np.stack(columns, axis=1) * (1.0, float(role == "replication"))


def _row(
    study: Study, role: str, log_density: Floats, annotators: Floats, rng: np.random.Generator
) -> dict[str, object]:
    data = study.datasets[role]
    # Images with equal counts have one distribution of s.
    pairs, images = np.unique(
        np.stack([data.shown, data.selected], axis=1), axis=0, return_counts=True
    )
    n_shown, selected = pairs.T
    mass = frequency_given_counts(log_density, selected, n_shown - selected, annotators)
    s, rule = np.exp(logit_quadrature.nodes()[0]), data.selection
    # Moments of s given each count, under every draw's mixture.
    mean, square = mass @ s, mass @ np.square(s)
    frequency = summarize_mean(mean, square - mean**2, images, rng)
    dropped = None
    if rule is not None:
        passing = np.empty(mass.shape[:2])
        for rho in np.unique(annotators[:, 0]):
            keeps = _keeps_again(data.name, rule, n_shown, rho)
            rows = annotators[:, 0] == rho
            passing[rows] = np.einsum("dcn,cn->dc", mass[rows], keeps)
        # An event is its own square: its variance is p − p².
        middle, lower, upper = summarize_mean(passing, passing - passing**2, images, rng)
        dropped = (1 - middle, 1 - upper, 1 - lower)
    measured = float((data.selected / data.shown).mean())
    result = Remeasured(len(data.images), measured, frequency, dropped)
    return as_row(data.name, rule, result, role)


def frequency_given_counts(
    log_density: Floats,
    selected: Ints,
    rejected: Ints,
    annotators: Float[np.ndarray, "draw 2"],  # correlation, leniency
) -> Float[np.ndarray, "draw cell node"]:
    """Compute P(node | k, n) under every draw's mixture, and correlation and leniency."""
    levels, place = np.unique(annotators, axis=0, return_inverse=True)
    log_answers = np.stack([_log_answers(selected, rejected, *each) for each in levels.tolist()])
    log_joint = log_density[:, None, :] + log_answers[place.ravel()]
    return np.exp(log_joint - logsumexp(log_joint, axis=-1, keepdims=True))


def _log_answers(
    selected: Ints, rejected: Ints, dependence: float, leniency: float = 0.0
) -> Float[np.ndarray, "cell node"]:
    """Compute log P(answers | s) at the nodes, up to the binomial coefficient."""
    if dependence > 0 or leniency != 0:
        return logit_quadrature.log_dependent(selected, rejected, dependence, leniency)
    return np.asarray(logit_quadrature.log_likelihood(selected, rejected))


def _keeps_again(
    dataset: str, selection: Selection, n_shown: Ints, dependence: float
) -> Float[np.ndarray, "cell node"]:
    """Compute Σ_k a(k, n) P(k | n, s), the probability to pass the rule on n fresh answers."""
    sizes, place = np.unique(selection.count_answers(n_shown), return_inverse=True)
    if (count := len(sizes)) > MAX_SIZES:
        facts = {"dataset": dataset, "number_count": count, "largest": MAX_SIZES}
        raise StudyError("too-many-annotator-numbers", **facts)
    chances: list[Floats] = []
    for size in sizes.tolist():
        k = np.arange(size + 1)
        log_mass = _log_answers(k, size - k, dependence) + log_binomial(size, k)[:, None]
        chances.append(selection.probability(k, np.full(size + 1, size)) @ np.exp(log_mass))
    return np.stack(chances)[place]


def kept_factor(
    a: Floats, b: Floats, weight: Floats, data: AnnotatedSet, s: Floats
) -> Float[np.ndarray, "draw point"]:
    """Compute the truncation of a density of s by a rule, Σ_n P(n) a_n(s) / ∫ a_n p; 1 without."""
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
