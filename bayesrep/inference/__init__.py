"""From a model to draws: one door, `fit`; its posteriors are written and read again."""

from bayesrep.inference.approximate import distance
from bayesrep.inference.fit import fit
from bayesrep.inference.prior import prior_predictive
from bayesrep.posterior import read_posterior, write_posterior

__all__ = ["distance", "fit", "prior_predictive", "read_posterior", "write_posterior"]
