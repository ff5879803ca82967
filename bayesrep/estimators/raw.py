"""The raw estimator: the accuracy on the replication as measured, without adjustment."""

from dataclasses import dataclass
from typing import ClassVar

from bayesrep.estimators.estimator import Estimates, Estimator
from bayesrep.estimators.replicates import Replicates


@dataclass(frozen=True)
class Raw(Estimator):
    """Plain accuracy of each classifier on the replication.

    A_c would equal it if the two data sets had the same selection frequencies.
    """

    name: ClassVar[str] = "raw"
    is_measured: ClassVar[bool] = True

    def __call__(
        self, replicates: Replicates, *, seed: int = 0, progress: bool = False
    ) -> Estimates:
        """Return the accuracy on the replication, of every version."""
        return Estimates(replicates.replication.accuracy())
