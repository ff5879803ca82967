"""Prior sensitivity: power scaling of the prior and of the likelihood.

The posterior with the prior raised to the power α, p(θ)^α p(y | θ), follows from the draws at hand
by importance weights ∝ p(θ)^(α − 1), Pareto smoothed. Two numbers say what a change of α does to a
quantity f:

- the *index* of Kallioinen et al.: cumulative Jensen–Shannon distance between the distributions of
  f with and without the weights at α = 1 ± δ, over log₂(1 + δ). They call 0.05 noticeable;
- the *shift* of its mean, in posterior standard deviations, for a doubling of α, to first order:
  d E[f] / d log₂ α = ln 2 · Cov(f, log p(θ)).

For the mean gap the prior of the global parameters is scaled, as Kallioinen et al. advise for
hierarchical models; for one classifier also the prior of its own curve. Those of the others act on
it only through the shared parameters, and would drown the answer in noise.

References: Kallioinen, Paananen, Bürkner and Vehtari (2023), "Detecting and diagnosing prior and
likelihood sensitivity with power-scaling", Statistics and Computing 34; Nguyen and Vreeken (2015)
for the distance.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, starmap
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from bayesrep.checks.finding import Finding
from bayesrep.errors import PosteriorError
from bayesrep.numerics.convergence import mean_ess
from bayesrep.numerics.pareto import pareto_smooth
from bayesrep.posterior.groups import Posterior, draw_indices, need_group, read_record
from bayesrep.posterior.likelihood import LOGIT_VARS, answer_log_likelihoods
from bayesrep.studies.vocabulary import Words
from bayesrep.types import Float, Floats, Ints

POWER_STEP = 0.01
MIN_INDEX = 0.05
MIN_NOISE_RATIO = 2.5
N_SHUFFLES = 4
BATCH_SIZE = 32  # quantities
MEAN_GAP = "(mean gap)"
MAX_SHIFT = 1.0  # larger shifts are reported, in posterior sd: a quarter of a 95 % interval
PRIOR_DATA_CONFLICT = "prior-data conflict"
STRONG_PRIOR = "strong prior or weak likelihood"
TOO_NOISY = "too few draws to tell"
NOT_SENSITIVE = "-"


def log_likelihood(posterior: Posterior) -> Float[np.ndarray, "chain draw"]:
    """Compute the total log likelihood up to a constant."""
    return _count_log_likelihood(posterior) + _answer_log_likelihood(posterior).sum(axis=2)


def _count_log_likelihood(posterior: Posterior) -> Float[np.ndarray, "chain stored"]:
    group = need_group(posterior, "log_density", "reference_images")
    images = (str(name) for name in group.data_vars if name not in LOGIT_VARS)
    return np.sum([group[name].values.sum(axis=2) for name in images], axis=0)


def _answer_log_likelihood(posterior: Posterior) -> Float[np.ndarray, "chain stored classifier"]:
    # In float64: in float32 sums over thousands of cells lose the differences between draws.
    return np.stack([each.sum(axis=2) for each in answer_log_likelihoods(posterior)], axis=2)


def log_joint(posterior: Posterior) -> Float[np.ndarray, "chain draw"]:
    """Read the log joint density of data and unconstrained parameters, up to a constant."""
    return need_group(posterior, "sample_stats", "lp")["lp"].values


class PriorParts(NamedTuple):
    """Log prior densities at the draws, of global and of each classifier's parameters."""

    shared: Float[np.ndarray, "chain draw"]
    own: Float[np.ndarray, "chain draw classifier"]


def prior_parts(posterior: Posterior, draws: Ints | slice = slice(None)) -> PriorParts:
    """Read the log prior densities of global and of each classifier's parameters."""
    group = need_group(posterior, "log_prior", *PriorParts._fields)
    parts = (group[name].values[:, draws].astype(np.float64) for name in PriorParts._fields)
    return PriorParts(*parts)


def jensen_shannon(
    values: Float[np.ndarray, "draw"], weights: Float[np.ndarray, "version draw"]
) -> Float[np.ndarray, "version"]:
    """Compute cumulative Jensen–Shannon distances, the larger of those of f and of −f."""
    # Integrals over step functions: the distribution functions are constant between draws.
    order = np.argsort(values)
    width = np.diff(values[order])
    p = np.arange(1, len(values)) / len(values)
    q = np.cumsum(weights[:, order], axis=1)[:, :-1] / weights.sum(axis=1, keepdims=True)
    return np.maximum(_distance(p, q, width), _distance(1 - p, 1 - q, width))


