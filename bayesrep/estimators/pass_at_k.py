"""pass@k of models from counts of solved attempts, for any k, and differences of two models.

The *posterior* of a mixture of solve rates (`numerics/solve_rates.py`) gives pass@k =
1 − E(1 − s)^k for every k; the *unbiased* estimator (`unbiased.py`) needs no model. Models try the
same items: draws of two models' posteriors are coupled such that their correlation is that of the
items' influences,

    ρ = Σ_x I_x J_x / (σ_I σ_J),

with I_x and J_x the influences of item x on either posterior mean, and σ the larger of the
posterior's standard deviation and √Σ I². The prior's part, which no item determines, is taken as
independent; so are attempts of two models, given the items.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import index
from typing import get_args

import numpy as np
import polars as pl

from bayesrep import bounds
from bayesrep.choices import PassTarget
from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.estimators.solve_rates import RatesPosterior, check_runs, fit_solve_rates
from bayesrep.estimators.unbiased import estimate_difference, estimate_mean, item_passes
from bayesrep.numerics.constants import SMALLEST_POSITIVE
from bayesrep.numerics.estimands import INTERVAL
from bayesrep.numerics.solve_rates import pass_rate, passed_items
from bayesrep.progress import progress_bar
from bayesrep.studies.attempts import Attempts
from bayesrep.types import Float, Floats, Ints, no_type_check

MAX_K = 1_000_000
"""Largest k: beyond it pass@k is one minus the mass at 0."""
MIN_ITEMS = 5  # of a model on a data set


@dataclass(frozen=True, eq=False)
class _Model:
    """Model on a data set: draws [S, k], items' influences and unbiased estimates."""

    data: Attempts
    posterior: RatesPosterior
    draws: Floats
    influence: Floats  # [N, k]
    spread: Floats  # [k], the larger of the posterior's and the influences'
    passes: Mapping[int, Floats]  # by k, [N]


@dataclass(frozen=True, eq=False)
class PassAtK:
    """pass@k of every model on every data set.

    Attributes
    ----------
    table
        One row a data set, model and k: dataset, model, k, estimate (posterior mean), lower, upper,
        unbiased, unbiased_lower, unbiased_upper (null where an item has fewer than k attempts),
        prior_share (of the posterior variance of the population's pass@k, the share that the
        items' counts do not determine).
    models
        One row a data set and model: dataset, model, items, fewest, most (attempts at an item),
        solved (the share of attempts, items alike), never, never_lower, never_upper (the share of
        items that no number of attempts solves).
    target
        Whose pass@k it is.
    """

    table: pl.DataFrame
    models: pl.DataFrame
    target: PassTarget
    _fits: Sequence[_Model]
    _k: Ints
    _seed: int

    @no_type_check
    def evaluate_at(self, k: Sequence[int]) -> "PassAtK":
        """Evaluate the same posteriors at other numbers of attempts k."""
        k_values = _check_k(k)
        posteriors = [(fit.data, fit.posterior) for fit in self._fits]
        return _assemble_tables(posteriors, k_values, self.target, self._seed)

    @no_type_check
    def differences(self, between: Sequence[str] | None = None) -> pl.DataFrame:
        """Compare models: one's pass@k less another's, on every data set that both were tried on.

        Parameters
        ----------
        between
            Two models or more, all pairs of which are compared; all models by default.

        Returns
        -------
        polars.DataFrame
            dataset, model, other, k, difference (of the posterior means), lower, upper, probability
            (that the model's pass@k is the larger), unbiased, unbiased_lower, unbiased_upper.

        Raises
        ------
        OptionError
            For a name that is not a model's, fewer than two names, or models without a common
            data set.
        """
        names = list(dict.fromkeys(fit.data.classifier for fit in self._fits))
        compared = names if between is None else list(dict.fromkeys(between))
        if unknown := [name for name in compared if name not in names]:
            models, known = (listing(each, "model") for each in (unknown, names))
            raise OptionError("model-without-attempts", models=models, known_models=known)
        if len(compared) < 2:
            raise OptionError("difference-needs-two-models")
        # Pairs are compared on data sets that both models were tried on.
        by_name = {(fit.data.dataset, fit.data.classifier): fit for fit in self._fits}
        rows = [
            row
            for dataset in dict.fromkeys(fit.data.dataset for fit in self._fits)
            for one, other in combinations(compared, 2)
            if (dataset, one) in by_name and (dataset, other) in by_name
            for row in self._difference(by_name[dataset, one], by_name[dataset, other])
        ]
        if not rows:
            raise OptionError("no-data-set-in-common", models=listing(compared, "model"))
        return pl.DataFrame(rows, infer_schema_length=None)

    def _difference(self, one: _Model, other: _Model) -> list[dict[str, object]]:
        _, ours, theirs = np.intersect1d(one.data.images, other.data.images, return_indices=True)
        rng = np.random.default_rng([self._seed, 2])
        rows: list[dict[str, object]] = []
        for place, k in enumerate(self._k.tolist()):
            correlation = 0.0
            if self.target == "population":
                # Influences of items that both models were tried on, in the same order.
                covariance = one.influence[ours, place] @ other.influence[theirs, place]
                correlation = float(covariance / (one.spread[place] * other.spread[place]))
            draws = _draw_differences(one.draws[:, place], other.draws[:, place], correlation, rng)
            lower, upper = _interval(draws)
            unbiased: tuple[float | None, ...] = (None, None, None)
            if k in one.passes and k in other.passes:
                both, passes = (one.data, other.data), (one.passes[k], other.passes[k])
                unbiased = estimate_difference(both, passes, (ours, theirs), k, self.target)
            rows.append(
                {
                    "dataset": one.data.dataset,
                    "model": one.data.classifier,
                    "other": other.data.classifier,
                    "k": k,
                    "difference": float(draws.mean()),
                    "lower": lower,
                    "upper": upper,
                    "probability": float((draws > 0).mean() + (draws == 0).mean() / 2),
                    **dict(zip(_UNBIASED_COLUMNS, unbiased, strict=True)),
                }
            )
        return rows


