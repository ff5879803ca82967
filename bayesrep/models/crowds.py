"""The workers of a study's data sets, and clusters of images with (nearly) the same answers."""

import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import sparse

from bayesrep.errors import IdentificationWarning, StudyError
from bayesrep.models.model import Crowd
from bayesrep.numerics import logit_quadrature
from bayesrep.numerics.expectation_propagation import find_leniencies
from bayesrep.numerics.leniency import CrowdAnswers, log_given, panel_logit, stretched_logit
from bayesrep.studies.study import Study
from bayesrep.types import Float, Int

MEAN_BINS, SD_BINS = 60, 6  # bins of the posterior mean and sd of s that merge images


class ImageClusters(NamedTuple):
    """Clusters of one data set's images with the same answers, or nearly."""

    log_given: Float[np.ndarray, "cluster node"]  # log P(answers | s) at the nodes
    answered: Int[np.ndarray, "cluster known"]  # images that each known worker answered
    selected: Int[np.ndarray, "cluster"]  # known workers' answers that were yes
    images: Int[np.ndarray, "cluster"]  # their number
    correct: Int[np.ndarray, "cluster classifier"]  # images that each is right on


@lru_cache(maxsize=2)
def crowd_of(study: Study, roles: tuple[str, ...]) -> Crowd:
    """Estimate the leniencies of the workers of some data sets."""
    datasets = {role: study.datasets[role] for role in roles}
    by_role = {role: data.answers for role, data in datasets.items() if data.answers is not None}
    if not by_role:
        raise StudyError("workers-of-answers-unknown", study=study.name)
    names, place = np.unique(
        np.concatenate([each.workers for each in by_role.values()]), return_inverse=True
    )
    places = np.split(place, np.cumsum([len(each.workers) for each in by_role.values()])[:-1])
    sizes = [len(datasets[role].images) for role in by_role]
    # Images are numbered through all data sets, workers by name: one crowd rates them all.
    starts = np.cumsum([0, *sizes[:-1]])
    answers = CrowdAnswers(
        np.concatenate([each.image + s for each, s in zip(by_role.values(), starts, strict=True)]),
        np.concatenate([p[each.worker] for each, p in zip(by_role.values(), places, strict=True)]),
        np.concatenate([each.selected for each in by_role.values()]),
        np.repeat(np.arange(len(by_role)), sizes),
        len(names),
    )
    if len(np.unique(answers.worker)) == len(answers.worker):
        warnings.warn(
            f"study {study.name!r}: no worker answered twice, so that nobody's leniency can be "
            "told; the workers model is the joint one here",
            IdentificationWarning,
            stacklevel=2,
        )
    return Crowd(tuple(by_role), answers, find_leniencies(answers))


def logits(crowd: Crowd, *, panel: bool) -> Float[np.ndarray, "dataset node"]:
    """Compute α of every data set at the nodes; the workers of a `panel` are all there are."""
    log_s, log_rest, _ = logit_quadrature.nodes()
    logit, leniencies = log_s - log_rest, crowd.leniencies
    if not panel:
        return np.tile(stretched_logit(logit, leniencies.spread), (len(crowd.roles), 1))
    rows = [np.flatnonzero(each) for each in count_answers(crowd)]
    return np.stack([panel_logit(logit, leniencies.mean[w], leniencies.variance[w]) for w in rows])


def count_answers(crowd: Crowd) -> Int[np.ndarray, "dataset worker"]:
    """Count each worker's answers about each data set."""
    answers = crowd.answers
    place = answers.dataset[answers.image] * answers.workers + answers.worker
    size = len(crowd.roles), answers.workers
    return np.bincount(place, minlength=size[0] * size[1]).reshape(size)


def cluster_images(study: Study, roles: Sequence[str], *, panel: bool) -> dict[str, ImageClusters]:
    """Cluster the images of every data set by their answers."""
    crowd = crowd_of(study, tuple(roles))
    answers, known_workers = crowd.answers, crowd.leniencies.known
    log_likelihood = log_given(answers, crowd.leniencies, logits(crowd, panel=panel))
    # Columns of the known workers: only their answers inform about leniencies.
    column = np.full(answers.workers, -1)
    column[known_workers] = np.arange(len(known_workers))
    log_s, log_rest, _ = logit_quadrature.nodes()
    clusters: dict[str, ImageClusters] = {}
    for role in roles:
        data = study.datasets[role]
        if role in crowd.roles:
            mine = answers.dataset == crowd.roles.index(role)
            log_rows = log_likelihood[mine]
            place = _assign_clusters(log_rows)
            by_known = mine[answers.image] & (column[answers.worker] >= 0)
            rows = place[answers.image[by_known] - np.flatnonzero(mine)[0]]
            cells = rows * len(known_workers) + column[answers.worker[by_known]]
            selections = rows[answers.selected[by_known]]
        else:
            # Without workers, images of equal counts are exchangeable.
            counts = np.stack([data.selected, data.shown - data.selected], axis=1)
            pairs, place = np.unique(counts, axis=0, return_inverse=True)
            log_rows = pairs[place] @ np.stack([log_s, log_rest])
            cells = selections = np.empty(0, dtype=np.int64)
        images = np.bincount(place)
        membership = sparse.csr_array((np.ones(len(place)), (place, np.arange(len(place)))))
        clusters[role] = ImageClusters(
            log_given=membership @ log_rows / images[:, None],
            answered=np.bincount(cells, minlength=len(images) * len(known_workers)).reshape(
                len(images), -1
            ),
            selected=np.bincount(selections, minlength=len(images)),
            images=images,
            correct=np.rint(membership @ data.correct.astype(float)).astype(np.int64),
        )
    return clusters


def _assign_clusters(log_given: Float[np.ndarray, "image node"]) -> Int[np.ndarray, "image"]:
    """Assign images to clusters of the same answers, or nearly, numbered without a gap."""
    log_s, log_rest, log_width = logit_quadrature.nodes()
    log_posterior = log_given + log_s + log_rest + log_width  # with s uniform
    weight = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    logit = np.clip(log_s - log_rest, -20, 20)
    mean = weight @ logit
    variance = weight @ np.square(logit) - np.square(mean)
    # Few images need no merging; many are divided evenly by mean, then by variance.
    if len(mean) <= MEAN_BINS * SD_BINS:
        return np.arange(len(mean))
    by_mean = np.argsort(np.argsort(mean, kind="stable")) * MEAN_BINS // len(mean)
    order = np.lexsort((variance, by_mean))
    starts = np.searchsorted(by_mean[order], np.arange(MEAN_BINS))
    sizes = np.bincount(by_mean, minlength=MEAN_BINS)
    rank = np.empty(len(mean), dtype=np.int64)
    rank[order] = np.arange(len(mean)) - np.repeat(starts, sizes)
    part = by_mean * SD_BINS + rank * SD_BINS // sizes[by_mean]
    return np.unique(part, return_inverse=True)[1]
