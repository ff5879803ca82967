"""How much the answer rests on the prior: power scaling of the prior and of the likelihood.

The posterior with the prior raised to the power α, p(θ)^α p(y | θ), follows from the draws at hand
by importance weights ∝ p(θ)^(α − 1), Pareto smoothed. Two numbers say what a change of α does to a
quantity f:

- the *index* of Kallioinen et al.: cumulative Jensen–Shannon distance between the distributions of
  f with and without the weights at α = 1 ± δ, over log₂(1 + δ). They call 0.05 noticeable;
- the *shift* of its mean, in posterior standard deviations, for a doubling of α, to first order:
  d E[f] / d log₂ α = ln 2 · Cov(f, log p(θ)).

The likelihood is scaled in the same way. A sensitive prior beside a sensitive likelihood says that
the two pull in different directions; beside an insensitive one that the data have little to say.

What is scaled for the mean gap is the prior of what all classifiers share (the mixtures, the
population's curve), as Kallioinen et al. advise for hierarchical models; for one classifier also
the prior of its own curve. The priors of the other classifiers' curves act on it only through the
shared parameters, and would drown the answer in noise: 136 classifiers have 680 parameters. Where
the model's sites are not all in the file the whole prior is scaled: the log joint density less the
log likelihood on the cells.

``shift_se`` and ``noise`` say how far both numbers are chance (the latter: the index of the same
weights given to the wrong draws), and nothing is called sensitive that is not well above its noise.

References: Kallioinen, Paananen, Bürkner and Vehtari (2023), "Detecting and diagnosing prior and
likelihood sensitivity with power-scaling", Statistics and Computing 34; Nguyen and Vreeken (2015)
for the distance.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl

from bayesrep.errors import PosteriorError
from bayesrep.models.model import Form
from bayesrep.numerics.pareto import pareto_smooth
from bayesrep.posterior.files import arviz
from bayesrep.posterior.groups import Posterior, need_group, recorded
from bayesrep.types import Float, Floats

STEP = 0.01
THRESHOLD = 0.05
ABOVE_NOISE = 2.5
SHUFFLES = 4
MEAN_GAP = "(mean gap)"
CONFLICT = "prior-data conflict"
WEAK = "strong prior or weak likelihood"
NOISY = "too few draws to tell"
FINE = "-"


def log_likelihood(posterior: Posterior) -> Floats:
    """Total log likelihood [chain, draw] up to a constant.

    Raises
    ------
    PosteriorError
        If the posterior lacks the group.
    """
    group = need_group(posterior, "log_likelihood", "correct")
    total = 0.0
    for name in group.data_vars:
        if name != "log_right":
            values = group[name].values
            # In float64: a sum over thousands of cells in float32 loses what matters here.
            total = total + values.sum(axis=tuple(range(2, values.ndim)), dtype=np.float64)
    return np.asarray(total)


def log_prior(posterior: Posterior) -> Floats:
    """Log prior density of all unconstrained parameters [chain, draw] up to a constant.

    Raises
    ------
    PosteriorError
        If the posterior does not hold the log joint density of all parameters.
    """
    _refuse_cut(posterior)
    stats = need_group(posterior, "sample_stats", "lp")
    return stats["lp"].values - log_likelihood(posterior)


def _refuse_cut(posterior: Posterior) -> None:
    if need_group(posterior, "posterior").attrs.get("feedback") == "cut":
        raise PosteriorError('prior sensitivity is not available with feedback="cut"')


class PriorParts(NamedTuple):
    """Log prior densities at the draws, by what they speak of."""

    shared: Float[np.ndarray, "chain draw"]
    own: Float[np.ndarray, "chain draw classifier"]


def prior_parts(posterior: Posterior) -> PriorParts | None:
    """The prior's density by what it speaks of.

    None where the posterior does not hold all sites of a model that this version knows.
    """
    group = need_group(posterior, "posterior", "adjusted_accuracy")
    try:
        made = recorded(posterior)
    except PosteriorError:
        return None
    groups = len(group["group"]) if made.grouping and "group" in group.coords else 1
    form = Form(group["adjusted_accuracy"].shape[2], made.roles, groups)
    with jax.enable_x64(new_val=True):
        latent = made.model.sites(made.options, form)
        if any(name not in group for name in latent):
            return None
        by_draw = jax.jit(jax.vmap(lambda v: made.model.log_prior(v, made.options, form)))
        chains = [  # one at a time: the curves of thousands of classifiers are large
            by_draw({name: jnp.asarray(group[name].values[chain]) for name in latent})
            for chain in range(group.sizes["chain"])
        ]
        return PriorParts(*(np.stack([np.asarray(c[i]) for c in chains]) for i in (0, 1)))


def jensen_shannon(values: Floats, weights: Floats) -> float:
    """Cumulative Jensen–Shannon distance of draws [S] from themselves with weights [S].

    Between 0 and 1; the larger of the distances of f and of −f.
    """
    order = np.argsort(values)
    width = np.diff(values[order])
    p = np.arange(1, len(values)) / len(values)
    q = np.cumsum(weights[order] / weights.sum())[:-1]
    return max(_distance(p, q, width), _distance(1 - p, 1 - q, width))


def _distance(p: Floats, q: Floats, width: Floats) -> float:
    q = np.clip(q, 1e-300, None)
    middle = np.log2((p + q) / 2)
    divergence = width @ (p * (np.log2(p) - middle) + q * (np.log2(q) - middle))
    return float(np.sqrt(max(divergence / max(width @ (p + q), 1e-300), 0.0)))


class Scaling(NamedTuple):
    """Sensitivity of a quantity to one part of the log density."""

    sensitivity: float
    noise: float
    shift: float
    shift_se: float
    pareto_k: float


def power_scaling(quantity: Floats, part: Floats, *, step: float = STEP) -> Scaling:
    """Sensitivity to raising one part of the density to the powers 1 ± step.

    Parameters
    ----------
    quantity
        Draws [chain, draw].
    part
        Its logarithm [chain, draw], up to a constant.
    step
        δ.
    """
    values, log_part = quantity.ravel(), part.ravel() - part.mean()
    rng = np.random.default_rng(0)
    versions = [log_part, *(rng.permutation(log_part) for _ in range(SHUFFLES))]
    log_weights, shape = pareto_smooth(
        np.array([s * version for version in versions for s in (step, -step)], dtype=np.float64)
    )
    distances = np.array([jensen_shannon(values, weight) for weight in np.exp(log_weights)])
    indices = distances.reshape(-1, 2).mean(axis=1) / np.log2(1 + step)
    deviation = values - values.mean()
    terms = np.log(2) * deviation * log_part / max(float(deviation.std()), 1e-300)
    error = float(terms.std()) / np.sqrt(_effective_size(terms.reshape(quantity.shape)))
    noise = float(np.sqrt(np.square(indices[1:]).mean()))
    return Scaling(float(indices[0]), noise, float(terms.mean()), error, float(shape[:2].max()))


def _effective_size(draws: Floats) -> float:
    """ESS of a mean [chain, draw]."""
    module = arviz()
    size = module.ess(module.convert_to_dataset({"x": draws}), method="mean")["x"].values
    return float(np.nan_to_num(size, nan=draws.size))


def reading(prior: float, likelihood: float, noise: float) -> str:
    """What a pair of indices means, by table 1 of Kallioinen et al."""
    if prior >= THRESHOLD and prior > ABOVE_NOISE * noise:
        return CONFLICT if likelihood >= THRESHOLD else WEAK
    return NOISY if noise >= THRESHOLD else FINE


def prior_sensitivity(posterior: Posterior, *, step: float = STEP) -> pl.DataFrame:
    """Sensitivity of the mean bias-corrected gap and of every adjusted accuracy.

    Parameters
    ----------
    posterior
        From :func:`bayesrep.fit`.
    step
        δ of the powers 1 ± δ.

    Returns
    -------
    polars.DataFrame
        ``quantity`` ("(mean gap)", then the classifiers), ``prior`` and ``likelihood`` (indices),
        ``noise`` (of ``prior``), ``shift`` (of the mean, in posterior sd, for twice the prior's
        power, to first order) with ``shift_se``, ``sd`` (of the posterior), ``reading``.

    Raises
    ------
    PosteriorError
        If the posterior lacks what is needed, or was made with ``feedback="cut"``.
    """
    _refuse_cut(posterior)
    group = need_group(posterior, "posterior", "adjusted_accuracy", "bias_corrected_gap")
    adjusted = group["adjusted_accuracy"]
    names = [MEAN_GAP, *(str(name) for name in adjusted["classifier"].values)]
    parts = prior_parts(posterior)
    everything = log_prior(posterior) if parts is None else None
    total = log_likelihood(posterior)
    together = None
    if parts is not None and not recorded(posterior).model.collapsed:
        # All answers have one likelihood: what the prior leaves of the density.
        density = need_group(posterior, "sample_stats", "lp")["lp"].values
        together = total = density - parts.shared - parts.own.sum(axis=2)
    answers = need_group(posterior, "log_likelihood", "correct")["correct"].values
    counts = total - answers.sum(axis=(2, 3), dtype=np.float64)
    rows: list[dict[str, Any]] = []
    for index, name in enumerate(names):
        own = index - 1
        if own < 0:
            quantity, likely = group["bias_corrected_gap"].values.mean(axis=2), total
        else:
            quantity = adjusted.values[:, :, own]
            alone = counts + answers[:, :, own].sum(axis=2, dtype=np.float64)
            likely = alone if together is None else together
        believed = everything
        if parts is not None:
            believed = parts.shared if own < 0 else parts.shared + parts.own[:, :, own]
        rows.append(_row(name, quantity, np.asarray(believed), likely, step))
    return pl.DataFrame(rows)


def _row(name: str, quantity: Floats, prior: Floats, likely: Floats, step: float) -> dict[str, Any]:
    on_prior = power_scaling(quantity, prior, step=step)
    on_data = power_scaling(quantity, likely, step=step)
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
