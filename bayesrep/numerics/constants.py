"""Numbers that several modules of numerics share."""

SMALLEST_POSITIVE = 1e-300
"""Lower limit of probabilities, lengths and variances before a logarithm or a division."""
