"""Answers of single annotators about images, with their contexts."""

from bayesrep.answers.aggregators import aggregate_answers
from bayesrep.answers.counting import Counted, count_answers
from bayesrep.answers.crowd import CrowdDescription, describe_crowd
from bayesrep.answers.intraclass import intraclass_correlation
from bayesrep.answers.quality import clean_answers

__all__ = [
    "Counted",
    "CrowdDescription",
    "aggregate_answers",
    "clean_answers",
    "count_answers",
    "describe_crowd",
    "intraclass_correlation",
]
