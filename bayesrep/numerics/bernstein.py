"""Accuracy curves in Bernstein form and the smooth basis for their coefficients.

g(s) = Σ_j c_j C(d, j) s^j (1 − s)^(d−j) with c_j = σ(η_j): show the image to d further virtual
annotators; if j of them select it, the classifier is right with probability c_j.
"""

import numpy as np
from numpy.typing import NDArray

from bayesrep.numerics.beta_binomial import log_binomial


def bernstein_basis(s: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """The Bernstein polynomials of one degree at points ``s`` [S] in [0, 1].

    Returns
    -------
    float64 [S, degree + 1]
        Rows sum to 1.
    """
    j = np.arange(degree + 1)
    s = np.asarray(s, dtype=np.float64)[:, None]
    return np.exp(log_binomial(degree, j)) * s**j * (1 - s) ** (degree - j)


def smooth_basis(degree: int, size: int) -> NDArray[np.float64]:
    """Columns from smooth to wiggly on the points x_j = j/d: 1, then Legendre polynomials.

    Parameters
    ----------
    degree
        d; there are d + 1 points.
    size
        Number of columns.

    Returns
    -------
    float64 [degree + 1, size]
        Column r is the Legendre polynomial P_r(2 x − 1): 1 in size at both ends.
    """
    points = np.linspace(-1.0, 1.0, degree + 1)
    return np.polynomial.legendre.legvander(points, size - 1).astype(np.float64)
