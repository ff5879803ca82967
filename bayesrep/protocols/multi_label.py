"""Multi-label accuracy beside top-1 and top-5, on all images and on parts of them.

A prediction is right if it is among the image's right labels (Shankar et al., 2020, section 3;
Tsipras et al., 2020, section 4.1).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.bounds import refuse_above
from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.protocols.intervals import proportion_interval
from bayesrep.protocols.label_sets import LabelSets
from bayesrep.protocols.subsets import class_subsets
from bayesrep.studies.predictions import Predictions
from bayesrep.types import Bools, Floats, Ints

LARGEST_TRIALS = 100_000  # random orders of all classes are held at once
_PART_NAMES = ("all", "one label", "several labels")
_CATEGORY_PREFIX = "category: "


@dataclass(frozen=True, eq=False)
class _Metric:
    """Numerator and denominator of a metric: right and images [C, N], right only where images."""

    name: str
    right: Bools
    images: Bools


def multilabel(
    predictions: Predictions,
    sets: LabelSets,
    *,
    subsets: Mapping[str, Bools] | None = None,
    empty: str = "exclude",
    interval: str = "jeffreys",
    trials: int = 1000,
    seed: int = 0,
) -> pl.DataFrame:
    """Top-1, top-5 and multi-label accuracy of every classifier, on all images and on subsets.

    Parameters
    ----------
    predictions
        The answers on one data set, from `read_predictions`; top-5 is left out where only the
        first answers are known.
    sets
        The right labels of its images, from `read_label_sets`. Images that nobody looked at are
        left out of everything.
    subsets
        Masks [K] over the classes, from `class_subsets`; an image belongs to a subset if its
        label does. By default those built in.
    empty
        What becomes of images on which no label is right: "exclude" leaves them out of all
        metrics, as Beyer et al. (2020) do; "wrong" keeps them, and every multi-label answer to
        them is wrong.
    interval
        See `proportion_interval`.
    trials
        Resamples of the class bootstrap.
    seed
        Seed of the class bootstrap.

    Returns
    -------
    polars.DataFrame
        classifier, subset, metric, images, right, accuracy, lower, upper (95 %), change, p_value.
        Subsets are "all", "one label" and "several labels" (by the label sets), those given, and
        "category: NAME" for the categories of the label sets, which have no p_value.
        Metrics are "top-1", "top-5", "multi-label" and "top-5 corrections already right": of the
        images that are wrong by top-1 and right by top-5, those whose first answer is right by the
        label sets, so that top-5 forgave no mistake (whether it is another object's label is
        `compare_predictions_with_people`'s to say). `change` is the
        accuracy on the subset minus that on all images, and `p_value` how often as many classes,
        drawn at random without replacement, change it at least as much in either direction
        (Shankar et al., 2020, section 5), counting the subset itself as one draw, so that it is
        never below 1 / (trials + 1). Of many subsets and classifiers some are small by chance.
        Null where a subset has no images.

    Raises
    ------
    OptionError
        For an unknown `empty` or `interval`, or trials out of range.
    StudyError
        Where no image is left, or a subset takes a name of this table's own.
    """
    included = sets.select_images(empty)
    if trials < 1:
        raise OptionError("trials-below-one", trials=trials)
    refuse_above("trials", trials, LARGEST_TRIALS)
    chosen = class_subsets(predictions.classes) if subsets is None else subsets
    if reserved := [name for name in chosen if name in _PART_NAMES]:
        raise StudyError("table-subset-name-taken", subsets=listing(reserved, "subset"))
    if not included.any():
        raise StudyError("no-image-with-right-label", dataset=predictions.dataset)
    metrics = list(_metrics(predictions, sets, included))
    sizes, labels = sets.sizes, predictions.labels
    masks = (np.ones(len(sizes), np.bool_), sizes == 1, sizes > 1)
    parts = dict(zip(_PART_NAMES, masks, strict=True))
    parts |= {name: mask[labels] for name, mask in chosen.items()}
    parts |= {f"{_CATEGORY_PREFIX}{name}": mask for name, mask in sets.categories.items()}
    right, images = (
        np.stack([[(values & part).sum(axis=1) for part in parts.values()] for values in each])
        for each in ([m.right for m in metrics], [m.images for m in metrics])
    )  # [metric, part, classifier]
    p_value = np.full(right.shape, np.nan)
    ranks = _random_classes(labels, len(predictions.classes), trials, seed)
    own = slice(len(_PART_NAMES), len(_PART_NAMES) + len(chosen))
    for number, metric in enumerate(metrics):
        p_value[number, own] = _class_bootstrap(metric, labels, ranks, chosen)
    # [classifier, part, metric]
    right, images, p_value = (each.transpose(2, 1, 0) for each in (right, images, p_value))
    lower, upper = proportion_interval(right, images, interval)
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = right / images
    change = accuracy - accuracy[:, :1]
    change[:, 0] = np.nan
    count, many, kinds = (right.shape[axis] for axis in range(3))
    return pl.DataFrame(
        {
            "classifier": np.repeat(predictions.classifiers, many * kinds),
            "subset": np.tile(np.repeat(list(parts), kinds), count),
            "metric": np.tile([metric.name for metric in metrics], count * many),
            "images": images.ravel(),
            "right": right.ravel(),
            "accuracy": accuracy.ravel(),
            "lower": lower.ravel(),
            "upper": upper.ravel(),
            "change": change.ravel(),
            "p_value": p_value.ravel(),
        }
    ).fill_nan(None)


def _metrics(predictions: Predictions, sets: LabelSets, included: Bools) -> Iterator[_Metric]:
    images = predictions.answered & included
    first = predictions.correct & images
    good = sets.contain(predictions.first) & images
    yield _Metric("top-1", first, images)
    if predictions.answers.shape[2] >= 5:
        five = predictions.correct_within(5) & images
        yield _Metric("top-5", five, images)
        yield _Metric("multi-label", good, images)
        yield _Metric("top-5 corrections already right", good & five & ~first, five & ~first)
    else:
        yield _Metric("multi-label", good, images)


def _random_classes(labels: NDArray[np.integer], classes: int, trials: int, seed: int) -> Ints:
    """Ranks [trials, K] of random orders of the classes that occur; the others come last."""
    keys = np.random.default_rng(seed).random((trials, classes))
    keys[:, np.bincount(labels, minlength=classes) == 0] = 2
    order = keys.argsort(axis=1)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(classes)[None], axis=1)
    return ranks


def _class_bootstrap(
    metric: _Metric,
    labels: NDArray[np.integer],
    ranks: Ints,
    subsets: Mapping[str, Bools],
) -> Floats:
    """Compute how often random classes change the accuracy as much as a subset: [subset, C]."""
    classes = ranks.shape[1]
    right, images = (_by_class(values, labels, classes) for values in (metric.right, metric.images))
    present = np.bincount(labels, minlength=classes) > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        overall = right.sum(axis=1) / images.sum(axis=1)
        accuracies = np.full((len(subsets), len(right)), np.nan)
        for number, mask in enumerate(subsets.values()):
            size = int((mask & present).sum())
            if size in (0, present.sum()):
                continue
            resampled = (ranks < size).astype(np.float64)
            change = np.abs((resampled @ right.T) / (resampled @ images.T) - overall)
            own = np.abs(right[:, mask].sum(axis=1) / images[:, mask].sum(axis=1) - overall)
            # Rounding must not make a draw of the subset itself count as a smaller change.
            as_large = (change >= own - 1e-12).sum(axis=0)
            accuracies[number] = np.where(np.isnan(own), np.nan, (1 + as_large) / (1 + len(ranks)))
    return accuracies


def _by_class(values: Bools, labels: NDArray[np.integer], classes: int) -> Floats:
    """Sums over the images of each class: [C, N] to [C, K]."""
    order = np.argsort(labels, kind="stable")
    present, starts = np.unique(labels[order], return_index=True)
    sums = np.zeros((len(values), classes))
    sums[:, present] = np.add.reduceat(values[:, order], starts, axis=1, dtype=np.float64)
    return sums
