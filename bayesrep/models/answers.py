"""All classifiers' answers on one image: the likelihood of a difficulty that they share.

Classifiers answer independently given the image's virtual annotators J (or its selection frequency,
at quadrature nodes) and its difficulty u ~ N(0, I):

    log P(f_x | k_x, n_x) = log Σ_j P(J = j | k_x, n_x) Σ_q w_q Π_c σ(±(m_cj + λ_c u_q))
                          = log Σ_jq exp( Σ_c f_xc m_cj + log P(j | k_x, n_x)
                                          + u_q Σ_c f_xc λ_c + log w_q − B_jq ),
    B_jq = Σ_c log(1 + exp(m_cj + λ_c u_q)),     m from `conditional_logit`

Logits add, so an image's answers enter through two sums over classifiers: a product of [images,
classifiers] with [classifiers, points + factors] instead of one with [classifiers, points × nodes].
And the grid's part, B, knows no image: with shifts r_j and t_q that leave little of it,

    Σ_jq exp(α_xj + ε_xq − B_jq)
        = Σ_jq exp(α_xj − r_j) · w_q exp(r_j + t_q − B_jq) · exp(ε_xq − t_q)

is a product of matrices too, and exponentials are taken of [images, points + nodes] only. What the
shifts leave is at most C λ (range of u) / 4 in size, so nodes are divided into blocks of narrow
range, each with shifts of its own, and no factor leaves the range of floating point. Value and
gradients are made together, chunk by chunk of images; nothing of the size images × grid is kept.

Dimensions: `row` the patterns (distinct images) of a chunk, `point` of the curves, `factor` and
`node` of the difficulty, nodes in a `block` of `inner`; `column` the classifiers, then the cells.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from bayesrep.numerics.conditional_logit import Logits, conditional_logit
from bayesrep.studies.statistics import Patterns
from bayesrep.types import Float, Int, no_type_check

Loadings: TypeAlias = Float[Array, "classifier factor"]
LogTable: TypeAlias = Float[Array, "cell point"]
Rows: TypeAlias = Float[Array, "row column"]
Natural: TypeAlias = Float[Array, "column entry"]
"""What multiplies answers and cells: for each point, then for each factor."""
Base: TypeAlias = Float[Array, "point node"]
"""B of all points and nodes."""

LARGEST_CHUNK = 2**19
"""Most entries of an array [images of a chunk, points + nodes]."""
MULTIPLE = 256
"""Images of a chunk are filled up to a multiple, so that studies of one design share programs."""
REACH = 4.0
CLASSIFIERS_PER_BLOCK = 40
"""Nodes of one block span 8 / H: with loadings up to 4 what the shifts leave is below 320."""
TINY = 1e-300


class Nodes(NamedTuple):
    """Grid of difficulties, block by block along the first factor."""

    difficulty: Float[Array, "node factor"]
    weight: Float[Array, "node"]
    """Sums to 1; 0 fills the last block."""
    blocks: Float[Array, "block"]
    """Only its length counts."""


@no_type_check
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Answers:
    """Patterns of one data set in chunks; padded with rows that stand for no image.

    `rows` hold the answers and then the cell as zeros and ones, so that one product serves both;
    `images` are alike. Where there is a `mesh` the rows of every chunk lie spread over its devices.
    """

    rows: Float[Array, "chunk row column"]
    images: Float[Array, "chunk row"]
    mesh: Mesh | None = field(default=None, metadata={"static": True})


def lay_out_answers(
    patterns: Patterns,
    cell: Int[np.ndarray, "pattern"],
    cells: int,
    grid: int,
    mesh: Mesh | None = None,
) -> Answers:
    """Arrange a data set's patterns.

    Parameters
    ----------
    patterns
        Distinct images.
    cell
        Place of each one's (k, n) among the model's pairs.
    cells
        How many pairs there are.
    grid
        Entries that an image has in the widest arrays, points and nodes in all blocks.
    mesh
        Devices over which to spread the images; one axis.
    """
    size = len(cell)
    parts = 1 if mesh is None else mesh.size
    chunks = -(-size * grid // (LARGEST_CHUNK * parts))
    each = -(-size // (chunks * MULTIPLE)) * MULTIPLE
    each = -(-each // parts) * parts
    rows = np.zeros((chunks * each, patterns.correct.shape[1] + cells))
    rows[:size, : patterns.correct.shape[1]] = patterns.correct
    rows[np.arange(size), patterns.correct.shape[1] + cell] = 1.0
    images = np.zeros(chunks * each)
    images[:size] = patterns.images
    shaped = rows.reshape(chunks, each, -1), images.reshape(chunks, each)
    if mesh is None:
        return Answers(jnp.asarray(shaped[0]), jnp.asarray(shaped[1]))
    sharding = NamedSharding(mesh, PartitionSpec(None, *mesh.axis_names))
    return Answers(jax.device_put(shaped[0], sharding), jax.device_put(shaped[1], sharding), mesh)


def difficulty_nodes(size: int, factors: int, classifiers: int) -> Nodes:
    """Equally spaced nodes on [−4, 4] in each factor, weighted like a standard normal.

    The trapezoid rule converges geometrically for what is smooth; unlike Gauss's nodes these do not
    waste themselves on tails while a hundred answers place an image within a tenth of a unit.
    """
    blocks = min(size, -(-classifiers // CLASSIFIERS_PER_BLOCK))
    line = np.linspace(-REACH, REACH, size)
    first = np.pad(line, (0, -size % blocks), mode="edge")
    axes = [first, *[line] * (factors - 1)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, factors)
    weight = np.exp(-0.5 * np.square(points).sum(axis=1))
    weight.reshape(len(first), -1)[size:] = 0.0
    return Nodes(jnp.asarray(points), jnp.asarray(weight / weight.sum()), jnp.zeros(blocks))


def log_answers(
    eta: Logits, loadings: Loadings, log_table: LogTable, answers: Answers, nodes: Nodes
) -> Float[Array, ""]:
    """Σ_x log P(f_x | k_x, n_x) over the images of a data set.

    Parameters
    ----------
    eta
        Marginal logits of the accuracy curves.
    loadings
        λ.
    log_table
        log P(J = j | k, n).
    answers, nodes
        Data and grid.
    """
    return _log_sum(*_natural(eta, loadings, log_table, nodes), answers, nodes)


def _natural(
    eta: Logits, loadings: Loadings, log_table: LogTable, nodes: Nodes
) -> tuple[Natural, Base]:
    spread = loadings @ nodes.difficulty.T
    logit = conditional_logit(eta, spread, nodes.weight)
    base = jax.nn.softplus(logit[:, :, None] + spread[:, None, :]).sum(axis=0)
    silent = jnp.zeros((len(log_table), loadings.shape[1]), loadings.dtype)
    return jnp.block([[logit, loadings], [log_table, silent]]), base


class _Sums(NamedTuple):
    """Log likelihood of images and its gradient by natural parameters and base."""

    value: Float[Array, ""]
    natural: Natural
    base: Float[Array, "..."]


class _Grid(NamedTuple):
    """The grid's part of the sum in blocks of nodes: w_q exp(r_j + t_q − B_jq), and r and t."""

    kernel: Float[Array, "block point inner"]
    by_point: Float[Array, "block 1 point"]
    by_node: Float[Array, "block 1 inner"]


