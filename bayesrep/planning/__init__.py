"""Design of replications: planning, choosing images, and the bias that matching leaves."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayesrep.planning.collection_plan import Plan, plan
    from bayesrep.planning.designs import Law, Limits, Option, Prices
    from bayesrep.planning.matching import (
        Chosen,
        Matching,
        match_images,
        next_answers,
        remaining_gap,
    )
    from bayesrep.planning.matching_methods import MATCHING_METHODS
    from bayesrep.planning.next_purchase import Purchase, next_batch
    from bayesrep.planning.populations import Design, leniency_of, published_world, worlds_of
    from bayesrep.planning.rematching import Rematched, rematch
    from bayesrep.planning.simulate_design import Outcome

__all__ = [
    "MATCHING_METHODS",
    "Chosen",
    "Design",
    "Law",
    "Limits",
    "Matching",
    "Option",
    "Outcome",
    "Plan",
    "Prices",
    "Purchase",
    "Rematched",
    "remaining_gap",
    "leniency_of",
    "match_images",
    "next_answers",
    "next_batch",
    "plan",
    "published_world",
    "rematch",
    "worlds_of",
]

_DEFINED_IN = {
    name: module
    for module, names in {
        "next_purchase": "Purchase next_batch",
        "designs": "Law Limits Option Prices",
        "matching": "Chosen Matching match_images next_answers remaining_gap",
        "matching_methods": "MATCHING_METHODS",
        "simulate_design": "Outcome",
        "collection_plan": "Plan plan",
        "rematching": "Rematched rematch",
        "populations": "Design leniency_of published_world worlds_of",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> object:
    """Load a name from the module that defines it: some import JAX, which takes a second."""
    if name not in _DEFINED_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_DEFINED_IN[name]}"), name)
