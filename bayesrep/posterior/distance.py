"""Distances between the adjusted accuracies of two posteriors."""

import numpy as np
import polars as pl

from bayesrep.errors import PosteriorError
from bayesrep.posterior.groups import Posterior, need_group
from bayesrep.types import Float


def distance(reference: Posterior, other: Posterior) -> pl.DataFrame:
    """Compare the adjusted accuracies of two posteriors, classifier by classifier.

    Parameters
    ----------
    reference
        ArviZ object to compare with, as a rule of NUTS; its posterior standard deviations are the
        unit.
    other
        ArviZ object of the same study.

    Returns
    -------
    polars.DataFrame
        Per classifier: `mean_difference` (other minus reference), `sd_ratio` (other over
        reference) and `wasserstein` (1-Wasserstein distance of the marginals; two samples of S
        independent draws of one normal are about 1.1 / √S apart).
    """
    from scipy.stats import wasserstein_distance  # its import takes a while

    ours, theirs = (_by_classifier(one) for one in (reference, other))
    if ours.keys() != theirs.keys():
        raise PosteriorError("posteriors-of-different-classifiers")
    # In units of the reference's sd: classifiers differ in how well they are known.
    rows = [
        {
            "classifier": name,
            "mean_difference": (theirs[name].mean() - draws.mean()) / draws.std(),
            "sd_ratio": theirs[name].std() / draws.std(),
            "wasserstein": float(wasserstein_distance(draws, theirs[name])) / draws.std(),
        }
        for name, draws in ours.items()
    ]
    return pl.DataFrame(rows)


def _by_classifier(posterior: Posterior) -> dict[str, Float[np.ndarray, "draw"]]:
    group = need_group(posterior, "posterior", "adjusted_accuracy")
    draws = np.moveaxis(group["adjusted_accuracy"].values, 2, 0)
    names = (str(name) for name in group["classifier"].values)
    return dict(zip(names, draws.reshape(len(draws), -1), strict=True))
