"""Schedule of chains: their numbers, lengths and settings."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bayesrep.numerics.convergence import divide_chains

BLOCK = 25
MIN_CHAINS_NESTED = 32
"""Fewest chains that start in groups, for nested R-hat."""


@dataclass(frozen=True)
class Schedule:
    """Numbers and lengths of chains, and settings of NUTS; the warm-up is whole blocks."""

    chains: int
    warmup: int
    draws: int
    thinning: int = 2  # transitions for a draw
    # Settings of NUTS, by NumPyro's names.
    target_accept: float = 0.9
    max_tree_depth: int = 10
    dense_mass: bool = False

    @property
    def superchains(self) -> int:
        """Number of groups of chains with a common start; 0 if every chain has its own."""
        # Many chains are too short to be compared one by one; groups that forget their start show
        # that all chains do (Margossian and others 2024).
        return 8 if self.chains >= MIN_CHAINS_NESTED else 0

    def keys(self, key: Array) -> Array:
        """Split two keys [chain, 2] for each chain: of its start, and of all else."""
        own = jax.random.split(key, self.chains)
        groups = divide_chains(self.chains, self.superchains or self.chains)
        first = np.concatenate([np.full(len(group), group[0]) for group in groups])
        return jnp.stack([own[first], own], axis=1)

    def lengthen(self, times: int) -> "Schedule":
        """Lengthen chains that did not converge: as many draws, thinned more."""
        if times == 1:
            return self
        warmup = self.warmup * min(times, 4)
        return replace(self, warmup=warmup, thinning=self.thinning * times, dense_mass=True)