def _distance(p: Floats, q: Floats, width: Floats) -> Floats:
    # p log p → 0 as p → 0.
    q = np.clip(q, 1e-300, None)
    middle = np.log2((p + q) / 2)
    divergence = (p * (np.log2(p) - middle) + q * (np.log2(q) - middle)) @ width
    return np.sqrt(np.maximum(divergence / np.maximum((p + q) @ width, 1e-300), 0.0))


class Scaling(NamedTuple):
    """Sensitivity of a quantity to one part of the log density."""

    sensitivity: float
    noise: float
    shift: float
    shift_se: float
    pareto_k: float


def power_scaling(
    quantity: Float[np.ndarray, "chain draw"],
    part: Float[np.ndarray, "chain draw"],
    *,
    step: float = POWER_STEP,
    shuffles: int = N_SHUFFLES,  # that estimate the noise; of none it is NaN
) -> Scaling:
    """Compute the sensitivity to raising one part of the density to the powers 1 ± step."""
    return next(_scale_powers([quantity], [part], step, shuffles))


def _scale_powers(
    quantities: Sequence[Floats], parts: Sequence[Floats], step: float, shuffles: int
) -> Iterator[Scaling]:
    """Yield the `power_scaling` of quantities, whose weights are smoothed in one batch."""
    # A constant factor of the density cancels; centring keeps weights from overflow.
    centred = [part.ravel() - part.mean() for part in parts]
    powers = np.array([step, -step])[:, None]
    log_weights, shapes = pareto_smooth(np.concatenate([powers * each for each in centred]))
    smoothed = zip(
        np.exp(log_weights).reshape(-1, 2, log_weights.shape[1]), shapes.reshape(-1, 2), strict=True
    )
    for quantity, part, (weights, shape) in zip(quantities, centred, smoothed, strict=True):
        yield _scale_power(quantity, part, weights, float(shape.max()), step, shuffles)


def _scale_power(
    quantity: Floats, log_part: Floats, weights: Floats, shape: float, step: float, shuffles: int
) -> Scaling:
    """Compute a quantity's sensitivity from a part and its weights for both powers."""
    values, rng = quantity.ravel(), np.random.default_rng(0)
    # Smoothing depends on order statistics alone: shuffle the smoothed weights, not the part.
    orders = (rng.permutation(len(values)) for _ in range(shuffles))
    versions = np.concatenate([weights, *(weights[:, order] for order in orders)])
    distances = jensen_shannon(values, versions)
    indices = distances.reshape(-1, 2).mean(axis=1) / np.log2(1 + step)
    # d E[f] / d log₂ α = ln 2 · Cov(f, log p), in posterior sd.
    deviation = values - values.mean()
    terms = np.log(2) * deviation * log_part / max(float(deviation.std()), 1e-300)
    # Monte Carlo error of the covariance, by the ESS of its terms.
    size = float(np.nan_to_num(mean_ess(terms.reshape(*quantity.shape, 1))[0], nan=terms.size))
    error = float(terms.std()) / np.sqrt(size)
    # The first index is of the part itself, the others of its permutations.
    noise = float(np.sqrt(np.square(indices[1:]).mean())) if shuffles else float("nan")
    return Scaling(float(indices[0]), noise, float(terms.mean()), error, shape)


def reading(prior: float, likelihood: float, noise: float) -> str:
    """Interpret a pair of indices by table 1 of Kallioinen et al."""
    if prior >= MIN_INDEX and prior > MIN_NOISE_RATIO * noise:
        return PRIOR_DATA_CONFLICT if likelihood >= MIN_INDEX else STRONG_PRIOR
    return TOO_NOISY if noise >= MIN_INDEX else NOT_SENSITIVE


def prior_sensitivity(posterior: Posterior, *, step: float = POWER_STEP) -> pl.DataFrame:
    """Tabulate the sensitivity of the mean gap and of every adjusted accuracy."""
    record = read_record(posterior)
    if record.cut:
        raise PosteriorError("prior-sensitivity-of-cut-feedback")
    group = need_group(posterior, "posterior", "adjusted_accuracy", "bias_corrected_gap")
    # With thousands of classifiers the answers' likelihood is stored for some draws only.
    indices = draw_indices(need_group(posterior, "log_density", "logit_right"), group)
    by_classifier, parts = _answer_log_likelihood(posterior), prior_parts(posterior, indices)
    counts = _count_log_likelihood(posterior)
    likelihood = counts + record.weight * by_classifier.sum(axis=2)
    mean_gap = group["bias_corrected_gap"].values[:, indices].mean(axis=2)
    adjusted = group["adjusted_accuracy"].values[:, indices]

    def classifier_quantity(index: int, name: str) -> _Quantity:
        prior = parts.shared + parts.own[:, :, index]
        return _Quantity(name, adjusted[:, :, index], prior, counts + by_classifier[:, :, index])

    gap = _Quantity(MEAN_GAP, mean_gap, parts.shared, likelihood)
    names = map(str, group["classifier"].values)
    quantities = chain([gap], starmap(classifier_quantity, enumerate(names)))
    return pl.DataFrame(list(_rows(quantities, step)))


