"""pass@k without a model, where every item has at least k attempts.

Chen et al. (2021), "Evaluating large language models trained on code", equation 1: of an item with
c of n attempts right,

    1 − C(n − c, k) / C(n, k)

is unbiased for 1 − (1 − s)^k, being the share of all choices of k of its attempts with one right.
Its mean over items is unbiased for pass@k, of these items and of the population that they are drawn
from alike; the two differ in their errors.
"""

import numpy as np

from bayesrep.numerics.binomial import log_binomial
from bayesrep.types import Float, Int


def item_passes(
    solved: Int[np.ndarray, "item"], attempts: Int[np.ndarray, "item"], k: int
) -> Float[np.ndarray, "item"]:
    """The estimate of each item, none of which has fewer than k attempts."""
    return 1 - np.exp(log_binomial(attempts - solved, k) - log_binomial(attempts, k))


def item_variances(
    solved: Int[np.ndarray, "item"], attempts: Int[np.ndarray, "item"], k: int
) -> Float[np.ndarray, "item"]:
    """Unbiased estimates of each estimate's variance over attempts at this very item.

    Its square less an unbiased estimate of (1 − s)^{2k}: no item may have fewer than 2k attempts.
    """
    failed = 1 - item_passes(solved, attempts, k)
    return np.square(failed) - (1 - item_passes(solved, attempts, 2 * k))
