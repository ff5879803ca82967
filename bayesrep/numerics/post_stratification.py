"""Post-stratification by class: accuracies if one data set had the other's classes.

With P(h) the reference's share of stratum h, of images selected as often, and δ_gc the mean
residual of classifier c on the replication's images of class g from its accuracy in their strata,

    shift_c  =  Σ_h P(h) Σ_g (P_ref(g | h) − P_rep(g | h)) δ_gc.

Sums over classes are plain: effects shrunk to 0 would leave a third to three quarters of the bias.

Holt, Smith (1979), Post stratification, JRSS A 142. Hampel (1974), JASA 69: influences.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from bayesrep.types import Float, Floats, Int, Ints, Shaped

N_STRATA = 20


class PostStratification(NamedTuple):
    """Shifts of accuracies, and what each image adds to them, to first order."""

    shift: Float[np.ndarray, "classifier"]
    influence: Float[np.ndarray, "image classifier"]  # the reference's images first


def frequency_strata(*frequencies: Floats) -> Int[np.ndarray, "image"]:
    """Number strata of about equal observed frequency from 0, of several data sets' images."""
    frequency = np.concatenate(frequencies)
    values, place = np.unique(frequency, return_inverse=True)
    if len(values) > N_STRATA:
        edges = np.quantile(frequency, np.linspace(0, 1, N_STRATA + 1)[1:-1])
        place = np.unique(np.searchsorted(edges, frequency, side="right"), return_inverse=True)[1]
    return place


def post_stratify(
    stratum: Int[np.ndarray, "image"],
    classes: Int[np.ndarray, "image"],
    right: Shaped[np.ndarray, "replication classifier"],
) -> PostStratification:
    """Compute the shifts and influences; images of the reference come first."""
    size = len(stratum) - len(right)
    strata, kinds = int(stratum.max()) + 1, int(classes.max()) + 1
    answers = np.asarray(right, dtype=float)
    one, other = (
        np.bincount(stratum[part] * kinds + classes[part], minlength=strata * kinds)
        .reshape(strata, kinds)
        .astype(float)
        for part in (slice(size), slice(size, None))
    )
    # Strata are compared that both data sets have.
    common = (one.sum(axis=1) > 0) & (other.sum(axis=1) > 0)
    share = np.where(common, one.sum(axis=1), 0.0)
    share /= share.sum()
    images = np.maximum(other.sum(axis=1), 1)
    of_one = one / np.maximum(one.sum(axis=1), 1)[:, None]
    of_other = other / images[:, None]
    h, g = stratum[size:], classes[size:]
    residual = answers - (_sums(h, answers, strata) / images[:, None])[h]
    count = np.maximum(other.sum(axis=0), 1)
    effect = _sums(g, residual, kinds) / count[:, None]
    difference = share @ (of_one - of_other)

    # Reference: its strata's shares, and its classes' within them.
    at, mean_effect = stratum[:size], of_other @ effect
    of_reference = np.where(
        common[at, None], effect[classes[:size]] - mean_effect[at] - difference @ effect, 0.0
    )
    # Replication: its classes' shares, their mean residuals, and the strata's accuracies.
    per_image = difference / count
    of_replication = (
        (share / images)[h, None] * (mean_effect[h] - effect[g])
        + per_image[g, None] * (residual - effect[g])
        - residual * ((other @ per_image) / images)[h, None]
    )
    influence = np.concatenate([of_reference / common[at].sum(), of_replication])
    # The product of both errors, of shares and of effects, is in the squares twice.
    spread = of_one * (1 - of_one) / np.maximum(one.sum(axis=1), 1)[:, None]
    spread = np.square(share) @ (spread + of_other * (1 - of_other) / images[:, None])
    product = (spread / count).sum() * np.square(residual).mean(axis=0)
    total = np.square(influence).sum(axis=0)
    influence *= np.sqrt(np.clip(1 - product / np.maximum(total, 1e-300), 0.25, 1))
    return PostStratification(difference @ effect, influence)


def _sums(index: Ints, values: Floats, size: int) -> Float[np.ndarray, "{size} classifier"]:
    rows = np.arange(len(index))
    return csr_array((np.ones(len(index)), (index, rows)), shape=(size, len(index))) @ values
