"""Posteriors: their groups, files and verdicts, whatever sampler made them."""

from bayesrep.posterior.files import read_posterior, read_tree, write_posterior

__all__ = ["read_tree", "read_posterior", "write_posterior"]
