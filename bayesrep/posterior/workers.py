"""Variance of the adjusted accuracies over the workers who happened to answer.

By influences (Giordano and Broderick 2023, equation 7): an answer that turns to yes moves a mean by

    T(k) − T(k − 1)  =  Cov_post(A, log p(image with k selections) − log p(image with k − 1)),

which `bayesrep.numerics.crowd` sums over workers; T is linear between the study's counts.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayesrep.numerics.crowd import (
    Clustered,
    clip_eigenvalues,
    cluster_covariance,
    few_clusters_stretch,
    overlap_correction,
)
from bayesrep.posterior.groups import CellNames
from bayesrep.posterior.influences import Influences, LogAnswers, center_draws
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.crowds import residuals_of
from bayesrep.types import Bool, Float, Floats, Int

if TYPE_CHECKING:
    from bayesrep.models.model import Crowd


class AnsweredImages(NamedTuple):
    """One data set with the densities that `worker_covariance` needs."""

    data: AnnotatedSet  # with its answers by worker
    cells: CellNames  # of the posterior
    cell: Int[np.ndarray, "image"]  # of each image
    log_mass: NDArray[np.floating]  # [chain, draw, cell], log probability of the cell's count
    log_answers: LogAnswers | None  # of log P(answer | cell), if the model uses answers


def worker_covariance(
    datasets: Sequence[AnsweredImages],
    influences: Influences,
    directions: Float[np.ndarray, "classifier direction"],
) -> Clustered:
    """Compute the covariance over workers of posterior means, in some directions."""
    residuals = residuals_of([each.data for each in datasets])
    parts = (
        part
        for each, residual in zip(datasets, residuals, strict=True)
        for part in _cell_effects(each, residual, influences, directions)
    )
    return cluster_covariance(parts, overlap_correction(residuals))


def leniency_covariance(
    scores: Float[np.ndarray, "chain draw known"],
    crowd: "Crowd",
    adjusted: Float[np.ndarray, "chain draw classifier"],
    directions: Float[np.ndarray, "classifier direction"],
) -> Float[np.ndarray, "direction direction"]:
    """Compute the covariance over the leniencies that a model conditions on: Jᵀ Σ J.

    J = Cov_post(A, score) (Giordano and Broderick 2023). The draws already vary as if each answer
    came from a worker of its own; that part of a leniency's variance is subtracted.
    """
    answers, leniencies = crowd.answers, crowd.leniencies
    score_draws = center_draws(scores).transpose(0, 2, 1)
    jacobian = (
        score_draws @ (center_draws(adjusted) @ directions) / score_draws.shape[2]
    )  # [block, known, direction]
    answer_count, noise = (
        np.bincount(answers.worker, weight, minlength=answers.workers)[leniencies.known]
        for weight in (None, leniencies.cavity_variance)
    )
    covariance = leniencies.covariance - np.diag(noise / np.square(answer_count))
    blocks, total = len(jacobian), jacobian.sum(axis=0)
    # Sum over pairs of different blocks: their noise is independent, so no square of it adds up.
    within = total.T @ covariance @ total - sum(each.T @ covariance @ each for each in jacobian)
    within /= blocks * (blocks - 1)
    _, stretch = few_clusters_stretch(np.abs(total))
    return clip_eigenvalues(within) * np.outer(stretch, stretch)


def _cell_effects(
    each: AnsweredImages,
    residual: sparse.csr_array,
    influences: Influences,
    directions: Float[np.ndarray, "classifier direction"],
) -> Iterator[tuple[sparse.csr_array, Float[np.ndarray, "block member direction"]]]:
    """Yield for every cell its images' residuals, and the effect of one selection more or less."""
    draws = influences.deviations @ directions
    size = draws.shape[1]
    mass = center_draws(each.log_mass).transpose(0, 2, 1) @ draws / size  # [block, cell, direction]
    correct = each.data.correct.astype(float)

    @lru_cache(maxsize=4)
    def derivatives_of_right(cell: int) -> tuple[Floats, Floats]:
        """Derivatives by Σ log P(wrong), and by log odds of right answers [block, c, direction]."""
        assert each.log_answers is not None
        log_wrong, log_right = map(center_draws, each.log_answers(cell))
        wrong = influences.project(log_wrong, directions)
        return wrong.sum(axis=1), influences.project(log_right - log_wrong, directions)

    # Images of a cell share their derivatives: go through them by cell.
    order = np.argsort(each.cell, kind="stable")
    image_count = np.bincount(each.cell, minlength=len(each.cells.shown))
    members = np.split(order, np.cumsum(image_count)[:-1])
    yes = each.cells.selected / each.cells.shown
    steps = [
        (share, *one_selection(each.cells, image_count > 0, up=up))
        for share, up in ((1 - yes, False), (yes, True))
    ]
    for cell, images in enumerate(members):
        if not len(images):
            continue
        # Weighted mean of the differences from one selection less and to one more.
        step = np.zeros((len(draws), 1, draws.shape[2]))
        for share, above, below, part in steps:
            high, low, times = int(above[cell]), int(below[cell]), float((share * part)[cell])
            if times == 0:
                continue
            difference = (mass[:, high] - mass[:, low])[:, None]
            if each.log_answers is not None:
                (wrong, logit), (wrong_below, logit_below) = (
                    derivatives_of_right(high),
                    derivatives_of_right(low),
                )
                difference = difference + (wrong - wrong_below)[:, None]
                difference = difference + correct[images] @ (logit - logit_below)
            step = step + times * difference
        yield residual[images], step


def one_selection(
    cells: CellNames,
    occupied: Bool[np.ndarray, "cell"],
    *,
    up: bool,  # look above a cell first
) -> tuple[Int[np.ndarray, "cell"], Int[np.ndarray, "cell"], Float[np.ndarray, "cell"]]:
    """Find cells by which a selection more (`up`) is worth `part * (f[above] - f[below])`."""
    rows: dict[tuple[str, int], list[int]] = {}
    for cell in np.lexsort((cells.selected, cells.shown)):
        if not occupied[cell]:
            continue
        rows.setdefault((str(cells.group[cell]), int(cells.shown[cell])), []).append(int(cell))
    above, below = np.zeros((2, len(cells.shown)), dtype=np.int64)
    part = np.zeros(len(cells.shown))
    k, n = (np.asarray(counts, dtype=float) for counts in (cells.selected, cells.shown))
    for (group, size), row in rows.items():
        for index, cell in enumerate(row):
            # Interpolate between neighbours with as many annotators.
            if len(row) > 1:
                first = min(max(index if up else index - 1, 0), len(row) - 2)
                low, high = row[first], row[first + 1]
                above[cell], below[cell], part[cell] = high, low, 1 / (k[high] - k[low])
                continue
            # The only cell with so many: use the nearest number that has two cells.
            nearby = [(abs(m - size), m) for g, m in rows if g == group and len(rows[g, m]) > 1]
            if not nearby:
                continue
            neighbours = rows[group, min(nearby)[1]]
            middle = (k[neighbours[1:]] + k[neighbours[:-1]]) / 2 / n[neighbours[0]]
            first = int(np.abs(middle - k[cell] / n[cell]).argmin())
            low, high = neighbours[first], neighbours[first + 1]
            above[cell], below[cell] = high, low
            part[cell] = n[low] / n[cell] / (k[high] - k[low])
    return above, below, part
