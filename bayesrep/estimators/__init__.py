"""Point estimators of the adjusted accuracy, and tables that compare them."""

from bayesrep.errors import IdentificationWarning, InterpolationWarning
from bayesrep.estimators.analysis import Analysis, analyse
from bayesrep.estimators.em_spline import EMSpline
from bayesrep.estimators.estimator import Estimates, Estimator
from bayesrep.estimators.jackknife import Jackknife
from bayesrep.estimators.methods import ESTIMATORS, METHODS
from bayesrep.estimators.naive import Naive
from bayesrep.estimators.raw import Raw
from bayesrep.estimators.tables import (
    classifier_table,
    estimate,
    estimate_gaps,
    gap_table,
    matching_facts,
    matching_sentences,
)

__all__ = [
    "ESTIMATORS",
    "METHODS",
    "Analysis",
    "EMSpline",
    "Estimates",
    "Estimator",
    "IdentificationWarning",
    "InterpolationWarning",
    "Jackknife",
    "Naive",
    "Raw",
    "analyse",
    "classifier_table",
    "estimate",
    "estimate_gaps",
    "gap_table",
    "matching_facts",
    "matching_sentences",
]
