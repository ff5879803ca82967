"""Annotation counts under beta mixtures: pairs (k, n), their likelihood, and averages over them.

If there are few different n, cells are completed to all k of each: studies of one design share one
compiled program. Dimensions: `component` K, `cell` the M pairs, `point` of the accuracy curves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp

from bayesrep.models.curves import Curves, curve_family
from bayesrep.models.mixtures import Mixtures
from bayesrep.numerics import logit_quadrature
from bayesrep.numerics.beta_binomial import (
    counts_below,
    hankel,
    log_binomial,
    log_cells,
    log_masses,
    virtual_annotators,
)
from bayesrep.studies.statistics import Cells, Contexts
from bayesrep.types import Float, Int, Ints, Shaped, no_type_check

ByPoint: TypeAlias = Float[Array, "classifier group point"]
ByCell: TypeAlias = Float[Array, "classifier group cell"]
ByPair: TypeAlias = Float[Array, "group cell"]
PerCell: TypeAlias = Float[Array, "cell"]

LARGEST_GRID = 768
MIN_PAIR_PROBABILITY = 1e-300


@no_type_check
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GridPairs:
    """All pairs (k, n) of a few n and k = 0..max n, row by row; those with k > n stay empty."""

    log_choices: PerCell  # log C(n, k), 0 where k > n
    shown: tuple[int, ...] = field(metadata={"static": True})  # the different n, increasing


class ListedPairs(NamedTuple):
    """Any pairs (k, n); for the 0/1 matrices see `numerics.beta_binomial.counts_below`."""

    below_selected: Float[Array, "cell step"]
    below_rejected: Float[Array, "cell step"]
    below_shown: Float[Array, "cell step"]
    selected: PerCell
    rejected: PerCell
    log_choices: PerCell


class Patterns(NamedTuple):
    """Images by the pairs (k_g, n_g) of their contexts g, and their likelihood."""

    log_given: Float[Array, "pattern node"]  # log Π_g P(k_g | n_g, s) without factors C(n_g, k_g)
    images: Float[Array, "group pattern"]


class DependentPairs(NamedTuple):
    """Any pairs (k, n) of answers with an intraclass correlation within an image."""

    log_given: Float[Array, "cell node"]  # log P(k | n, s) without C(n, k), at the quadrature nodes
    log_choices: PerCell
    patterns: Patterns | None = None  # of all images, where their contexts are known


Pairs: TypeAlias = GridPairs | ListedPairs | DependentPairs


class Truncation(NamedTuple):
    """Truncation of a data set whose images were selected by the counts at hand."""

    probability: PerCell  # a(k, n), P(an image with this pair was kept); has every k of each n
    of_shown: Float[Array, "cell size"]  # 0/1 indicator of the n of a pair among the different n


class Counts(NamedTuple):
    """Annotation counts of one data set: its pairs, and the images of every group at each."""

    pairs: Pairs
    images: Float[Array, "group cell"]
    truncation: Truncation | None = None


def _fits_grid(sizes: Int[np.ndarray, "size"]) -> bool:
    return len(sizes) * (int(sizes[-1]) + 1) <= LARGEST_GRID or len(sizes) == 1


def complete(tables: Sequence[Cells]) -> list[Cells]:
    """Complete the cell tables of one data set's groups to the same (k, n); new cells count 0."""
    sizes = np.unique(np.concatenate([cells.shown for cells in tables]))
    if _fits_grid(sizes) or tables[0].selection is not None:
        return [cells.completed(sizes) for cells in tables]
    # Too many pairs for a grid: only those with images in some group.
    pairs = np.concatenate([np.stack([c.shown, c.selected], axis=1) for c in tables])
    n, k = np.unique(pairs, axis=0).T
    return [cells.on(k, n) for cells in tables]


def pair_of_cells(cells: Cells) -> Ints:
    """Find the indices of completed cells among the model's pairs."""
    sizes = np.unique(cells.shown)
    if not _fits_grid(sizes):
        return np.arange(len(cells.shown))
    return np.searchsorted(sizes, cells.shown) * (sizes[-1] + 1) + cells.selected


