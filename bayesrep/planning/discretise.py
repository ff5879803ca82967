"""Densities of selection frequencies as masses on one grid, and what counts say on it."""

import numpy as np

from bayesrep.numerics.noisy_matching import BetaMixture
from bayesrep.types import Float, Floats, Ints

N_MASSES = 400  # masses
S_EDGES = np.sin(0.5 * np.pi * np.linspace(0, 1, N_MASSES + 1)) ** 2  # closer at the ends
S_NODES = (S_EDGES[1:] + S_EDGES[:-1]) / 2  # s at which densities and curves are known


def chance_of_counts(answers: int, careless: float = 0) -> Float[np.ndarray, "count node"]:
    """P(k of n) at `S_NODES`, where a share of the answers is tosses of a coin."""
    from scipy.stats import binom  # takes long to import

    heard = (1 - careless) * S_NODES + careless / 2
    return binom.pmf(np.arange(answers + 1)[:, None], answers, heard)


def masses_of(mixture: BetaMixture) -> Floats:
    """Masses of a mixture between the edges."""
    from scipy.stats import beta  # takes long to import

    below = beta.cdf(S_EDGES[:, None], mixture.a, mixture.b) @ mixture.weights
    mass = np.maximum(np.diff(below), 0)
    return mass / mass.sum()


def given_counts(k: Ints, n: Ints, masses: Floats) -> Floats:
    """q_k(s): masses around `S_NODES` of images of which k of n are known, [cell, node]."""
    logs = k[:, None] * np.log(S_NODES) + (n - k)[:, None] * np.log1p(-S_NODES)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True)) * masses
    return weights / weights.sum(axis=1, keepdims=True)
