"""The joint model: hierarchical beta mixtures and accuracy curves.

For data set i (0 reference, 1 replication, then any others), group g of images, cell (k, n) and
classifier c, in the default family of curves::

    s | i, g     ~  Σ_j w_igj Beta(μ_ij ν_ij, (1 − μ_ij) ν_ij)
    k | n, s     ~  Binomial(n, s)                           integrated: beta-binomial mixture
    J | s        ~  Binomial(d, s)                           d virtual annotators
    correct | J  ~  Bernoulli(σ(η_cJ))                       replication only
    y_cg[k, n]   ~  Binomial(m_g[k, n], Σ_j P(J = j | k, n) σ(η_cj + δ_cg))

    η_cj = Σ_r P_r(2 j/d − 1) β_cr,   β_c ~ Normal(θ, diag τ²)   θ: the population's curve
    A_c  = Σ_g (share of g in the reference) Σ_j P_ref,g(J = j) σ(η_cj + δ_cg)

Annotators tell about the mixtures of all data sets and correctness about the replication's
mixture and the curves; every sum over s is exact (families other than ``bernstein``: quadrature).
Each classifier's data follow this model whatever the others do. Across classifiers the images are
the same, and the product of the classifiers' likelihoods ignores that: intervals are right for one
classifier at a time. For means or differences of several, draws have to be moved
(:mod:`bayesrep.summary.joint_draws`) or the images' difficulty modelled
(:mod:`bayesrep.models.shared_difficulty`).

Components are identified by their order: the lowest logit mean, then positive steps whose priors
keep them away from zero, so labels do not switch. Every prior is normal on an unbounded scale;
:class:`JointOptions` lists them. Without groups there is one group, and no δ.

Reference: Engstrom et al. (2020), sections 4.1 and 5.3 (equations 6 and 7).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from jax.scipy.special import betaln, logsumexp
from jax.typing import ArrayLike

from bayesrep.models.counts import (
    Mixtures,
    Pairs,
    complete,
    lay_out,
    log_node_tables,
    log_pair_masses,
    log_virtual_tables,
    node_weights,
    on_places,
    virtual_weights,
)
from bayesrep.models.curves import Curves
from bayesrep.models.options import JointOptions, curve_priors, log_step_prior
from bayesrep.studies.statistics import Cells


class Counts(NamedTuple):
    """Annotation counts of one data set (G groups, M cells)."""

    pairs: Pairs
    images: Array  # [G, M] m[k, n]


class JointData(NamedTuple):
    """Everything the joint model conditions on; data sets as listed above."""

    datasets: tuple[Counts, ...]
    correct: Array  # [C, G, M] images of a replication cell that the classifier gets right
    wrong: Array  # [C, G, M]
    share: Array  # [G] of the reference's images


def joint_data(groups: Sequence[Mapping[str, Cells]]) -> JointData:
    """Turn the cells of every group, by data set, into the arrays of the likelihood.

    Parameters
    ----------
    groups
        One mapping of role to cells for each group, as `bayesrep.SufficientStatistics.cells`, the
        reference first, then the replication; all have the same roles.
    """
    datasets: list[Counts] = []
    correct = np.empty(0)
    for role in groups[0]:
        tables = complete([cells[role] for cells in groups])
        images = np.stack([on_places(cells.images, cells) for cells in tables])
        datasets.append(Counts(lay_out(tables[0]), jnp.asarray(images)))
        if role == "replication":
            correct = np.stack([on_places(cells.correct.T, cells) for cells in tables], axis=1)
    reference, replication = datasets[:2]
    total = reference.images.sum(axis=1)
    return JointData(
        datasets=tuple(datasets),
        correct=jnp.asarray(correct),
        wrong=replication.images[None] - jnp.asarray(correct),
        share=total / total.sum(),
    )


def annotations_only(data: JointData) -> JointData:
    """The same data with every classifier's answers removed (shapes unchanged)."""
    return data._replace(correct=jnp.zeros_like(data.correct), wrong=jnp.zeros_like(data.wrong))


