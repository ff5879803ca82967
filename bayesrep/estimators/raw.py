"""The raw estimate: no adjustment, the accuracy on the replication as it was measured."""

from dataclasses import dataclass
from typing import ClassVar

from bayesrep.estimators.estimator import Estimates
from bayesrep.estimators.replicates import Replicates


@dataclass(frozen=True)
class Raw:
    """Each classifier's plain accuracy on the replication.

    A_c would equal it if the two data sets had the same selection frequencies.
    """

    name: ClassVar[str] = "raw"

    def __call__(
        self, replicates: Replicates, *, seed: int = 0, progress: bool = False
    ) -> Estimates:
        """The accuracy on the replication."""
        return Estimates(replicates.replication.accuracy())
