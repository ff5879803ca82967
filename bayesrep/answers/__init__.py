"""Answers of single annotators: who said what of which image, and in what context."""

from bayesrep.answers.crowd import CrowdDescription, describe_crowd
from bayesrep.answers.intraclass import intraclass_correlation

__all__ = ["CrowdDescription", "describe_crowd", "intraclass_correlation"]
