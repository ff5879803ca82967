"""Summaries of a posterior: tables for readers, and estimates that combine classifiers."""

from bayesrep.summary.tables import compare_classifiers, rank_classifiers, summarize, summarize_gaps

__all__ = ["compare_classifiers", "rank_classifiers", "summarize", "summarize_gaps"]
