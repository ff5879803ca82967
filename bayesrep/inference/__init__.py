"""From a model to draws: one door, :func:`fit`; and what to think of what comes out."""

from bayesrep.inference.agreement import check_agreement
from bayesrep.inference.approximate import distance
from bayesrep.inference.comparison import compare
from bayesrep.inference.diagnosis import diagnose
from bayesrep.inference.fit import fit
from bayesrep.inference.images import describe_images
from bayesrep.inference.posterior import read_posterior, write_posterior
from bayesrep.inference.prior import prior_predictive
from bayesrep.inference.together import together

__all__ = [
    "check_agreement",
    "compare",
    "describe_images",
    "diagnose",
    "distance",
    "fit",
    "prior_predictive",
    "read_posterior",
    "together",
    "write_posterior",
]
