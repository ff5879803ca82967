"""Answers of single annotators: who said what of which image, and in what context."""

from bayesrep.answers.crowd import CrowdDescription, describe_crowd
from bayesrep.answers.intraclass import intraclass_correlation
from bayesrep.answers.quality import clean_answers

__all__ = ["CrowdDescription", "clean_answers", "describe_crowd", "intraclass_correlation"]
