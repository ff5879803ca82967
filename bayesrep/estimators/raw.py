"""The raw estimate: no adjustment, the accuracy on the replication as it was measured."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bayesrep.estimators.replicates import Replicates

__all__ = ["Raw"]


@dataclass(frozen=True)
class Raw:
    """Each classifier's plain accuracy on the replication.

    A_c would equal it if the two data sets had the same selection frequencies.
    """

    name: ClassVar[str] = "raw"

    def __call__(self, replicates: Replicates, **_: Any) -> NDArray[np.float64]:
        """The accuracy on the replication, [B, C]."""
        return replicates.replication.accuracy()
