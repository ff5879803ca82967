"""The joint model: hierarchical beta mixtures and accuracy curves.

For data set i (0 reference, 1 replication, then any others), group g of images, cell (k, n) and
classifier c, in the default family of curves:

    s | i, g     ~  Σ_j w_igj Beta(μ_ij ν_ij, (1 − μ_ij) ν_ij)
    k | n, s     ~  Binomial(n, s)                           integrated: beta-binomial mixture
    J | s        ~  Binomial(d, s)                           d virtual annotators
    correct | J  ~  Bernoulli(σ(η_cJ))                       replication only
    y_cg[k, n]   ~  Binomial(m_g[k, n], Σ_j P(J = j | k, n) σ(η_cj + δ_cg))

    η_cj = Σ_r P_r(2 j/d − 1) β_cr,   β_c ~ Normal(θ, diag τ²),   θ: the population's curve
    A_c  = Σ_g (share of g in the reference) Σ_j P_ref,g(J = j) σ(η_cj + δ_cg)

If the counts at hand selected the images (`bayesrep.studies.selection`), by a rule that keeps k of
n with probability a(k, n), the mixture is that of the images before selection and

    P(k | n, kept)  =  a(k, n) P(k | n) / Σ_k' a(k', n) P(k' | n)
    A_c             =  Σ_n P(n) Σ_k P(k | n, kept) Σ_j P_ref(J = j | k, n) σ(η_cj)

The images are the same across classifiers, which the product of their likelihoods ignores: `weight`
corrects for it in the posterior of the shared parameters. Without groups there is no δ.

Engstrom et al. (2020), sections 4.1 and 5.3; equations 6 and 7 are integrated.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from jax.scipy.special import betaln, logsumexp
from jax.typing import ArrayLike

from bayesrep.models.answers import BINOMIAL, AnswerDistribution, overdispersion
from bayesrep.models.counts import (
    ByCell,
    ByPoint,
    Counts,
    accuracy_by_cell,
    average_accuracy,
    average_frequency,
    complete,
    counts_of,
    images_on_pairs,
    log_likelihood_of,
    log_pair_masses,
    log_pairs_kept,
    log_tables,
    on_pairs,
)
from bayesrep.models.curve_bases import Frequencies
from bayesrep.models.curves import Curves, complete_terms, link, sample_curves
from bayesrep.models.mixtures import (
    MIXTURE_SITES,
    Mixtures,
    mixture_dims,
    mixture_offsets,
    mixture_start,
    sample_mixtures,
    sample_prior,
)
from bayesrep.models.model import Model, take_rows
from bayesrep.models.options import JointOptions
from bayesrep.models.priors import build_prior
from bayesrep.studies.overlap import overlap_weight
from bayesrep.studies.statistics import Cells
from bayesrep.types import Float, Ints

Share: TypeAlias = Float[np.ndarray, "group"]


class JointData(NamedTuple):
    """Data of the joint model; data sets as listed above."""

    datasets: tuple[Counts, ...]
    correct: ByCell
    wrong: ByCell
    share: Float[Array, "group"]
    weight: Float[Array, ""]  # w, power of each classifier's likelihood for the shared parameters

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of data sets and of groups."""
        return len(self.datasets), len(self.share)


def joint_data(
    groups: Sequence[Mapping[str, Cells]],  # by role, the reference first, then the replication
    dependence: float | None = 0.0,
    leniency: float | None = 0.0,
    answers: AnswerDistribution = BINOMIAL,
) -> JointData:
    """Build the arrays of the likelihood from the cells of every group, by data set."""
    tables = {role: complete([cells[role] for cells in groups]) for role in groups[0]}
    images = {role: images_on_pairs(each) for role, each in tables.items()}
    answered = tables["replication"]
    correct = np.stack([on_pairs(cells.correct.T, cells) for cells in answered], axis=1)
    # In NumPy: JAX would compile a program for each operation.
    total = images["reference"].sum(axis=1)
    weight = overlap_weight(
        (cells["replication"] for cells in groups),
        None if answers == BINOMIAL else partial(overdispersion, answers),
    )
    return JointData(
        datasets=tuple(
            counts_of(each, dependence, leniency if role == "replication" else 0.0)
            for role, each in tables.items()
        ),
        correct=jax.device_put(correct),
        wrong=jax.device_put(images["replication"][None] - correct),
        share=jax.device_put(total / total.sum()),
        weight=jax.device_put(np.asarray(weight)),
    )


