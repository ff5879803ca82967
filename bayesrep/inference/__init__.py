"""Inference: `fit` draws from a model's posterior, which is written to and read from files."""

from bayesrep.inference.fit import fit
from bayesrep.inference.open_model import NumpyroModel, numpyro_model
from bayesrep.inference.prior import prior_predictive
from bayesrep.posterior import read_posterior, write_posterior
from bayesrep.posterior.distance import distance

__all__ = [
    "NumpyroModel",
    "distance",
    "fit",
    "numpyro_model",
    "prior_predictive",
    "read_posterior",
    "write_posterior",
]
