"""The joint model: hierarchical beta mixtures and Bernstein accuracy curves.

For data set i (0 reference, 1 replication), cell (k, n) and classifier c::

    s | i        ~  Σ_j w_ij Beta(μ_ij ν_ij, (1 − μ_ij) ν_ij)
    k | n, s     ~  Binomial(n, s)                           integrated: beta-binomial mixture
    J | s        ~  Binomial(d, s)                           d virtual annotators
    correct | J  ~  Bernoulli(σ(η_cJ))                       replication only
    y_c[k, n]    ~  Binomial(m[k, n], Σ_j P(J = j | k, n) σ(η_cj))

    η_cj = Σ_r P_r(2 j/d − 1) β_cr,   β_c ~ Normal(θ, diag τ²)   θ: the population's curve
    A_c  = Σ_j P_ref(J = j) σ(η_cj)                          adjusted accuracy

Annotators tell about the mixtures of both data sets and correctness about the replication's
mixture and the curves; every sum over s is exact. Each classifier's data follow this model
whatever the others do. Across classifiers the images are the same, and the product of the
classifiers' likelihoods ignores that: intervals are right for one classifier at a time, not for
means or differences of several.

Components are identified by their order: the lowest logit mean, then positive steps whose priors
keep them away from zero, so labels do not switch. Every prior is normal on an unbounded scale;
:class:`JointOptions` lists them.

Reference: Engstrom et al. (2020), sections 4.1 and 5.3 (equations 6 and 7).
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from jax.typing import ArrayLike

from bayesrep.numerics.bernstein import smooth_basis
from bayesrep.numerics.beta_binomial import (
    below,
    log_binomial,
    log_cells,
    log_mixture,
    virtual_annotators,
)
from bayesrep.statistics import Cells, SufficientStatistics


class CountData(NamedTuple):
    """Annotation counts of one data set, ready for the likelihood (M cells)."""

    below_selected: Array  # [M, R] 0/1, see numerics.beta_binomial.below
    below_rejected: Array  # [M, R]
    below_shown: Array  # [M, R]
    selected: Array  # [M] k
    rejected: Array  # [M] n − k
    images: Array  # [M] m[k, n]
    log_choices: Array  # [M] log C(n, k)


class JointData(NamedTuple):
    """Everything the joint model conditions on."""

    reference: CountData
    replication: CountData
    correct: Array  # [C, M] images of a replication cell that the classifier gets right
    wrong: Array  # [C, M]


@dataclass(frozen=True)
class JointOptions:
    """Size and priors of the joint model; every prior is normal on the scale named.

    Parameters
    ----------
    components
        K, beta components shared by the data sets. A few dozen annotators tell little more than
        the first moments of p(s): a third component changes the adjusted accuracies by a fraction
        of their uncertainty and makes the chains mix slowly.
    degree
        d of the Bernstein form. It smooths a curve over about sqrt(s (1 − s) / d).
    terms
        Legendre terms of an accuracy curve on the logit scale: level, slope, bends.
    first_location, log_step
        (mean, sd) of the lowest component's logit mean and of the log steps up to the next ones.
    log_concentration
        (mean, sd) of log(a + b).
    location_deviation, concentration_deviation
        sd of the difference between the data sets, in logit mean and in log(a + b); half of it
        is added to one data set and half subtracted from the other.
    weight
        sd of a component's log weight relative to the first component's, per data set.
    level, slope
        (mean, sd) of the population curve's first two terms.
    bend
        sd of the population curve's term r >= 2 is bend / (r − 1).
    classifier_level, classifier_slope, classifier_bend
        sd of a classifier's terms around the population's, in the same order.
    """

    components: int = 2
    degree: int = 24
    terms: int = 5
    first_location: tuple[float, float] = (0.7, 0.5)
    log_step: tuple[float, float] = (0.4, 0.3)
    log_concentration: tuple[float, float] = (2.5, 0.6)
    location_deviation: float = 0.2
    concentration_deviation: float = 0.2
    weight: float = 1.0
    level: tuple[float, float] = (-1.0, 1.5)
    slope: tuple[float, float] = (2.0, 1.5)
    bend: float = 1.0
    classifier_level: float = 0.75
    classifier_slope: float = 0.5
    classifier_bend: float = 0.25

    def __post_init__(self) -> None:
        if self.components < 1 or self.degree < 1 or self.terms < 2:
            raise ValueError(
                "the joint model needs components >= 1, degree >= 1 and terms >= 2; got "
                f"{self.components}, {self.degree}, {self.terms}"
            )


def _count_data(cells: Cells) -> CountData:
    rejected = cells.shown - cells.selected
    size = int(cells.shown.max())
    return CountData(
        below_selected=jnp.asarray(below(cells.selected, size)),
        below_rejected=jnp.asarray(below(rejected, size)),
        below_shown=jnp.asarray(below(cells.shown, size)),
        selected=jnp.asarray(cells.selected, dtype=float),
        rejected=jnp.asarray(rejected, dtype=float),
        images=jnp.asarray(cells.images, dtype=float),
        log_choices=jnp.asarray(log_binomial(cells.shown, cells.selected)),
    )


def joint_data(statistics: SufficientStatistics) -> JointData:
    """Turn sufficient statistics into the arrays of the likelihood."""
    cells = statistics.replication
    correct = cells.correct.T
    return JointData(
        reference=_count_data(statistics.reference),
        replication=_count_data(cells),
        correct=jnp.asarray(correct, dtype=float),
        wrong=jnp.asarray(cells.images - correct, dtype=float),
    )


def annotations_only(data: JointData) -> JointData:
    """The same data with every classifier's answers removed (shapes unchanged)."""
    return data._replace(correct=jnp.zeros_like(data.correct), wrong=jnp.zeros_like(data.wrong))