_UNBIASED_COLUMNS = ("unbiased", "unbiased_lower", "unbiased_upper")


@no_type_check
def pass_at_k(
    attempts: Attempts | Sequence[Attempts],
    k: Sequence[int] = (1, 10, 100),
    *,
    target: PassTarget = "population",
    draws: int = 4_000,
    seed: int = 0,
    progress: bool = False,
) -> PassAtK:
    """Estimate pass@k, the probability that at least one of k attempts is right.

    Parameters
    ----------
    attempts
        Attempts from `bayesrep.studies.attempts.read_attempts`, or made of arrays.
    k
        Numbers of attempts, each from 1 to a million; they may exceed those that were made.
    target
        Whose pass@k: of the `population` of items, of which these are a sample, or of these very
        `items`.
    draws
        Draws of the posterior.
    seed
        Seed of all random numbers.
    progress
        Show a bar on standard error.

    Returns
    -------
    PassAtK
        `table` with 95 % intervals, and `differences`. An interval is the hull of the equal-tailed
        and the shortest one: where the posterior leans on a bound, as pass@k does on 1 where no
        item need be unsolvable, the equal-tailed one leaves out the bound's neighbourhood whatever
        the truth (Brown, Cai, DasGupta, 2001, section 4.1.2, mend Jeffreys' interval likewise).

    Raises
    ------
    OptionError
        For a k that is out of range, or beyond 1 where every item has a single attempt.
    StudyError
        For fewer than five items, or a model twice on a data set.

    Warns
    -----
    ConvergenceWarning
        Where runs of the sampler do not agree.

    Examples
    --------
    >>> items, solved = ["a", "b", "c", "d", "e"], [1, 4, 0, 2, 3]
    >>> attempts = bayesrep.Attempts("math", "solver", items, solved, [4] * 5)
    >>> bayesrep.pass_at_k(attempts, k=[1, 4]).table["k"].to_list()
    [1, 4]
    """
    models = [attempts] if isinstance(attempts, Attempts) else list(attempts)
    k_values = _check_k(k)
    if target not in (known := get_args(PassTarget)):
        raise OptionError("unknown-pass-target", target=target, choices=" or ".join(known))
    if draws < 1_000:
        raise OptionError("pass-draws-too-few", draws=draws)
    bounds.refuse_above("draws", draws, bounds.MAX_TOTAL_DRAWS)
    _check_models(models, int(k_values.max()))
    posteriors: list[tuple[Attempts, RatesPosterior]] = []
    # Models are fitted one by one: their items need not be the same.
    with progress_bar(len(models), " models", show=progress) as bar:
        for data in models:
            bar.stage(data.classifier)
            fit = fit_solve_rates(data.solved, data.attempts, draws=draws, seed=seed)
            # Runs of the sampler have to agree at, and beyond, the attempts that were made.
            checked: Ints = np.unique([1, data.attempts.max(), 10 * data.attempts.max()])
            check_runs(pass_rate(fit.rates, checked), [f"pass@{each}" for each in checked.tolist()])
            posteriors.append((data, fit))
            bar.advance(1)
    return _assemble_tables(posteriors, k_values, target, seed)


def _assemble_tables(
    posteriors: Sequence[tuple[Attempts, RatesPosterior]], k: Ints, target: PassTarget, seed: int
) -> PassAtK:
    for data, _ in posteriors:
        _check_attempts(data, int(k.max()))
    fits = [_model(*each, k, target, seed) for each in posteriors]
    return PassAtK(
        table=pl.DataFrame([row for fit in fits for row in _rows(fit, k, target)], _PASS_SCHEMA),
        models=pl.DataFrame([_model_row(fit) for fit in fits]),
        target=target,
        _fits=fits,
        _k=k,
        _seed=seed,
    )


_PASS_SCHEMA = {
    "dataset": pl.String,
    "model": pl.String,
    "k": pl.Int64,
    **dict.fromkeys(["estimate", "lower", "upper", *_UNBIASED_COLUMNS, "prior_share"], pl.Float64),
}


