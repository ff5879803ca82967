"""From a model to draws: one door, :func:`fit`; and what to think of what comes out."""

from bayesrep.inference.approximate import distance
from bayesrep.inference.comparison import compare
from bayesrep.inference.diagnosis import diagnose
from bayesrep.inference.fit import fit
from bayesrep.inference.posterior import read_posterior, write_posterior
from bayesrep.inference.prior import prior_predictive

__all__ = [
    "compare",
    "diagnose",
    "distance",
    "fit",
    "prior_predictive",
    "read_posterior",
    "write_posterior",
]
