"""The joint model as others would write it: NumPyro on cells and on images, SciPy, PyMC.

The same priors as `bayesrep.models.joint` at its defaults (components shared by two data sets,
Bernstein curves), written from docs/model.md and not from that file, so that their agreement says
something about both. None is slow on purpose: each is vectorised as its library invites.

Array names: K components, M cells or images, C classifiers, T terms, d degree.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from jax.scipy.special import gammaln, logsumexp
from numpy.typing import NDArray
from numpyro.distributions import transforms
from scipy import special, stats

from bayesrep.models.options import JointOptions
from bayesrep.numerics.bernstein import smooth_basis
from bayesrep.numerics.beta_binomial import counts_below, log_binomial
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


class Counts(NamedTuple):
    """Annotations of one data set; one row per cell, or per image with ``images`` all 1."""

    selected: Any  # [M] k
    shown: Any  # [M] n
    images: Any  # [M]


class Data(NamedTuple):
    """What every model here conditions on."""

    reference: Counts
    replication: Counts
    correct: Any  # [M, C] of the replication: images of the row that the classifier gets right


class Mixture(NamedTuple):
    """A mixture of betas."""

    log_weights: Array  # [K]
    a: Array
    b: Array


def on_cells(statistics: SufficientStatistics) -> Data:
    """One row for each (k, n) that occurs."""
    reference, replication = (
        Counts(*(np.asarray(x, dtype=float) for x in (c.selected, c.shown, c.images)))
        for c in (statistics.reference, statistics.replication)
    )
    return Data(reference, replication, statistics.replication.correct.astype(float))


def on_images(study: Study) -> Data:
    """One row for each image."""
    reference, replication = (
        Counts(s.selected.astype(float), s.shown.astype(float), np.ones(len(s.selected)))
        for s in (study.reference, study.replication)
    )
    return Data(reference, replication, study.replication.correct.astype(float))


def log_choices(data: Data) -> float:
    """Σ log C(n, k) over all images, the constant that models on cells leave out."""
    return sum(
        float(np.asarray(c.images) @ log_binomial(np.asarray(c.shown), np.asarray(c.selected)))
        for c in (data.reference, data.replication)
    )


FREEDOM = 4  # of the Student t that the population's bends are together
OWN = 5  # terms of a classifier's own


def _scales(options: JointOptions) -> tuple[Floats, Floats, Floats]:
    """Mean and scale [T] of the population's terms, and sd of a classifier's own."""
    bends = 1 / np.arange(1, options.size - 1)
    return (
        np.array([options.level[0], options.slope[0], *np.zeros(len(bends))]),
        np.array([options.level[1], options.slope[1], *options.bend * np.sqrt(bends)]),
        np.array(
            [options.classifier_level, options.classifier_slope, *options.classifier_bend * bends]
        )[:OWN],
    )


def _log_step(options: JointOptions) -> tuple[float, float]:
    mean, sd = options.log_step
    return mean - np.log(max(options.components - 1, 1)) / 2, sd


def _sample(name: str, law: Any) -> Array:
    return jnp.asarray(numpyro.sample(name, law))


def _normal(name: str, mean: float, sd: float, *shape: int) -> Array:
    return _sample(name, dist.Normal(mean, sd).expand(shape).to_event(len(shape)))


def _mixtures(options: JointOptions) -> list[Mixture]:
    """Sample both data sets' mixtures, with the sites of `bayesrep.models.joint`."""
    size = options.components
    first = _normal("first_location", *options.first_location)
    steps = jnp.exp(_normal("log_step", *_log_step(options), size - 1))
    concentration = _normal("log_concentration", *options.log_concentration, size)
    location = first + jnp.concatenate([jnp.zeros(1), jnp.cumsum(steps)])
    logits = _normal("weight_logit", 0.0, options.weight, 2, size - 1)
    log_weights = jax.nn.log_softmax(jnp.concatenate([jnp.zeros((2, 1)), logits], axis=1), axis=1)
    return _deviating(options, location, concentration, log_weights)


def _ordered_mixtures(options: JointOptions) -> list[Mixture]:
    """The same with an ordered vector of locations and Dirichlet weights."""
    size, (mean, sd), (step, step_sd) = (
        options.components,
        options.first_location,
        _log_step(options),
    )
    base = dist.Normal(
        jnp.array([mean] + [step] * (size - 1)), jnp.array([sd] + [step_sd] * (size - 1))
    )
    ordered = dist.TransformedDistribution(base.to_event(1), transforms.OrderedTransform())
    location = _sample("location", ordered)
    concentration = _normal("log_concentration", *options.log_concentration, size)
    with numpyro.plate("dataset", 2):
        weights = _sample("weights", dist.Dirichlet(jnp.ones(size)))
    return _deviating(options, location, concentration, jnp.log(weights))


