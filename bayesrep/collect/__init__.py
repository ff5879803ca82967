"""Asking people which images show what: candidates, tasks, forms, and their answers back."""

from bayesrep.collect.candidates import candidate_labels
from bayesrep.collect.grids import Design, plan_grids
from bayesrep.collect.reading import Answered, read_assignments

__all__ = ["Answered", "Design", "candidate_labels", "plan_grids", "read_assignments"]
