"""Accuracy curves in Bernstein form and the smooth basis for their coefficients.

g(s) = Σ_j c_j C(d, j) s^j (1 − s)^(d−j) with c_j = σ(η_j): show the image to d further virtual
annotators; if j of them select it, the classifier is right with probability c_j.
"""

import numpy as np

from bayesrep.numerics.binomial import log_binomial
from bayesrep.types import Float


def bernstein_basis(
    s: Float[np.ndarray, "frequency"], degree: int
) -> Float[np.ndarray, "frequency {degree}+1"]:
    """Compute the d + 1 Bernstein polynomials of degree d at points s in [0, 1]; rows sum to 1."""
    j = np.arange(degree + 1)
    return np.exp(log_binomial(degree, j)) * s[:, None] ** j * (1 - s[:, None]) ** (degree - j)


def smooth_basis(degree: int, size: int) -> Float[np.ndarray, "{degree}+1 {size}"]:
    """Build the Legendre polynomials P_r(2 x − 1) at x_j = j/d, from smooth to wiggly."""
    points = np.linspace(-1.0, 1.0, degree + 1)
    return np.polynomial.legendre.legvander(points, size - 1).astype(np.float64)
