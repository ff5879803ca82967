"""Checks of a posterior: chains, predictions, priors, agreement and comparison."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayesrep.checks.agreement import check_agreement
    from bayesrep.checks.comparison import compare_fits
    from bayesrep.checks.dependence import dependence_table
    from bayesrep.checks.diagnosis import diagnose

__all__ = ["check_agreement", "compare_fits", "dependence_table", "diagnose"]

_DEFINED_IN = {
    "check_agreement": "agreement",
    "compare_fits": "comparison",
    "dependence_table": "dependence",
    "diagnose": "diagnosis",
}


def __getattr__(name: str) -> object:
    """Load a name from the module that defines it: some import JAX, which takes a second."""
    if name not in _DEFINED_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_DEFINED_IN[name]}"), name)
