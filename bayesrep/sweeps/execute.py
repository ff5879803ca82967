"""One run: its study made, its method applied, and what that came to as plain numbers."""

import inspect
import json
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesrep.errors import BayesrepError, ConvergenceWarning, EstimateWarning, TableWarning, reason
from bayesrep.estimators.analysis import QUANTITIES, analyse
from bayesrep.files.strict_json import replace_non_finite
from bayesrep.inference.fit import fit
from bayesrep.machine import versions
from bayesrep.numerics.estimands import INTERVAL, accuracy_line, bias_corrected_gap
from bayesrep.posterior.fitted import Fitted
from bayesrep.posterior.groups import Posterior, find_group
from bayesrep.posterior.verdict import diagnostics
from bayesrep.progress import Stopwatch
from bayesrep.studies.study import Study
from bayesrep.sweeps.run_spec import SweepRun
from bayesrep.sweeps.studies import keep_answers, study_of, true_accuracies
from bayesrep.types import Floats
from bayesrep.version import __version__

SCORED_QUANTITIES = ("adjusted_accuracy", "bias_corrected_gap")
SHARED_QUANTITIES = ("mean_adjusted_accuracy", "mean_gap", "slope")
"""Quantities of each classifier, and of all together; gaps are from the measured accuracies."""
VERSIONED_PACKAGES = ("jax", "jaxlib", "numpyro", "numpy")
QUIET_WARNINGS = (ConvergenceWarning, EstimateWarning, TableWarning)
"""Warnings whose words are in the run's verdict and advice, or are of the study alone."""

Result = dict[str, Any]  # result of a run: plain numbers and text, which JSON can hold


def result_of(run: SweepRun) -> Result:
    """Do a run; one that is refused or too large for the memory has its error, no estimates.

    Where its posterior is kept, the result has it until both are written (`store.keep_result`).
    """
    watch = Stopwatch("study")
    made_with = {"bayesrep": __version__, **versions(VERSIONED_PACKAGES)}
    result: Result = {"versions": made_with, "error": None}
    try:
        with warnings.catch_warnings():
            for category in QUIET_WARNINGS:
                warnings.simplefilter("ignore", category)
            study = study_of(run.study)
            if run.annotators is not None:
                study = keep_answers(study, run.annotators)
            result |= {
                "fingerprint": study.fingerprint(),
                "images": len(study.reference.images),
                "replication_images": len(study.replication.images),
                "classifiers": len(study.classifiers),
            }
            result |= (_fit if run.fits else _estimate)(run, study, watch)
    except BayesrepError as error:
        result["error"] = reason(error)
    except Exception as error:
        # Memory ran out: Python's, or that of a JAX device.
        if not isinstance(error, MemoryError) and "RESOURCE_EXHAUSTED" not in str(error):
            raise
        result["error"] = f"out of memory: {str(error).partition(chr(10))[0][:200]}"
    result["seconds"] = watch.seconds() | result.pop("of_fit", {})
    return result


def quantities(reference: Floats, adjusted: Floats) -> Floats:
    """The quantities, each classifier's and then all together's, from adjusted accuracies."""
    gaps = bias_corrected_gap(reference, adjusted)
    slope = np.asarray(accuracy_line(reference, adjusted)[0])
    of_all = np.stack([adjusted.mean(axis=-1), gaps.mean(axis=-1), slope], axis=-1)
    return np.concatenate([adjusted, gaps, of_all], axis=-1)


def estimates(study: Study, value: Floats, sd: Floats, lower: Floats, upper: Floats) -> Result:
    """Columns of the table of estimates, of values in the order of `quantities`."""
    names = list(study.classifiers)
    actual, reference = true_accuracies(study), study.reference.correct.mean(axis=0)
    truth = np.full_like(value, np.nan) if actual is None else quantities(reference, actual)
    columns = {"estimate": value, "sd": sd, "lower": lower, "upper": upper, "truth": truth}
    return {
        "quantity": [each for each in SCORED_QUANTITIES for _ in names] + [*SHARED_QUANTITIES],
        "classifier": names * len(SCORED_QUANTITIES) + [None] * len(SHARED_QUANTITIES),
        **{name: replace_non_finite(column.tolist()) for name, column in columns.items()},
    }


