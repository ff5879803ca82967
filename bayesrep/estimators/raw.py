"""The raw estimate: no adjustment, the accuracy on the replication as it was measured."""

import numpy as np
from numpy.typing import NDArray

from bayesrep.statistics import SufficientStatistics

__all__ = ["raw"]


def raw(statistics: SufficientStatistics) -> NDArray[np.float64]:
    """Return each classifier's plain accuracy on the replication.

    Parameters
    ----------
    statistics
        A study's sufficient statistics.

    Returns
    -------
    float64 [C]
        The accuracy A_c would equal if the two data sets had the same selection frequencies.
    """
    return statistics.accuracy("replication")
