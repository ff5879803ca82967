"""Binomial coefficients on the host, without JAX."""

import math

import numpy as np

from bayesrep.types import Float, Ints, Shaped

MOST_VALUES = 1000  # of percentages, and of what costs no time
MOST_MULTIPLES = 300  # of a divisor, which are looked at for many n
Count = Shaped[np.ndarray, "..."] | int


def log_binomial(n: Count, k: Count) -> Float[np.ndarray, "..."]:
    """log C(n, k), elementwise, from exact cumulative sums of logarithms; −∞ where k > n."""
    n, k = np.broadcast_arrays(np.asarray(n, dtype=np.int64), np.asarray(k, dtype=np.int64))
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n.max(initial=0) + 1)))])
    rest, chosen = np.maximum(n - k, 0), np.minimum(k, n)
    choices = log_factorial[n] - log_factorial[chosen] - log_factorial[rest]
    return np.where(k > n, -np.inf, choices)


def bound_few_values(shown: int, values: Ints, images: Ints) -> float:
    """Bound, as a logarithm, on how likely counts are to take as few values as these.

    `values` [V] are those of k that occur among images shown to n, increasing, and `images` [V] the
    images with each. Of k ~ Binomial(n, s), with any distribution of s and cut to any window, one
    in lo < k < hi is in a set S with a probability of at most

        c(S) = max over s of P(k in S | s) / P(lo < k < hi | s),

    and all M are with c(S)^M. There are fewer than (n + 1)³ windows and divisors d, with one set of
    d's multiples each, or windows and sizes V, with C(hi - lo - 1, V) sets each: with all looked
    for, a bound is below α with a probability of at most α. Up to two values at each end are passed
    over, since somebody may have mistyped them.
    """
    least = 0.0
    for end in range(min(3, len(values) // 2)):
        low, high = int(values[end]), int(values[-1 - end])
        k, many = (each[end + 1 : len(values) - 1 - end] for each in (values, images))
        if not 0 < len(k) <= MOST_VALUES:
            continue
        size, width, looked = int(many.sum()), high - low - 1, 3 * math.log(shown + 1)
        # Multiples of a divisor are one set of their own; any others are of those of their size.
        step = int(np.gcd.reduce(k))
        first, last = low // step + 1, (high - 1) // step
        if last - first < MOST_VALUES and first * step > low + 1 and last * step < high - 1:
            k = np.arange(first, last + 1) * step
        else:
            looked += math.log(math.comb(width, len(k)))
        # c(S) is 1 where S holds an end of the window, and V / width at least, as for uniform s.
        ends = k[0] == low + 1 or k[-1] == high - 1
        if ends or size * math.log(len(k) / width) + looked >= least:
            continue
        least = min(least, size * _log_share(shown, k, low, high) + looked)
    return least


def bound_common_divisor(selected: Ints, shown: Ints) -> float:
    """Bound, as a logarithm, on how likely counts are to have a divisor d > 1 in common with n.

    Images [N] may be shown to any numbers n. Given the images of the least and the greatest k / n,
    a and b, every other k is Binomial(n, s) cut to a n < k < b n, with a divisor d of all n, and
    hence of any k that is 0 or n. With any distributions of s all k are multiples of d with

        Π_x max over s of P(d divides k | s, a n_x < k < b n_x)

    at most: 1 where the least or greatest such k is one. There are fewer than gcd(n) divisors.
    Windows of more than `MOST_MULTIPLES` multiples count as 1, and images shown to fewest first:
    of any more than a bound of e^-100 takes nothing is asked.
    """
    divisor = int(np.gcd.reduce(np.concatenate([selected, shown])))
    if divisor < 2:
        return 0.0
    share = selected / shown
    ends = [int(np.argmin(share)), int(np.argmax(share))]
    inside = (share > share[ends[0]]) & (share < share[ends[1]])
    (lowest, most), (fewest, total) = selected[ends].tolist(), shown[ends].tolist()
    sizes, images = np.unique(shown[inside], return_counts=True)
    bound = math.log(np.gcd.reduce(shown))
    for n, many in zip(sizes.tolist(), images.tolist(), strict=True):
        low, high = n * lowest // fewest, -(-n * most // total)
        k = np.arange(low // divisor + 1, (high - 1) // divisor + 1) * divisor
        if 0 < len(k) <= MOST_MULTIPLES and k[0] > low + 1 and k[-1] < high - 1:
            bound += many * _log_share(n, k, low, high)
        if bound < -100:
            break
    return bound


def _log_share(shown: int, k: Ints, low: int, high: int) -> float:
    """log max over s of P(k | s) / P(low < k < high | s), k [V] increasing and within."""
    from scipy.special import bdtr, gammaln  # which reading a study does without otherwise

    # Nine points from each value to the next find every maximum, which lies near a value.
    points = np.concatenate([[low], k, [high]])
    s = np.unique(np.linspace(points[:-1], points[1:], 9))[1:-1, None] / shown
    choices = gammaln(shown + 1) - gammaln(k + 1) - gammaln(shown - k + 1)
    among = np.exp(choices + k * np.log(s) + (shown - k) * np.log1p(-s)).sum(axis=1)
    window = (bdtr(high - 1, shown, s) - bdtr(low, shown, s))[:, 0]
    return math.log((among / window).max())
