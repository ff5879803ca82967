"""What a posterior says: tables that a person reads, and what combines classifiers."""

from bayesrep.summary.images import describe_images
from bayesrep.summary.remeasured import remeasure
from bayesrep.summary.tables import (
    compare_classifiers,
    joint_draws,
    rank_classifiers,
    summarize,
    summarize_gaps,
)

__all__ = [
    "compare_classifiers",
    "describe_images",
    "joint_draws",
    "rank_classifiers",
    "remeasure",
    "summarize",
    "summarize_gaps",
]