def annotations_only(data: JointData) -> JointData:
    """Remove every classifier's answers from the data (shapes unchanged)."""
    nothing = jax.device_put(np.zeros(data.correct.shape, data.correct.dtype))
    return data._replace(correct=nothing, wrong=nothing, weight=jax.device_put(np.ones(())))


def of_classifiers(data: JointData, rows: Ints) -> JointData:
    """Select the data of some of the classifiers."""
    correct, wrong = take_rows((data.correct, data.wrong), rows)
    return data._replace(correct=correct, wrong=wrong)


def joint_start(data: JointData, options: JointOptions) -> dict[str, ArrayLike]:
    """Choose values of all sites to start the search for the mode: the priors' locations."""
    groups, classifiers, priors = len(data.share), len(data.correct), options.curve_priors()
    mean = priors.mean
    start = mixture_start(options, *data.sizes)
    own = np.tile(mean[: len(priors.own)], (classifiers, 1))
    start |= {"population_curve": mean, "classifier_curve": own}
    if groups > 1:
        start["group_effect"] = np.zeros(groups)
        start["classifier_group_effect"] = np.zeros((classifiers, groups))
    return start


def _with_groups(
    options: JointOptions, logit: Float[Array, "classifier point"], groups: int
) -> ByPoint:
    """Compute probabilities from logits, shifted by the effects of groups if there are any."""
    classifiers, by_group = len(logit), logit[:, None, :]
    if groups > 1:
        effect = sample_prior("group_effect", options.group_level, (groups,))
        around = build_prior(
            options.classifier_group_level, jnp.broadcast_to(effect, (classifiers, groups))
        )
        with numpyro.plate("classifier", classifiers):
            shift = jnp.asarray(numpyro.sample("classifier_group_effect", around.to_event(1)))
        by_group = by_group + shift[:, :, None]
    return link(by_group)


def joint(data: JointData, options: JointOptions) -> None:
    """NumPyro model with the likelihood of equation M6; the module's docstring states it."""
    cells = sample_and_condition(data, options)
    report_quantities(data, options.family(), *cells)


class CellPredictions(NamedTuple):
    """Predictions of one draw for the cells."""

    mixtures: Sequence[Mixtures]
    curves: ByPoint
    log_mass: Sequence[Float[Array, "group cell"]]  # log P(k | n), without C(n, k), by data set
    right: ByCell  # P(correct | k, n)


def sample_and_condition(data: JointData, options: JointOptions) -> CellPredictions:
    """Sample all sites and condition them on the data."""
    family = options.family()
    mixtures = sample_mixtures(options, *data.sizes)
    logits = sample_curves(family, options.curve_priors(), len(data.correct))
    curves = _with_groups(options, logits, len(data.share))
    return condition(data, family, mixtures, curves, options.answer_distribution())


def condition(
    data: JointData,
    family: Curves,
    mixtures: Sequence[Mixtures],
    curves: ByPoint,
    answers: AnswerDistribution,
) -> CellPredictions:
    """Condition mixtures and curves, probabilities at the family's points, on the data."""
    cells = predict_cells(data, family, mixtures, curves)
    for index, (counts, masses) in enumerate(zip(data.datasets, cells.log_mass, strict=True)):
        numpyro.factor(f"counts_{index}", log_likelihood_of(counts, masses, mixtures[index]))
    log_right = answers.log_likelihood(data.correct, data.wrong, cells.right)
    # In the plate, so that the density knows which part is a classifier's.
    with numpyro.plate("classifier", len(data.correct)):
        numpyro.factor("correct", log_right.sum(axis=(1, 2)))
    return cells


def predict_cells(
    data: JointData, family: Curves, mixtures: Sequence[Mixtures], curves: ByPoint
) -> CellPredictions:
    """Predict the cells of the data from mixtures and curves."""
    log_mass = [
        log_pair_masses(mixture, counts.pairs)
        for mixture, counts in zip(mixtures, data.datasets, strict=True)
    ]
    # Classifiers answered the replication: its counts also weigh the points of the curves.
    log_mass[1], log_table = log_tables(mixtures[1], data.datasets[1].pairs, family)
    return CellPredictions(mixtures, curves, log_mass, accuracy_by_cell(curves, jnp.exp(log_table)))


