"""Random weights of the images, the same for every classifier: why draws are joint.

The weighted likelihood bootstrap gives image x a weight 1 + g_x, g_x ~ N(0, 1). In a cell of m
images and of probability q_c = P(correct | cell), to first order, it moves the log likelihood's
derivative by logit q_c by √(m q_c (1 − q_c)) times

    ε_c  =  Σ_x g_x r_xc / √(Σ_x r_xc²),        r_xc = correct − q_c,

which is standard normal for each classifier alone and has the correlation of the answers of two.
What moves the derivative moves a classifier's own parameters, centre + R z given the global ones:

    z_c  =  Σ_cell L_c[cell] ε_c[cell]  +  (the prior's share),
    L_c  =  Rᵀ ∂logit q_c √(m q_c (1 − q_c)) / v,        v = Var(y) / (m q (1 − q)),

where v is 1 for binomial answers.

The leading directions of Σ_cell L ε over classifiers are a *factor model* of all z; what it leaves
of a classifier's identity covariance is the classifier's own. Every z_c is exactly standard normal,
however many directions there are, so each classifier's posterior stays as it was.

References
----------
Newton, Raftery (1994), JRSS B 56. Halko, Martinsson, Tropp (2011), SIAM Review 53: algorithm 4.4.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bayesrep.inference.cells import completed_cells
from bayesrep.inference.density import Density
from bayesrep.inference.laplace_marginal import N_FACTORS, FactorNoise, Marginal, Setting
from bayesrep.inference.problem import Problem
from bayesrep.inference.program import Program
from bayesrep.models.answers import overdispersion
from bayesrep.models.counts import pair_of_cells
from bayesrep.numerics.post_stratification import frequency_strata, post_stratify
from bayesrep.studies.statistics import Cells
from bayesrep.studies.study import shared_classes
from bayesrep.types import Float, Floats, Ints

MIN_ANSWER_VARIANCE = 1e-12
"""Smallest variance q (1 − q) of an answer that is not treated as certain."""


def images_of_cells(problem: Problem, role: str) -> list[list[Ints]] | None:
    """List the images' rows of every completed cell, by group; None if only counts are known."""
    if problem.study is None:
        return None
    data = problem.study.datasets[role]
    group = data.groups[problem.grouping] if problem.grouping else np.full(len(data.shown), "")
    rows_by_group = []
    for name, table in zip(problem.groups, completed_cells(problem)[role], strict=True):
        rows = np.flatnonzero(group == name)
        cell = table.find(data.selected[rows], data.shown[rows])
        ends = np.cumsum(np.bincount(cell, minlength=len(table.shown)))[:-1]
        rows_by_group.append(np.split(rows[np.argsort(cell, kind="stable")], ends))
    return rows_by_group


def answer_factors(
    problem: Problem,
    images: list[list[Ints]] | None,
    right: Float[np.ndarray, "classifier group pair"],  # P(correct | cell)
) -> Iterator[tuple[int, int, Float[np.ndarray, "row classifier"]]]:
    """Yield group, pair and F of every cell with images: Fᵀ F has the answers' correlations."""
    for g, table in enumerate(completed_cells(problem)["replication"]):
        for cell, pair in enumerate(pair_of_cells(table)):
            if not table.images[cell]:
                continue
            q = right[:, g, pair]
            if images is None:  # all pairs of classifiers have a cell's mean correlation
                yield g, int(pair), _equal_correlation(table, cell, q)[None]
                continue
            assert problem.study is not None
            correct = problem.study.replication.correct[images[g][cell]]
            residual = correct.astype(np.float32) - q.astype(np.float32)
            yield g, int(pair), residual / np.sqrt(np.square(residual).sum(axis=0) + 1e-30)


def _equal_correlation(table: Cells, cell: int, q: Floats) -> Floats:
    """Compute √ρ of every classifier, ρ the mean correlation of a cell's answers; 0 if unknown."""
    if table.squares is None or len(q) < 2:
        return np.zeros(len(q))
    m, right = table.images[cell], table.correct[cell]
    squares = right * (1 - 2 * q) + m * q**2  # Σ_x r_xc²
    whole = table.squares[cell] - 2 * q.sum() * right.sum() + m * q.sum() ** 2  # Σ_x (Σ_c r_xc)²
    pairs = np.square(np.sqrt(squares).sum()) - squares.sum()
    return np.full(len(q), np.sqrt(np.clip((whole - squares.sum()) / max(pairs, 1e-30), 0, 1)))


