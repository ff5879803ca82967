"""Bias of matching on noisy counts: the distribution of s among the matched images.

Images of a pool with density p(s) are chosen such that their counts k of n are distributed as the
reference's. With P₁(k) the reference's masses and q_k(s) ∝ p(s) s^k (1 − s)^(n − k) the pool's
density given a count, what is chosen has the density

    p₂(s)  =  Σ_k P₁(k) q_k(s)      (Engstrom et al., 2020, section 2: rejection sampling)

which for mixtures of betas is one too: q_k has the components Beta(a + k, b + n − k). For single
betas (equation 1) the mean is pulled to the pool's by (α + β) / (n + α + β), α and β the pool's.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import betaln, logsumexp, xlog1py, xlogy

from bayesrep.numerics.binomial import log_binomial
from bayesrep.types import Float

Components: TypeAlias = Float[np.ndarray, "count component"]


class BetaMixture(NamedTuple):
    """A mixture of betas over the selection frequency."""

    a: Float[np.ndarray, "component"]
    b: Float[np.ndarray, "component"]
    weights: Float[np.ndarray, "component"]

    @property
    def mean(self) -> float:
        """Return E[s]."""
        return float(self.weights @ (self.a / (self.a + self.b)))

    def density(self, s: Float[np.ndarray, "frequency"]) -> Float[np.ndarray, "frequency"]:
        """Evaluate the density p(s)."""
        points = s[:, None]
        logs = xlogy(self.a - 1, points) + xlog1py(self.b - 1, -points) - betaln(self.a, self.b)
        return np.exp(logs) @ self.weights

    def masses(self, n: int) -> Float[np.ndarray, "{n}+1"]:
        """Compute the masses P(k of n), k = 0..n."""
        return np.exp(logsumexp(self._log_joint(n), axis=1))

    def condition_on_counts(self, n: int) -> tuple[Components, Components, Components]:
        """Compute a, b and weights of p(s | k of n), k = 0..n."""
        joint, k = self._log_joint(n), np.arange(n + 1.0)[:, None]
        weights = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        return self.a + k, self.b + n - k, weights

    def _log_joint(self, n: int) -> Float[np.ndarray, "{n}+1 component"]:
        """Compute log w_j P(k of n | component j)."""
        k = np.arange(n + 1)[:, None]
        mass = log_binomial(n, k) + betaln(self.a + k, self.b + n - k) - betaln(self.a, self.b)
        with np.errstate(divide="ignore"):
            return mass + np.log(self.weights)


def replication_mixture(reference: BetaMixture, pool: BetaMixture, n: int) -> BetaMixture:
    """Compute p₂(s) of images matched on n answers each; with n = 0 it is the pool's."""
    a, b, conditional = pool.condition_on_counts(n)
    weights = reference.masses(n)[:, None] * conditional
    return BetaMixture(a.ravel(), b.ravel(), weights.ravel())
