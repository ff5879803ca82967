"""Whether to believe a posterior: chains, predictions, priors, agreement and comparison."""

from bayesrep.checks.agreement import check_agreement
from bayesrep.checks.comparison import compare_fits
from bayesrep.checks.dependence import dependence_band
from bayesrep.checks.diagnosis import diagnose

__all__ = ["check_agreement", "compare_fits", "dependence_band", "diagnose"]