def lay_out(tables: Sequence[Cells], dependence: float = 0.0, leniency: float = 0.0) -> Pairs:
    """Lay out the pairs of every group's completed cells for the likelihood."""
    cells = tables[0]
    sizes = np.unique(cells.shown)
    log_choices = log_binomial(cells.shown, cells.selected)
    rejected = cells.shown - cells.selected
    if dependence > 0 or leniency != 0:
        log_answers = logit_quadrature.log_dependent(cells.selected, rejected, dependence, leniency)
        patterns = None
        if cells.contexts is not None and cells.selection is None:
            every = [each.contexts for each in tables if each.contexts is not None]
            log_answers, patterns = _lay_out_patterns(cells, every, dependence, leniency)
        log_given, choices = (
            jax.device_put(on_pairs(x, cells).T) for x in (log_answers.T, log_choices)
        )
        return DependentPairs(log_given, choices, patterns)
    if _fits_grid(sizes):
        return GridPairs(jax.device_put(on_pairs(log_choices, cells)), tuple(int(n) for n in sizes))
    size = int(sizes[-1])
    return ListedPairs(
        below_selected=jax.device_put(counts_below(cells.selected, size)),
        below_rejected=jax.device_put(counts_below(rejected, size)),
        below_shown=jax.device_put(counts_below(cells.shown, size)),
        selected=jax.device_put(cells.selected.astype(float)),
        rejected=jax.device_put(rejected.astype(float)),
        log_choices=jax.device_put(log_choices),
    )


def _lay_out_patterns(
    cells: Cells, tables: Sequence[Contexts], dependence: float, leniency: float
) -> tuple[Float[np.ndarray, "cell node"], Patterns]:
    """Compute log P(k | n, s) without C(n, k) of images seen in these contexts, and by pattern."""
    every = reduce(Contexts.merge, tables)
    chosen, shown = every.selected, every.shown
    log_given = sum(
        logit_quadrature.log_dependent(k, n - k, dependence, leniency)
        for k, n in zip(chosen.T, shown.T, strict=True)
    )
    # Merged with no further images, all tables have the patterns of all.
    none = every._replace(images=np.zeros_like(every.images))
    images = np.stack([each.merge(none).images for each in tables]).astype(float)
    # The count of all contexts is the sum of theirs, for every division of n.
    laws: dict[int, Float[np.ndarray, "count node"]] = {}
    for n in np.unique(shown[shown > 0]).tolist():
        k = np.arange(n + 1)
        log_law = logit_quadrature.log_dependent(k, n - k, dependence, leniency)
        laws[n] = np.exp(log_law + log_binomial(n, k)[:, None])
    designs, place = np.unique(shown, axis=0, return_inverse=True)
    totals, images_of_design = designs.sum(axis=1), np.bincount(place.ravel(), every.images)
    share = images_of_design / np.bincount(totals, images_of_design)[totals]
    mass = np.zeros((len(cells.shown), logit_quadrature.N_NODES))
    for design, total, weight in zip(designs, totals, share, strict=True):
        law = reduce(_law_of_sum, (laws[n] for n in design[design > 0].tolist()))
        mass[cells.shown == total] += weight * law
    log_mass = np.log(np.maximum(mass, MIN_PAIR_PROBABILITY))
    log_mass -= log_binomial(cells.shown, cells.selected)[:, None]
    return log_mass, Patterns(*map(jax.device_put, (log_given, images)))


def _law_of_sum(
    first: Float[np.ndarray, "count node"], second: Float[np.ndarray, "other node"]
) -> Float[np.ndarray, "sum node"]:
    """Convolve the laws of two independent counts, given each node."""
    law = np.zeros((len(first) + len(second) - 1, first.shape[1]))
    for k, probability in enumerate(second):
        law[k : k + len(first)] += probability * first
    return law


def find_possible_pairs(cells: Cells) -> Truncation | None:
    """Find the selection probability of completed cells' pairs; None without a selection."""
    if cells.selection is None:
        return None
    sizes = np.unique(cells.shown)
    of_shown = (cells.shown[None, :] == sizes[:, None]).astype(np.float64)
    probability = cells.selection.probability(cells.selected, cells.shown)
    return Truncation(*(jax.device_put(on_pairs(x, cells).T) for x in (probability, of_shown)))


def images_on_pairs(tables: Sequence[Cells]) -> Float[np.ndarray, "group cell"]:
    """Lay out the images of completed cells of every group on the likelihood's pairs."""
    return np.stack([on_pairs(cells.images, cells) for cells in tables])


def counts_of(
    tables: Sequence[Cells], dependence: float | None = 0.0, leniency: float | None = 0.0
) -> Counts:
    """Build the counts of one data set from the completed cells of every group."""
    images = jax.device_put(images_on_pairs(tables))
    # A correlation or leniency that a fit integrates is 0 where it samples.
    pairs = lay_out(tables, dependence or 0.0, leniency or 0.0)
    return Counts(pairs, images, find_possible_pairs(tables[0]))