def _grid(base: Base, nodes: Nodes) -> _Grid:
    blocks = len(nodes.blocks)
    block = base.reshape(len(base), blocks, -1).transpose(1, 0, 2)
    fixed = jax.lax.stop_gradient(block)
    by_point = fixed.mean(axis=2, keepdims=True)
    by_node = (fixed - by_point).mean(axis=1, keepdims=True)
    weight = nodes.weight.reshape(blocks, 1, -1)
    kernel = weight * jnp.exp(by_point + by_node - block)
    return _Grid(kernel, by_point.transpose(0, 2, 1), by_node)


class _Shares(NamedTuple):
    """Log of the sum over the grid, and its terms over it: points · kernel · places."""

    value: Float[Array, "row"]
    points: Float[Array, "block row point"]
    places: Float[Array, "block row inner"]


def _shares(rows: Rows, natural: Natural, grid: _Grid, nodes: Nodes) -> _Shares:
    blocks, size = len(nodes.blocks), grid.by_point.shape[2]
    sums = rows @ natural
    by_point = sums[None, :, :size] - grid.by_point
    by_node = sums[:, size:] @ nodes.difficulty.T
    by_node = by_node.reshape(len(rows), blocks, -1).transpose(1, 0, 2) - grid.by_node
    tops = [jax.lax.stop_gradient(part.max(axis=2)) for part in (by_point, by_node)]
    points, places = (
        jnp.exp(part - top[:, :, None]) for part, top in zip((by_point, by_node), tops, strict=True)
    )
    total = jnp.sum(points @ grid.kernel * places, axis=2)
    level = tops[0] + tops[1]
    top = jax.lax.stop_gradient((level + jnp.log(total + TINY)).max(axis=0))
    scale = jnp.exp(level - top[None, :])
    whole = jnp.sum(scale * total, axis=0)
    return _Shares(top + jnp.log(whole), points, places * (scale / whole[None, :])[:, :, None])


