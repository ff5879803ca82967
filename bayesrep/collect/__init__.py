"""Labels from people: candidate labels, tasks, forms, and the aggregation of answers."""

from bayesrep.collect.candidates import candidate_labels
from bayesrep.collect.classify_tasks import plan_classify
from bayesrep.collect.collection import Collection, read_collection, write_collection
from bayesrep.collect.contains_tasks import GridDesign, plan_grids
from bayesrep.collect.label_shortlist import Shortlist, shortlist
from bayesrep.collect.object_consensus import aggregate
from bayesrep.collect.responses import Answered, match_assignments

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
