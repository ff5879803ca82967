"""Families of accuracy curves: the points of evaluation, the terms, and their priors.

A curve is a vector of terms β; η = Φ β at the family's points and σ(η) is a probability there:

`bernstein`
    Points j / d, j = 0..d: σ(η_j) is the probability of being right on an image that j of d
    virtual annotators select, and every integral is exact. Terms: Legendre polynomials.
`spline`
    Points are quadrature nodes in s. Terms: level, slope, and cubic B-splines whose coefficients
    have a second-order random walk as prior.
`gp`
    Points are quadrature nodes in s. Terms: level, slope, and a Gaussian process with a squared
    exponential kernel in its Hilbert-space form (Riutort-Mayol et al. (2023), equation 8).

Every family has the terms level, slope (of 2 s − 1), then bends. The population's bends have one
unknown scale, whose square is inverse gamma: integrated out, a multivariate Student t. A
classifier's own terms are normal around these; the finest bends all classifiers have in common.

A monotone curve takes the same terms differently: a level, and the logarithm of the slope as slope,
bends, … of the family, integrated along the points (so that η rises everywhere).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import constraints
from scipy.special import gammaln

from bayesrep.models.curve_bases import (
    CURVE_FAMILIES,
    Frequencies,
    Points,
    integral_matrix,
    list_terms,
)
from bayesrep.models.priors import Prior, build_prior, locate
from bayesrep.numerics import logit_quadrature
from bayesrep.numerics.bernstein import bernstein_basis, smooth_basis
from bayesrep.types import Float

Terms: TypeAlias = Float[Array, "*batch term"]

NONPARAMETRIC_SCALE = 4.0  # prior scale of spline and process bends over Legendre polynomials'
BEND_DF = 4.0  # degrees of freedom of the Student t of the population's bends

N_LINEAR = 2  # terms before the bends

link = jax.nn.sigmoid  # P(correct) from a curve's η


@dataclass(frozen=True, eq=False)
class Curves:
    """Basis of one family at its points."""

    name: str  # `bernstein`, `spline` or `gp`
    points: Points  # in [0, 1], increasing
    # Level, slope, bends; of a monotone curve the terms of log slope follow the level.
    basis: Float[np.ndarray, "point term"]
    # Prior scale of the population's bends, and sd of a classifier's own, relative to one another.
    scale: Float[np.ndarray, "bend"]
    own_scale: Float[np.ndarray, "own_bend"]
    monotone: bool  # η is the level plus the integral of exp(basis of the log slope)

    @property
    def degree(self) -> int:
        """d of the Bernstein form."""
        return len(self.points) - 1

    @property
    def is_exact(self) -> bool:
        """True if the points are numbers of virtual annotators, not values of s."""
        return CURVE_FAMILIES[self.name].bends is None

    def probability(self, terms: Terms) -> Float[Array, "*batch point"]:
        """Compute σ(η) at the points."""
        return link(self.logit(terms))

    def logit(self, terms: Terms) -> Float[Array, "*batch point"]:
        """Compute η at the points."""
        if not self.monotone:
            return terms @ self.basis.T
        return terms[..., :1] + self._slope(terms) @ integral_matrix(self.points, self.points).T

    def accuracy(self, terms: Terms, s: Frequencies) -> Float[Array, "*batch frequency"]:
        """Compute the curve g(s) at any s in [0, 1]."""
        if self.is_exact:
            return self.probability(terms) @ bernstein_basis(s, self.degree).T
        if self.monotone:
            rise = self._slope(terms) @ integral_matrix(self.points, s).T
            return link(terms[..., :1] + rise)
        return link(terms @ list_terms(self.name, s, self.basis.shape[1])[0].T)

    def _slope(self, terms: Terms) -> Float[Array, "*batch point"]:
        """Compute the derivative of a monotone η at the points."""
        return jnp.exp(terms[..., 1:] @ self.basis[:, :-1].T)


class Priors(NamedTuple):
    """Mean and sd of the population's terms, sd of a classifier's own, and other laws by index."""

    mean: Float[np.ndarray, "term"]
    population: Float[np.ndarray, "term"]
    own: Float[np.ndarray, "own_term"]
    laws: Mapping[int, "TermLaw"] = {}
    own_laws: Mapping[int, "TermLaw"] = {}


class TermLaw(NamedTuple):
    """Distribution of a term: that of `prior`, scaled by `unit`."""

    prior: str
    unit: float

    def log_prob(self, value: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """Compute the log density of the term."""
        return jnp.asarray(build_prior(self.prior).log_prob(value / self.unit)) - np.log(self.unit)

    def sample(self, key: Array, shape: tuple[int, ...]) -> Float[Array, "..."]:
        """Draw the term."""
        return self.unit * jnp.asarray(build_prior(self.prior).sample(key, shape))


def laws_by_term(
    priors: tuple[Prior, Prior, Prior], scale: Float[np.ndarray, "some"]
) -> dict[int, TermLaw]:
    """Build the distributions of terms whose prior is text: level, slope and bends, by index."""
    laws: dict[int, TermLaw] = {}
    for term, size in enumerate(scale):
        prior = priors[min(term, N_LINEAR)]
        if isinstance(prior, str):
            unit = float(size) / locate(prior).scale if term >= N_LINEAR else 1.0
            laws[term] = TermLaw(prior, unit)
    return laws


def _log_prob_of(laws: Mapping[int, TermLaw], value: Terms) -> Float[Array, "*batch"]:
    """Compute the log density of the terms that have distributions of their own."""
    parts = [law.log_prob(value[..., term : term + 1]) for term, law in laws.items()]
    return jnp.concatenate(parts, axis=-1).sum(axis=-1)


def _sample_of(laws: Mapping[int, TermLaw], key: Array, terms: Terms) -> Terms:
    """Replace the terms that have distributions of their own by draws of these."""
    columns = [terms[..., term] for term in range(terms.shape[-1])]
    for term, law in laws.items():
        columns[term] = law.sample(jax.random.fold_in(key, term), columns[term].shape)
    return jnp.stack(columns, axis=-1)


class PopulationLaw(dist.Distribution):
    """Prior of the population's curve: level and slope normal, bends multivariate Student t."""

    support: Any = constraints.real_vector

    def __init__(self, priors: Priors) -> None:
        self.priors = priors
        super().__init__(event_shape=(len(priors.mean),))

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw terms [*sample_shape, term]: normals, of which the bends share a scale."""
        assert key is not None
        of_normal, of_scale = jax.random.split(key)
        normal = jax.random.normal(of_normal, (*sample_shape, *self.event_shape))
        # One chi-square of each draw: the scale that all its bends share.
        shared = jnp.sqrt(jax.random.chisquare(of_scale, BEND_DF, (*sample_shape, 1)) / BEND_DF)
        line = np.broadcast_to(np.arange(len(self.priors.mean)) < N_LINEAR, normal.shape)
        mean, scale = (np.broadcast_to(each, normal.shape) for each in self.priors[:2])
        terms = jnp.asarray(mean + scale / jnp.where(line, 1.0, shared) * normal)
        laws = self.priors.laws
        return _sample_of(laws, jax.random.fold_in(key, 0), terms) if laws else terms

    def log_prob(self, value: ArrayLike, intermediates: Any = None) -> Array:
        """Compute the log density of terms [..., term]."""
        scale, laws = self.priors.population, self.priors.laws
        usual = np.array([term not in laws for term in range(len(scale))])
        squares = usual * jnp.square((jnp.asarray(value) - self.priors.mean) / scale)
        line, bends = squares[..., :N_LINEAR].sum(axis=-1), squares[..., N_LINEAR:].sum(axis=-1)
        straight, count = usual[:N_LINEAR].sum(), usual[N_LINEAR:].sum()
        # Normals of the line, and a multivariate Student t of the bends.
        constant = gammaln((BEND_DF + count) / 2) - gammaln(BEND_DF / 2)
        constant -= count * np.log(BEND_DF * np.pi) / 2 + straight * np.log(2 * np.pi) / 2
        constant -= np.log(scale[usual]).sum()
        density = constant - line / 2 - (BEND_DF + count) / 2 * jnp.log1p(bends / BEND_DF)
        return density + _log_prob_of(laws, jnp.asarray(value)) if laws else density


class OwnLaw(dist.Distribution):
    """Prior of classifiers' own terms around the population's: normal but in `own_laws`."""

    support: Any = constraints.real_vector

    def __init__(self, around: Terms, priors: Priors) -> None:
        self.around, self.priors = around, priors
        super().__init__(batch_shape=around.shape[:-1], event_shape=around.shape[-1:])

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw terms [*sample_shape, classifier, own_term]."""
        assert key is not None
        shape = (*sample_shape, *self.around.shape)
        terms = jnp.asarray(self.priors.own * np.ones(shape)) * jax.random.normal(key, shape)
        deviations = _sample_of(self.priors.own_laws, jax.random.fold_in(key, 0), terms)
        return jnp.broadcast_to(self.around, shape) + deviations

    def log_prob(self, value: ArrayLike, intermediates: Any = None) -> Array:
        """Compute the log density of terms [..., classifier, own_term]."""
        from_population = jnp.asarray(value) - self.around
        usual = [term not in self.priors.own_laws for term in range(len(self.priors.own))]
        scale = np.broadcast_to(self.priors.own, from_population.shape)
        normal = dist.Normal(0.0, scale).log_prob(from_population)
        normal = (np.broadcast_to(usual, normal.shape) * normal).sum(axis=-1)
        return normal + _log_prob_of(self.priors.own_laws, from_population)