def _local_sums(
    natural: Natural,
    base: Base,
    rows: Float[Array, "chunk row column"],
    images: Float[Array, "chunk row"],
    nodes: Nodes,
) -> _Sums:
    """Value and gradients over the chunks of one device."""
    grid = _grid(base, nodes)

    def chunk(sums: _Sums, data: tuple[Array, Array]) -> tuple[_Sums, None]:
        rows, images = data
        value, points, places = _shares(rows, natural, grid, nodes)
        places = places * images[None, :, None]
        by_point, by_node = _margins(points, places, grid)
        terms = points.transpose(0, 2, 1) @ places  # of the kernel
        more = _Sums(
            images @ value,
            rows.T @ jnp.concatenate([by_point, by_node @ nodes.difficulty], axis=1),
            terms,
        )
        return jax.tree.map(jnp.add, sums, more), None

    zero = jnp.zeros((), natural.dtype)
    nothing = _Sums(zero, jnp.zeros_like(natural), jnp.zeros_like(grid.kernel))
    sums = jax.lax.scan(chunk, nothing, (rows, images))[0]
    return sums._replace(base=-_side_by_side(grid.kernel * sums.base))


def _margins(
    points: Float[Array, "block row point"], places: Float[Array, "block row inner"], grid: _Grid
) -> tuple[Float[Array, "row point"], Float[Array, "row node"]]:
    """Shares summed over nodes and over points."""
    by_point = jnp.sum(points * (places @ grid.kernel.transpose(0, 2, 1)), axis=0)
    return by_point, _side_by_side(places * (points @ grid.kernel))


def _side_by_side(blocks: Float[Array, "block a inner"]) -> Float[Array, "a node"]:
    return blocks.transpose(1, 0, 2).reshape(blocks.shape[1], -1)


def _sums(natural: Natural, base: Base, answers: Answers, nodes: Nodes) -> _Sums:
    if answers.mesh is None:
        return _local_sums(natural, base, answers.rows, answers.images, nodes)
    axis = answers.mesh.axis_names[0]

    def on_device(*arguments: Any) -> _Sums:
        return jax.lax.psum(_local_sums(*arguments), axis)

    spread, everywhere = PartitionSpec(None, axis), PartitionSpec()
    shared = jax.shard_map(
        on_device,
        mesh=answers.mesh,
        in_specs=(everywhere, everywhere, spread, spread, everywhere),
        out_specs=everywhere,
        check_vma=False,  # the scan starts from zeros that are the same everywhere
    )
    return shared(natural, base, answers.rows, answers.images, nodes)


@jax.custom_vjp
def _log_sum(natural: Natural, base: Base, answers: Answers, nodes: Nodes) -> Float[Array, ""]:
    return _sums(natural, base, answers, nodes).value


def _forward(
    natural: Natural, base: Base, answers: Answers, nodes: Nodes
) -> tuple[Float[Array, ""], tuple[_Sums, Answers, Nodes]]:
    sums = _sums(natural, base, answers, nodes)
    return sums.value, (sums, answers, nodes)


def _backward(kept: tuple[_Sums, Answers, Nodes], by: Array) -> tuple[Any, ...]:
    sums, answers, nodes = kept
    nothing = jax.tree.map(jnp.zeros_like, (answers, nodes))
    return (by * sums.natural, by * sums.base, *nothing)


_log_sum.defvjp(_forward, _backward)


def image_moments(
    eta: Logits,
    loadings: Loadings,
    log_table: LogTable,
    rows: Rows,
    nodes: Nodes,
    values: Float[Array, "value cell point"],
) -> tuple[Float[Array, "value row"], Float[Array, "moment row"]]:
    """What the answers and annotations say of single images.

    Parameters
    ----------
    eta, loadings, log_table, nodes
        As in `log_answers`.
    rows
        Rows of one chunk.
    values
        Quantities given a point and a cell, such as E[s | k, n, j].

    Returns
    -------
    tuple
        The quantities' means given the annotations and all answers; means of u, then of u².
    """
    natural, base = _natural(eta, loadings, log_table, nodes)
    grid = _grid(base, nodes)
    _, points, places = _shares(rows, natural, grid, nodes)
    cell = rows[:, len(loadings) :]
    by_point, by_node = _margins(points, places, grid)
    by_value = jnp.einsum("bx,bm,vmx->vb", by_point, cell, values)
    both = jnp.concatenate([nodes.difficulty, jnp.square(nodes.difficulty)], axis=1)
    return by_value, (by_node @ both).T
