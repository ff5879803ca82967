"""Posterior of one model's mixture of solve rates, and the items' influences on it."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from bayesrep.errors import ConvergenceWarning
from bayesrep.numerics.binomial import log_binomial
from bayesrep.numerics.convergence import convergence
from bayesrep.numerics.solve_rates import N_PARAMETERS, SolveRates, log_counts, rates_from_normal
from bayesrep.numerics.tempering import tempered_draws
from bayesrep.studies.selection import Selection
from bayesrep.types import Float, Floats, Int

N_RUNS = 4  # independent runs of the sampler
_MAX_RUNS_RHAT = 1.05  # above, a warning says that runs do not agree


@dataclass(frozen=True, eq=False)
class RatesPosterior:
    """Draws of the mixture of solve rates, given the distinct counts c of n."""

    rates: SolveRates  # of the sampler's runs, one run after the other
    solved: Int[np.ndarray, "cell"]  # c
    attempts: Int[np.ndarray, "cell"]  # n
    items: Int[np.ndarray, "cell"]  # number of items with each count
    cell: Int[np.ndarray, "item"]  # place among the distinct counts

    @cached_property
    def logs(self) -> Float[np.ndarray, "draw cell"]:
        """Log mass log P(c of n) without C(n, c), of every draw, before selection."""
        return log_counts(self.rates, self.solved, self.attempts)

    def influences(
        self, values: Float[np.ndarray, "draw quantity"]
    ) -> Float[np.ndarray, "item quantity"]:
        """Compute each item's influence on the posterior mean of some quantities.

        The centred posterior covariance with its log likelihood (Giordano and Broderick, 2023, "The
        Bayesian infinitesimal jackknife for variance", equation 7).
        """
        moves = values - values.mean(axis=0)
        log_mass = self.logs - self.logs.mean(axis=0)
        # Items with equal counts have one influence.
        each = (log_mass.T @ moves / len(moves))[self.cell]
        return each - each.mean(axis=0)


def fit_solve_rates(
    solved: Int[np.ndarray, "item"],
    attempts: Int[np.ndarray, "item"],
    *,
    selection: Selection | None = None,
    draws: int = 4_000,
    seed: int = 0,
) -> RatesPosterior:
    """Sample the mixture of one model's solve rates, before selection, from c of n of each item."""
    # Items with equal counts share one term of the likelihood.
    pairs, cell, items = np.unique(
        np.stack([solved, attempts], axis=1), axis=0, return_inverse=True, return_counts=True
    )
    c, n = pairs[:, 0], pairs[:, 1]

    # Where a rule chose the items, each term is divided by the chance of passing it.
    n_distinct = np.unique(n)
    items_by_n = np.array([items[n == size].sum() for size in n_distinct], dtype=float)

    def log_likelihood(z: Floats) -> Floats:
        rates = rates_from_normal(z)
        logs = log_counts(rates, c, n) @ items.astype(float)
        if selection is None:
            return logs
        return logs - log_pass_probability(rates, selection, n_distinct) @ items_by_n

    # Independent runs, so that their agreement can be checked.
    size = -(-draws // N_RUNS)
    runs = [
        tempered_draws(log_likelihood, N_PARAMETERS, size, np.random.default_rng([seed, run]))
        for run in range(N_RUNS)
    ]
    return RatesPosterior(rates_from_normal(np.concatenate(runs)), c, n, items, cell.reshape(-1))


def log_pass_probability(
    rates: SolveRates, selection: Selection, n_annotators: Int[np.ndarray, "size"]
) -> Float[np.ndarray, "draw size"]:
    """Compute log P(pass | n) = log Σ_c a(c, n) C(n, c) f(c, n) for every n."""
    log_probability = np.empty((len(rates.at_zero), len(n_annotators)))
    for place, n in enumerate(n_annotators.tolist()):
        counts = np.arange(n + 1)
        pass_probability = selection.probability(counts, np.full(n + 1, n))
        possible = pass_probability > 0
        logs = log_counts(rates, counts[possible], np.full(possible.sum(), n))
        # The sum over counts that may pass, on the log scale.
        log_probability[:, place] = logsumexp(
            logs + np.log(pass_probability[possible]) + log_binomial(n, counts[possible]), axis=1
        )
    return log_probability


def check_runs(values: Float[np.ndarray, "draw quantity"], names: Sequence[str]) -> None:
    """Warn where the runs that made the draws disagree on a quantity: of the largest R-hat."""
    # Runs in place of chains: R-hat compares their means and spreads.
    rhat = convergence(values.reshape(N_RUNS, -1, values.shape[1])).rhat
    if np.nanmax(rhat, initial=0.0) > _MAX_RUNS_RHAT:
        text = (
            f"{names[int(np.nanargmax(rhat))]}: runs of the sampler do not agree (R-hat "
            f"{np.nanmax(rhat):.2f}); ask for more draws"
        )
        warnings.warn(ConvergenceWarning(text), stacklevel=3)
