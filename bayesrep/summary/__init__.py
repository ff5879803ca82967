"""Summaries of a posterior: tables for readers, and estimates that combine classifiers."""

from importlib import import_module
from typing import TYPE_CHECKING

from bayesrep.summary.tables import (
    compare_classifiers,
    rank_classifiers,
    summarize,
    summarize_gaps,
)

if TYPE_CHECKING:
    from bayesrep.summary.covariates import regress_classifiers
    from bayesrep.summary.images import describe_images
    from bayesrep.summary.remeasured import remeasure

__all__ = [
    "compare_classifiers",
    "describe_images",
    "rank_classifiers",
    "regress_classifiers",
    "remeasure",
    "summarize",
    "summarize_gaps",
]

_DEFINED_IN = {
    "describe_images": "images",
    "regress_classifiers": "covariates",
    "remeasure": "remeasured",
}


def __getattr__(name: str) -> object:
    """Load a name from the module that defines it: some import JAX, which takes a second."""
    if name not in _DEFINED_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_DEFINED_IN[name]}"), name)
