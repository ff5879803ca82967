"""How a replication is made: choosing its images, and the bias that each way of it leaves."""

from bayesrep.lab.matching import METHODS, Chosen, Matching, left_with, match_images, next_answers

__all__ = ["METHODS", "Chosen", "Matching", "left_with", "match_images", "next_answers"]