def report_quantities(
    data: JointData,
    family: Curves,
    mixtures: Sequence[Mixtures],
    curves: ByPoint,
    log_mass: Sequence[Array],
    right: ByCell,
) -> None:
    """Report quantities of interest as deterministic sites; not part of the density."""
    by_group = average_accuracy(curves, mixtures[0], data.datasets[0], family)
    numpyro.deterministic("adjusted_accuracy", by_group @ data.share)
    weight = jnp.stack([jnp.exp(m.log_weights) for m in mixtures])
    means = [average_frequency(*pair) for pair in zip(mixtures, data.datasets, strict=True)]
    shares = jnp.stack([c.images.sum(axis=1) / c.images.sum() for c in data.datasets])
    frequency = jnp.sum(shares * jnp.stack(means), axis=1)
    numpyro.deterministic("mean_selection_frequency", frequency)
    numpyro.deterministic("component_weight", jnp.einsum("dg,dgk->dk", shares, weight))
    if len(data.share) > 1:
        numpyro.deterministic("group_adjusted_accuracy", by_group)
        numpyro.deterministic("group_component_weight", weight)
    # With further data sets, the same curves averaged over each one's frequencies.
    if len(data.datasets) > 2:
        under = [
            jnp.sum(average_accuracy(curves, m, counts, family) * share[None, :], axis=1)
            for m, counts, share in zip(mixtures, data.datasets, shares, strict=True)
        ]
        numpyro.deterministic("accuracy_under", jnp.stack(under, axis=1))
    for index, (counts, masses) in enumerate(zip(data.datasets, log_mass, strict=True)):
        numpyro.deterministic(f"log_mass_{index}", log_pairs_kept(counts, masses))
    numpyro.deterministic("cell_accuracy", right)


def joint_curves(
    values: Mapping[str, ArrayLike], options: JointOptions, s: Frequencies, share: Share
) -> Float[Array, "draw classifier frequency"]:
    """Compute curves of draws: with groups Σ_g P_ref(g | s) g_cg(s), the reference's at s."""
    family = options.family()
    own, population = (jnp.asarray(values[f"{who}_curve"]) for who in ("classifier", "population"))
    terms = complete_terms(own, population)
    if len(share) == 1:
        return family.accuracy(terms, s)
    # An effect on the logit is one on the level, the first term.
    shift = jnp.asarray(values["classifier_group_effect"])
    shifted = [terms.at[:, :, 0].add(shift[:, :, g]) for g in range(len(share))]
    by_group = jnp.stack([family.accuracy(each, s) for each in shifted], axis=-1)
    return jnp.einsum("dcsg,dsg->dcs", by_group, _group_probabilities(values, s, share))


def _group_probabilities(
    values: Mapping[str, ArrayLike], s: Frequencies, share: Share
) -> Float[Array, "draw frequency group"]:
    """Compute P_ref(g | s)."""
    mean, total, weight = (
        jnp.asarray(values[name])[:, 0]  # of the reference
        for name in ("component_mean", "component_concentration", "group_component_weight")
    )
    a, b = (part[:, None, :] for part in (mean * total, (1 - mean) * total))
    s = np.clip(s, 1e-300, 1 - 1e-16)[None, :, None]  # an end's density may be infinite
    log_density = (a - 1) * np.log(s) + (b - 1) * np.log1p(-s) - betaln(a, b)
    log_joint = log_density[:, :, None, :] + jnp.log(weight * share[None, :, None])[:, None]
    return jax.nn.softmax(logsumexp(log_joint, axis=-1), axis=-1)


def joint_dims(data: JointData, options: JointOptions) -> dict[str, tuple[str, ...]]:
    """Name the dimensions of every latent site and reported quantity."""
    dims = mixture_dims(options, len(data.share)) | {
        "population_curve": ("population_term",),
        "classifier_curve": ("classifier", "term"),
        "component_weight": ("dataset", "component"),
        "adjusted_accuracy": ("classifier",),
        "mean_selection_frequency": ("dataset",),
    }
    if len(data.share) > 1:
        dims["group_effect"] = ("group",)
        dims["classifier_group_effect"] = ("classifier", "group")
        dims["group_adjusted_accuracy"] = ("classifier", "group")
        dims["group_component_weight"] = ("dataset", "group", "component")
    if len(data.datasets) > 2:
        dims["accuracy_under"] = ("classifier", "dataset")
    return dims


JOINT_MODEL = Model(
    function=joint,
    options=JointOptions,
    data=lambda cells, _, options: joint_data(
        cells, options.dependence, options.leniency, options.answer_distribution()
    ),
    annotations=annotations_only,
    select=of_classifiers,
    weight=lambda data: data.weight,
    start=joint_start,
    offsets=mixture_offsets,
    mixture_sites=MIXTURE_SITES,
    dims=joint_dims,
    curves=joint_curves,
    takes_cut=True,
    takes_groups=True,
    takes_selection=True,
)
