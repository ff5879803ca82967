"""Binomial coefficients on the host, without JAX."""

import math

import numpy as np

from bayesrep.types import Float, Ints, Shaped

MAX_VALUES = 1000  # distinct counts, beyond which no bound is computed
MAX_MULTIPLES = 300  # multiples of a divisor in one window
Count = Shaped[np.ndarray, "..."] | int


def log_binomial(n: Count, k: Count) -> Float[np.ndarray, "..."]:
    """Compute log C(n, k) elementwise from cumulative sums of logarithms; −∞ where k > n."""
    n, k = np.broadcast_arrays(np.asarray(n, dtype=np.int64), np.asarray(k, dtype=np.int64))
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n.max(initial=0) + 1)))])
    rest, chosen = np.maximum(n - k, 0), np.minimum(k, n)
    choices = log_factorial[n] - log_factorial[chosen] - log_factorial[rest]
    return np.where(k > n, -np.inf, choices)


def bound_few_values(n: int, values: Ints, images: Ints) -> float:
    """Bound the log probability that counts of n take as few values [V] as these of `images` [V].

    With any distribution of s, one k in lo < k < hi is in a set S with a probability of at most

        c(S) = max over s of P(k in S | s) / P(lo < k < hi | s),

    and all M images are with c(S)^M. There are fewer than (n + 1)³ windows and divisors d, with one
    set of d's multiples each, or windows and sizes V, with C(hi - lo - 1, V) sets each: a union
    bound. Up to two values at each end are ignored, since they may be typing errors.
    """
    bound = 0.0
    for end in range(min(3, len(values) // 2)):
        low, high = int(values[end]), int(values[-1 - end])
        k, counted = (each[end + 1 : len(values) - 1 - end] for each in (values, images))
        if not 0 < len(k) <= MAX_VALUES:
            continue
        size, width, log_sets = int(counted.sum()), high - low - 1, 3 * math.log(n + 1)
        # Multiples of one divisor are a single set; otherwise all sets of this size count.
        step = int(np.gcd.reduce(k))
        first, last = low // step + 1, (high - 1) // step
        if last - first < MAX_VALUES and first * step > low + 1 and last * step < high - 1:
            k = np.arange(first, last + 1) * step
        else:
            log_sets += math.log(math.comb(width, len(k)))
        # c(S) is 1 where S holds an end of the window, and at least V / width, as for uniform s.
        ends = k[0] == low + 1 or k[-1] == high - 1
        if ends or size * math.log(len(k) / width) + log_sets >= bound:
            continue
        bound = min(bound, size * _log_share(n, k, low, high) + log_sets)
    return bound


def bound_common_divisor(selected: Ints, n_annotators: Ints) -> float:
    """Bound the log probability that all counts share a divisor d > 1 with n, which may differ.

    Given the images of the least and the greatest k / n, a and b, every other k is Binomial(n, s)
    cut to a n < k < b n. With any distributions of s all k are multiples of d with at most

        Π_x max over s of P(d divides k | s, a n_x < k < b n_x).

    There are fewer than gcd(n) divisors. Windows of more than `MAX_MULTIPLES` multiples count as 1.
    """
    divisor = int(np.gcd.reduce(np.concatenate([selected, n_annotators])))
    if divisor < 2:
        return 0.0
    share = selected / n_annotators
    ends = [int(np.argmin(share)), int(np.argmax(share))]
    inside = (share > share[ends[0]]) & (share < share[ends[1]])
    (lowest, most), (fewest, total) = selected[ends].tolist(), n_annotators[ends].tolist()
    sizes, images = np.unique(n_annotators[inside], return_counts=True)
    # Union bound over divisors, times each image's largest probability of a multiple.
    bound = math.log(np.gcd.reduce(n_annotators))
    for n, many in zip(sizes.tolist(), images.tolist(), strict=True):
        low, high = n * lowest // fewest, -(-n * most // total)
        k = np.arange(low // divisor + 1, (high - 1) // divisor + 1) * divisor
        if 0 < len(k) <= MAX_MULTIPLES and k[0] > low + 1 and k[-1] < high - 1:
            bound += many * _log_share(n, k, low, high)
        if bound < -100:
            break
    return bound


def _log_share(n: int, k: Ints, low: int, high: int) -> float:
    """Compute log max over s of P(k | s) / P(low < k < high | s), k [V] increasing and within."""
    from scipy.special import bdtr  # slow to import, and rarely needed

    # Each maximum lies near a value: nine points from one value to the next find it.
    points = np.concatenate([[low], k, [high]])
    s = np.unique(np.linspace(points[:-1], points[1:], 9))[1:-1, None] / n
    log_odds = np.exp(log_binomial(n, k) + k * np.log(s) + (n - k) * np.log1p(-s)).sum(axis=1)
    window = (bdtr(high - 1, n, s) - bdtr(low, n, s))[:, 0]
    return math.log((log_odds / window).max())