def _deviating(
    options: JointOptions, location: Array, concentration: Array, log_weights: Array
) -> list[Mixture]:
    """Subtract half the deviation for the reference and add it for the replication."""
    shape = (1, options.components)
    by = _normal("location_deviation", 0.0, options.location_deviation, *shape)[0] / 2
    more = _normal("concentration_deviation", 0.0, options.concentration_deviation, *shape)[0] / 2
    mixtures: list[Mixture] = []
    for index, sign in enumerate((-1, 1)):
        mean, total = jax.nn.sigmoid(location + sign * by), jnp.exp(concentration + sign * more)
        mixtures.append(Mixture(log_weights[index], mean * total, (1 - mean) * total))
    return mixtures


def _curves(options: JointOptions, classifiers: int) -> Array:
    """Sample σ(η) [C, d + 1]."""
    mean, scale, own_sd = _scales(options)
    population = _sample("population_curve", dist.Normal(mean, scale).to_event(1))
    bends = dist.MultivariateStudentT(FREEDOM, mean[2:], np.diag(scale[2:]))
    normal = dist.Normal(mean[2:], scale[2:]).log_prob(population[2:]).sum()
    numpyro.factor("bends", bends.log_prob(population[2:]) - normal)
    spread = np.tile(own_sd, (classifiers, 1))
    with numpyro.plate("classifier", classifiers):
        around = population[None, :OWN]
        own = _sample("classifier_curve", dist.Normal(around, spread).to_event(1))
    basis = smooth_basis(options.degree, options.size)
    return jax.nn.sigmoid(own @ basis[:, :OWN].T + population[None, OWN:] @ basis[:, OWN:].T)


def _report(options: JointOptions, mixture: Mixture, curves: Array) -> None:
    """Adjusted accuracies; not part of the density."""
    j = jnp.arange(options.degree + 1.0)[:, None]
    law = dist.BetaBinomial(mixture.a[None], mixture.b[None], options.degree)
    weights = jnp.exp(logsumexp(mixture.log_weights[None] + law.log_prob(j), axis=1))
    numpyro.deterministic("adjusted_accuracy", curves @ weights)


def cells_with_gammaln(data: Data, options: JointOptions) -> None:
    """NumPyro on cells, beta functions by ``gammaln``: the collapsed model without our algebra."""
    mixtures, curves = _mixtures(options), _curves(options, data.correct.shape[1])
    for name, mixture, counts in zip(("reference", "replication"), mixtures, data[:2], strict=True):
        masses = _log_components(mixture, counts)
        numpyro.factor(name, jnp.sum(counts.images * logsumexp(masses, axis=1)))
    right = _virtual_table(options.degree, mixtures[1], data.replication) @ curves.T  # [M, C]
    wrong = data.replication.images[:, None] - data.correct
    numpyro.factor("correct", jnp.sum(data.correct * jnp.log(right) + wrong * jnp.log1p(-right)))
    _report(options, mixtures[0], curves)


def _log_components(mixture: Mixture, counts: Counts) -> Array:
    """log of weight times beta-binomial mass without C(n, k), [M, K]."""
    k, n = counts.selected[:, None], counts.shown[:, None]
    a, b = mixture.a[None], mixture.b[None]
    return mixture.log_weights[None] + _log_beta(a + k, b + n - k) - _log_beta(a, b)


def _log_beta(a: Array, b: Array) -> Array:
    """log B(a, b); JAX's own ``betaln`` is off by up to 1e-6 in float64."""
    return gammaln(a) + gammaln(b) - gammaln(a + b)


def _virtual_table(degree: int, mixture: Mixture, counts: Counts) -> Array:
    """P(J = j | k, n) by ``gammaln``, [M, d + 1]."""
    k, n = counts.selected[:, None], counts.shown[:, None]
    a, b = (mixture.a[None] + k)[..., None], (mixture.b[None] + n - k)[..., None]  # [M, K, 1]
    j = jnp.arange(degree + 1)[None, None]
    choices = log_binomial(degree, np.arange(degree + 1))[None, None]
    given = jnp.exp(choices + _log_beta(a + j, b + degree - j) - _log_beta(a, b))
    return jnp.einsum("mk,mkj->mj", jax.nn.softmax(_log_components(mixture, counts), axis=1), given)


