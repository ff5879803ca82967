"""What a posterior's adjusted accuracies owe to the workers who happened to answer.

An image's influence on a posterior mean is a posterior covariance (Giordano and Broderick 2023,
"The Bayesian infinitesimal jackknife for variance", equation 7), and that of an answer a difference
of two, by which the mean moves when the answer turns from no to yes:

    T(k) − T(k − 1)  =  Cov_post(A, log p(image with k selections) − log p(image with k − 1)),

which `bayesrep.numerics.crowd` sums over workers. log p of an image is that of its count and, on
the replication, of every classifier's answer. Where the study has no image with that count, T is
taken as linear between the nearest counts that it has, out of as many annotators.

Where it is not known who answered, the same says what another crowd's leniency would do, if its
size is assumed.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_expit

from bayesrep.numerics.crowd import (
    Clustered,
    clip_eigenvalues,
    cluster_covariance,
    few_clusters_stretch,
    overlap_correction,
)
from bayesrep.posterior.groups import CellNames
from bayesrep.posterior.influences import Influences, LogitRight, center_draws
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.crowds import residuals_of
from bayesrep.types import Bool, Float, Floats, Int

if TYPE_CHECKING:
    from bayesrep.models.model import Crowd


class AnsweredImages(NamedTuple):
    """One data set as `worker_covariance` needs it.

    Attributes
    ----------
    data
        The data set, with its answers by worker.
    cells, cell
        The posterior's cells, and that of every image.
    log_mass : [chain, draw, cell]
        Log probability of the cell's count.
    logit_right
        Draws of the logit of P(correct | cell), where the model knows the data set's answers.
    """

    data: AnnotatedSet
    cells: CellNames
    cell: Int[np.ndarray, "image"]
    log_mass: NDArray[np.floating]
    logit_right: LogitRight | None


def worker_covariance(
    datasets: Sequence[AnsweredImages],
    influences: Influences,
    directions: Float[np.ndarray, "classifier direction"],
) -> Clustered:
    """Covariance, over workers, of what directions see of the adjusted accuracies' means.

    Parameters
    ----------
    datasets
        Those of which it is known who answered.
    influences
        What answers do, from the draws of which there are log probabilities.
    directions
        Combinations of classifiers; the identity for all of them.
    """
    left = residuals_of([each.data for each in datasets])
    parts = (
        part
        for each, of in zip(datasets, left, strict=True)
        for part in _parts(each, of, influences, directions)
    )
    return cluster_covariance(parts, overlap_correction(left))


def leniency_covariance(
    scores: Float[np.ndarray, "chain draw known"],
    crowd: "Crowd",
    adjusted: Float[np.ndarray, "chain draw classifier"],
    directions: Float[np.ndarray, "classifier direction"],
) -> Float[np.ndarray, "direction direction"]:
    """Covariance that comes of leniencies which a model was given: Jᵀ Σ J.

    J = Cov_post(A, score) is by how much a posterior mean moves with a worker's leniency (Giordano
    and Broderick 2023). Draws know already what each answer would have if its worker were another's
    than that of his other answers; so much of a leniency's variance is taken off.

    Parameters
    ----------
    scores
        Draws of the derivative of the log likelihood by the known workers' leniencies.
    crowd
        From the model.
    adjusted, directions
        As `worker_covariance` takes them.
    """
    answers, found = crowd.answers, crowd.leniencies
    moved = center_draws(scores).transpose(0, 2, 1)
    moves = (
        moved @ (center_draws(adjusted) @ directions) / moved.shape[2]
    )  # [block, known, direction]
    asked, noise = (
        np.bincount(answers.worker, weight, minlength=answers.workers)[found.known]
        for weight in (None, found.cavity_variance)
    )
    covariance = found.covariance - np.diag(noise / np.square(asked))
    blocks, total = len(moves), moves.sum(axis=0)
    # Products of different blocks have no noise in common.
    within = total.T @ covariance @ total - sum(each.T @ covariance @ each for each in moves)
    within /= blocks * (blocks - 1)
    _, stretch = few_clusters_stretch(np.abs(total))
    return clip_eigenvalues(within) * np.outer(stretch, stretch)


def crowd_effect(
    each: AnsweredImages,
    influences: Influences,
    directions: Float[np.ndarray, "classifier direction"],
) -> Float[np.ndarray, "direction"]:
    """By how much directions move where a more lenient crowd selects all images more often.

    Of a mean selection frequency that is higher by one. Leniency moves the probability of a
    selection most where it is in the middle: in proportion to s (1 − s), which is taken from the
    image's count and two more answers, half of them yes.

    Parameters
    ----------
    each
        The data set; it need not be known who answered.
    influences, directions
        As `worker_covariance` takes them.
    """
    data = each.data
    frequency = (data.selected + 1) / (data.shown + 2)
    more = frequency * (1 - frequency)
    yes = sparse.csr_array((data.shown * more / more.mean())[:, None])
    effect = np.zeros(directions.shape[1])
    for part, steps in _parts(each, yes, influences, directions):
        effect += np.sum(part.toarray() * steps.mean(axis=0), axis=0)
    return effect


def _parts(
    each: AnsweredImages,
    residual: sparse.csr_array,
    influences: Influences,
    directions: Float[np.ndarray, "classifier direction"],
) -> Iterator[tuple[sparse.csr_array, Float[np.ndarray, "block member direction"]]]:
    """Residuals of the images of every cell, with what one selection more or less does there."""
    along = influences.moves @ directions
    size = along.shape[1]
    mass = center_draws(each.log_mass).transpose(0, 2, 1) @ along / size  # [block, cell, direction]
    correct = each.data.correct.astype(float)

    @lru_cache(maxsize=4)
    def derivatives_of_right(cell: int) -> tuple[Floats, Floats]:
        """By Σ log(1 − q) [block, direction], and by each logit q [block, c, direction]."""
        assert each.logit_right is not None
        logit = np.asarray(each.logit_right(cell), dtype=float)
        wrong = influences.project(center_draws(log_expit(-logit)), directions)
        return wrong.sum(axis=1), influences.project(center_draws(logit), directions)

    order = np.argsort(each.cell, kind="stable")
    held = np.bincount(each.cell, minlength=len(each.cells.shown))
    members = np.split(order, np.cumsum(held)[:-1])
    yes = each.cells.selected / each.cells.shown
    ways = [
        (share, *one_selection(each.cells, held > 0, up=up))
        for share, up in ((1 - yes, False), (yes, True))
    ]
    for cell, images in enumerate(members):
        if not len(images):
            continue
        step = np.zeros((len(along), 1, along.shape[2]))
        for share, above, below, part in ways:
            high, low, times = int(above[cell]), int(below[cell]), float((share * part)[cell])
            if times == 0:
                continue
            one = (mass[:, high] - mass[:, low])[:, None]
            if each.logit_right is not None:
                (wrong, logit), (wrong_below, logit_below) = (
                    derivatives_of_right(high),
                    derivatives_of_right(low),
                )
                one = one + (wrong - wrong_below)[:, None]
                one = one + correct[images] @ (logit - logit_below)
            step = step + times * one
        yield residual[images], step


def one_selection(
    cells: CellNames, held: Bool[np.ndarray, "cell"], *, up: bool
) -> tuple[Int[np.ndarray, "cell"], Int[np.ndarray, "cell"], Float[np.ndarray, "cell"]]:
    """Between which two cells a function of the count is taken as linear, and by what part.

    One selection more (`up`) or less changes it by `part * (f[above] - f[below])`; a cell that is
    alone of its number of annotators takes the two of the nearest number, at the nearest share.

    Parameters
    ----------
    cells
        Groups and counts.
    held
        Whether there are images in them.
    up
        Whether to look above a cell first.
    """
    alike: dict[tuple[str, int], list[int]] = {}
    for cell in np.lexsort((cells.selected, cells.shown)):
        if not held[cell]:
            continue
        alike.setdefault((str(cells.group[cell]), int(cells.shown[cell])), []).append(int(cell))
    above, below = np.zeros((2, len(cells.shown)), dtype=np.int64)
    part = np.zeros(len(cells.shown))
    k, n = (np.asarray(counts, dtype=float) for counts in (cells.selected, cells.shown))
    for (group, shown), row in alike.items():
        for at, cell in enumerate(row):
            # One more or one less: the neighbours with as many annotators tell the difference.
            if len(row) > 1:
                first = min(max(at if up else at - 1, 0), len(row) - 2)
                low, high = row[first], row[first + 1]
                above[cell], below[cell], part[cell] = high, low, 1 / (k[high] - k[low])
                continue
            # The only cell with so many: taken from those with the nearest number.
            others = [(abs(m - shown), m) for g, m in alike if g == group and len(alike[g, m]) > 1]
            if not others:
                continue
            there = alike[group, min(others)[1]]
            middle = (k[there[1:]] + k[there[:-1]]) / 2 / n[there[0]]
            first = int(np.abs(middle - k[cell] / n[cell]).argmin())
            low, high = there[first], there[first + 1]
            above[cell], below[cell] = high, low
            part[cell] = n[low] / n[cell] / (k[high] - k[low])
    return above, below, part
