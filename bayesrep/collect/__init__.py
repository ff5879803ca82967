"""Asking people what images show: candidate labels, tasks, forms, and what the answers say."""

from bayesrep.collect.candidates import candidate_labels
from bayesrep.collect.classify import plan_classify
from bayesrep.collect.collection import Collection, read_collection, write_collection
from bayesrep.collect.grids import GridDesign, plan_grids
from bayesrep.collect.labels import Shortlist, shortlist
from bayesrep.collect.objects import aggregate
from bayesrep.collect.reading import Answered, match_assignments

__all__ = [
    "Answered",
    "Collection",
    "GridDesign",
    "Shortlist",
    "aggregate",
    "match_assignments",
    "candidate_labels",
    "plan_classify",
    "plan_grids",
    "read_collection",
    "shortlist",
    "write_collection",
]
