"""Bias-corrected comparison of classifiers on a replicated test set.

A replication test set selected by noisy annotation frequencies is harder than its reference.
bayesrep computes the accuracy each classifier would have on the replication, had its images the
selection frequencies of the reference (Engstrom et al., 2020), with uncertainty.

Importing this package loads none of its numerical dependencies; each public name loads the module
that defines it on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from bayesrep.version import __version__

if TYPE_CHECKING:
    from bayesrep.answers import describe_crowd, intraclass_correlation
    from bayesrep.checks import check_agreement, dependence_table, diagnose
    from bayesrep.errors import (
        BayesrepError,
        ClusterError,
        ConvergenceError,
        ConvergenceWarning,
        OptionError,
        PosteriorError,
        PredictionError,
        PredictionWarning,
        StudyError,
    )
    from bayesrep.estimators import estimate, estimate_gaps
    from bayesrep.estimators.pass_at_k import PassAtK, pass_at_k
    from bayesrep.inference import NumpyroModel, fit, numpyro_model, prior_predictive
    from bayesrep.posterior import read_posterior, write_posterior
    from bayesrep.report.notebook import report
    from bayesrep.report.plots import (
        plot_accuracies,
        plot_curves,
        plot_frequencies,
        plot_gaps,
        plot_pairs,
        plot_ranks,
    )
    from bayesrep.sources.frames import read_frames
    from bayesrep.studies.attempts import Attempts, read_attempts
    from bayesrep.studies.reading import read_study
    from bayesrep.studies.simulate import simulate_study
    from bayesrep.studies.statistics import SufficientStatistics
    from bayesrep.studies.study import Study
    from bayesrep.studies.worker_answers import WorkerAnswers
    from bayesrep.summary import compare_classifiers, rank_classifiers, summarize, summarize_gaps
    from bayesrep.summary.covariates import regress_classifiers
    from bayesrep.summary.images import describe_images
    from bayesrep.summary.remeasured import remeasure
    from bayesrep.sweeps.scheduler import sweep
    from bayesrep.vision import predict


__all__ = [
    "Attempts",
    "BayesrepError",
    "ClusterError",
    "ConvergenceError",
    "ConvergenceWarning",
    "NumpyroModel",
    "OptionError",
    "PassAtK",
    "PosteriorError",
    "PredictionError",
    "PredictionWarning",
    "Study",
    "StudyError",
    "SufficientStatistics",
    "WorkerAnswers",
    "__version__",
    "check_agreement",
    "compare_classifiers",
    "dependence_table",
    "describe_crowd",
    "describe_images",
    "diagnose",
    "estimate",
    "estimate_gaps",
    "fit",
    "intraclass_correlation",
    "numpyro_model",
    "pass_at_k",
    "plot_accuracies",
    "plot_curves",
    "plot_frequencies",
    "plot_gaps",
    "plot_pairs",
    "plot_ranks",
    "predict",
    "prior_predictive",
    "rank_classifiers",
    "read_attempts",
    "read_frames",
    "read_posterior",
    "read_study",
    "regress_classifiers",
    "remeasure",
    "report",
    "simulate_study",
    "summarize",
    "summarize_gaps",
    "sweep",
    "write_posterior",
]

_ROOM_OF = {
    "answers": "describe_crowd intraclass_correlation",
    "checks": "check_agreement dependence_table diagnose",
    "errors": "BayesrepError ClusterError ConvergenceError ConvergenceWarning OptionError "
    "PosteriorError PredictionError PredictionWarning StudyError",
    "estimators": "estimate estimate_gaps",
    "estimators.pass_at_k": "PassAtK pass_at_k",
    "inference": "NumpyroModel fit numpyro_model prior_predictive",
    "posterior": "read_posterior write_posterior",
    "report.notebook": "report",
    "report.plots": "plot_accuracies plot_curves plot_frequencies plot_gaps plot_pairs plot_ranks",
    "sources.frames": "read_frames",
    "studies.simulate": "simulate_study",
    "studies.attempts": "Attempts read_attempts",
    "studies.statistics": "SufficientStatistics",
    "studies.reading": "read_study",
    "studies.study": "Study",
    "studies.worker_answers": "WorkerAnswers",
    "summary": "compare_classifiers rank_classifiers summarize summarize_gaps",
    "summary.covariates": "regress_classifiers",
    "summary.images": "describe_images",
    "summary.remeasured": "remeasure",
    "sweeps.scheduler": "sweep",
    "vision": "predict",
}
_MODULE_OF_NAME = {
    name: f"bayesrep.{room}" for room, names in _ROOM_OF.items() for name in names.split()
}


def __getattr__(name: str) -> object:
    """Load a public name from the module that defines it, once."""
    if name not in _MODULE_OF_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF_NAME[name]), name)
    return globals().setdefault(name, value)  # the room `report` stays, which can be called


def __dir__() -> list[str]:
    return sorted(__all__)
