"""What a posterior is: its groups, its file, its verdict; it knows no sampler."""

from bayesrep.posterior.files import open_posterior, read_posterior, write_posterior

__all__ = ["open_posterior", "read_posterior", "write_posterior"]
