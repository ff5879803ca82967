"""Choice of the number of mixture components K by information criteria and cross-validation."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from bayesrep import bounds
from bayesrep.errors import OptionError
from bayesrep.estimators.mixtures import (
    CellTable,
    complete_cells,
    fit_mixtures,
    log_shares,
    refit_mixtures,
)
from bayesrep.estimators.replicates import Replicates
from bayesrep.progress import progress_bar
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.types import Float, Floats


def compare_components(
    study: Study | SufficientStatistics,
    components: Sequence[int] = (1, 2, 3, 4, 5, 6),
    *,
    folds: int = 5,
    starts: int = 10,
    seed: int = 0,
    progress: bool = False,
) -> pl.DataFrame:
    """Fit mixtures of several sizes K and compare their likelihoods.

    Parameters
    ----------
    study
        A study, or its sufficient statistics.
    components
        The K to try.
    folds
        Parts into which the images of each data set are split at random. Each part's likelihood is
        taken under the mixture fitted to the others.
    starts, seed
        Random starts of each fit; the seed also splits the images.
    progress
        Show a bar on standard error.

    Returns
    -------
    polars.DataFrame
        One row per data set and K: dataset, components, parameters, log_likelihood (nats), aic,
        bic (both: smaller is better), held_out_log_likelihood (nats over all images: larger is
        better), converged, degenerate (number of components shrunk to a point), held_out_behind
        and held_out_error: by how many nats it is behind the best, and the standard error of that
        over images.

    Raises
    ------
    OptionError
        If a data set has fewer images than folds, or there is no K or one less than 1.
    """
    if not components:
        raise OptionError("no-number-of-components")
    for size in components:  # one by one: `max` would run through a range of any length
        bounds.refuse_above("components", size, bounds.MAX_COMPONENT_COUNT)
    table = complete_cells(Replicates.from_study(study))
    total = table.images.sum(axis=-1)[:, 0]
    if folds < 2 or total.min() < folds:
        raise OptionError("folds-out-of-range", folds=folds, most=int(total.min()))
    parts = _folds(table, folds, seed)  # [2, F, M]
    # Version 0 is the study; version f + 1 is the study without fold f.
    training = np.concatenate([table.images, table.images - parts], axis=1)
    rows: list[dict[str, Any]] = []
    log_masses: list[Floats] = []  # held-out log likelihoods of the images of every cell
    with progress_bar(len(components), "size", show=progress) as bar:
        for size in components:
            bar.stage(f"mixtures of {size}")
            folded = CellTable(table.selected, table.shown, training, table.correct)
            study_fit = fit_mixtures(folded, components=size, starts=starts, seed=seed)
            # Folds start from the study's optima, so that they find the same modes.
            fit = refit_mixtures(study_fit, folded)
            log_mass = np.where(parts > 0, log_shares(fit, folded)[:, 1:], 0.0)
            log_masses.append((parts * log_mass).sum(axis=1))
            held_out = log_masses[-1].sum(axis=-1)
            likelihood, parameters = study_fit.log_likelihood[:, 0], 3 * size - 1
            rows.append(
                {
                    "dataset": REQUIRED_ROLES,
                    "components": [size] * 2,
                    "parameters": [parameters] * 2,
                    "log_likelihood": likelihood,
                    "aic": 2 * parameters - 2 * likelihood,
                    "bic": parameters * np.log(total) - 2 * likelihood,
                    "held_out_log_likelihood": held_out,
                    "converged": study_fit.converged[:, 0],
                    "degenerate": study_fit.degenerate_components[:, 0].sum(axis=-1),
                }
            )
    behind, error = _distance_from_best(np.stack(log_masses), parts.sum(axis=1))
    return pl.concat(
        pl.DataFrame({**row, "held_out_behind": less, "held_out_error": scatter})
        for row, less, scatter in zip(rows, behind, error, strict=True)
    ).sort("dataset", "components")


def fewest_components(table: pl.DataFrame) -> dict[str, int]:
    """Choose by data set the fewest components within a standard error of the best."""
    enough = table.filter(pl.col("held_out_behind") <= pl.col("held_out_error"))
    fewest = enough.group_by("dataset", maintain_order=True).agg(pl.col("components").min())
    return dict(fewest.iter_rows())


def _distance_from_best(
    log_masses: Float[np.ndarray, "size 2 cell"], images: Float[np.ndarray, "2 cell"]
) -> tuple[Float[np.ndarray, "size 2"], Float[np.ndarray, "size 2"]]:
    """Compute each size's held-out deficit to the best, and its paired standard error."""
    best = log_masses.sum(axis=-1).argmax(axis=0)
    lead = log_masses[best, np.arange(2)] - log_masses  # summed over the images of a cell
    count = np.maximum(images, 1)
    mean = lead.sum(axis=-1) / images.sum(axis=-1)
    # Paired over images: the variance of the difference, not of either likelihood.
    squares = (images * (lead / count - mean[..., None]) ** 2).sum(axis=-1)
    return lead.sum(axis=-1), np.sqrt(squares)


def _folds(table: CellTable, folds: int, seed: int) -> Float[np.ndarray, "2 {folds} cell"]:
    """Split the images of both data sets at random: images of each cell in each fold."""
    parts = np.zeros((2, folds, len(table.shown)))
    for role in range(2):
        rng = np.random.default_rng([seed, 2, role])
        cells = np.repeat(np.arange(len(table.shown)), table.images[role, 0].astype(int))
        for fold, members in enumerate(np.array_split(rng.permutation(cells), folds)):
            parts[role, fold] = np.bincount(members, minlength=len(table.shown))
    return parts
