"""A placebo replication: two random parts of one annotated data set, whose true gaps are zero."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import StudyError, listing
from bayesrep.numerics.rounding import largest_remainders
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.leniency import PROVENANCE_ENTRY, SAME_CROWD
from bayesrep.studies.study import Study
from bayesrep.types import Bools, Ints


def placebo_replication(
    human_counts: NDArray[np.integer[Any]],
    labels: NDArray[np.integer[Any]],
    correct: Bools,
    classifiers: Sequence[str],
    *,
    seed: int,
    size: int = 2000,
    filter_batch: int = 6,
    matching_batch: int = 3,
    measuring_batch: int = 20,
) -> Study:
    """Replicate a data set from itself, the way ImageNet-v2 was made from ImageNet.

    The images are split at random into a reference half and a candidate half. Every image's answers
    (the true label counts as "selected") are dealt without replacement into three batches:

    1. filter: a reference image stays only if the whole batch selects it, as ImageNet's own
       collection kept only what its annotators agreed on. All that stay are the reference.
    2. matching: `size` candidates are drawn at random, without replacement, so that their
       histogram of selections in this batch is that of the reference images in theirs (rounded to
       whole images by largest remainders). They are the replication.
    3. measuring: the counts of the study, fresh answers for reference and replication alike.

    Filter and matching see annotators only, and the halves are random, so any classifier behaves
    alike on both at the same selection frequency: every true bias-corrected gap is zero. The
    candidates were matched on a noisy batch, so their true selection frequencies are lower and the
    raw gap is not zero.

    Parameters
    ----------
    human_counts : int [N, L]
        Number of annotators who gave each label.
    labels : int [N]
        The true labels.
    correct : bool [N, C]
        True if a classifier is right.
    classifiers
        The C names.
    seed
        Seed of the split, the dealing and the draw.
    size
        Images of the replication.
    filter_batch, matching_batch, measuring_batch
        Answers dealt to each batch.

    Returns
    -------
    Study
        Reference "cifar10-reference" and replication "cifar10-placebo"; images are named by their
        place in the test set.

    Raises
    ------
    StudyError
        If the arrays do not fit each other, an image has fewer answers than the batches need, no
        reference image stays, or too few candidates have some count for the matching.
    """
    if np.ndim(human_counts) != 2 or {len(labels), len(correct)} != {len(human_counts)}:
        raise StudyError(
            "placebo-array-lengths-differ",
            shape=list(np.shape(human_counts)),
            label_count=len(labels),
            correct_count=len(correct),
        )
    selected, n_answers = selections(np.asarray(human_counts), np.asarray(labels))
    batches = (filter_batch, matching_batch, measuring_batch)
    if (short := np.flatnonzero(n_answers < sum(batches))).size:
        images = listing(short)
        raise StudyError("too-few-answers-for-placebo", needed=sum(batches), images=images)
    rng = np.random.default_rng(seed)
    half = rng.permutation(len(n_answers)) < len(n_answers) // 2
    # Three disjoint batches of each image's answers: to filter by, to match by, to measure by.
    filtered, matched, measured = deal_answers(rng, selected, n_answers, batches)
    # Half of the images are the reference, if they pass the filter.
    reference = np.flatnonzero(half & (filtered == filter_batch))
    if reference.size == 0:
        raise StudyError("no-image-passes-filter-batch", filter_batch=filter_batch)
    candidates = np.flatnonzero(~half)
    # From the other half as many of each matching count as the reference has.
    histogram = np.bincount(matched[reference], minlength=matching_batch + 1)
    target = largest_remainders(histogram / reference.size, size)
    replication = _draw(rng, candidates, matched[candidates], target)
    sets = (("reference", "cifar10-reference"), ("replication", "cifar10-placebo"))
    return Study(
        datasets={
            role: AnnotatedSet(
                name=name,
                images=chosen.astype(np.str_),
                selected=measured[chosen],
                shown=np.full(chosen.size, measuring_batch, dtype=np.int64),
                correct=np.asarray(correct, dtype=np.bool_)[chosen],
                labels=np.asarray(labels)[chosen].astype(np.str_),
            )
            for (role, name), chosen in zip(sets, (reference, replication), strict=True)
        },
        classifiers=tuple(classifiers),
        name="cifar10h-placebo",
        provenance={
            "source": "cifar10h",
            PROVENANCE_ENTRY: SAME_CROWD,  # every batch is of all of CIFAR-10H's annotators
            "seed": int(seed),
            "size": size,
            "filter_batch": filter_batch,
            "matching_batch": matching_batch,
            "measuring_batch": measuring_batch,
        },
    )


def selections(human_counts: NDArray[Any], labels: NDArray[Any]) -> tuple[Ints, Ints]:
    """Count the annotators who gave the true label, and all answers, per image."""
    counts = human_counts.astype(np.int64)
    return counts[np.arange(len(counts)), labels.astype(np.int64)], counts.sum(axis=1)


def deal_answers(
    rng: np.random.Generator, selected: Ints, n_answers: Ints, batches: Sequence[int]
) -> list[Ints]:
    """Deal every image's answers without replacement; return the selections in each batch [N]."""
    yes, no = selected, n_answers - selected
    dealt: list[Ints] = []
    for batch in batches:
        batch_selected = rng.hypergeometric(yes, no, batch)
        yes, no = yes - batch_selected, no - (batch - batch_selected)
        dealt.append(batch_selected)
    return dealt


def _draw(rng: np.random.Generator, candidates: Ints, matched: Ints, target: Ints) -> Ints:
    chosen: list[Ints] = []
    for count, number in enumerate(target):
        pool = candidates[matched == count]
        if pool.size < number:
            raise StudyError(
                "too-few-candidates-at-count", needed=number, selections=count, available=pool.size
            )
        chosen.append(rng.choice(pool, number, replace=False))
    return np.sort(np.concatenate(chosen))
