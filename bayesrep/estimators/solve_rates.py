"""The posterior of one model's mixture of solve rates, and what each item moves in it."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from bayesrep.errors import ConvergenceWarning
from bayesrep.numerics.binomial import log_binomial
from bayesrep.numerics.convergence import convergence
from bayesrep.numerics.solve_rates import DIMENSION, SolveRates, log_counts, of_normal
from bayesrep.numerics.tempering import tempered_draws
from bayesrep.studies.selection import Selection
from bayesrep.types import Float, Floats, Int

RUNS = 4
_AGREE = 1.05  # R-hat up to which runs agree


@dataclass(frozen=True, eq=False)
class RatesPosterior:
    """Draws of the mixture of solve rates, given counts.

    Attributes
    ----------
    rates
        S draws, those of one run of the sampler after those of another.
    solved, attempts, items
        The distinct c of n, and how many items have them.
    cell
        Which of them is each item's.
    """

    rates: SolveRates
    solved: Int[np.ndarray, "cell"]
    attempts: Int[np.ndarray, "cell"]
    items: Int[np.ndarray, "cell"]
    cell: Int[np.ndarray, "item"]

    @cached_property
    def logs(self) -> Float[np.ndarray, "draw cell"]:
        """log P(c of n) without C(n, c), of every draw, before selection."""
        return log_counts(self.rates, self.solved, self.attempts)

    @cached_property
    def log_mass(self) -> Float[np.ndarray, "draw cell"]:
        """The same less its mean over draws."""
        return self.logs - self.logs.mean(axis=0)

    def influences(
        self, values: Float[np.ndarray, "draw quantity"]
    ) -> Float[np.ndarray, "item quantity"]:
        """What each item moves in the posterior mean of some quantities.

        Its posterior covariance with the item's log likelihood (Giordano and Broderick, 2023,
        "The Bayesian infinitesimal jackknife for variance", equation 7), less the mean over items:
        their squares add up to the variance that the mean has over samples of items.
        """
        moves = values - values.mean(axis=0)
        each = (self.log_mass.T @ moves / len(moves))[self.cell]
        return each - each.mean(axis=0)


def fit_solve_rates(
    solved: Int[np.ndarray, "item"],
    attempts: Int[np.ndarray, "item"],
    *,
    selection: Selection | None = None,
    draws: int = 4_000,
    seed: int = 0,
) -> RatesPosterior:
    """Sample the mixture of one model's solve rates.

    Parameters
    ----------
    solved, attempts
        c of n of every item.
    selection
        The rule on these counts by which the items were kept; the mixture is that of the items
        before selection.
    draws
        In all, by `RUNS` runs of the sampler that know nothing of each other.
    seed
        Seed of the runs.
    """
    # Items with equal counts share one term of the likelihood.
    pairs, cell, items = np.unique(
        np.stack([solved, attempts], axis=1), axis=0, return_inverse=True, return_counts=True
    )
    c, n = pairs[:, 0], pairs[:, 1]

    # Where a rule chose the items, each term is divided by the chance of passing it.
    shown = np.unique(n)
    by_shown = np.array([items[n == size].sum() for size in shown], dtype=float)

    def log_likelihood(z: Floats) -> Floats:
        rates = of_normal(z)
        logs = log_counts(rates, c, n) @ items.astype(float)
        if selection is None:
            return logs
        return logs - log_kept(rates, selection, shown) @ by_shown

    # Independent runs, so that their agreement can be checked.
    size = -(-draws // RUNS)
    runs = [
        tempered_draws(log_likelihood, DIMENSION, size, np.random.default_rng([seed, run]))
        for run in range(RUNS)
    ]
    return RatesPosterior(of_normal(np.concatenate(runs)), c, n, items, cell.reshape(-1))


def log_kept(
    rates: SolveRates, selection: Selection, shown: Int[np.ndarray, "size"]
) -> Float[np.ndarray, "draw size"]:
    """log P(kept | n) = log Σ_c a(c, n) C(n, c) f(c, n) of every n."""
    log_probability = np.empty((len(rates.at_zero), len(shown)))
    for place, n in enumerate(shown.tolist()):
        counts = np.arange(n + 1)
        keeps = selection.probability(counts, np.full(n + 1, n))
        some = keeps > 0
        logs = log_counts(rates, counts[some], np.full(some.sum(), n))
        log_probability[:, place] = logsumexp(
            logs + np.log(keeps[some]) + log_binomial(n, counts[some]), axis=1
        )
    return log_probability


def check_runs(values: Float[np.ndarray, "draw quantity"], names: Sequence[str]) -> None:
    """Warn where the runs that made the draws do not agree on a quantity.

    Parameters
    ----------
    values
        Values of every draw.
    names
        What the quantities are called.

    Warns
    -----
    ConvergenceWarning
        With the quantity on which they agree least.
    """
    rhat = convergence(values.reshape(RUNS, -1, values.shape[1])).rhat
    if np.nanmax(rhat, initial=0.0) > _AGREE:
        warnings.warn(
            ConvergenceWarning(
                f"{names[int(np.nanargmax(rhat))]}: runs of the sampler do not agree (R-hat "
                f"{np.nanmax(rhat):.2f}); ask for more draws"
            ),
            stacklevel=3,
        )
