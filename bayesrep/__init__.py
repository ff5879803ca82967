"""Bias-corrected comparison of classifiers on a replicated test set.

A replication test set selected by noisy annotation frequencies is harder than its reference.
bayesrep computes the accuracy each classifier would have on the replication, had its images the
selection frequencies of the reference (Engstrom et al., 2020), with uncertainty.

Importing this package loads none of its numerical dependencies; each public name loads the module
that defines it on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayesrep.errors import (
        BayesrepError,
        ConvergenceError,
        ConvergenceWarning,
        OptionError,
        PredictionError,
        PredictionWarning,
        StudyError,
    )
    from bayesrep.estimators import estimate, estimate_gaps
    from bayesrep.inference import check_agreement, describe_images, diagnose, fit, prior_predictive
    from bayesrep.simulate import simulate_study
    from bayesrep.statistics import SufficientStatistics
    from bayesrep.storage import read_study
    from bayesrep.study import Study
    from bayesrep.summary import compare_classifiers, rank_classifiers, summarize, summarize_gaps
    from bayesrep.vision import predict

__version__ = "0.1.0"

__all__ = [
    "BayesrepError",
    "ConvergenceError",
    "ConvergenceWarning",
    "OptionError",
    "PredictionError",
    "PredictionWarning",
    "Study",
    "StudyError",
    "SufficientStatistics",
    "__version__",
    "check_agreement",
    "compare_classifiers",
    "describe_images",
    "diagnose",
    "estimate",
    "estimate_gaps",
    "fit",
    "predict",
    "prior_predictive",
    "rank_classifiers",
    "read_study",
    "simulate_study",
    "summarize",
    "summarize_gaps",
]

_DEFINED_IN = {
    "BayesrepError": "bayesrep.errors",
    "ConvergenceError": "bayesrep.errors",
    "ConvergenceWarning": "bayesrep.errors",
    "OptionError": "bayesrep.errors",
    "PredictionError": "bayesrep.errors",
    "PredictionWarning": "bayesrep.errors",
    "Study": "bayesrep.study",
    "StudyError": "bayesrep.errors",
    "SufficientStatistics": "bayesrep.statistics",
    "check_agreement": "bayesrep.inference",
    "compare_classifiers": "bayesrep.summary",
    "describe_images": "bayesrep.inference",
    "diagnose": "bayesrep.inference",
    "estimate": "bayesrep.estimators",
    "estimate_gaps": "bayesrep.estimators",
    "fit": "bayesrep.inference",
    "predict": "bayesrep.vision",
    "prior_predictive": "bayesrep.inference",
    "rank_classifiers": "bayesrep.summary",
    "read_study": "bayesrep.storage",
    "simulate_study": "bayesrep.simulate",
    "summarize": "bayesrep.summary",
    "summarize_gaps": "bayesrep.summary",
}


def __getattr__(name: str) -> object:
    """Load a public name from the module that defines it, once."""
    if name not in _DEFINED_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_DEFINED_IN[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
