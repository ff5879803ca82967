"""Pointwise log likelihood and posterior predictive draws, one entry per (k, n) cell."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.statistics import Cells, SufficientStatistics

PREDICTIVE_EVERY = 10


def _log_choices(n: NDArray[np.int64], k: NDArray[np.int64]) -> NDArray[np.float64]:
    from scipy.special import gammaln

    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


def _predict_counts(
    rng: np.random.Generator, cells: Cells, log_mass: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Images per cell [draw, M] given how many images were shown to n annotators."""
    counts = np.zeros(log_mass.shape, dtype=np.int64)
    for shown in np.unique(cells.shown):
        here = cells.shown == shown
        mass = np.exp(log_mass[:, here])
        outside = np.clip(1 - mass.sum(axis=1, keepdims=True), 0, None)
        complete = np.concatenate([mass, outside], axis=1)
        complete /= complete.sum(axis=1, keepdims=True)
        drawn = rng.multinomial(int(cells.images[here].sum()), complete)
        counts[:, here] = drawn[:, :-1]
    return counts


def cell_groups(
    statistics: SufficientStatistics, values: Mapping[str, NDArray[Any]], *, seed: int
) -> dict[str, Any]:
    """Groups ``log_likelihood``, ``posterior_predictive`` and ``observed_data``.

    Parameters
    ----------
    statistics
        The data that were fitted.
    values
        ``reference_log_mass``, ``replication_log_mass`` [chain, draw, M] and ``cell_accuracy``
        [chain, draw, C, M].
    seed
        Seed of the predictive draws, of which every tenth posterior draw gets one.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
    log_likelihood, predictive, observed = {}, {}, {}
    for role in ("reference", "replication"):
        cells, log_mass = statistics.cells[role], values[f"{role}_log_mass"]
        name, dims = f"{role}_images", (f"{role}_cell",)
        thin = log_mass[:, ::PREDICTIVE_EVERY]
        drawn = _predict_counts(rng, cells, thin.reshape(-1, thin.shape[-1])).reshape(thin.shape)
        log_likelihood[name] = (("chain", "draw", *dims), cells.images * log_mass)
        predictive[name] = (("chain", "draw", *dims), drawn)
        observed[name] = (dims, cells.images)

    cells, accuracy = statistics.replication, values["cell_accuracy"]
    right, dims = cells.correct.T, ("classifier", "replication_cell")
    log_mass = (
        right * np.log(accuracy)
        + (cells.images - right) * np.log1p(-accuracy)
        + _log_choices(cells.images, right)
    )
    log_likelihood["correct"] = (("chain", "draw", *dims), log_mass.astype(np.float32))
    drawn = rng.binomial(cells.images, accuracy[:, ::PREDICTIVE_EVERY])
    predictive["correct"] = (("chain", "draw", *dims), drawn.astype(np.int32))
    observed["correct"] = (dims, right)
    return {
        "log_likelihood": log_likelihood,
        "posterior_predictive": predictive,
        "observed_data": observed,
    }
