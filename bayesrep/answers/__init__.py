"""Answers of single annotators: who said what of which image, and in what context."""

from bayesrep.answers.intraclass import intraclass_correlation

__all__ = ["intraclass_correlation"]
