"""How long chains run, and how carefully."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bayesrep.numerics.convergence import divide_chains

BLOCK = 25
MIN_CHAINS_NESTED = 32
"""Chains from which on they begin in groups."""


@dataclass(frozen=True)
class Schedule:
    """How long to run and how carefully; the warm-up is whole blocks.

    Chosen so that R-hat <= 1.01 holds for every parameter, without divergences (docs/model.md).
    `thinning` transitions are made for a kept draw. The last three are NUTS's, by NumPyro's names.
    """

    chains: int
    warmup: int
    draws: int
    thinning: int = 2
    target_accept: float = 0.9
    max_tree_depth: int = 10
    dense_mass: bool = False

    @property
    def superchains(self) -> int:
        """How many groups of chains begin at one point each; 0 where every chain has its own.

        Many chains are too short to be compared one by one; groups that forget where they began
        tell that all do (Margossian and others 2024).
        """
        return 8 if self.chains >= MIN_CHAINS_NESTED else 0

    def keys(self, key: Array) -> Array:
        """Two keys [chain, 2] for each chain: of where it begins, and of all else."""
        own = jax.random.split(key, self.chains)
        groups = divide_chains(self.chains, self.superchains or self.chains)
        first = np.concatenate([np.full(len(group), group[0]) for group in groups])
        return jnp.stack([own[first], own], axis=1)

    def for_hard_posterior(self, components: int) -> "Schedule":
        """The same for posteriors that are far from normal.

        Those of few classifiers are, and of three components and more, whose weights mix slowly.
        """
        return replace(self, thinning=max(self.thinning, components**2 // 2), dense_mass=True)

    def lengthen(self, times: int) -> "Schedule":
        """The same for chains that did not agree: as many draws, further apart.

        The warm-up is four times as long at most.
        """
        if times == 1:
            return self
        warmup = self.warmup * min(times, 4)
        return replace(self, warmup=warmup, thinning=self.thinning * times, dense_mass=True)