def joint_start(data: JointData, options: JointOptions) -> dict[str, ArrayLike]:
    """Values of all sites to begin the search for the mode: the prior means."""
    size, sets, groups = options.components, len(data.datasets), len(data.share)
    own = () if options.shared_components else (sets,)
    mean, _, _ = curve_priors(options)
    start: dict[str, ArrayLike] = {
        "first_location": np.full(own, options.first_location[0]),
        "log_step": np.full((*own, size - 1), log_step_prior(options)[0]),
        "log_concentration": np.full((*own, size), options.log_concentration[0]),
        "weight_logit": np.zeros((sets, size - 1)),
        "population_curve": mean,
        "classifier_curve": np.tile(mean, (len(data.correct), 1)),
    }
    if options.shared_components:
        start["location_deviation"] = np.zeros((sets - 1, size))
        start["concentration_deviation"] = np.zeros((sets - 1, size))
    if groups > 1:
        start["group_weight_logit"] = np.zeros((sets, groups, size - 1))
        start["group_effect"] = np.zeros(groups)
        start["classifier_group_effect"] = np.zeros((len(data.correct), groups))
    return start


def sample_normal(
    name: str, location: ArrayLike, scale: ArrayLike, shape: tuple[int, ...]
) -> Array:
    """A site of independent normals."""
    law = dist.Normal(location, scale).expand(shape).to_event(len(shape))
    return jnp.asarray(numpyro.sample(name, law))


def _contrasts(sets: int) -> np.ndarray:
    """Orthonormal contrasts over √2 [D, D − 1]: unit normals give differences of sd 1."""
    rows = np.linalg.qr(np.column_stack([np.ones(sets), np.eye(sets)[:, 1:]]))[0][:, 1:]
    return rows * np.sign(rows[-1]) / np.sqrt(2)


def _heights(steps: Array) -> Array:
    """Logit means of the components above the lowest one's, [..., K], of log steps [..., K − 1]."""
    climbed = jnp.cumsum(jnp.exp(steps), axis=-1)
    return jnp.concatenate([jnp.zeros((*climbed.shape[:-1], 1)), climbed], axis=-1)


def joint_offsets(values: Mapping[str, Array], options: JointOptions) -> dict[str, Array]:
    """Where to measure locations from, so that the sampler meets a straighter posterior.

    The data fix the mean of p_i(s) far better than anything else about it, so locations, steps
    and weights must move together, along a curve. Locations measured from minus the weighted mean
    height of the components (on the logit scale, by data set) leave that mean nearly alone. The
    offsets depend on other sites only: adding them changes no volume, and no prior.
    """
    logits = values["weight_logit"]
    weight = jax.nn.softmax(jnp.concatenate([jnp.zeros((len(logits), 1)), logits], axis=1), axis=1)
    heights = jnp.broadcast_to(_heights(values["log_step"]), weight.shape)
    height = jnp.sum(weight * heights, axis=1)  # [D]
    if not options.shared_components:
        return {"first_location": -height}
    # Contrasts are orthogonal columns of length 1 / √2: twice their transpose inverts them.
    between = -2 * _contrasts(len(logits)).T @ height
    shape = values["location_deviation"].shape
    return {
        "first_location": -height.mean(),
        "location_deviation": jnp.broadcast_to(between[:, None], shape),
    }


def sample_mixtures(options: JointOptions, sets: int, groups: int) -> list[Mixtures]:
    """Sample the mixtures of all data sets."""
    size = options.components
    own = () if options.shared_components else (sets,)
    first = sample_normal("first_location", *options.first_location, own)
    steps = sample_normal("log_step", *log_step_prior(options), (*own, size - 1))
    concentration = sample_normal("log_concentration", *options.log_concentration, (*own, size))
    location = first[..., None] + _heights(steps)
    if options.shared_components:
        shape, between = (sets - 1, size), _contrasts(sets)
        location = location[None, :] + between @ sample_normal(
            "location_deviation", 0.0, options.location_deviation, shape
        )
        concentration = concentration[None, :] + between @ sample_normal(
            "concentration_deviation", 0.0, options.concentration_deviation, shape
        )
    weight = sample_normal("weight_logit", 0.0, options.weight, (sets, size - 1))[:, None, :]
    if groups > 1:
        weight = sample_normal(
            "group_weight_logit",
            jnp.tile(weight, (1, groups, 1)),
            options.group_weight,
            (sets, groups, size - 1),
        )
    mean, total = jax.nn.sigmoid(location), jnp.exp(concentration)  # [D, K]
    logits = jnp.concatenate([jnp.zeros((*weight.shape[:2], 1)), weight], axis=-1)
    log_weights = jax.nn.log_softmax(logits, axis=-1)  # [D, G, K]
    numpyro.deterministic("component_mean", mean)
    numpyro.deterministic("component_concentration", total)
    return [
        Mixtures(log_weights[i], mean[i] * total[i], (1 - mean[i]) * total[i]) for i in range(sets)
    ]


