"""EM + spline as one would write it straight from the paper, with SciPy and cvxpy.

Engstrom et al. (2020), section 5.3 and algorithm 1: every image in every likelihood, one component
after the other, one classifier after the other. Nothing here is slow on purpose: it is vectorised
over images, and the matrix of equation 8 is made once for all classifiers.
"""

from dataclasses import dataclass

import cvxpy
import numpy as np
from numpy.typing import NDArray
from scipy import integrate, optimize, stats

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

KNOTS = (0.5, 0.7, 0.9)
GRID = np.linspace(0, 1, 1000)


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of betas, [K] each, and its log likelihood."""

    a: Floats
    b: Floats
    weights: Floats
    log_likelihood: float

    def density(self, s: Floats) -> Floats:
        """p(s) at points s [S]."""
        return stats.beta.pdf(s[:, None], self.a, self.b) @ self.weights


def fit_mixture(
    selected: Counts, annotators: int, *, components: int, rounds: int, seed: int
) -> Mixture:
    """Algorithm 1 from one random start, over images ``selected`` [N] of ``annotators``."""
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(1, 20, size=components), rng.uniform(1, 5, size=components)
    weights = np.full(components, 1 / components)
    for _ in range(rounds):
        joint = weights * stats.betabinom.pmf(selected[:, None], annotators, a, b)
        members = joint / joint.sum(axis=1, keepdims=True)
        weights = members.mean(axis=0)
        for j in range(components):
            a[j], b[j] = _m_step(selected, annotators, members[:, j], a[j], b[j])
    mass = stats.betabinom.pmf(selected[:, None], annotators, a, b) @ weights
    return Mixture(a, b, weights, float(np.log(mass).sum()))


def _m_step(selected: Counts, annotators: int, members: Floats, a: float, b: float) -> Floats:
    def loss(position: Floats) -> float:
        return -float(members @ stats.betabinom.logpmf(selected, annotators, *np.exp(position)))

    bounds = [(np.log(1e-3), np.log(1e5))] * 2
    start = np.log([a, b])
    return np.exp(optimize.minimize(loss, start, method="L-BFGS-B", bounds=bounds).x)


def basis(s: Floats) -> Floats:
    """1, s, s², s³ and (s − t)³₊ at points s [S], [S, 7]."""
    return np.stack([*(s**p for p in range(4)), *(np.maximum(s - t, 0) ** 3 for t in KNOTS)], 1)


def design(mixture: Mixture, annotators: int) -> Floats:
    """∫ B_j(s) P(k | s) p(s) ds by the published left sum, [n + 1, 7]."""
    density = mixture.density(GRID)
    density[~np.isfinite(density)] = 0
    likelihood = stats.binom.pmf(np.arange(annotators + 1)[:, None], annotators, GRID)
    return (likelihood * density)[:, :-1] @ basis(GRID)[:-1] / len(GRID)


def fit_curve(matrix: Floats, target: Floats) -> Floats:
    """Equation 8 for one classifier: coefficients [7] of the bounded curve."""
    curve = cvxpy.Variable(matrix.shape[1])
    values = basis(GRID) @ curve
    # Shares of a few percent, squared, would lie below the tolerance of the solver.
    loss = cvxpy.Minimize(cvxpy.sum_squares(100 * (matrix @ curve - target)))
    cvxpy.Problem(loss, [values >= 2e-6, values <= 1]).solve(solver="CLARABEL")
    return np.asarray(curve.value)


def adjusted_accuracy(curve: Floats, mixture: Mixture) -> float:
    """∫ g(s) p_ref(s) ds by adaptive quadrature."""

    def integrand(s: float) -> float:
        point = np.array([s])
        return float((basis(point) @ curve)[0] * mixture.density(point)[0])

    return integrate.quad(integrand, 0, 1, points=KNOTS, limit=200)[0]


def curves_and_accuracies(
    reference: Mixture, replication: Mixture, selected: Counts, annotators: int, correct: NDArray
) -> tuple[Floats, Floats]:
    """Curves [C, 7] and adjusted accuracies [C] of the columns of ``correct`` [N, C]."""
    matrix = design(replication, annotators)
    size = annotators + 1
    curves = []
    for column in correct.T:
        target = np.bincount(selected, weights=column, minlength=size) / len(column)
        curves.append(fit_curve(matrix, target))
    adjusted = [adjusted_accuracy(curve, reference) for curve in curves]
    return np.stack(curves), np.array(adjusted)