def on_pairs(
    values: Shaped[np.ndarray, "*batch completed"], cells: Cells
) -> Float[np.ndarray, "*batch cell"]:
    """Scatter values of completed cells to the model's pairs, 0 elsewhere."""
    sizes = np.unique(cells.shown)
    size = len(sizes) * (int(sizes[-1]) + 1) if _fits_grid(sizes) else len(cells.shown)
    grid = np.zeros((*values.shape[:-1], size))
    grid[..., pair_of_cells(cells)] = values
    return grid


def _log_components(mixtures: Mixtures, pairs: ListedPairs) -> Float[Array, "group component cell"]:
    masses = log_cells(
        mixtures.a, mixtures.b, pairs.below_selected, pairs.below_rejected, pairs.below_shown
    )
    return mixtures.log_weights[:, :, None] + masses[None]


def log_pair_masses(mixtures: Mixtures, pairs: Pairs) -> Float[Array, "group cell"]:
    """Compute log P(k | n) without C(n, k)."""
    if isinstance(pairs, GridPairs):
        masses = log_masses(mixtures.log_weights, mixtures.a, mixtures.b, pairs.shown)
        return masses.reshape(masses.shape[0], -1)
    if isinstance(pairs, DependentPairs):
        return logsumexp(log_nodes(mixtures, pairs), axis=-1)
    return logsumexp(_log_components(mixtures, pairs), axis=1)


Tables: TypeAlias = tuple[Float[Array, "group cell"], Float[Array, "group cell point"]]
"""log P(k | n) without C(n, k), and log P(point of the curves | k, n)."""


def log_tables(mixtures: Mixtures, pairs: Pairs, family: Curves) -> Tables:
    """Compute log P(k | n) of a data set's mixtures, and log P(point of the curves | k, n)."""
    if isinstance(pairs, DependentPairs):
        log_joint = log_nodes(mixtures, pairs)
        table = jax.nn.log_softmax(log_joint, axis=-1)
        if family.is_exact:
            some = jnp.exp(table) @ logit_quadrature.virtual_annotators(family.degree)
            table = jnp.log(jnp.maximum(some, MIN_PAIR_PROBABILITY))
        return logsumexp(log_joint, axis=-1), table
    if family.is_exact:
        return log_virtual_tables(mixtures, pairs, family.degree)
    return log_node_tables(mixtures, pairs)


def log_nodes(
    mixtures: Mixtures, pairs: DependentPairs | Patterns
) -> Float[Array, "group cell node"]:
    """Compute log P(k, node | n) without C(n, k), or of the counts by context."""
    log_density = logit_quadrature.log_mixture_weights(*mixtures)
    return log_density[:, None, :] + pairs.log_given[None]


def log_virtual_tables(mixtures: Mixtures, pairs: GridPairs | ListedPairs, degree: int) -> Tables:
    """Compute the tables for points that are numbers J of virtual annotators: equation M3."""
    a, b, log_weights = mixtures.a, mixtures.b, mixtures.log_weights
    choices = log_binomial(degree, np.arange(degree + 1))
    # On a grid, but for binomials, P(k, j | n, d) depends on k + j alone: a Hankel matrix.
    if isinstance(pairs, GridPairs):
        both = log_masses(log_weights, a, b, [n + degree for n in pairs.shown])
        joint = hankel(both, pairs.shown[-1] + 1, degree + 1)  # [group, n, k, j]
        joint = joint + choices[None, None, None, :]
        log_joint = joint.reshape(joint.shape[0], -1, degree + 1)
        log_mass = logsumexp(log_joint, axis=-1)
        return log_mass, log_joint - log_mass[..., None]
    log_components = _log_components(mixtures, pairs)
    conditional = virtual_annotators(
        a[:, None] + pairs.selected[None, :], b[:, None] + pairs.rejected[None, :], degree
    )
    component = jax.nn.softmax(log_components, axis=1)
    table = jnp.einsum("gkm,kmx->gmx", component, conditional)
    return logsumexp(log_components, axis=1), jnp.log(table)


def log_node_tables(mixtures: Mixtures, pairs: GridPairs | ListedPairs) -> Tables:
    """Compute the tables for points that are values of s, by quadrature."""
    log_density = logit_quadrature.log_mixture_weights(*mixtures)
    if isinstance(pairs, ListedPairs):
        selected, rejected = pairs.selected, pairs.rejected
    else:  # of empty pairs of the grid, k > n, 0 are rejected
        k = np.tile(np.arange(pairs.shown[-1] + 1.0), len(pairs.shown))
        n = np.repeat(pairs.shown, pairs.shown[-1] + 1)
        selected, rejected = jnp.asarray(k), jnp.asarray(np.maximum(n - k, 0))
    log_given = logit_quadrature.log_likelihood(selected, rejected)
    log_joint = log_density[:, None, :] + log_given[None]
    return log_pair_masses(mixtures, pairs), jax.nn.log_softmax(log_joint, axis=-1)


