"""Sampling variability over images, not annotators: means, accuracies, and half of the images.

Engstrom et al. (2020) give mean selection frequencies with bootstrap intervals (section 3, figure
4), leave the *finite-sample* term A_D2 − A_S2 out of the drop's parts (section 4.2), and say that
half the images change the naive estimate negligibly (footnote 12).
"""

import warnings

import numpy as np
import polars as pl

from bayesrep import bounds
from bayesrep.errors import InterpolationWarning, OptionError, StudyError
from bayesrep.estimators.annotator_match import take_annotated, usual_annotators
from bayesrep.estimators.naive import matched_accuracy, thinned_counts
from bayesrep.estimators.replicates import Replicates
from bayesrep.numerics.estimands import INTERVAL, Z_975
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study
from bayesrep.studies.subset_statistics import statistics_on
from bayesrep.studies.validation import REQUIRED_ROLES

N_REPLICATES, N_HALVES = 1000, 20


def mean_frequencies(study: Study, *, bootstrap: int = N_REPLICATES, seed: int = 0) -> pl.DataFrame:
    """Estimate the mean selection frequency of every data set, with its bootstrap over images."""
    if bootstrap < 1:
        raise OptionError("interval-without-replicates", bootstrap=bootstrap)
    bounds.refuse_above("bootstrap", bootstrap, bounds.MAX_BOOTSTRAP)
    rows = []
    for number, (role, data) in enumerate(study.datasets.items()):
        values, images = np.unique(data.selected / data.shown, return_counts=True)
        size = int(images.sum())
        rng = np.random.default_rng([seed, number])
        # Images with equal frequencies are resampled together.
        means = rng.multinomial(size, images / size, size=bootstrap) @ values / size
        mean = float(values @ images / size)
        error = np.sqrt(images @ (values - mean) ** 2 / (size - 1) / size) if size > 1 else None
        low, high = np.quantile(means, INTERVAL)
        rows.append((role, size, mean, float(low), float(high), error))
    names = ["dataset", "images", "mean", "lower", "upper", "standard_error"]
    return pl.DataFrame(rows, names, orient="row")


def finite_sample_gaps(study: Study) -> pl.DataFrame:
    """Estimate the third term of equation 2, A_D2 − A_S2, of every classifier: zero and its error.

    The error of a share of N images, √(A (1 − A) / N); last (null) the mean over classifiers.
    """
    correct = study.replication.correct
    if not correct.shape[1]:
        raise StudyError("study-without-classifier")
    each = correct.mean(axis=0)
    size, means = len(correct), correct.mean(axis=1)
    accuracy = np.append(each, means.mean())
    error = np.append(np.sqrt(each * (1 - each) / size), means.std() / np.sqrt(size))
    return pl.DataFrame(
        {
            "classifier": [*study.classifiers, None],
            "accuracy": accuracy,
            "standard_error": error,
            "lower": -Z_975 * error,
            "upper": Z_975 * error,
        }
    )


def half_the_images(study: Study, *, repeats: int = N_HALVES, seed: int = 0) -> pl.DataFrame:
    """Estimate the naive mean gap from random halves of the images (footnote 12); row 0 is all."""
    if repeats < 1:
        raise OptionError("halves-below-one", repeats=repeats)
    bounds.refuse_above("repeats", repeats, bounds.MAX_BOOTSTRAP)
    sizes = [len(study.datasets[role].images) for role in REQUIRED_ROLES]
    if min(sizes) < 2 or not study.classifiers:
        raise StudyError("halves-without-images-or-classifier")
    observed = SufficientStatistics.of(study)
    # n' of all images, so that halves differ in their images only.
    annotators = usual_annotators(Replicates.from_study(observed))
    rows = [(0, *sizes, _gap(observed, annotators))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InterpolationWarning)  # raised for all images already
        rng = np.random.default_rng(seed)
        for number in range(1, repeats + 1):
            halves = [np.sort(rng.permutation(size)[: -(-size // 2)]) for size in sizes]
            statistics = statistics_on(study, dict(zip(REQUIRED_ROLES, halves, strict=True)))
            rows.append((number, *map(len, halves), _gap(statistics, annotators)))
    names = ["repeat", "reference_images", "replication_images", "gap"]
    table = pl.DataFrame(rows, names, orient="row")
    return table.with_columns(change=pl.col("gap") - pl.col("gap").first())


def _gap(statistics: SufficientStatistics, annotators: int) -> float:
    matched = take_annotated(Replicates.from_study(statistics), annotators)
    adjusted = matched_accuracy(thinned_counts(matched, annotators), statistics.words)[0]
    return float((statistics.accuracy("reference") - adjusted).mean())