def share_images(density: Density, setting: Setting, problem: Problem) -> Setting:
    """Build the setting in which classifiers' noise is correlated through the images' weights."""
    # Loadings are those at ξ = 0, where the posterior has its mass.
    slope, right = map(np.asarray, _slope_program(density)(setting))
    images = np.zeros(right.shape[1:], dtype=np.int64)
    for g, table in enumerate(completed_cells(problem)["replication"]):
        images[g, pair_of_cells(table)] = table.images
    variance = right * (1 - right)
    # A classifier that is certainly right is not moved by any image's weight.
    scale = np.sqrt(images / np.where(variance > MIN_ANSWER_VARIANCE, variance, np.inf))
    scale /= overdispersion(problem.options.answer_distribution(), images, right)
    loading = slope * scale[:, None]
    rows = images_of_cells(problem, "replication")  # once for several passes over the cells
    cells = partial(answer_factors, problem, rows, right)
    return setting._replace(noise=FactorNoise(*jax.device_put(_leading_factors(loading, cells))))


@lru_cache(maxsize=16)
def _slope_program(density: Density) -> Program:
    """Compile Rᵀ ∂q [C, own, group, pair] and q [C, group, pair] at ξ = 0."""
    marginal, origin = Marginal(density), np.zeros(density.shared)

    def slopes(setting: Setting) -> tuple[Array, Array]:
        units, _ = marginal.conditional_normals(setting, jnp.asarray(origin))

        def right(center: Array) -> Array:
            position = setting.whitening({"shared": jnp.asarray(origin), "units": center})
            return density.quantities(position, setting.data)["cell_accuracy"]

        # A classifier's q moves with its own parameters alone: one direction serves all at once.
        along = jax.vmap(
            lambda root: jax.jvp(right, (units.center,), (root,))[1], in_axes=2, out_axes=1
        )
        return along(units.root), right(units.center)

    return Program(slopes, "slopes of P(correct | cell)", density.identity)


def _leading_factors(
    loading: Floats, cells: Callable[[], Iterator[tuple[int, int, Floats]]]
) -> tuple[Float[np.ndarray, "classifier own factor"], Float[np.ndarray, "classifier own own"]]:
    """Compute the factors' loadings from all cells, and roots of the residual covariances."""
    classifiers, own = loading.shape[:2]

    def gram_times(vectors: Floats) -> Floats:
        """Compute Σ_cell L Fᵀ F L vectors."""
        total = np.zeros_like(vectors)
        for g, pair, factor in cells():
            cell_loading = loading[:, :, g, pair]
            moved = factor @ np.einsum("cq,cqk->ck", cell_loading, vectors).astype(factor.dtype)
            total += cell_loading[:, :, None] * (factor.T @ moved)[:, None, :]
        return total

    count = min(N_FACTORS + 16, classifiers * own)  # oversampled, as algorithm 4.4 has it
    # Randomised subspace iteration: each pass over the cells separates the directions further.
    basis = image = np.random.default_rng(0).standard_normal((classifiers * own, count))
    for _ in range(3):
        basis = np.linalg.qr(image)[0]
        image = gram_times(basis.reshape(classifiers, own, count)).reshape(-1, count)
    values, vectors = np.linalg.eigh(basis.T @ image)
    scaled = (basis @ vectors * np.sqrt(np.clip(values, 0, None)))[:, -N_FACTORS:]
    common = np.zeros((classifiers, own, N_FACTORS))
    common[..., : scaled.shape[1]] = scaled.reshape(classifiers, own, -1)
    # No classifier's covariance may exceed the identity: the curvature is the observed information,
    # L the expected one.
    variance, axes = np.linalg.eigh(common @ common.swapaxes(1, 2))
    shrink = axes / np.sqrt(np.maximum(variance, 1))[:, None] @ axes.swapaxes(1, 2)
    rest = np.sqrt(np.clip(1 - variance, 0, None))
    return shrink @ common, axes * rest[:, None] @ axes.swapaxes(1, 2)