def _condition_on_images(
    data: Data, options: JointOptions, mixtures: list[Mixture], curves: Array
) -> None:
    """Every image's annotations and every classifier's answer to it.

    ``MixtureSameFamily`` refuses ``BetaBinomial``, whose support depends on a parameter: the sum
    over components is written out.
    """
    posterior = jnp.zeros(0)
    for name, mixture, counts in zip(("reference", "replication"), mixtures, data[:2], strict=True):
        law = dist.BetaBinomial(mixture.a[None], mixture.b[None], counts.shown[:, None])
        masses = mixture.log_weights[None] + law.log_prob(counts.selected[:, None])  # [M, K]
        posterior = jax.nn.softmax(masses, axis=1)
        with numpyro.plate(f"{name}_image", len(counts.selected)):
            numpyro.factor(f"{name}_selected", logsumexp(masses, axis=1))
    k, n = data.replication.selected[:, None, None], data.replication.shown[:, None, None]
    a, b = mixtures[1].a[None, :, None], mixtures[1].b[None, :, None]
    j = jnp.arange(options.degree + 1.0)[None, None]
    given = jnp.exp(dist.BetaBinomial(a + k, b + n - k, options.degree).log_prob(j))
    right = jnp.einsum("mk,mkj->mj", posterior, given) @ curves.T
    numpyro.sample("correct", dist.Bernoulli(probs=right).to_event(2), obs=data.correct)
    _report(options, mixtures[0], curves)


def per_image(data: Data, options: JointOptions) -> None:
    """NumPyro on images, our priors."""
    _condition_on_images(data, options, _mixtures(options), _curves(options, data.correct.shape[1]))


def textbook(data: Data, options: JointOptions) -> None:
    """NumPyro on images with ordered locations and Dirichlet weights, other priors as ours."""
    _condition_on_images(
        data, options, _ordered_mixtures(options), _curves(options, data.correct.shape[1])
    )


def scipy_log_density(values: Mapping[str, Any], data: Data, options: JointOptions) -> float:
    """SciPy's distributions throughout, at values of the sites; with Σ log C(n, k)."""
    mean, scale, own_sd = _scales(options)
    population, own = np.asarray(values["population_curve"]), np.asarray(values["classifier_curve"])
    total = float(stats.norm.logpdf(population[:2], mean[:2], scale[:2]).sum())
    shape = np.diag(scale[2:] ** 2)
    total += float(stats.multivariate_t.logpdf(population[2:], mean[2:], shape, df=FREEDOM))
    total += float(stats.norm.logpdf(own, population[:OWN], own_sd).sum())
    for name, law in _mixture_priors(options).items():
        total += float(stats.norm.logpdf(values[name], *law).sum())
    j = np.arange(options.degree + 1)
    table = np.zeros(0)
    for which, counts in enumerate(data[:2]):
        weights, a, b = _scipy_mixture(values, which)
        k, n = counts.selected[:, None], counts.shown[:, None]
        components = weights * stats.betabinom.pmf(k, n, a, b)
        total += float(counts.images @ np.log(components.sum(axis=1)))
        posterior = components / components.sum(axis=1, keepdims=True)
        if which == 1:
            given = stats.betabinom.pmf(
                j, options.degree, (a + k)[..., None], (b + n - k)[..., None]
            )
            table = np.einsum("mk,mkj->mj", posterior, given)
    basis = smooth_basis(options.degree, options.size)
    right = table @ special.expit(own @ basis[:, :OWN].T + population[OWN:] @ basis[:, OWN:].T).T
    wrong = data.replication.images[:, None] - data.correct
    return total + float((data.correct * np.log(right) + wrong * np.log1p(-right)).sum())


def _mixture_priors(options: JointOptions) -> dict[str, tuple[float, float]]:
    return {
        "first_location": options.first_location,
        "log_step": _log_step(options),
        "log_concentration": options.log_concentration,
        "location_deviation": (0.0, options.location_deviation),
        "concentration_deviation": (0.0, options.concentration_deviation),
        "weight_logit": (0.0, options.weight),
    }


def _scipy_mixture(values: Mapping[str, Any], which: int) -> tuple[Floats, Floats, Floats]:
    half = (-0.5, 0.5)[which]
    climbed = np.concatenate([[0.0], np.cumsum(np.exp(values["log_step"]))])
    deviation = np.asarray(values["location_deviation"])[0]
    mean = special.expit(values["first_location"] + climbed + half * deviation)
    more = np.asarray(values["concentration_deviation"])[0]
    size = np.exp(values["log_concentration"] + half * more)
    weights = special.softmax(np.concatenate([[0.0], values["weight_logit"][which]]))
    return weights, mean * size, (1 - mean) * size


