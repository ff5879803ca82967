"""Thinning: what k of n annotators would have said, had only n' of them been asked.

Forget n − n' of an image's n annotators at random. The number k' that remains is hypergeometric,

    P(k' of n' | k of n) = C(k, k') C(n − k, n' − k') / C(n, n'),

and if k | s is Binomial(n, s) then k' | s is Binomial(n', s), whatever n was. So images with
different n become comparable without simulating anything: counts are replaced by expectations.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bayesrep.errors import OptionError

__all__ = ["check_annotators", "thinning_matrix"]


def check_annotators(annotators: int, shown: NDArray[np.int64]) -> None:
    """Raise OptionError unless all images, with n = ``shown``, have n' annotators to keep."""
    smallest = int(shown.min())
    if not 1 <= annotators <= smallest:
        raise OptionError(
            f"annotators is {annotators} but must lie between 1 and {smallest}, the fewest "
            "annotators of any image"
        )


def thinning_matrix(
    selected: NDArray[np.int64], shown: NDArray[np.int64], annotators: int
) -> NDArray[np.float64]:
    """Return the probability of each thinned count for each cell.

    Parameters
    ----------
    selected, shown : int64 [M]
        k of n of each cell.
    annotators
        n', at least 1 and at most the smallest ``shown``.

    Returns
    -------
    float64 [M, n' + 1]
        Rows sum to 1; where n = n' a row is exactly 1 at k and 0 elsewhere.

    Raises
    ------
    OptionError
        Where ``annotators`` is out of range: annotators can be forgotten, not added.
    """
    check_annotators(annotators, shown)
    k, n = selected[:, None], shown[:, None]
    kept = np.arange(annotators + 1)[None, :]
    log_ways = _log_binomial(k, kept) + _log_binomial(n - k, annotators - kept)
    return np.exp(log_ways - _log_binomial(n, np.full_like(n, annotators)))


def _log_binomial(n: NDArray[np.int64], k: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return log C(n, k), minus infinity where k > n."""
    inside = k <= n
    rest = np.where(inside, n - k, 0)
    return np.where(inside, gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(rest + 1.0), -np.inf)
