"""Parameters of beta mixtures as arrays, and the limits of a component."""

from typing import Any, NamedTuple

MEAN_LIMITS, CONCENTRATION_LIMITS = (1e-8, 1 - 1e-8), (1e-2, 1e5)
"""Limits of a / (a + b) and of a + b. The likelihood stays finite where a component shrinks to a
point, inside or at an end; the limits keep its parameters finite too. At a + b = 1e5 a
beta-binomial of 40 is a binomial."""


class Betas(NamedTuple):
    """Parameters of mixtures, on the device or on the host; every field is [..., K]."""

    a: Any
    b: Any
    weights: Any


class LogBetas(NamedTuple):
    """Log parameters of mixtures, in which they are fitted."""

    log_a: Any
    log_b: Any
    log_weights: Any