def sample_curves(
    options: JointOptions,
    family: Curves,
    classifiers: int,
    *,
    names: tuple[str, str] = ("population_curve", "classifier_curve"),
) -> Array:
    """Sample the logits η of every classifier's curve at the family's points, [C, X].

    ``names`` are those of the sites of the population's terms and of the classifiers'.
    """
    mean, population_sd, own_sd = curve_priors(options)
    population = sample_normal(names[0], mean, population_sd, mean.shape)
    shape = (classifiers, len(mean))
    law = dist.Normal(jnp.broadcast_to(population, shape), np.broadcast_to(own_sd, shape))
    with numpyro.plate("classifier", classifiers):
        own = jnp.asarray(numpyro.sample(names[1], law.to_event(1)))
    return family.logit(own)


def _with_groups(options: JointOptions, logit: Array, groups: int) -> Array:
    """Probabilities [C, G, X] of logits [C, X], shifted by the effects of groups if any."""
    classifiers, logit = len(logit), logit[:, None, :]
    if groups > 1:
        effect = sample_normal("group_effect", 0.0, options.group_level, (groups,))
        around = dist.Normal(
            jnp.broadcast_to(effect, (classifiers, groups)), options.classifier_group_level
        )
        with numpyro.plate("classifier", classifiers):
            shift = jnp.asarray(numpyro.sample("classifier_group_effect", around.to_event(1)))
        logit = logit + shift[:, :, None]
    return jax.nn.sigmoid(logit)


def joint(data: JointData, options: JointOptions) -> None:
    """NumPyro model with the likelihood of equation M6; the module's docstring states it."""
    family, groups = options.family(), len(data.share)
    mixtures = sample_mixtures(options, len(data.datasets), groups)
    logits = sample_curves(options, family, len(data.correct))
    curves = _with_groups(options, logits, groups)

    log_mass = [
        log_pair_masses(mixture, counts.pairs)
        for mixture, counts in zip(mixtures, data.datasets, strict=True)
    ]
    log_mass[1], log_table = log_tables(mixtures[1], data.datasets[1].pairs, options)
    for index, (counts, masses) in enumerate(zip(data.datasets, log_mass, strict=True)):
        numpyro.factor(f"counts_{index}", jnp.sum(counts.images * masses))

    right = contract(curves, jnp.exp(log_table))  # [C, G, M] P(correct | k, n)
    numpyro.factor(
        "correct", jnp.sum(data.correct * jnp.log(right) + data.wrong * jnp.log1p(-right))
    )
    report(data, options, mixtures, curves, log_mass, right)


def log_tables(mixture: Mixtures, pairs: Pairs, options: JointOptions) -> tuple[Array, Array]:
    """log P(k | n) without C(n, k) [G, M], and log P(point of the curves | k, n) [G, M, X]."""
    if options.curve == "bernstein":
        return log_virtual_tables(mixture, pairs, options.degree)
    return log_node_tables(mixture, pairs)


def average_accuracy(curves: Array, mixture: Mixtures, options: JointOptions) -> Array:
    """Accuracy [C, G] of curves [C, G, X] under a data set's selection frequencies: equation M5."""
    weights = (
        virtual_weights(mixture, options.degree)
        if options.curve == "bernstein"
        else node_weights(mixture)
    )
    return jnp.einsum("cgx,gx->cg", curves, weights)


def contract(curves: Array, table: Array) -> Array:
    """Equation M4, Σ_x curves [C, G, X] table [G, M, X]: a plain product where G is 1."""
    if table.shape[0] == 1:
        return (curves[:, 0] @ table[0].T)[:, None, :]
    return jnp.einsum("cgx,gmx->cgm", curves, table)


