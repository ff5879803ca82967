"""From a model to draws: one door, :func:`fit`."""

from bayesrep.inference.fit import fit
from bayesrep.inference.posterior import read_posterior, write_posterior

__all__ = ["fit", "read_posterior", "write_posterior"]
