"""Thinning of counts: the distribution of k' of n' annotators drawn from k of n.

    P(k' of n' | k of n) = C(k, k') C(n − k, n' − k') / C(n, n'),

and if k | s is Binomial(n, s) then k' | s is Binomial(n', s): expectations replace simulation.
"""

import numpy as np
from scipy import sparse

from bayesrep.errors import OptionError
from bayesrep.numerics.binomial import log_binomial
from bayesrep.types import Float, Int

Counts = Int[np.ndarray, "cell"]


def check_annotators(annotators: int, n_annotators: Counts) -> None:
    """Raise OptionError unless every image has at least n' = `annotators`, and n' ≥ 1."""
    smallest = int(n_annotators.min())
    if not 1 <= annotators <= smallest:
        raise OptionError("thinned-annotators-out-of-range", annotators=annotators, fewest=smallest)


def thinning_matrix(selected: Counts, n_annotators: Counts, annotators: int) -> sparse.csr_array:
    """Compute P(k' of n' | k of n), sparse; where n = n' a row is exactly 1 at k."""
    check_annotators(annotators, n_annotators)
    k, n = selected[:, None], n_annotators[:, None]
    # k' ranges over the hypergeometric's support.
    first, last = np.maximum(k - (n - annotators), 0), np.minimum(k, annotators)
    reached = first + np.arange(int((last - first).max()) + 1)
    possible = reached <= last
    remaining = np.where(possible, reached, last)
    log_ways = log_binomial(k, remaining) + log_binomial(n - k, annotators - remaining)
    probability = np.exp(log_ways - log_binomial(n, annotators))
    rows = np.concatenate([[0], np.cumsum(possible.sum(axis=1))])
    shape = (len(selected), annotators + 1)
    return sparse.csr_array((probability[possible], remaining[possible], rows), shape=shape)


def thin_correct(
    matrix: sparse.csr_array, correct: Float[np.ndarray, "version cell classifier"]
) -> Float[np.ndarray, "version count classifier"]:
    """Sum the correct images of cells at each thinned count, in expectation."""
    versions, cells, classifiers = correct.shape
    # Sparse products take two axes: versions and classifiers side by side.
    flat = matrix.T @ correct.transpose(1, 0, 2).reshape(cells, -1)
    return flat.reshape(-1, versions, classifiers).transpose(1, 0, 2)