def report(
    data: JointData,
    options: JointOptions,
    mixtures: Sequence[Mixtures],
    curves: Array,
    log_mass: Sequence[Array],
    right: Array,
) -> None:
    """Quantities of interest; not part of the density."""
    by_group = average_accuracy(curves, mixtures[0], options)
    numpyro.deterministic("adjusted_accuracy", by_group @ data.share)
    weight = jnp.stack([jnp.exp(m.log_weights) for m in mixtures])  # [D, G, K]
    mean = jnp.stack([m.a / (m.a + m.b) for m in mixtures])  # [D, K]
    shares = jnp.stack([c.images.sum(axis=1) / c.images.sum() for c in data.datasets])  # [D, G]
    numpyro.deterministic(
        "mean_selection_frequency", jnp.einsum("dg,dgk,dk->d", shares, weight, mean)
    )
    numpyro.deterministic("component_weight", jnp.einsum("dg,dgk->dk", shares, weight))
    if len(data.share) > 1:
        numpyro.deterministic("group_adjusted_accuracy", by_group)
        numpyro.deterministic("group_component_weight", weight)
    if len(data.datasets) > 2:
        under = [
            jnp.sum(average_accuracy(curves, m, options) * share[None, :], axis=1)
            for m, share in zip(mixtures, shares, strict=True)
        ]
        numpyro.deterministic("accuracy_under", jnp.stack(under, axis=1))
    for index, (counts, masses) in enumerate(zip(data.datasets, log_mass, strict=True)):
        numpyro.deterministic(f"log_mass_{index}", masses + counts.pairs.log_choices[None, :])
    numpyro.deterministic("cell_accuracy", right)


def joint_curves(
    values: Mapping[str, ArrayLike], options: JointOptions, at: np.ndarray, share: np.ndarray
) -> Array:
    """Accuracy curves of draws of the sites and reported quantities.

    Integrated against the reference's density of s they give ``adjusted_accuracy``, draw by draw.
    With groups a curve is the accuracy among the reference's images of selection frequency s,
    Σ_g P_ref(g | s) g_cg(s).

    Parameters
    ----------
    values
        Each [draw, ...], by name.
    options
        Of the model.
    at : [S]
        Selection frequencies in [0, 1].
    share : [G]
        Of the reference's images, by group; [1] without groups.

    Returns
    -------
    [draw, C, S]
    """
    family = options.family()
    terms = jnp.asarray(values["classifier_curve"])
    if len(share) == 1:
        return family.accuracy(terms, at)
    shift = jnp.asarray(values["classifier_group_effect"])  # [draw, C, G]
    # An effect on the logit is one on the level, the first term.
    shifted = [terms.at[:, :, 0].add(shift[:, :, g]) for g in range(len(share))]
    by_group = jnp.stack([family.accuracy(each, at) for each in shifted], axis=-1)
    return jnp.einsum("dcsg,dsg->dcs", by_group, _groups_given(values, at, share))


def _groups_given(values: Mapping[str, ArrayLike], at: np.ndarray, share: np.ndarray) -> Array:
    """P_ref(g | s) [draw, S, G]."""
    mean, total, weight = (
        jnp.asarray(values[name])[:, 0]  # of the reference
        for name in ("component_mean", "component_concentration", "group_component_weight")
    )
    a, b = (part[:, None, :] for part in (mean * total, (1 - mean) * total))  # [draw, 1, K]
    s = np.clip(at, 1e-300, 1 - 1e-16)[None, :, None]  # an end's density may be infinite
    log_density = (a - 1) * np.log(s) + (b - 1) * np.log1p(-s) - betaln(a, b)  # [draw, S, K]
    joint = log_density[:, :, None, :] + jnp.log(weight * share[None, :, None])[:, None]
    return jax.nn.softmax(logsumexp(joint, axis=-1), axis=-1)


def joint_dims(data: JointData, options: JointOptions) -> dict[str, tuple[str, ...]]:
    """Names of the dimensions of every latent site and reported quantity."""
    own = () if options.shared_components else ("dataset",)
    dims = {
        "first_location": own,
        "log_step": (*own, "step"),
        "log_concentration": (*own, "component"),
        "weight_logit": ("dataset", "step"),
        "population_curve": ("term",),
        "classifier_curve": ("classifier", "term"),
        "component_mean": ("dataset", "component"),
        "component_concentration": ("dataset", "component"),
        "component_weight": ("dataset", "component"),
        "adjusted_accuracy": ("classifier",),
        "mean_selection_frequency": ("dataset",),
    }
    if options.components == 1:
        del dims["log_step"], dims["weight_logit"]  # they are empty
    if options.shared_components:
        dims["location_deviation"] = ("contrast", "component")
        dims["concentration_deviation"] = ("contrast", "component")
    if len(data.share) > 1:
        if options.components > 1:
            dims["group_weight_logit"] = ("dataset", "group", "step")
        dims["group_effect"] = ("group",)
        dims["classifier_group_effect"] = ("classifier", "group")
        dims["group_adjusted_accuracy"] = ("classifier", "group")
        dims["group_component_weight"] = ("dataset", "group", "component")
    if len(data.datasets) > 2:
        dims["accuracy_under"] = ("classifier", "dataset")
    return dims
