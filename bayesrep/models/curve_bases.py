"""Bases of curves: level, slope and bends at any points, and integrals along the points."""

from collections.abc import Callable
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np

from bayesrep.types import Float

Frequencies: TypeAlias = Float[np.ndarray, "frequency"]
Points: TypeAlias = Float[np.ndarray, "point"]
Bends: TypeAlias = tuple[Float[np.ndarray, "point bend"], Float[np.ndarray, "bend"]]
_LENGTH_SCALE = 0.25
_BOUNDARY = 0.75  # half the length of the interval on which the Hilbert-space basis lives


def integral_matrix(points: Points, s: Frequencies) -> Float[np.ndarray, "frequency point"]:
    """Build centred integrals up to s of functions linear between points: the trapezoid rule."""
    widths = np.gradient(points) if len(points) > 1 else np.ones(1)
    return _integrate_up_to(points, s) - (widths / widths.sum()) @ _integrate_up_to(points, points)


def _integrate_up_to(points: Points, s: Frequencies) -> Float[np.ndarray, "frequency point"]:
    """Build the same integrals from the first point, not centred."""
    steps = np.diff(points)
    done = np.clip(s[:, None] - points[:-1], 0.0, steps)  # of every step
    # ∫ of a line over the first d of a step h:  (d − d² / 2h) left + (d² / 2h) right
    right = done**2 / (2 * np.where(steps > 0, steps, 1.0))
    matrix = np.zeros((len(s), len(points)))
    matrix[:, :-1] += done - right
    matrix[:, 1:] += right
    return matrix


def list_terms(
    name: str, points: Points, terms: int
) -> tuple[Float[np.ndarray, "point term"], Float[np.ndarray, "bend"]]:
    """Evaluate level, slope and bends at points in [0, 1]; returns these and the bends' scale."""
    line = np.column_stack([np.ones_like(points), 2 * points - 1])
    evaluate = CURVE_FAMILIES[name].bends
    assert evaluate is not None  # the Bernstein form has polynomials at its own points
    bends, scale = evaluate(points, terms - 2)
    return np.column_stack([line, bends]), scale


def _splines(points: Points, count: int) -> Bends:
    """Evaluate cubic B-splines, as terms D'(D D')⁻¹ z of which second differences are z."""
    from scipy.interpolate import BSpline  # takes long to import

    size = count + 2
    knots = np.concatenate([np.zeros(3), np.linspace(0, 1, size - 2), np.ones(3)])
    splines = np.asarray(BSpline.design_matrix(points, knots, 3).toarray())
    second = np.diff(np.eye(size), n=2, axis=0)
    bends = splines @ second.T @ np.linalg.inv(second @ second.T)
    return bends, np.full(count, (size - 3.0) ** -1.5)


def _process(points: Points, count: int) -> Bends:
    """Evaluate eigenfunctions and spectral density of Riutort-Mayol et al. (2023), equation 8."""
    frequency = np.pi * np.arange(1, count + 1) / (2 * _BOUNDARY)
    phase = frequency * (points[:, None] - 0.5 + _BOUNDARY)
    density = np.sqrt(2 * np.pi) * _LENGTH_SCALE * np.exp(-0.5 * (_LENGTH_SCALE * frequency) ** 2)
    return np.sin(phase) / np.sqrt(_BOUNDARY), np.sqrt(density)


class CurveFamily(NamedTuple):
    """Bends of a family at any points in [0, 1] with the prior sds over `classifier_bend`."""

    # Smooth, since curves are integrated by quadrature; None where points are numbers of virtual
    # annotators. The population's sds, over `bend`, are four times as wide.
    bends: Callable[[Points, int], Bends] | None
    default_terms: int
    min_terms: int
    max_own_terms: int  # that a classifier has of its own; it shares the others


CURVE_FAMILIES = MappingProxyType(
    {
        "bernstein": CurveFamily(None, 7, 2, 5),
        "spline": CurveFamily(_splines, 9, 4, 9),
        "gp": CurveFamily(_process, 10, 2, 10),
    }
)
"""Families of curves by name: a further one is a line here, for programs are kept by its name."""
