"""Matched accuracy: a classifier's accuracy on images of both data sets about which it says alike.

The protocol of Anzaku et al. (2022), with a posterior of the matched gap beside the published
averages over runs (`bayesrep.protocols.matching`).
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bayesrep.bounds import refuse_above
from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.progress import progress_bar
from bayesrep.protocols.intervals import (
    independent_difference,
    paired_difference,
    proportion_interval,
)
from bayesrep.protocols.matching import UNMATCHED_NUMBER, match_at_random, neighbours
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.types import Floats, Ints

MATCH_ON = ("label+probability", "probability")  # algorithms 1 and 2
LARGEST_RUNS = 10_000
BIN_EDGES = np.linspace(0, 1, 21)  # of the curves, by confidence


@dataclass(frozen=True, eq=False)
class MatchedAccuracy:
    """Result of `match`.

    Attributes
    ----------
    accuracies
        criterion, classifier, quantity, estimate (the mean over runs), run_sd (standard deviation
        over runs), lower, upper (95 %). The quantities are reference_accuracy,
        replication_accuracy and gap on all images; matched_reference_accuracy,
        matched_replication_accuracy and matched_gap; unmatched_accuracy and fraction_unmatched of
        the smaller data set. Null where there is nothing to average over.
    curves
        criterion, classifier, dataset (its role), subset (all, matched, unmatched), low, high (a
        range of confidence), images (the mean over runs), density, confidence (their mean),
        accuracy, lower, upper (95 %); rows without images are left out. Density is the share of
        the subset's images divided by the width of the range.
    confidence
        classifier, dataset, accuracy, lower, upper, confidence (mean over images),
        confidence_lower, confidence_upper (95 %).
    """

    accuracies: pl.DataFrame
    curves: pl.DataFrame
    confidence: pl.DataFrame


def match(
    reference: Predictions,
    replication: Predictions,
    *,
    epsilon: float = 0.005,
    runs: int = 10,
    seed: int = 0,
    interval: str = "jeffreys",
    progress: bool = True,
) -> MatchedAccuracy:
    """Matched accuracies of every classifier, by both criteria.

    Parameters
    ----------
    reference, replication
        Answers with confidence of the same classifiers on both data sets, from
        `read_predictions`. The larger data set is the source; the reference, where they are
        equally large.
    epsilon
        The largest difference in probability of two images that match; the paper's is 0.005.
    runs
        How many random matchings are averaged over; the paper's number is 10.
    seed
        Seed of the matchings. Those of a classifier depend on the seed and its name alone.
    interval
        Kind of interval of the accuracies: see `proportion_interval`.
    progress
        Show a bar on standard error.

    Returns
    -------
    MatchedAccuracy

    Notes
    -----
    A matched accuracy is the mean of 0s and 1s over pairs, in which images of both data sets
    recur from run to run. Its variance is the sum of those between target images and between
    source images, less that between pairs (Cameron, Gelbach and Miller, 2011, equation 2.11); as
    many independent pairs as would have the same variance are the effective counts from which the
    intervals are made. Of the matched gap, the effective counts of pairs that both, either or
    none got right make the posterior of `paired_difference`. It is therefore
    neither as narrow as the scatter of runs (which use the same images) nor as wide as one
    matching by itself. What is held true is that images are random draws from their populations;
    sizes and epsilon belong to what is estimated. The interval of fraction_unmatched alone speaks
    of other images of the target only, to be matched with the same source.

    Raises
    ------
    StudyError
        Where there are no probabilities, or classifiers or classes differ.
    OptionError
        Where an option is out of range.
    """
    _check(reference, replication, epsilon, runs)
    place = {name: number for number, name in enumerate(replication.classifiers)}
    rows: list[dict[str, Any]] = []
    curves: list[pl.DataFrame] = []
    with progress_bar(len(place), "classifier", show=progress) as bar:
        for number, classifier in enumerate(reference.classifiers):
            pair = _Pair(_judge_one(reference, number), _judge_one(replication, place[classifier]))
            # The seed comes from the classifier's name, so that others do not change its matchings.
            state = np.random.SeedSequence([seed, zlib.crc32(classifier.encode())])
            for criterion, child in zip(MATCH_ON, state.spawn(len(MATCH_ON)), strict=True):
                seeds = child.generate_state(runs, dtype=np.uint64).tolist()
                # Each run matches every image to one of similar confidence, or to none.
                partners = pair.matchings(epsilon, seeds, by_class=criterion == MATCH_ON[0])
                key = {"criterion": criterion, "classifier": classifier}
                rows += [{**key, **row} for row in pair.quantities(partners)]
                columns = [pl.lit(value).alias(name) for name, value in key.items()]
                curves.append(pair.curves(partners).select(*columns, pl.all()))
            bar.advance(1)
    return MatchedAccuracy(
        accuracies=_accuracies(rows, interval),
        curves=_with_interval(pl.concat(curves), interval),
        confidence=pl.concat(
            _confidence(data, role, reference.classifiers, interval)
            for role, data in zip(REQUIRED_ROLES, (reference, replication), strict=True)
        ),
    )


def _check(reference: Predictions, replication: Predictions, epsilon: float, runs: int) -> None:
    for data in (reference, replication):
        if data.confidence is None:
            raise StudyError("matching-needs-probabilities", dataset=data.dataset)
        if not data.answered.all():
            raise StudyError("matching-needs-all-answers", dataset=data.dataset)
    if reference.classes != replication.classes:
        raise StudyError("classes-numbered-differently")
    if missing := sorted(set(reference.classifiers) ^ set(replication.classifiers)):
        both = {"reference": reference.dataset, "replication": replication.dataset}
        names = listing(missing, "classifier")
        raise StudyError("answers-on-one-dataset-only", classifiers=names, **both)
    if not 0 < epsilon <= 1:
        raise OptionError("epsilon-out-of-range", epsilon=epsilon)
    if runs < 1:
        raise OptionError("matching-runs-below-one", runs=runs)
    refuse_above("runs", runs, LARGEST_RUNS)


@dataclass(frozen=True, eq=False)
class _Judged:
    """One classifier on one data set: predicted class, confidence and correctness [N]."""

    label: NDArray[np.integer[Any]]
    confidence: Floats
    right: Floats

    def __len__(self) -> int:
        return len(self.right)


def _judge_one(data: Predictions, number: int) -> _Judged:
    assert data.confidence is not None
    right = data.correct[number].astype(np.float64)
    return _Judged(data.first[number], data.confidence[number], right)


@dataclass(frozen=True, eq=False)
class _Pair:
    """One classifier's answers on both data sets."""

    reference: _Judged
    replication: _Judged

    @property
    def source_first(self) -> bool:
        return len(self.reference) >= len(self.replication)

    @property
    def source(self) -> _Judged:
        return self.reference if self.source_first else self.replication

    @property
    def target(self) -> _Judged:
        return self.replication if self.source_first else self.reference

    def matchings(
        self, epsilon: float, seeds: list[int], *, by_class: bool
    ) -> NDArray[np.integer[Any]]:
        """The source of every target in every run [R, T]."""
        classes = (self.source.label, self.target.label) if by_class else None
        candidates = neighbours(self.source.confidence, self.target.confidence, epsilon, classes)
        return np.stack([match_at_random(*candidates, seed) for seed in seeds])

    def quantities(self, partners: NDArray[np.integer[Any]]) -> Iterator[dict[str, Any]]:
        """Estimates, their scatter over runs, and effective counts to make intervals from."""
        for name, data in zip(REQUIRED_ROLES, (self.reference, self.replication), strict=True):
            yield _share(f"{name}_accuracy", data.right.mean(), 0.0, len(data))
        sums = [(data.right.sum(), len(data)) for data in (self.reference, self.replication)]
        yield {
            "quantity": "gap",
            "estimate": self.reference.right.mean() - self.replication.right.mean(),
            "run_sd": 0.0,
            "independent": [float(count) for each in sums for count in each],
        }
        matched = partners != UNMATCHED_NUMBER
        run, target = np.nonzero(matched)
        source = partners[matched]
        values = self.source.right[source], self.target.right[target]
        first, second = values if self.source_first else values[::-1]
        for name, right in (("reference", first), ("replication", second)):
            size = _effective(right, source, target, run)
            yield _share(f"matched_{name}_accuracy", *_over_runs(right, run, len(partners)), size)
        size = _effective(first - second, source, target, run)
        cells = [np.mean(first > second), np.mean(first < second)] if len(run) else [np.nan] * 2
        mean, scatter = _over_runs(first - second, run, len(partners))
        paired = [float(cell * size) for cell in (*cells, 1 - sum(cells))]
        yield {"quantity": "matched_gap", "estimate": mean, "run_sd": scatter, "paired": paired}
        row, unmatched = np.nonzero(~matched)
        times = np.bincount(unmatched, minlength=len(self.target))
        size = times.sum() ** 2 / np.sum(times**2) if len(unmatched) else 0.0
        right = self.target.right[unmatched]
        yield _share("unmatched_accuracy", *_over_runs(right, row, len(partners)), size)
        share = 1 - matched.mean(axis=1)
        yield _share("fraction_unmatched", share.mean(), _sd(share), len(self.target))

    def curves(self, partners: NDArray[np.integer[Any]]) -> pl.DataFrame:
        """Images, confidence and right answers by range of confidence."""
        matched = partners != UNMATCHED_NUMBER
        used = np.bincount(partners[matched], minlength=len(self.source)) / len(partners)
        shares = used, matched.mean(axis=0)
        if not self.source_first:
            shares = shares[::-1]
        sides = zip(REQUIRED_ROLES, (self.reference, self.replication), shares, strict=True)
        return pl.concat(
            _curve(data, weights).select(
                pl.lit(role).alias("dataset"), pl.lit(subset).alias("subset"), pl.all()
            )
            for role, data, share in sides
            for subset, weights in (
                ("all", np.ones(len(data))),
                ("matched", share),
                ("unmatched", 1 - share),
            )
        )


