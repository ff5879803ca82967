"""Cubic splines on [0, 1] for accuracy curves, in two bases of one space.

The truncated-power basis 1, s, s², s³, (s − t)³₊ is that of Engstrom et al. (2020), equation 8
(s: selection frequency; t: interior knot). The B-spline basis spans the same functions, is well
conditioned, and its coefficients bound the curve: where all lie in [l, u], so does g(s).
"""

import numpy as np
from scipy.interpolate import BSpline

from bayesrep.types import Float

Points = Float[np.ndarray, "frequency"]
Basis = Float[np.ndarray, "frequency 7"]

KNOTS = (0.5, 0.7, 0.9)  # interior knots of the published curves (the released code's default)
N_COEFFICIENTS = 4 + len(KNOTS)  # coefficients of a curve


def truncated_power_basis(s: Points) -> Basis:
    """Evaluate the basis 1, s, s², s³ and (s − t)³₊, one function for every knot t."""
    powers = [s**power for power in range(4)]
    return np.stack([*powers, *(np.maximum(s - knot, 0) ** 3 for knot in KNOTS)], axis=-1)


def bspline_basis(s: Points) -> Basis:
    """Evaluate the cubic B-splines on the same knots; rows sum to 1."""
    knots = np.concatenate([np.zeros(4), KNOTS, np.ones(4)])
    return BSpline.design_matrix(s, knots, 3).toarray()


def bsplines_in_truncated_powers() -> Float[np.ndarray, "7 7"]:
    """Compute T with B-splines = truncated powers @ T, by which coefficients ω become T ω."""
    points = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0])
    powers, bsplines = truncated_power_basis(points), bspline_basis(points)
    # One step of iterative refinement: the truncated powers are ill conditioned.
    solution = np.linalg.solve(powers, bsplines)
    return solution + np.linalg.solve(powers, bsplines - powers @ solution)
