"""What a posterior is: its groups, its file, its verdict; it knows no sampler."""

from bayesrep.posterior.files import read_posterior, read_tree, write_posterior

__all__ = ["read_tree", "read_posterior", "write_posterior"]