def joint_start(data: JointData, options: JointOptions) -> dict[str, ArrayLike]:
    """Values of all sites to begin the search for the mode: the prior means."""
    size = options.components
    mean, _ = _curve_prior(options)
    return {
        "first_location": options.first_location[0],
        "log_step": np.full(size - 1, options.log_step[0]),
        "log_concentration": np.full(size, options.log_concentration[0]),
        "location_deviation": np.zeros(size),
        "concentration_deviation": np.zeros(size),
        "weight_logit": np.zeros((2, size - 1)),
        "population_curve": mean,
        "classifier_curve": np.tile(mean, (len(data.correct), 1)),
    }


def _curve_prior(options: JointOptions) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sd [terms] of the population curve's Legendre terms."""
    bends = options.bend / np.arange(1, options.terms - 1)
    mean = np.array([options.level[0], options.slope[0], *np.zeros(len(bends))])
    return mean, np.array([options.level[1], options.slope[1], *bends])


def _normal(name: str, location: ArrayLike, scale: ArrayLike, shape: tuple[int, ...]) -> Array:
    law = dist.Normal(location, scale).expand(shape).to_event(len(shape))
    return jnp.asarray(numpyro.sample(name, law))


def _mixtures(options: JointOptions) -> tuple[Array, Array, Array]:
    """Sample a, b and log weights of both data sets, each [2, K]."""
    size = options.components
    first = numpyro.sample("first_location", dist.Normal(*options.first_location))
    steps = _normal("log_step", *options.log_step, (size - 1,))
    concentration = _normal("log_concentration", *options.log_concentration, (size,))
    location_change = _normal("location_deviation", 0.0, options.location_deviation, (size,))
    concentration_change = _normal(
        "concentration_deviation", 0.0, options.concentration_deviation, (size,)
    )
    weight = _normal("weight_logit", 0.0, options.weight, (2, size - 1))

    half = np.array([[-0.5], [0.5]])
    location = first + jnp.concatenate([jnp.zeros(1), jnp.cumsum(jnp.exp(steps))])
    mean = jax.nn.sigmoid(location[None, :] + half * location_change[None, :])
    total = jnp.exp(concentration[None, :] + half * concentration_change[None, :])
    log_weights = jax.nn.log_softmax(jnp.concatenate([jnp.zeros((2, 1)), weight], axis=1), axis=1)
    numpyro.deterministic("component_mean", mean)
    numpyro.deterministic("component_concentration", total)
    numpyro.deterministic("component_weight", jnp.exp(log_weights))
    return mean * total, (1 - mean) * total, log_weights


def _curves(options: JointOptions, classifiers: int) -> Array:
    """Sample the Bernstein coefficients σ(η) [C, d + 1]."""
    population = _normal("population_curve", *_curve_prior(options), (options.terms,))
    bends = options.classifier_bend / np.arange(1, options.terms - 1)
    spread = np.array([options.classifier_level, options.classifier_slope, *bends])
    shape = (classifiers, options.terms)
    law = dist.Normal(jnp.broadcast_to(population, shape), np.broadcast_to(spread, shape))
    with numpyro.plate("classifier", classifiers):
        own = numpyro.sample("classifier_curve", law.to_event(1))
    return jax.nn.sigmoid(own @ smooth_basis(options.degree, options.terms).T)


def _log_cell_masses(a: Array, b: Array, counts: CountData) -> Array:
    """Per component [K, M], without C(n, k)."""
    return log_cells(a, b, counts.below_selected, counts.below_rejected, counts.below_shown)


def _virtual_given_cell(
    a: Array, b: Array, log_joint: Array, counts: CountData, degree: int
) -> Array:
    """P(J = j | k, n) [M, d + 1] under one data set's mixture."""
    component = jax.nn.softmax(log_joint, axis=0)  # [K, M] P(component | k, n)
    given = virtual_annotators(
        a[:, None] + counts.selected[None, :], b[:, None] + counts.rejected[None, :], degree
    )
    return jnp.sum(component[:, :, None] * given, axis=0)


def joint(data: JointData, options: JointOptions) -> None:
    """NumPyro model; the module's docstring states it."""
    a, b, log_weights = _mixtures(options)
    coefficients = _curves(options, len(data.correct))

    reference = log_mixture(log_weights[0], _log_cell_masses(a[0], b[0], data.reference))
    log_joint = log_weights[1][:, None] + _log_cell_masses(a[1], b[1], data.replication)
    replication = jax.scipy.special.logsumexp(log_joint, axis=0)
    numpyro.factor("reference_counts", data.reference.images @ reference)
    numpyro.factor("replication_counts", data.replication.images @ replication)

    table = _virtual_given_cell(a[1], b[1], log_joint, data.replication, options.degree)
    right = coefficients @ table.T  # [C, M] P(correct | k, n)
    numpyro.factor(
        "correct", jnp.sum(data.correct * jnp.log(right) + data.wrong * jnp.log1p(-right))
    )

    weights = jnp.exp(log_weights)
    under_reference = weights[0] @ virtual_annotators(a[0], b[0], options.degree)
    numpyro.deterministic("adjusted_accuracy", coefficients @ under_reference)
    numpyro.deterministic("mean_selection_frequency", jnp.sum(weights * a / (a + b), axis=1))
    numpyro.deterministic("reference_log_mass", reference + data.reference.log_choices)
    numpyro.deterministic("replication_log_mass", replication + data.replication.log_choices)
    numpyro.deterministic("cell_accuracy", right)
