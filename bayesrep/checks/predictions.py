"""Does the fitted model look like the data? Posterior predictive checks with honest p-values.

The usual posterior predictive p-value compares a discrepancy of the data with the same of predicted
data while the parameters were fitted to the data: it crowds around one half, and a clear misfit
may end at 0.1. Here the reference distribution is that of a *pivotal* discrepancy.

Let X²(y, θ) be Pearson's discrepancy on K bins at parameters θ, expected counts taken at θ itself.
If θ* ~ prior and y ~ p(y | θ*), then a draw θ of the posterior given y has, together with y, the
same joint distribution as θ*. So X²(y, θ) at *one posterior draw* is distributed as X²(y, θ*): its
distribution is that of Pearson's statistic at known parameters, no degrees of freedom lost
(Johnson 2004, theorem 1, shows the same for large samples at any fixed θ*). With F its distribution
function, z(θ) = Φ⁻¹(F(X²(y, θ))) is therefore standard normal over (y, θ).

One draw wastes the others and makes the answer depend on chance. The average z̄ over all draws has
mean 0, and by the law of total variance

    Var(z̄) = 1 − E[Var(z(θ) | y)],

whose second term is the spread of z over the draws at hand. So

    p = 1 − Φ(z̄ / √(1 − Var_draws(z)))

is uniform under the model as far as z̄ is normal. No data are simulated. F is a gamma distribution
with the mean and the variance of X² at θ: for counts K − 1 and 2 (K − 1), or Haldane's exact
variance where all images have one n; for answers, where bins are sums of independent binomials, 1
and 2 + κ₄/σ⁴ for each bin, exactly.

Measured: in 40 fits to data drawn from a fitted model 5.0 % of 80 p-values of counts and 5.0 % of
320 of answers were below 5 %; where the truth had three components and the fit two (2,000 images),
20 % of those of counts were.

Neighbouring cells (in k/n) are merged until every bin has at least five expected images (right and
wrong answers) and there are at most forty or so bins.

References: Johnson (2004), "A Bayesian χ² test for goodness-of-fit", Annals of Statistics 32;
Meng (1994), "Posterior predictive p-values", on what goes wrong otherwise; Benjamini and Hochberg
(1995) for many classifiers.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import gammaincc, ndtr, ndtri
from scipy.stats import false_discovery_control

from bayesrep.posterior.groups import CellNames, Posterior, cells_along, need_group, thinned_draws
from bayesrep.types import Floats, Ints

DRAWS = 200
LEAST_EXPECTED = 5.0
MOST_BINS = 40
LEAST_VARIANCE = 0.2  # of z̄: keeps p cautious where the prior alone speaks and the spread is all


def calibrated_p(x2: Floats, mean: Floats | float, variance: Floats | float) -> float:
    """P-value of a pivotal discrepancy, by the module's formula.

    Parameters
    ----------
    x2
        The discrepancy X²(y, θ) [S] at S posterior draws.
    mean, variance
        Of X² over data at the same parameters, [S] or one for all.
    """
    z = standardised(x2, mean, variance)
    spread = max(1 - float(z.var()), LEAST_VARIANCE)
    return float(ndtr(-z.mean() / np.sqrt(spread)))


def standardised(x2: Floats, mean: Floats | float, variance: Floats | float) -> Floats:
    """Φ⁻¹(F(x²)) with F the gamma distribution of this mean and variance."""
    shape, scale = np.square(mean) / variance, variance / np.asarray(mean)
    tail = np.asarray(gammaincc(shape, x2 / scale))
    with np.errstate(divide="ignore"):
        exact = -ndtri(tail)
    # Wilson and Hilferty's cube root, where the tail is too small to be a number.
    far = (np.cbrt(x2 / (shape * scale)) - 1 + 1 / (9 * shape)) * 3 * np.sqrt(shape)
    return np.where((tail > 1e-300) & (tail < 1), exact, far)


def merge(sizes: Floats, least: float) -> Ints:
    """Bin [M] of every cell: neighbours share one until it is large enough.

    Parameters
    ----------
    sizes
        [M], or [M, R] where each of R sizes of a bin must reach ``least``.
    least
        Smallest size of a bin.
    """
    table = sizes.reshape(len(sizes), -1)
    bins = np.zeros(len(table), dtype=np.int64)
    number, total = 0, np.zeros(table.shape[1])
    for index, size in enumerate(table):
        bins[index] = number
        total = total + size
        if (total >= least).all():
            number, total = number + 1, np.zeros(table.shape[1])
    return np.minimum(bins, max(number - 1, 0))


def _indicator(bins: Ints) -> Floats:
    """0/1 [M, K] of cells in bins."""
    return (bins[:, None] == np.arange(bins.max() + 1)).astype(np.float64)


class Fit(NamedTuple):
    """How one data set or classifier compares with the model."""

    discrepancy: float  # posterior mean of X²
    bins: int  # K
    p: float
    worst: Sequence[int]  # cells of the bin that contributes most
    observed: float  # in that bin: images, or share of right answers
    expected: float


class Strata(NamedTuple):
    """Cells of one data set: images shown to n annotators (of a group) are one multinomial."""

    stratum: Ints  # [M]
    position: Floats  # [M] k/n, the order in which cells are merged


def strata_of(cells: CellNames) -> Strata:
    """Number the strata."""
    group = np.unique(cells.group, return_inverse=True)[1]
    key = group * (int(cells.shown.max()) + 1) + cells.shown
    return Strata(np.unique(key, return_inverse=True)[1], cells.selected / cells.shown)


def check_counts(images: Ints, mass: Floats, strata: Strata) -> Fit:
    """Compare the images in cells with multinomials.

    Parameters
    ----------
    images
        Observed [M].
    mass
        P(k | n) [S, M] at posterior draws; that of a cell without images is not used: those of a
        stratum share what the others leave.
    strata
        Of the cells.
    """
    cells = [np.flatnonzero(images > 0)]
    masses, stratum, position = (
        [mass[:, cells[0]]],
        [strata.stratum[cells[0]]],
        [strata.position[cells[0]]],
    )
    count = int(strata.stratum.max()) + 1
    totals = np.bincount(strata.stratum, images, count).astype(np.float64)
    for number in np.flatnonzero(totals):  # the cells without images, as one
        here = strata.stratum == number
        left = 1 - mass[:, here & (images > 0)].sum(axis=1)
        empty = np.flatnonzero(here & (images == 0))
        masses.append(np.clip(left, 0, None)[:, None])
        stratum.append(np.array([number]))
        position.append(np.array([np.median(strata.position[empty]) if len(empty) else 0.0]))
    probability = np.concatenate(masses, axis=1)
    place, where = np.concatenate(stratum), np.concatenate(position)
    observed = np.zeros(len(place))
    observed[: len(cells[0])] = images[cells[0]]
    order = np.argsort(where, kind="stable")
    expected = totals[place] * probability.mean(axis=0)
    least = max(LEAST_EXPECTED, float(images.sum()) / MOST_BINS / 4)
    bins = np.empty_like(order)
    bins[order] = merge(expected[order], least)
    x2, parts, expectation = _multinomial_x2(observed, probability, place, totals, bins)
    variance = _x2_variance(expectation, one=bool((totals > 0).sum() == 1))
    worst = int(parts.mean(axis=0).argmax())
    members = [int(cells[0][i]) for i in np.flatnonzero(bins == worst) if i < len(cells[0])]
    size = int(bins.max()) + 1
    return Fit(
        float(x2.mean()),
        size,
        calibrated_p(x2, size - 1, variance) if size > 1 else float("nan"),
        members,
        float(observed[bins == worst].sum()),
        float(expectation[:, worst].mean()),
    )


def _x2_variance(expected: Floats, *, one: bool) -> Floats | float:
    """Variance of X² given expected counts [S, K]; exact for one stratum (Haldane 1937)."""
    size = expected.shape[1]
    if not one:
        return 2.0 * (size - 1)
    beyond = (1 / expected).sum(axis=1) - (size**2 + 2 * size - 2) / expected.sum(axis=1)
    return 2.0 * (size - 1) + beyond


def _multinomial_x2(
    observed: Floats, mass: Floats, stratum: Ints, totals: Floats, bins: Ints
) -> tuple[Floats, Floats, Floats]:
    """X² [S], each bin's own (O − E)²/E [S, K] and E [S, K] of a sum of multinomials.

    The quadratic form of O − E in its covariance (without the last bin, which follows from the
    others); for one stratum that is Pearson's X².
    """
    member = _indicator(bins)
    inside = [member * (stratum == g)[:, None] for g in range(len(totals))]
    expected = mass * totals[stratum] @ member
    covariance = np.einsum("sk,kl->skl", expected, np.eye(expected.shape[1]))
    for group, total in zip(inside, totals, strict=True):
        own = mass @ group
        covariance -= total * own[:, :, None] * own[:, None, :]
    residual = observed @ member - expected
    parts = residual**2 / expected
    if residual.shape[1] == 1:
        return np.zeros(len(mass)), parts, expected
    short = residual[:, :-1, None]
    solved = np.linalg.solve(covariance[:, :-1, :-1], short)
    return (short * solved).sum(axis=(1, 2)), parts, expected


def check_answers(right: Ints, images: Ints, accuracy: Floats, position: Floats) -> Fit:
    """Compare one classifier's right answers by cell with binomials.

    Parameters
    ----------
    right, images
        [M].
    accuracy
        P(correct | cell) [S, M] at posterior draws.
    position
        [M], the order in which cells are merged.
    """
    here = np.flatnonzero(images > 0)
    here = here[np.argsort(position[here], kind="stable")]
    shown, q = images[here].astype(np.float64), accuracy[:, here]
    sizes = shown[:, None] * np.stack([q.mean(axis=0), 1 - q.mean(axis=0)], axis=1)
    member = _indicator(merge(sizes, LEAST_EXPECTED))
    if member.shape[1] > MOST_BINS:
        member = _indicator(merge(shown, float(shown.sum()) / MOST_BINS))
    expected = (shown * q) @ member
    unit = q * (1 - q)
    variance = (shown * unit) @ member
    fourth = (shown * unit * (1 - 6 * unit)) @ member
    parts = (right[here] @ member - expected) ** 2 / variance
    size = member.shape[1]
    x2 = parts.sum(axis=1)
    p = calibrated_p(x2, float(size), 2.0 * size + (fourth / variance**2).sum(axis=1))
    worst = int(parts.mean(axis=0).argmax())
    inside = member[:, worst] > 0
    total = float(shown[inside].sum())
    return Fit(
        float(x2.mean()),
        size,
        p,
        [int(i) for i in here[inside]],
        float(right[here][inside].sum()) / total,
        float(expected[:, worst].mean()) / total,
    )


def bin_name(cells: CellNames, members: Sequence[int]) -> str:
    """Readable name of merged cells: "3/36", "0/36 to 5/36" or "0 % to 14 % selected"."""
    if not members:
        return "cells without images"
    chosen = CellNames(*(each[list(members)] for each in cells))
    frequency = chosen.selected / chosen.shown
    first, last = np.argmin(frequency), len(frequency) - 1 - np.argmax(frequency[::-1])
    if len(set(chosen.shown.tolist())) > 1:
        low, high = (f"{100 * frequency[i]:.0f} %" for i in (first, last))
        name = f"{low} to {high} selected" if low != high else f"{low} selected"
    else:
        ends = [f"{chosen.selected[i]}/{chosen.shown[i]}" for i in (first, last)]
        name = ends[0] if ends[0] == ends[1] else " to ".join(ends)
    groups = set(chosen.group.tolist())
    return f"{groups.pop()}: {name}".removeprefix(": ") if len(groups) == 1 else name


SCHEMA = {
    "kind": pl.String,
    "name": pl.String,
    "discrepancy": pl.Float64,
    "bins": pl.Int64,
    "p": pl.Float64,
    "p_adjusted": pl.Float64,
    "worst_cell": pl.String,
    "observed": pl.Float64,
    "expected": pl.Float64,
    "effect": pl.Float64,
}


def check_predictions(posterior: Posterior, *, draws: int = DRAWS) -> pl.DataFrame:
    """Compare the data with the model, data set by data set and classifier by classifier.

    Parameters
    ----------
    posterior
        From :func:`bayesrep.fit`.
    draws
        Posterior draws to use, at most.

    Returns
    -------
    polars.DataFrame
        One row for the counts of each data set and for the answers of each classifier: ``kind``
        ("counts" or "answers"), ``name``, ``discrepancy`` (posterior mean of X²), ``bins``, ``p``
        (nearly uniform where the model holds), ``p_adjusted`` (Benjamini and Hochberg, within the
        kind), ``worst_cell`` with what is ``observed`` and ``expected`` there (images, or share
        of right answers), and ``effect``: the difference of observed and fitted cells, weighed
        as an accuracy. For a data set Σ_k (observed − fitted share) · P(correct | k, n), averaged
        over classifiers; for a classifier Σ_k (reference's share) · (observed − fitted accuracy).
        Both are rough guides to what the misfit can do to an adjusted accuracy; null where the
        reference's cells are not the replication's.

    Raises
    ------
    PosteriorError
        If the posterior lacks a group.

    Notes
    -----
    With ``feedback="cut"`` the draws are not those of a joint posterior and the answers' p-values
    are approximate.
    """
    observed = need_group(posterior, "observed_data", "correct")
    likelihood = need_group(posterior, "log_likelihood", "log_right")
    roles = [str(n).removesuffix("_images") for n in observed.data_vars if n != "correct"]
    cells = {role: cells_along(observed, role) for role in roles}
    images = {role: observed[f"{role}_images"].values for role in roles}
    log_right = likelihood["log_right"]
    shares: dict[str, Floats] = {}
    rows: list[dict[str, Any]] = []
    for role in roles:
        strata = strata_of(cells[role])
        log_mass = thinned_draws(likelihood[f"{role}_images"], draws)
        mass = _masses(log_mass, images[role], strata.stratum)
        fit = check_counts(images[role], mass, strata)
        totals = np.bincount(strata.stratum, images[role])[strata.stratum]
        shares[role] = mass.mean(axis=0) * totals / images[role].sum()
        rows.append(_row("counts", role, fit, cells[role]))
    classifiers = [str(name) for name in observed["classifier"].values]
    right = observed["correct"].values
    position = strata_of(cells["replication"]).position
    alike = {role for role in roles if _equal(cells[role], cells["replication"])}
    mean_accuracy = np.zeros(len(position))
    for index, name in enumerate(classifiers):  # one at a time: there may be thousands
        accuracy = np.exp(thinned_draws(log_right[:, :, index], draws).astype(np.float64))
        row = _row(
            "answers",
            name,
            check_answers(right[index], images["replication"], accuracy, position),
            cells["replication"],
        )
        fitted = accuracy.mean(axis=0)
        mean_accuracy += fitted / len(classifiers)
        if "reference" in alike:
            shown = np.maximum(images["replication"], 1)
            gap = np.where(images["replication"] > 0, right[index] / shown - fitted, 0.0)
            row["effect"] = float(shares["reference"] @ gap)
        rows.append(row)
    for row, role in zip(rows, roles, strict=False):
        if role in alike:
            row["effect"] = float(
                (images[role] / images[role].sum() - shares[role]) @ mean_accuracy
            )
    for kind in ("counts", "answers"):
        chosen = [row for row in rows if row["kind"] == kind]
        tested = [row for row in chosen if np.isfinite(row["p"])]
        adjusted = false_discovery_control([row["p"] for row in tested]) if tested else ()
        for row, value in zip(tested, adjusted, strict=True):
            row["p_adjusted"] = float(value)
    return pl.DataFrame(rows, schema=SCHEMA).fill_nan(None)


def _equal(one: CellNames, other: CellNames) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def _masses(log_likelihood: NDArray[Any], images: Ints, stratum: Ints) -> Floats:
    """P(k | n) [S, M] from images · log P.

    It is not known of single cells without images; they share equally what the others leave.
    """
    some = images > 0
    mass = np.zeros(log_likelihood.shape)
    mass[:, some] = np.exp(log_likelihood[:, some] / images[some])
    for number in range(int(stratum.max()) + 1):
        empty = ~some & (stratum == number)
        if empty.any():
            left = 1 - mass[:, some & (stratum == number)].sum(axis=1, keepdims=True)
            mass[:, empty] = np.clip(left, 0, None) / empty.sum()
    return mass


def _row(kind: str, name: str, fit: Fit, cells: CellNames) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": name,
        "discrepancy": fit.discrepancy,
        "bins": fit.bins,
        "p": fit.p,
        "p_adjusted": None,
        "worst_cell": bin_name(cells, fit.worst),
        "observed": fit.observed,
        "expected": fit.expected,
        "effect": None,
    }