def population_accuracy(
    problem: Problem,
    log_mass: Float[np.ndarray, "draw group pair"],
    random: np.random.Generator,
) -> Float[np.ndarray, "draw classifier"]:
    """Draw the accuracies on the population of the reference, given log P(k | n) of its pairs.

    With weights 1 + g_x of its images a classifier's accuracy a is a + Σ_x g_x (f_x − a) / N. A
    draw of the mixtures gives the mean of g over the images of a cell, log P(k | n) minus its mean:
    the rest of the cells' means, and g within cells, is drawn.
    """
    tables, images = completed_cells(problem)["reference"], images_of_cells(problem, "reference")
    some = [np.flatnonzero(table.images) for table in tables]
    size = np.concatenate([t.images[cells] for t, cells in zip(tables, some, strict=True)])
    right = np.concatenate([t.correct[cells] for t, cells in zip(tables, some, strict=True)])
    mass = np.concatenate(
        [log_mass[:, g, pair_of_cells(t)[some[g]]] for g, t in enumerate(tables)], axis=1
    )
    # Whitened cell means of g: standard normal a priori, in part determined by the draws.
    accuracy, total = right.sum(axis=0) / size.sum(), size.sum()
    root = np.sqrt(size)
    mass = np.where(np.isfinite(mass), mass, 0.0)  # draws far out may have no masses
    mass = root * (mass - mass.mean(axis=0))
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(mass.T)))
    rest = vectors * np.sqrt(np.clip(1 - values, 0, None)) @ vectors.T
    mean = mass + random.standard_normal(mass.shape) @ rest  # √size times the mean of g
    draws = accuracy + mean @ (root[:, None] * (right / size[:, None] - accuracy) / total)
    # Within cells the weights are independent of the mixtures: their share is drawn afresh.
    parts = (
        _within_cell(problem, table, cell, None if images is None else images[g][cell])
        for g, (table, cells) in enumerate(zip(tables, some, strict=True))
        for cell in cells.tolist()
    )
    return draws + _weighted_sums(parts, draws.shape, random) / total


def class_column(problem: Problem) -> str:
    """Choose the images' classes: labels, or the only column of groups; empty if there are none."""
    if problem.study is None or problem.grouping is not None:
        return ""
    columns = shared_classes(problem.study)
    if "label" in columns:
        return "label"
    return next(iter(columns)) if len(columns) == 1 else ""


def class_shift(
    problem: Problem, column: str, count: int, random: np.random.Generator
) -> Float[np.ndarray, "draw classifier"] | None:
    """Draw what classifiers would have more, had the replication the reference's classes.

    None of a single class, or of about as many as images. The images' weights are random, as they
    are for the posterior.
    """
    assert problem.study is not None
    one, other = problem.study.reference, problem.study.replication
    kinds, classes = np.unique(shared_classes(problem.study)[column], return_inverse=True)
    if len(kinds) < 2 or 2 * len(kinds) > min(len(one.shown), len(other.shown)):
        return None
    stratum = frequency_strata(one.selected / one.shown, other.selected / other.shown)
    shift, influence = post_stratify(stratum, classes, other.correct)
    return shift + _weighted_sums([influence], (count, len(shift)), random)


def _weighted_sums(
    parts: Iterable[Float[np.ndarray, "row classifier"]],
    shape: tuple[int, int],
    random: np.random.Generator,
) -> Float[np.ndarray, "draw classifier"]:
    """Draw Σ_x g_x part_x over the rows of all parts, g_x ~ N(0, 1)."""
    sums = np.zeros(shape)
    if shape[1] > shape[0]:
        for part in parts:
            weights = random.standard_normal((shape[0], len(part)), dtype=np.float32)
            sums += weights @ part.astype(np.float32)
        return sums
    # With fewer classifiers than draws, one covariance over all parts takes fewer random numbers.
    covariance = np.zeros((shape[1], shape[1]))
    for part in parts:
        covariance += part.T @ part
    # Classifiers that are certain, or alike, have no variance of their own.
    covariance += 1e-12 * (1 + np.trace(covariance)) * np.eye(len(covariance))
    return random.standard_normal(shape) @ np.linalg.cholesky(covariance).T


def _within_cell(
    problem: Problem, table: Cells, cell: int, images: Ints | None
) -> Float[np.ndarray, "row classifier"]:
    """Compute a root of the covariance of classifiers' right answers within a cell."""
    share = table.correct[cell] / table.images[cell]
    if images is not None:
        assert problem.study is not None
        return problem.study.reference.correct[images] - share
    sd = np.sqrt(table.images[cell] * share * (1 - share))
    common = _equal_correlation(table, cell, share)
    return np.concatenate([(common * sd)[None], np.diag(np.sqrt(1 - common**2) * sd)])