class _Quantity(NamedTuple):
    """A quantity, and the parts of the density that are scaled for it."""

    name: str
    draws: Floats
    prior: Floats
    likelihood: Floats


def _rows(quantities: Iterator[_Quantity], step: float) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table, in batches of quantities whose draws fit the cache."""
    while batch := list(islice(quantities, BATCH_SIZE)):
        draws = [each.draws for each in batch]
        on_prior = _scale_powers(draws, [each.prior for each in batch], step, N_SHUFFLES)
        on_data = _scale_powers(draws, [each.likelihood for each in batch], step, 0)
        for each, prior, data in zip(batch, on_prior, on_data, strict=True):
            yield _row(each.name, each.draws, prior, data)


def _row(name: str, quantity: Floats, on_prior: Scaling, on_data: Scaling) -> dict[str, Any]:
    return {
        "quantity": name,
        "prior": on_prior.sensitivity,
        "likelihood": on_data.sensitivity,
        "noise": on_prior.noise,
        "shift": on_prior.shift,
        "shift_se": on_prior.shift_se,
        "sd": float(quantity.std()),
        "reading": reading(on_prior.sensitivity, on_data.sensitivity, on_prior.noise),
    }


def judge_prior(posterior: Posterior, words: Words) -> tuple[pl.DataFrame | None, Finding]:
    """Compute the table of `prior_sensitivity`, if possible, and judge it."""
    check, criterion = "prior sensitivity", f"nothing moves {MAX_SHIFT:g} sd"
    if read_record(posterior).cut:
        sentence = (
            'How much the prior matters is not known: with feedback="cut" no joint density exists '
            "that could be scaled. To know, fit under another prior."
        )
        return None, Finding(check, "not available", criterion, "yes", sentence)
    try:
        table = prior_sensitivity(posterior)
    except PosteriorError as error:
        why = str(error)
        sentence = f"{why[0].upper()}{why[1:]}. How much the prior matters is not known."
        return None, Finding(check, "missing", criterion, "with care", sentence)
    mean = table.row(0, named=True)
    value = f"{_shift(mean)} sd"
    # Report shifts that exceed the limit by two standard errors.
    moved = table.filter(pl.col("shift").abs() - 2 * pl.col("shift_se") > MAX_SHIFT)
    if not moved.is_empty():
        return table, Finding(
            check, value, criterion, "with care", _describe_sensitivity(table, moved, words)
        )
    sentence = ""
    if mean["reading"] == TOO_NOISY:
        sentence = (
            "Whether the prior matters cannot be told from these draws (noise of the index "
            f"{mean['noise']:.2f}). If it matters to you, fit with more draws."
        )
    return table, Finding(check, value, criterion, "yes", sentence)


def _describe_sensitivity(table: pl.DataFrame, moved: pl.DataFrame, words: Words) -> str:
    most = moved.sort(pl.col("shift").abs(), descending=True).row(0, named=True)
    number = len(moved.filter(pl.col("quantity") != MEAN_GAP))
    why = (
        "prior and data pull in different directions"
        if PRIOR_DATA_CONFLICT in moved["reading"].to_list()
        else "the data say little about it"
    )
    return (
        f"The prior speaks in the answer ({why}): doubling its power moves the mean gap by "
        f"{_shift(table.row(0, named=True))} posterior sd, {number} of {len(table) - 1} adjusted "
        f"accuracies by more than {MAX_SHIFT:g}, and {most['quantity']} by {_shift(most)}. Report "
        "results under another prior beside these, "
        "such as wider first_location, log_step and log_concentration, or get more "
        f"{words.annotators} per {words.image}."
    )


def _shift(row: Mapping[str, Any]) -> str:
    return f"{row['shift']:+.2f} ± {row['shift_se']:.2f}"
