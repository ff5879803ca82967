"""How a replication is made: planning it, choosing its images, and the bias that is left."""

from bayesrep.lab.batches import Purchase, next_batch
from bayesrep.lab.designs import Law, Limits, Option, Prices
from bayesrep.lab.matching import (
    METHODS,
    Chosen,
    Matching,
    match_images,
    next_answers,
    remaining_gap,
)
from bayesrep.lab.outcomes import Outcome
from bayesrep.lab.pipeline import explore
from bayesrep.lab.planning import Plan, plan
from bayesrep.lab.rematching import Rematched, rematch
from bayesrep.lab.worlds import Design, leniency_of, published_world, worlds_of

__all__ = [
    "METHODS",
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
    "explore",
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
