"""Sampling variability over images, not annotators: of mean frequencies and of accuracies.

Engstrom et al. (2020) give mean selection frequencies with bootstrap intervals (section 3, figure
4) and leave the *finite-sample* term A_D2 − A_S2 out of the drop's parts (section 4.2).
"""

import numpy as np
import polars as pl

from bayesrep import bounds
from bayesrep.errors import OptionError, StudyError
from bayesrep.numerics.estimands import INTERVAL, Z_975
from bayesrep.studies.study import Study

N_REPLICATES = 1000


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
