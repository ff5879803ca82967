"""Compare two participants on the same images: McNemar's test and a posterior."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from bayesrep.protocols.intervals import paired_difference
from bayesrep.types import Bools, Floats


def mcnemar(first: ArrayLike, second: ArrayLike) -> Floats:
    """Exact two-sided p-value of McNemar's test that two accuracies are the same.

    Parameters
    ----------
    first, second
        Images that only the first, only the second got right; any shapes that broadcast.

    Returns
    -------
    float64
        P-value for b and c discordant images: twice the chance of at most min(b, c) heads in b + c
        tosses of a coin, at most 1.
    """
    b, c = np.asarray(first), np.asarray(second)
    from scipy.stats import binom  # takes long to import

    return np.minimum(2 * binom.cdf(np.minimum(b, c), b + c, 0.5), 1.0)


def holm(p_values: ArrayLike) -> Floats:
    """Adjust p-values [M] for being many: below a level with at most that probability by chance.

    Holm (1979). A NaN is not a test and stays.
    """
    values = np.asarray(p_values, float)
    order = np.argsort(values)  # NaN last
    count = int(np.isfinite(values).sum())
    adjusted = np.full(values.shape, np.nan)
    steps = values[order[:count]] * np.arange(count, 0, -1)
    adjusted[order[:count]] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def compare_pairs(names: Sequence[str], right: Bools, answered: Bools) -> pl.DataFrame:
    """Compare every two participants on the images that both answered.

    Parameters
    ----------
    names
        Names of the C participants.
    right : bool [C, N]
        Whether an answer is right.
    answered : bool [C, N]
        Whether there is an answer that counts.

    Returns
    -------
    polars.DataFrame
        participant, other, images, both, only_first, only_second, neither (numbers of images),
        difference (of accuracies, its posterior mean), lower, upper (95 %), probability (that
        the first is better), p_value (McNemar's) and p_holm (adjusted for all pairs here; the
        intervals are each for one pair). Null without images.
    """
    # Sums of 0s and 1s are exact in float32 up to 2^24 images.
    hit, counted = (right & answered).astype(np.float32), answered.astype(np.float32)
    first, second = np.triu_indices(len(names), k=1)
    both = (hit @ hit.T)[first, second].astype(np.int64)
    hits = (hit @ counted.T).astype(np.int64)
    images = (counted @ counted.T)[first, second].astype(np.int64)
    b, c = hits[first, second] - both, hits.T[first, second] - both
    neither = images - both - b - c
    none = images == 0
    posterior = paired_difference(b, c, both + neither)
    p_value, *posterior = (np.where(none, np.nan, each) for each in (mcnemar(b, c), *posterior))
    called = np.asarray(names)
    return pl.DataFrame(
        {
            "participant": called[first],
            "other": called[second],
            "images": images,
            "both": both,
            "only_first": b,
            "only_second": c,
            "neither": neither,
            **dict(zip(("difference", "lower", "upper", "probability"), posterior, strict=True)),
            "p_value": p_value,
            "p_holm": holm(p_value),
        }
    ).fill_nan(None)