@no_type_check
def _check_k(k: Sequence[int]) -> Ints:
    try:
        whole = [index(each) for each in k]
    except TypeError:
        raise OptionError("pass-k-not-whole", k=k) from None
    if not whole or min(whole) < 1:
        raise OptionError("pass-k-below-one", k=whole)
    for each in whole:
        bounds.refuse_above("k", each, MAX_K)
    return np.unique(whole)


def _check_models(models: Sequence[Attempts], largest: int) -> None:
    if not models:
        raise StudyError("no-model-attempts")
    pairs: set[tuple[str, str]] = set()
    for data in models:
        where = f"{data.classifier!r} at {data.dataset!r}"
        if (data.dataset, data.classifier) in pairs:
            raise StudyError("model-given-twice", where=where)
        pairs.add((data.dataset, data.classifier))
        if len(data.images) < MIN_ITEMS:
            few = len(data.images)
            raise StudyError("too-few-attempted-items", where=where, items=few, least=MIN_ITEMS)
        _check_attempts(data, largest)


def _check_attempts(data: Attempts, largest: int) -> None:
    if largest > 1 and data.attempts.max() == 1:
        facts = {"classifier": data.classifier, "dataset": data.dataset, "largest_k": largest}
        raise OptionError("single-attempt-per-item", **facts)


def _model(
    data: Attempts, posterior: RatesPosterior, k: Ints, target: PassTarget, seed: int
) -> _Model:
    values = pass_rate(posterior.rates, k)
    influence = posterior.influences(values)
    # The larger of both errors, so that the correlation stays below one.
    spread = np.sqrt(np.maximum(values.var(axis=0), np.square(influence).sum(axis=0)))
    # For these very items, draw each item's own rate given its counts.
    if target == "items":
        rng = np.random.default_rng([seed, 1])
        counts = posterior.solved, posterior.attempts, posterior.items
        values = passed_items(posterior.rates, *counts, k, rng)
    known = k[k <= data.attempts.min()].tolist()
    passes = {each: item_passes(data.solved, data.attempts, each) for each in known}
    return _Model(data, posterior, values, influence, np.maximum(spread, SMALLEST_POSITIVE), passes)


def _rows(fit: _Model, k: Ints, target: PassTarget) -> list[dict[str, object]]:
    population = pass_rate(fit.posterior.rates, k).var(axis=0)
    item_share = np.square(fit.influence).sum(axis=0) / np.maximum(population, SMALLEST_POSITIVE)
    rows: list[dict[str, object]] = []
    for place, k_value in enumerate(k.tolist()):
        lower, upper = _interval(fit.draws[:, place])
        unbiased: tuple[float | None, ...] = (None, None, None)
        if k_value in fit.passes:
            unbiased = estimate_mean(fit.data, fit.passes[k_value], k_value, target)
        rows.append(
            {
                "dataset": fit.data.dataset,
                "model": fit.data.classifier,
                "k": k_value,
                "estimate": float(fit.draws[:, place].mean()),
                "lower": max(lower, 0.0),
                "upper": min(upper, 1.0),
                **dict(zip(_UNBIASED_COLUMNS, unbiased, strict=True)),
                "prior_share": float(np.clip(1 - item_share[place], 0, 1)),
            }
        )
    return rows


def _interval(draws: Float[np.ndarray, "draw"]) -> tuple[float, float]:
    """Compute the hull of the equal-tailed and the shortest 95 % interval."""
    ordered = np.sort(draws)
    # The shortest interval among those between order statistics with 95 % of the draws.
    inside = int(np.ceil((INTERVAL[1] - INTERVAL[0]) * len(ordered)))
    first = int(np.argmin(ordered[inside - 1 :] - ordered[: len(ordered) - inside + 1]))
    lower, upper = np.quantile(ordered, INTERVAL)
    return float(min(lower, ordered[first])), float(max(upper, ordered[first + inside - 1]))


def _draw_differences(
    one: Floats, other: Floats, correlation: float, rng: np.random.Generator
) -> Floats:
    """Draw differences of two posteriors, coupled by the ranks of correlated normals."""
    first, second = rng.standard_normal((2, len(one)))
    second = correlation * first + np.sqrt(max(1 - correlation**2, 0.0)) * second
    # Gaussian copula: reordering leaves both marginals as they are.
    ranks = (np.argsort(np.argsort(each)) for each in (first, second))
    return np.sort(one)[next(ranks)] - np.sort(other)[next(ranks)]


def _model_row(fit: _Model) -> dict[str, object]:
    data, never = fit.data, fit.posterior.rates.at_zero
    lower, upper = _interval(never)
    return {
        "dataset": data.dataset,
        "model": data.classifier,
        "items": len(data.images),
        "fewest": int(data.attempts.min()),
        "most": int(data.attempts.max()),
        "solved": float((data.solved / data.attempts).mean()),
        "never": float(never.mean()),
        "never_lower": lower,
        "never_upper": upper,
    }
