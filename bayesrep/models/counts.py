"""Annotation counts under beta mixtures: cells of a data set and their likelihood.

Where images were shown to one or a few numbers n of annotators the cells are completed to all k of
each, which makes tables cheap and lets studies of one design share one compiled program.

Array names: G groups of images, K components, M cells, X points of the accuracy curves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import betaln, logsumexp
from numpy.typing import NDArray

from bayesrep.numerics import logit_quadrature
from bayesrep.numerics.beta_binomial import (
    below,
    hankel,
    log_binomial,
    log_cells,
    log_masses,
    virtual_annotators,
)
from bayesrep.studies.statistics import Cells

LARGEST_GRID = 768


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GridPairs:
    """All pairs (k, n) of a few n and k = 0..max n, row by row; those with k > n stay empty."""

    log_choices: Array  # [M] log C(n, k), 0 where k > n
    shown: tuple[int, ...] = field(metadata={"static": True})  # the D different n, increasing


class ListedPairs(NamedTuple):
    """Any M pairs (k, n)."""

    below_selected: Array  # [M, R] 0/1, see numerics.beta_binomial.below
    below_rejected: Array  # [M, R]
    below_shown: Array  # [M, R]
    selected: Array  # [M] k
    rejected: Array  # [M] n − k
    log_choices: Array  # [M] log C(n, k)


Pairs: TypeAlias = GridPairs | ListedPairs


class Mixtures(NamedTuple):
    """Beta mixtures of the groups of one data set; groups share the components."""

    log_weights: Array  # [G, K]
    a: Array  # [K]
    b: Array  # [K]


def _fits_grid(shown: NDArray[np.int64]) -> bool:
    return len(shown) * (int(shown[-1]) + 1) <= LARGEST_GRID or len(shown) == 1


def complete(tables: Sequence[Cells]) -> list[Cells]:
    """The cell tables of all groups of one data set on the same (selected, shown) pairs.

    All k of every n, where that is a small table; cells without images count 0.
    """
    shown = np.unique(np.concatenate([cells.shown for cells in tables]))
    if _fits_grid(shown):
        n = np.repeat(shown, shown + 1)
        k = np.concatenate([np.arange(size + 1) for size in shown])
    else:
        pairs = np.concatenate([np.stack([c.shown, c.selected], axis=1) for c in tables])
        n, k = np.unique(pairs, axis=0).T
    return [_on_pairs(cells, k, n) for cells in tables]


def _on_pairs(cells: Cells, k: NDArray[np.int64], n: NDArray[np.int64]) -> Cells:
    size = int(n.max()) + 1
    place = np.searchsorted(n * size + k, cells.shown * size + cells.selected)
    images = np.zeros(len(n), dtype=np.int64)
    correct = np.zeros((len(n), cells.correct.shape[1]), dtype=np.int64)
    images[place], correct[place] = cells.images, cells.correct
    return Cells(k, n, images, correct)


def places(cells: Cells) -> NDArray[np.int64]:
    """Where completed cells [M] lie among the model's pairs."""
    shown = np.unique(cells.shown)
    if not _fits_grid(shown):
        return np.arange(len(cells.shown))
    return np.searchsorted(shown, cells.shown) * (shown[-1] + 1) + cells.selected


def lay_out(cells: Cells) -> Pairs:
    """The pairs of completed cells as the likelihood wants them."""
    shown = np.unique(cells.shown)
    log_choices = log_binomial(cells.shown, cells.selected)
    if _fits_grid(shown):
        return GridPairs(jnp.asarray(on_places(log_choices, cells)), tuple(int(n) for n in shown))
    rejected = cells.shown - cells.selected
    size = int(shown[-1])
    return ListedPairs(
        below_selected=jnp.asarray(below(cells.selected, size)),
        below_rejected=jnp.asarray(below(rejected, size)),
        below_shown=jnp.asarray(below(cells.shown, size)),
        selected=jnp.asarray(cells.selected, dtype=float),
        rejected=jnp.asarray(rejected, dtype=float),
        log_choices=jnp.asarray(log_choices),
    )


def on_places(values: NDArray[Any], cells: Cells) -> NDArray[np.float64]:
    """Spread values of completed cells [..., M] over the model's pairs, 0 elsewhere."""
    shown = np.unique(cells.shown)
    size = len(shown) * (int(shown[-1]) + 1) if _fits_grid(shown) else len(cells.shown)
    spread = np.zeros((*values.shape[:-1], size))
    spread[..., places(cells)] = values
    return spread


def _log_components(mixtures: Mixtures, pairs: ListedPairs) -> Array:
    """log of weight times mass, without C(n, k), [G, K, M]."""
    masses = log_cells(
        mixtures.a, mixtures.b, pairs.below_selected, pairs.below_rejected, pairs.below_shown
    )
    return mixtures.log_weights[:, :, None] + masses[None]