def _share(quantity: str, estimate: float, scatter: float, size: float) -> dict[str, Any]:
    return {"quantity": quantity, "estimate": estimate, "run_sd": scatter, "size": float(size)}


def _over_runs(values: Floats, run: NDArray[Any], runs: int) -> tuple[float, float]:
    """Mean and standard deviation of the runs' means; NaN where no run has any."""
    counts = np.bincount(run, minlength=runs)
    sums = np.bincount(run, values, minlength=runs)
    means = sums[counts > 0] / counts[counts > 0]
    return (float(means.mean()), _sd(means)) if len(means) else (np.nan, np.nan)


def _sd(values: Floats) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else np.nan


def _effective(values: Floats, source: Any, target: Any, run: Any) -> float:
    """Compute the number of independent pairs with the variance of these, which share images.

    Cameron, Gelbach and Miller (2011), equation 2.11, with clusters of source and target images.
    """
    if not len(values):
        return 0.0
    pairs = len(values) / (run.max() + 1)
    residual = values - values.mean()
    total = np.sum(residual**2)
    if total == 0:
        return float(pairs)
    both = np.unique(target * (source.max() + 1) + source, return_inverse=True)[1]
    between = [np.sum(np.bincount(each, residual) ** 2) for each in (target, source, both)]
    variance = max(between[0] + between[1] - between[2], *between[:2]) / total
    # An image in every run counts once, one pair in all of them at least as much as in one.
    return float(np.clip(len(values) / variance, pairs, len(values)))