def log_kept(counts: Counts, log_mass: ByPair) -> tuple[ByPair, Float[Array, "group size"]]:
    """Compute log P(k | n, kept) without C(n, k) and a(k, n), and log P(kept | n)."""
    if counts.truncation is None:
        return log_mass, jnp.zeros((log_mass.shape[0], 0))
    keeps, of_shown = counts.truncation
    whole = log_mass + counts.pairs.log_choices[None, :]
    # Pairs that cannot be kept have no mass, and no gradient either.
    possible = jnp.where(keeps[None] > 0, whole, -jnp.inf)
    total = jnp.log((keeps[None] * jnp.exp(possible)) @ of_shown)
    return log_mass - total @ of_shown.T, total


def log_pairs_kept(counts: Counts, log_mass: ByPair) -> ByPair:
    """Compute log P(k | n, kept) of all pairs with every factor; P(k | n) without a selection."""
    whole = log_kept(counts, log_mass)[0] + counts.pairs.log_choices[None, :]
    if counts.truncation is None:
        return whole
    keeps = counts.truncation.probability[None]
    log_keeps = jnp.log(jnp.maximum(keeps, MIN_PAIR_PROBABILITY))
    return jnp.where(keeps > 0, whole + log_keeps, log_keeps)


def log_likelihood_of(counts: Counts, log_mass: ByPair, mixtures: Mixtures) -> Float[Array, ""]:
    """Compute the log likelihood of the counts, but for factors without parameters."""
    pairs = counts.pairs
    if isinstance(pairs, DependentPairs) and pairs.patterns is not None:
        of_pattern = logsumexp(log_nodes(mixtures, pairs.patterns), axis=-1)
        return jnp.sum(pairs.patterns.images * of_pattern)
    return jnp.sum(counts.images * log_kept(counts, log_mass)[0])


def accuracy_by_cell(curves: ByPoint, table: Float[Array, "group cell point"]) -> ByCell:
    """Compute P(correct | k, n): equation M4; times P(k | n), equation 7 of Engstrom et al."""
    if table.shape[0] == 1:
        return (curves[:, 0] @ table[0].T)[:, None, :]
    return jnp.einsum("cgx,gmx->cgm", curves, table)


def average_accuracy(
    curves: ByPoint, mixtures: Mixtures, counts: Counts, family: Curves
) -> Float[Array, "classifier group"]:
    """Average curves over (kept) images: Engstrom et al. (2020), equations 3, 6 and M5."""
    if counts.truncation is not None:
        log_mass, log_table = log_tables(mixtures, counts.pairs, family)
        # Shares of the pairs among kept images, with each n as often as in the data.
        by_shown = counts.images @ counts.truncation.of_shown
        shares = (by_shown / by_shown.sum(axis=1, keepdims=True)) @ counts.truncation.of_shown.T
        shares = shares * jnp.exp(log_pairs_kept(counts, log_mass))
        weights = jnp.einsum("gm,gmx->gx", shares, jnp.exp(log_table))
    elif family.is_exact:
        choices = log_binomial(family.degree, np.arange(family.degree + 1))
        # The points' probabilities are those of d annotators' counts: exact, no quadrature.
        masses = log_masses(*mixtures, [family.degree])
        weights = jnp.exp(choices[None, :] + masses[:, 0])
    else:
        weights = jnp.exp(logit_quadrature.log_mixture_weights(*mixtures))
    return jnp.einsum("cgx,gx->cg", curves, weights)


def average_frequency(mixtures: Mixtures, counts: Counts) -> Float[Array, "group"]:
    """Compute the mean selection frequency of a data set's images, of the kept ones."""
    if counts.truncation is None:
        return jnp.exp(mixtures.log_weights) @ (mixtures.a / (mixtures.a + mixtures.b))
    # The accuracy of a classifier that is right where one further annotator selects the image.
    line = jnp.broadcast_to(jnp.array([0.0, 1.0]), (1, *counts.images.shape[:1], 2))
    return average_accuracy(
        line, mixtures, counts, curve_family("bernstein", 1, 2, monotone=False)
    )[0]