def log_pair_masses(mixtures: Mixtures, pairs: Pairs) -> Array:
    """log P(k | n) without C(n, k), [G, M]."""
    if isinstance(pairs, GridPairs):
        masses = log_masses(mixtures.log_weights, mixtures.a, mixtures.b, pairs.shown)
        return masses.reshape(masses.shape[0], -1)
    return logsumexp(_log_components(mixtures, pairs), axis=1)


def log_virtual_tables(mixtures: Mixtures, pairs: Pairs, degree: int) -> tuple[Array, Array]:
    """log P(k | n) [G, M], as `log_pair_masses`, and log P(J = j | k, n) [G, M, degree + 1].

    The second is equation M3.
    """
    a, b, log_weights = mixtures.a, mixtures.b, mixtures.log_weights
    choices = log_binomial(degree, np.arange(degree + 1))
    if isinstance(pairs, GridPairs):
        both = log_masses(log_weights, a, b, [n + degree for n in pairs.shown])
        joint = hankel(both, pairs.shown[-1] + 1, degree + 1)  # [G, D, k, j]
        joint = joint + choices[None, None, None, :]
        log_joint = joint.reshape(joint.shape[0], -1, degree + 1)
        log_mass = logsumexp(log_joint, axis=-1)
        return log_mass, log_joint - log_mass[..., None]
    log_components = _log_components(mixtures, pairs)
    given = virtual_annotators(
        a[:, None] + pairs.selected[None, :], b[:, None] + pairs.rejected[None, :], degree
    )
    component = jax.nn.softmax(log_components, axis=1)
    table = jnp.einsum("gkm,kmx->gmx", component, given)
    return logsumexp(log_components, axis=1), jnp.log(table)


def selected_and_rejected(pairs: Pairs) -> tuple[Array, Array]:
    """k and n − k of all pairs, [M] each; 0 rejected where a place of the grid has k > n."""
    if isinstance(pairs, ListedPairs):
        return pairs.selected, pairs.rejected
    k = np.tile(np.arange(pairs.shown[-1] + 1.0), len(pairs.shown))
    n = np.repeat(pairs.shown, pairs.shown[-1] + 1)
    return jnp.asarray(k), jnp.asarray(np.maximum(n - k, 0))


def log_node_tables(mixtures: Mixtures, pairs: Pairs) -> tuple[Array, Array]:
    """log P(k | n) [G, M], as `log_pair_masses`, and log P(node | k, n) [G, M, X] by quadrature."""
    selected, rejected = selected_and_rejected(pairs)
    log_density = logit_quadrature.log_mixture_weights(mixtures.log_weights, mixtures.a, mixtures.b)
    log_given = logit_quadrature.log_likelihood(selected, rejected)
    log_joint = log_density[:, None, :] + log_given[None]
    return log_pair_masses(mixtures, pairs), jax.nn.log_softmax(log_joint, axis=-1)


def node_weights(mixtures: Mixtures) -> Array:
    """P(node) under each group's mixture, [G, X]."""
    return jnp.exp(
        logit_quadrature.log_mixture_weights(mixtures.log_weights, mixtures.a, mixtures.b)
    )


def virtual_weights(mixtures: Mixtures, degree: int) -> Array:
    """P(J = j) under each group's mixture, [G, degree + 1]."""
    choices = log_binomial(degree, np.arange(degree + 1))
    masses = log_masses(mixtures.log_weights, mixtures.a, mixtures.b, [degree])
    return jnp.exp(choices[None, :] + masses[:, 0])


def selection_moments(
    mixtures: Mixtures, pairs: Pairs, points: NDArray[np.float64], *, exact: bool
) -> Array:
    """E[s | k, n, point of the curves] and E[s² | …], [2, M, X], under the first group's mixture.

    Where the curves are ``exact``, in Bernstein form, point j stands for j of d further annotators:
    s is then a mixture of Beta(a + k + j, b + n − k + d − j). Otherwise the point is s.
    """
    selected, rejected = selected_and_rejected(pairs)
    if not exact:
        moments = jnp.stack([points, jnp.square(points)])
        return jnp.broadcast_to(moments[:, None, :], (2, len(selected), len(points)))
    further = jnp.arange(len(points), dtype=selected.dtype)
    a = mixtures.a[:, None, None] + (selected[:, None] + further[None, :])[None]
    b = mixtures.b[:, None, None] + (rejected[:, None] + further[None, ::-1])[None]
    mass = betaln(a, b) - betaln(mixtures.a, mixtures.b)[:, None, None]
    share = jax.nn.softmax(mixtures.log_weights[0][:, None, None] + mass, axis=0)
    mean = a / (a + b)
    square = mean * (a + 1) / (a + b + 1)
    return jnp.stack([jnp.sum(share * mean, axis=0), jnp.sum(share * square, axis=0)])
