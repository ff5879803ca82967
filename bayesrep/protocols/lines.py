"""Lines through accuracies on two data sets.

They are straight on the plain scale, on the probit scale (Recht et al. 2019) or on the logit scale
(Taori et al. 2020, "Measuring robustness to natural distribution shifts in image classification").
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import polars as pl
from numpy.typing import ArrayLike
from scipy.special import expit, logit, ndtr, ndtri

from bayesrep.numerics.estimands import INTERVAL, accuracy_line, slope_standard_error
from bayesrep.types import Bools, Floats

_SCALES: Mapping[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]] = {
    "linear": (np.asarray, np.asarray),
    "probit": (ndtri, ndtr),
    "logit": (logit, expit),
}
"""Functions to a scale, and back to accuracies."""
SCALE_NAMES = tuple(_SCALES)
LINE_REPLICATES = 1000
_BLOCK_REPLICATES = 50  # replicates whose weights are held at a time


def resampled_accuracies(
    right: Bools, answered: Bools, seed: int | np.random.SeedSequence
) -> Floats:
    """Draws of all accuracies on other images, by the Bayesian bootstrap (Rubin, 1981).

    Parameters
    ----------
    right, answered : bool [C, N]
        Whether there is an answer, and a right one.
    seed
        Seed of the weights of the images, which all participants share.

    Returns
    -------
    float64 [1000, C]
        NaN for who answered nothing.
    """
    rng = np.random.default_rng(seed)
    hits, counted = (each.astype(np.float32) for each in (right & answered, answered))
    full = bool(answered.all())
    draws = np.empty((LINE_REPLICATES, len(right)))
    for begin in range(0, LINE_REPLICATES, _BLOCK_REPLICATES):
        weights = rng.standard_exponential((_BLOCK_REPLICATES, right.shape[1]), dtype=np.float32)
        total = weights.sum(axis=1, keepdims=True) if full else weights @ counted.T
        with np.errstate(invalid="ignore", divide="ignore"):
            draws[begin : begin + _BLOCK_REPLICATES] = weights @ hits.T / total
    return draws


def fit_lines(
    reference: ArrayLike, replication: ArrayLike, draws: tuple[Floats, Floats] | None = None
) -> pl.DataFrame:
    """Least-squares lines of replication on reference accuracy.

    Parameters
    ----------
    reference, replication
        [C] accuracies.
    draws : float64 [S, C] and float64 [S, C]
        Accuracies on other images of both data sets, from `resampled_accuracies`.

    Returns
    -------
    polars.DataFrame
        scale ("linear"; "probit" and "logit", where accuracies are transformed by the inverses of
        the normal and of the logistic distribution function, those of 0 and 1 left out), quantity
        (slope, intercept, and on the linear scale mean_gap), estimate, lower and upper,
        classifiers_lower and classifiers_upper. The first interval is for other images of the same
        populations, null
        without draws; the second for other classifiers, if these were a random sample of
        independent ones (normal errors about the line), null for fewer than three.
    """
    x, y = np.asarray(reference, float), np.asarray(replication, float)
    rows: list[dict[str, object]] = []
    for scale in SCALE_NAMES:
        used = can_be_shown(x, y, scale)
        lines = tuple(transform_accuracies(each[:, used], scale) for each in draws or ())
        across, up = (transform_accuracies(each[used], scale) for each in (x, y))
        rows += [{"scale": scale, **row} for row in _line(across, up, lines)]
    gap = x - y
    images = None if draws is None else (draws[0] - draws[1]).mean(axis=1)
    spread = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
    mean = _row("mean_gap", gap.mean(), images, spread, len(gap) - 1)
    rows.insert(2, {"scale": "linear", **mean})
    return pl.DataFrame(rows).fill_nan(None)


def can_be_shown(x: Floats, y: Floats, scale: str) -> Bools:
    """Accuracies that the scale can show."""
    return np.full(x.shape, scale == "linear") | ((x > 0) & (x < 1) & (y > 0) & (y < 1))


def transform_accuracies(accuracies: Floats, scale: str) -> Floats:
    """Accuracies as a scale shows them; 0 and 1 have a place at the end of it."""
    least = 0.0 if scale == "linear" else 1e-9
    return _SCALES[scale][0](np.clip(accuracies, least, 1 - least))


def restore_accuracies(values: Floats, scale: str) -> Floats:
    """The accuracies that a scale shows as these values."""
    return _SCALES[scale][1](values)


def _line(x: Floats, y: Floats, draws: tuple[Floats, ...]) -> Iterator[dict[str, object]]:
    """Yield the rows of slope and intercept."""
    slope, intercept = map(float, accuracy_line(x, y)) if len(x) > 1 else (np.nan, np.nan)
    slopes, intercepts = None, None
    if draws and len(x):
        slopes, intercepts = map(np.asarray, accuracy_line(draws[0], draws[1]))
    freedom = len(x) - 2
    spread, centre, scale = _scatter(x, y)
    at_zero = spread * np.sqrt(1 / max(len(x), 1) + centre**2 / scale)
    yield _row("slope", slope, slopes, spread / np.sqrt(scale), freedom)
    yield _row("intercept", intercept, intercepts, at_zero, freedom)


def _scatter(x: Floats, y: Floats) -> tuple[float, float, float]:
    """Residual standard deviation, mean of x and its sum of squares about it."""
    if len(x) < 3:
        return np.nan, np.nan, np.nan
    scale = float(np.sum((x - x.mean()) ** 2)) or np.nan
    return float(slope_standard_error(x, y)) * np.sqrt(scale), float(x.mean()), scale


def _student_end(freedom: int) -> float:
    """The upper end of a 95 % interval of Student's t."""
    from scipy.stats import t  # takes long to import

    return float(t.ppf(INTERVAL[1], freedom))


def _row(
    quantity: str, estimate: float, draws: Floats | None, error: float, freedom: int
) -> dict[str, object]:
    ends = (np.nan, np.nan) if draws is None else np.quantile(draws, INTERVAL)
    half = _student_end(freedom) * error if freedom > 0 else np.nan
    names = ("estimate", "lower", "upper", "classifiers_lower", "classifiers_upper")
    values = map(float, (estimate, *ends, estimate - half, estimate + half))
    return {"quantity": quantity, **dict(zip(names, values, strict=True))}


def line_band(
    reference: ArrayLike, replication: ArrayLike, at: ArrayLike, scale: str
) -> tuple[Floats, Floats, Floats]:
    """The line on the plain scale, with a 95 % band of where it runs for other classifiers.

    Parameters
    ----------
    reference, replication
        [C] accuracies, at least three.
    at
        [P] reference accuracies.
    scale
        One of `SCALE_NAMES`, on which the line is straight.

    Returns
    -------
    line, lower, upper : float64 [P]
        Accuracies on the replication; NaN where fewer than three have a place on the scale.
    """
    x, y = np.asarray(reference, float), np.asarray(replication, float)
    used = can_be_shown(x, y, scale)
    if np.count_nonzero(used) < 3:
        nowhere = np.full(np.shape(at), np.nan)
        return nowhere, nowhere, nowhere
    shown = (x[used], y[used], np.asarray(at, float))
    x, y, where = (transform_accuracies(each, scale) for each in shown)
    slope, intercept = map(float, accuracy_line(x, y))
    spread, centre, size = _scatter(x, y)
    middle = slope * where + intercept
    error = spread * np.sqrt(1 / len(x) + (where - centre) ** 2 / size)
    half = _student_end(len(x) - 2) * error
    ends = (middle, middle - half, middle + half)
    line, lower, upper = (restore_accuracies(each, scale) for each in ends)
    return line, lower, upper
