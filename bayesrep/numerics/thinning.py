"""Thinning: what k of n annotators would have said, had only n' of them been asked.

Forget n − n' of an image's n annotators at random. The number k' that remains is hypergeometric,

    P(k' of n' | k of n) = C(k, k') C(n − k, n' − k') / C(n, n'),

and if k | s is Binomial(n, s) then k' | s is Binomial(n', s), whatever n was. So images with
different n become comparable without simulating anything: counts are replaced by expectations.
"""

import numpy as np
from scipy import sparse

from bayesrep.errors import OptionError
from bayesrep.numerics.binomial import log_binomial
from bayesrep.types import Int

Counts = Int[np.ndarray, "cell"]


def check_annotators(annotators: int, shown: Counts) -> None:
    """Raise OptionError unless all images, with n = `shown`, have n' annotators to keep."""
    smallest = int(shown.min())
    if not 1 <= annotators <= smallest:
        raise OptionError("thinned-annotators-out-of-range", annotators=annotators, fewest=smallest)


def thinning_matrix(selected: Counts, shown: Counts, annotators: int) -> sparse.csr_array:
    """The probability of each thinned count for each cell.

    Parameters
    ----------
    selected, shown
        k of n of each cell.
    annotators
        n', at least 1 and at most the smallest `shown`. Where n = n' a row is exactly 1 at k and 0
        elsewhere.

    Returns
    -------
    float64 [cell, annotators + 1]
        Only what is possible is held: of few that are forgotten few are selected, so that many
        annotators cost no more than few.

    Raises
    ------
    OptionError
        Where `annotators` is out of range: annotators can be forgotten, not added.
    """
    check_annotators(annotators, shown)
    k, n = selected[:, None], shown[:, None]
    first, last = np.maximum(k - (n - annotators), 0), np.minimum(k, annotators)
    reached = first + np.arange(int((last - first).max()) + 1)
    possible = reached <= last
    kept = np.where(possible, reached, last)
    log_ways = log_binomial(k, kept) + log_binomial(n - k, annotators - kept)
    probability = np.exp(log_ways - log_binomial(n, annotators))
    rows = np.concatenate([[0], np.cumsum(possible.sum(axis=1))])
    shape = (len(selected), annotators + 1)
    return sparse.csr_array((probability[possible], kept[possible], rows), shape=shape)