def _estimate(run: SweepRun, study: Study, watch: Stopwatch) -> Result:
    watch.stage("estimating")
    settings: dict[str, Any] = dict(run.settings)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", EstimateWarning)
        (analysis,) = analyse(study, [run.method], seed=run.seed or 0, **settings)
    advice = " ".join(dict.fromkeys(str(each.message) for each in caught))
    count = len(study.classifiers)
    adjusted, reference = analysis.values[:count], analysis.statistics.accuracy("reference")
    value = quantities(reference, adjusted)
    ends = np.full((2, len(value)), np.nan)
    ends[:, :count] = analysis.interval[:, :count]
    for place, name in ((-2, "bias_corrected_gap"), (-1, "slope")):
        ends[:, place] = analysis.interval[:, count + QUANTITIES.index(name)]
    estimated = estimates(study, value, np.full_like(value, np.nan), *ends)
    return {"device_kind": "cpu", "advice": advice, "estimates": estimated}


def _fit(run: SweepRun, study: Study, watch: Stopwatch) -> Result:
    cut = run.method == "cut"
    method: Any = "nuts" if cut else run.method
    feedback: Any = "cut" if cut else "full"
    options: dict[str, Any] = dict(run.settings) | dict(run.options)
    watch.stage("fitting")
    posterior = inspect.unwrap(fit)(  # what is only summarized needs no ArviZ
        study, method=method, feedback=feedback, seed=run.seed or 0, progress=False, **options
    )
    watch.stage("summary")
    fitted = Fitted(study, posterior)
    adjusted = fitted.draws_over_crowds.reshape(-1, len(study.classifiers))
    draws = quantities(fitted.statistics.accuracy("reference"), adjusted)
    lower, upper = np.quantile(draws, INTERVAL, axis=0)
    attributes = fitted.group.attrs
    return {
        "fitted_by": attributes["method"],
        "device_kind": attributes["device"],
        "fitted_components": int(fitted.record.options.components),
        "converged": bool(attributes["converged"]),
        "verdict": attributes["verdict"],
        "advice": attributes["advice"],
        "tried": attributes["tried"],
        **convergence(posterior, fitted),
        "estimates": estimates(study, draws.mean(axis=0), draws.std(axis=0, ddof=1), lower, upper),
        "of_fit": json.loads(attributes["seconds"]),
        **({"posterior": posterior} if run.keeps_posterior else {}),
    }


def convergence(posterior: Posterior, fitted: Fitted) -> Mapping[str, float | int | None]:
    """The worst R-hat and effective size of any quantity, divergences, and Pareto's k."""
    attributes = fitted.group.attrs
    if not fitted.record.is_mcmc:
        return {
            "rhat_max": None,
            "ess_min": float(attributes["ess"]),
            "divergences": None,
            "pareto_k": float(attributes["pareto_k"]),
        }
    checks, stats = diagnostics(fitted.group), find_group(posterior, "sample_stats")
    sizes = (*checks.ess_bulk.values(), *checks.ess_tail.values())
    return {
        "rhat_max": _extreme([each.values for each in checks.rhat.values()], np.max),
        "ess_min": _extreme([each.values for each in sizes], np.min),
        "divergences": None if stats is None else int(stats["diverging"].values.sum()),
        "pareto_k": None,
    }


def _extreme(values: list[Any], extreme: Any) -> float | None:
    """The largest or least of finite values; None where there is none."""
    every = np.concatenate([np.ravel(each) for each in values])
    finite = every[np.isfinite(every)]
    return float(extreme(finite)) if finite.size else None
