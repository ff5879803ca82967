"""Numbers that several modules of numerics share."""

SMALLEST_POSITIVE = 1e-300  # lower limit before a logarithm or a division