def sample_curves(
    family: Curves, priors: Priors, classifiers: int
) -> Float[Array, "classifier point"]:
    """Sample the logits η of every classifier's curve at the family's points."""
    population = jnp.asarray(numpyro.sample("population_curve", PopulationLaw(priors)))
    shape = (classifiers, len(priors.own))
    around = jnp.broadcast_to(population[: len(priors.own)], shape)
    normal = dist.Normal(around, np.broadcast_to(priors.own, shape)).to_event(1)
    law = OwnLaw(around, priors) if priors.own_laws else normal
    # Centred: answers of thousands of images determine a classifier's terms well.
    with numpyro.plate("classifier", classifiers):
        own = jnp.asarray(numpyro.sample("classifier_curve", law))
    return family.logit(complete_terms(own, population))


def complete_terms(
    own: Float[Array, "*batch classifier own_term"], population: Float[Array, "*batch term"]
) -> Float[Array, "*batch classifier term"]:
    """Complete classifiers' own terms by the population's from there on."""
    shared = population[..., None, own.shape[-1] :]
    shape = (*own.shape[:-1], shared.shape[-1])
    return jnp.concatenate([own, jnp.broadcast_to(shared, shape)], axis=-1)


def curve_family(name: str, degree: int, terms: int, *, monotone: bool) -> Curves:
    """Build the points and basis of one family."""
    family = CURVE_FAMILIES[name]
    if family.bends is None:
        points = np.linspace(0.0, 1.0, degree + 1)
        basis = smooth_basis(degree, terms)
        own = 1.0 / np.arange(1, terms - 1)
        scale = np.sqrt(own)
    else:
        points = np.exp(logit_quadrature.nodes()[0])
        basis, own = list_terms(name, points, terms)
        scale = NONPARAMETRIC_SCALE * own
    return Curves(name, points, basis, scale, own[: family.max_own_terms - N_LINEAR], monotone)