def pymc_model(data: Data, options: JointOptions) -> Any:
    """The collapsed model in PyMC, with rising factorials like ours, in the form that suits it.

    The joint mass of k of n and j of d further annotators depends on (k + j, n + d) alone; PyMC
    evaluates those pairs once and picks them by index, which costs its Numba backend little.
    Without Σ log C(n, k), as ours.
    """
    pm, _ = _pymc()
    mean, scale, own_sd = _scales(options)
    classifiers, size = data.correct.shape[1], options.components
    shapes = {
        "first_location": (),
        "log_step": (size - 1,),
        "log_concentration": (size,),
        "location_deviation": (1, size),
        "concentration_deviation": (1, size),
        "weight_logit": (2, size - 1),
    }
    with pm.Model() as model:
        sites = {
            name: pm.Normal(name, *law, shape=shapes[name])
            for name, law in _mixture_priors(options).items()
        }
        population = pm.Flat("population_curve", shape=options.size)
        pm.Potential("line", pm.logp(pm.Normal.dist(mean[:2], scale[:2]), population[:2]).sum())
        bends = pm.MvStudentT.dist(nu=FREEDOM, mu=mean[2:], scale=np.diag(scale[2:] ** 2))
        pm.Potential("bends", pm.logp(bends, population[2:]))
        around, shape = population[:OWN], (classifiers, len(own_sd))
        own = pm.Normal("classifier_curve", around, own_sd, shape=shape)
        basis = smooth_basis(options.degree, options.size)
        shared = population[OWN:] @ basis[:, OWN:].T
        curves = pm.math.sigmoid(own @ basis[:, :OWN].T + shared)
        _pymc_reference(data.reference, options, _pymc_mixture(sites, 0), curves)
        _pymc_replication(data, options, _pymc_mixture(sites, 1), curves)
    return model


def _pymc() -> tuple[Any, Any]:
    """PyMC and PyTensor: an extra that no other model here needs, and untyped."""
    return import_module("pymc"), import_module("pytensor.tensor")


def _pymc_mixture(sites: Mapping[str, Any], which: int) -> tuple[Any, Any, Any]:
    """Log weights, a and b, [K, 1] each."""
    _, pt = _pymc()
    half = (-0.5, 0.5)[which]
    climbed = pt.concatenate([pt.zeros(1), pt.cumsum(pt.exp(sites["log_step"]))])
    mean = pt.sigmoid(sites["first_location"] + climbed + half * sites["location_deviation"][0])
    total = pt.exp(sites["log_concentration"] + half * sites["concentration_deviation"][0])
    logits = pt.concatenate([pt.zeros(1), sites["weight_logit"][which]])
    weights = pt.special.log_softmax(logits, axis=0)
    return weights[:, None], (mean * total)[:, None], ((1 - mean) * total)[:, None]


def _pymc_log_masses(mixture: tuple[Any, Any, Any], selected: Ints, shown: Ints) -> Any:
    """log P(k | n) without C(n, k), [M], by rising factorials."""
    _, pt = _pymc()
    log_weights, a, b = mixture
    size = int(shown.max())
    steps = np.arange(size, dtype=float)[None]
    components = (
        pt.log(a + steps) @ counts_below(selected, size).T
        + pt.log(b + steps) @ counts_below(shown - selected, size).T
        - pt.log(a + b + steps) @ counts_below(shown, size).T
    )
    return pt.logsumexp(log_weights + components, axis=0)


def _integers(counts: Counts) -> tuple[Ints, Ints]:
    return np.asarray(counts.selected).astype(int), np.asarray(counts.shown).astype(int)


def _pymc_reference(
    counts: Counts, options: JointOptions, mixture: tuple[Any, Any, Any], curves: Any
) -> None:
    pm, pt = _pymc()
    masses = _pymc_log_masses(mixture, *_integers(counts))
    pm.Potential("reference", pt.sum(counts.images * masses))
    j = np.arange(options.degree + 1)
    virtual = _pymc_log_masses(mixture, j, np.full_like(j, options.degree))
    weights = pt.exp(log_binomial(options.degree, j) + virtual)
    pm.Deterministic("adjusted_accuracy", curves @ weights)


def _pymc_replication(
    data: Data, options: JointOptions, mixture: tuple[Any, Any, Any], curves: Any
) -> None:
    pm, pt = _pymc()
    counts, d = data.replication, options.degree
    k, n = _integers(counts)
    j = np.arange(d + 1)
    wanted = np.stack(np.broadcast_arrays(k[:, None] + j, (n + d)[:, None]), axis=-1)
    pairs, index = np.unique(wanted.reshape(-1, 2), axis=0, return_inverse=True)
    masses = _pymc_log_masses(mixture, pairs[:, 0], pairs[:, 1])[index.reshape(len(k), d + 1)]
    joint = log_binomial(d, j) + masses  # [M, d + 1]
    log_mass = pt.logsumexp(joint, axis=1, keepdims=True)
    pm.Potential("replication", pt.sum(counts.images * log_mass[:, 0]))
    right = pt.exp(joint - log_mass) @ curves.T
    wrong = counts.images[:, None] - data.correct
    pm.Potential("correct", pt.sum(data.correct * pt.log(right) + wrong * pt.log1p(-right)))
