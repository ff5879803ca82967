"""`bayesrep models`: compare fits, and mixtures, by what they predict."""