def _curve(data: _Judged, weights: Floats) -> pl.DataFrame:
    places = np.searchsorted(BIN_EDGES, data.confidence, side="right") - 1
    number = np.clip(places, 0, len(BIN_EDGES) - 2)
    images, confidence, right = (
        np.bincount(number, weights * values, minlength=len(BIN_EDGES) - 1)
        for values in (np.ones(len(data)), data.confidence, data.right)
    )
    some = images > 1e-9
    images = np.where(some, images, np.nan)
    width = np.diff(BIN_EDGES)
    table = pl.DataFrame(
        {
            "low": BIN_EDGES[:-1],
            "high": BIN_EDGES[1:],
            "images": images,
            "density": images / max(weights.sum(), 1e-300) / width,
            "confidence": confidence / images,
            "accuracy": right / images,
        }
    )
    return table.filter(some)


def _with_interval(table: pl.DataFrame, interval: str) -> pl.DataFrame:
    images = table["images"].to_numpy()
    ends = proportion_interval(table["accuracy"].to_numpy() * images, images, interval)
    return table.with_columns(pl.Series("lower", ends[0]), pl.Series("upper", ends[1]))


def _accuracies(rows: list[dict[str, Any]], interval: str) -> pl.DataFrame:
    """The table of all quantities, each with its kind of interval."""
    lower, upper = np.full((2, len(rows)), np.nan)

    def counts_of(kind: str) -> tuple[Ints, Floats]:
        """Rows with this kind of interval, and what it is made of."""
        numbers = np.array([number for number, row in enumerate(rows) if kind in row])
        return numbers, np.array([rows[number][kind] for number in numbers])

    one, size = counts_of("size")
    right = np.where(size > 0, np.array([rows[number]["estimate"] for number in one]) * size, 0)
    lower[one], upper[one] = proportion_interval(right, size, interval)
    two, counts = counts_of("independent")
    lower[two], upper[two], _ = independent_difference(*counts.T)
    pairs, cells = counts_of("paired")
    some = np.isfinite(cells[:, 0])
    _, lower[pairs[some]], upper[pairs[some]], _ = paired_difference(*cells[some].T)
    names = ("criterion", "classifier", "quantity", "estimate", "run_sd")
    table = pl.DataFrame({name: [row[name] for row in rows] for name in names})
    return table.with_columns(pl.Series("lower", lower), pl.Series("upper", upper)).fill_nan(None)


def _confidence(
    data: Predictions, role: str, classifiers: tuple[str, ...], interval: str
) -> pl.DataFrame:
    assert data.confidence is not None
    order = [data.classifiers.index(name) for name in classifiers]
    right, images = data.correct.sum(axis=1)[order], len(data.images)
    lower, upper = proportion_interval(right, images, interval)
    mean, half = data.confidence.mean(axis=1)[order], np.full(len(order), np.nan)
    if images > 1:
        half = 1.96 * data.confidence.std(axis=1, ddof=1)[order] / np.sqrt(images)
    return pl.DataFrame(
        {
            "classifier": list(classifiers),
            "dataset": role,
            "accuracy": right / images,
            "lower": lower,
            "upper": upper,
            "confidence": mean,
            "confidence_lower": mean - half,
            "confidence_upper": mean + half,
        }
    ).fill_nan(None)
