"""Posterior predictive checks of counts and answers, by `bayesrep.checks.discrepancy`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy.special import betaln, expit

from bayesrep.checks.discrepancy import Fit, Strata, check_answers, check_counts, strata_of
from bayesrep.checks.finding import family_wise
from bayesrep.posterior.groups import (
    CellNames,
    Posterior,
    cells_along,
    need_group,
    read_record,
    right_answers,
    thinned_draws,
)
from bayesrep.posterior.likelihood import decode_some, thinned_codes
from bayesrep.types import Float, Floats, Int

TINY = 1e-300

PREDICTION_DRAWS = 200
MAX_GRID_CELLS = 20_000  # possible cells of a data set whose counts are tested
MIXTURE_DRAWS = 20  # for cells without images
MIN_EXPECTED_EMPTY = 10.0  # expected images; chance leaves such a cell empty with P = e⁻¹⁰
NO_FIT = Fit(np.nan, 0, np.nan, np.zeros(0, dtype=np.int64), np.nan, np.nan)
TABLE_SCHEMA = {
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
    "unfilled": pl.Float64,
}


def check_predictions(posterior: Posterior, *, draws: int = PREDICTION_DRAWS) -> pl.DataFrame:
    """Compare the data with the model, data set by data set and classifier by classifier.

    One row for the counts of each data set and for the answers of each classifier: `kind`, `name`,
    `discrepancy` (posterior mean of X²), `bins`, `p` (nearly uniform where the model holds; with
    `feedback="cut"` approximate), `p_adjusted` (see `family_wise`), `worst_cell` with what is
    `observed` and `expected` there, and two that are explained where they are computed: `effect`
    on an accuracy and `unfilled`.
    """
    observed = need_group(posterior, "observed_data", "correct")
    codes, likelihood = thinned_codes(posterior, draws), need_group(posterior, "log_density")
    record = read_record(posterior)
    roles = record.roles
    cells = {role: cells_along(observed, role) for role in roles}
    # Effects on accuracies need the same cells in both data sets.
    same_cells = {
        role for role in roles if all(map(np.array_equal, cells[role], cells["replication"]))
    }
    images = {role: observed[f"{role}_images"].values for role in roles}
    fitted_shares: dict[str, Floats] = {}
    rows: list[dict[str, Any]] = []
    for which, role in enumerate(roles):
        log_mass = thinned_draws(likelihood[f"{role}_images"], draws)
        strata, mass = _fitted_masses(posterior, which, cells[role], images[role], log_mass)
        totals = np.bincount(strata.stratum, images[role])[strata.stratum]
        fitted_shares[role] = mass.mean(axis=0) * totals / images[role].sum()
        rows.append(_counts_row(posterior, which, role, cells[role], images[role], log_mass))
    right, n_images = right_answers(observed), images["replication"]
    position = strata_of(cells["replication"]).position
    mean_accuracy = np.zeros(len(position))
    for index, name in enumerate(observed["classifier"].values):  # alone: there may be thousands
        accuracy = expit(decode_some(codes, index)[0].astype(np.float64))
        fit = check_answers(right[index], n_images, accuracy, position, record.answers)
        row = _row("answers", str(name), fit, cells["replication"])
        fitted = accuracy.mean(axis=0)
        mean_accuracy += fitted / len(right)
        # Effects are rough guides to what a misfit can do to an adjusted accuracy.
        if "reference" in same_cells:
            gap = np.where(n_images > 0, right[index] / np.maximum(n_images, 1) - fitted, 0.0)
            row["effect"] = float(fitted_shares["reference"] @ gap)
        rows.append(row)
    for row, role in zip(rows, roles, strict=False):
        if role in same_cells:
            shares = images[role] / images[role].sum()
            row["effect"] = float((shares - fitted_shares[role]) @ mean_accuracy)
    # Only tests that could be made count in the family.
    tested = [row for row in rows if np.isfinite(row["p"])]
    adjusted = family_wise([row["p"] for row in tested], [row["kind"] for row in tested])
    for row, value in zip(tested, adjusted, strict=True):
        row["p_adjusted"] = float(value)
    return pl.DataFrame(rows, schema=TABLE_SCHEMA).fill_nan(None)


def _fitted_masses(
    posterior: Posterior,
    which: int,
    cells: CellNames,
    images: Int[np.ndarray, "cell"],
    log_likelihood: Float[np.ndarray, "draw cell"],
) -> tuple[Strata, Float[np.ndarray, "draw cell"]]:
    """Compute the strata of cells, and P(k | n) of each cell at every draw."""
    strata = strata_of(cells)
    likely = _count_probability(posterior, which, cells)
    return strata, _masses(log_likelihood, images, strata.stratum, likely)


def _counts_row(
    posterior: Posterior,
    which: int,
    role: str,
    cells: CellNames,
    images: Int[np.ndarray, "cell"],
    log_mass: Float[np.ndarray, "draw cell"],
) -> dict[str, Any]:
    if (completed := _complete(cells)) is None:
        return _row("counts", role, NO_FIT, cells)
    every, place = completed
    counted = np.zeros(len(every.shown), dtype=np.int64)
    counted[place] = images
    on_all = np.zeros((len(log_mass), len(counted)))
    on_all[:, place] = log_mass
    strata, mass = _fitted_masses(posterior, which, every, counted, on_all)
    expected = np.bincount(strata.stratum, counted)[strata.stratum] * mass.mean(axis=0)
    # Hardly any are unfilled but where annotators were added until the answer was clear.
    empty = (counted == 0) & (expected >= MIN_EXPECTED_EMPTY) & (every.shown < every.shown.max())
    row = _row("counts", role, check_counts(counted, mass, strata), every)
    return {**row, "unfilled": float(expected[empty].sum() / counted.sum())}


def _complete(cells: CellNames) -> tuple[CellNames, Int[np.ndarray, "cell"]] | None:
    """List all k of every n and group, unless too many, and the indices of `cells` among them."""
    strata = np.stack([np.unique(cells.group, return_inverse=True)[1], cells.shown])
    kinds, first, stratum = np.unique(strata, axis=1, return_index=True, return_inverse=True)
    sizes = kinds[1] + 1
    if sizes.sum() > MAX_GRID_CELLS:
        return None
    # A stratum's cells lie together, ordered by k.
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    every = CellNames(
        np.repeat(cells.group[first], sizes),
        np.arange(sizes.sum()) - np.repeat(starts, sizes),
        np.repeat(kinds[1], sizes),
    )
    return every, starts[stratum.ravel()] + cells.selected


def _masses(
    log_likelihood: Float[np.ndarray, "draw cell"],
    images: Int[np.ndarray, "cell"],
    stratum: Int[np.ndarray, "cell"],
    likely: Float[np.ndarray, "cell"],
) -> Float[np.ndarray, "draw cell"]:
    """Compute P(k | n) from images · log P; other cells share the rest as they are `likely`."""
    occupied = images > 0
    mass = np.zeros(log_likelihood.shape)
    mass[:, occupied] = np.exp(log_likelihood[:, occupied] / images[occupied])
    for number in range(int(stratum.max()) + 1):
        empty = ~occupied & (stratum == number)
        if empty.any():
            rest = 1 - mass[:, occupied & (stratum == number)].sum(axis=1, keepdims=True)
            weight = likely[empty] / max(likely[empty].sum(), TINY)  # 0 where no count is kept
            mass[:, empty] = np.clip(rest, 0, None) * weight
    return mass


def _count_probability(
    posterior: Posterior, which: int, cells: CellNames
) -> Float[np.ndarray, "cell"]:
    """Compute P(k | n) by a data set's mixture; of selected images up to a factor for each n."""
    record = read_record(posterior)
    group = need_group(
        posterior, "posterior", "component_mean", "component_concentration", "component_weight"
    )
    mean, total, weight = (
        thinned_draws(group[f"component_{name}"], MIXTURE_DRAWS)[:, which, :, None]
        for name in ("mean", "concentration", "weight")
    )
    k, n, a, b = cells.selected, cells.shown, mean * total, (1 - mean) * total
    log_mass = betaln(a + k, b + n - k) - betaln(a, b)  # [draw, component, cell]
    choices = -np.log1p(n) - betaln(n - k + 1, k + 1)
    likely = np.exp(choices) * (weight * np.exp(log_mass)).sum(axis=1).mean(axis=0)
    rule = record.selections.get(record.roles[which])
    return likely if rule is None else likely * rule.probability(k, n)


def _row(kind: str, name: str, fit: Fit, cells: CellNames) -> dict[str, Any]:
    facts = fit._asdict()
    return {"kind": kind, "name": name, "worst_cell": bin_name(cells, facts.pop("worst")), **facts}


def bin_name(cells: CellNames, members: Sequence[int] | Int[np.ndarray, "member"]) -> str:
    """Name merged cells: "3/36", "0/36 to 5/36" or "0 % to 14 % selected"."""
    if not len(members):
        return "cells without images"
    chosen = list(members)
    group, selected, shown = cells.group[chosen], cells.selected[chosen], cells.shown[chosen]
    # Name the extremes in k/n; of ties the first low and the last high cell.
    frequency = selected / shown
    ends = int(np.argmin(frequency)), len(frequency) - 1 - int(np.argmax(frequency[::-1]))
    if len(set(shown.tolist())) > 1:
        several = " selected"
        low, high = (f"{100 * frequency[i]:.0f} %" for i in ends)
    else:
        several = ""
        low, high = (f"{selected[i]}/{shown[i]}" for i in ends)
    name = (f"{low} to {high}" if low != high else low) + several
    return f"{group[0]}: {name}" if len(set(group.tolist())) == 1 and group[0] else name
