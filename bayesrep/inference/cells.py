"""Pointwise log likelihood and posterior predictive draws, one entry per (k, n) cell.

With groups of images a cell belongs to one group.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.inference.problem import Problem
from bayesrep.models.counts import complete, pair_of_cells
from bayesrep.numerics.beta_binomial import log_binomial
from bayesrep.posterior.groups import CellNames
from bayesrep.studies.statistics import Cells
from bayesrep.types import Float, Int

PREDICTIVE_EVERY = 10


def completed_cells(problem: Problem) -> dict[str, list[Cells]]:
    """Every data set's tables, one for each group, on the pairs that the model uses."""
    return {role: complete([cells[role] for cells in problem.cells]) for role in problem.roles}


def cell_names(problem: Problem) -> dict[str, CellNames]:
    """Which images the cells of every data set are about, groups one after another."""
    names: dict[str, CellNames] = {}
    for role, tables in completed_cells(problem).items():
        groups = np.repeat(np.array(problem.groups), len(tables[0].shown))
        counts = (np.tile(each, len(tables)) for each in (tables[0].selected, tables[0].shown))
        names[role] = CellNames(groups, *counts)
    return names


def _predict_counts(
    rng: np.random.Generator, cells: Cells, log_mass: Float[np.ndarray, "draw cell"]
) -> Int[np.ndarray, "draw cell"]:
    """Images per cell given how many images were shown to n annotators."""
    counts = np.zeros(log_mass.shape, dtype=np.int64)
    for size in np.unique(cells.shown):
        chosen = cells.shown == size
        mass = np.exp(log_mass[:, chosen])
        outside = np.clip(1 - mass.sum(axis=1, keepdims=True), 0, None)
        complete_mass = np.concatenate([mass, outside], axis=1)
        complete_mass /= complete_mass.sum(axis=1, keepdims=True)
        drawn = rng.multinomial(int(cells.images[chosen].sum()), complete_mass)
        counts[:, chosen] = drawn[:, :-1]
    return counts


def predicted_images(
    rng: np.random.Generator,
    tables: Sequence[Cells],
    log_mass: Float[np.ndarray, "draw group cell"],
) -> Int[np.ndarray, "draw all_cells"]:
    """Images per cell, groups one after another, of draws of log masses."""
    by_group = zip(tables, log_mass.swapaxes(0, 1), strict=True)
    parts = [_predict_counts(rng, cells, masses) for cells, masses in by_group]
    return np.concatenate(parts, axis=1)


def cell_groups(
    problem: Problem,
    values: Mapping[str, NDArray[Any]],
    *,
    seed: int,
    every: int = PREDICTIVE_EVERY,
    new_images: bool = False,
) -> dict[str, Any]:
    """Groups `log_likelihood`, `posterior_predictive` and `observed_data`.

    Parameters
    ----------
    problem
        What was fitted.
    values
        `log_mass_i` [chain, draw, G, M] of data set i and `cell_accuracy`
        [chain, draw, C, G, M], on the model's pairs.
    seed
        Seed of the predictive draws.
    every
        Every how many draws there is a predictive one.
    new_images
        Predict answers on the predicted images of each cell; otherwise on the observed ones, so
        that accuracies by cell can be compared with the observed.

    Returns
    -------
    dict
        `log_likelihood` holds for every data set `ROLE_images` (the images of a cell
        together), `correct` (the answers in a cell together, binomial) and `log_right`, the
        logarithm of P(correct | k, n), from which single answers follow.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
    log_likelihood, predictive, observed = {}, {}, {}
    tables = completed_cells(problem)
    for index, (role, groups) in enumerate(tables.items()):
        log_mass = values[f"log_mass_{index}"][..., pair_of_cells(groups[0])]
        outer = log_mass.shape[:2]
        name, dims = f"{role}_images", (f"{role}_cell",)
        images = np.concatenate([cells.images for cells in groups])
        thin = log_mass[:, ::every]
        drawn = predicted_images(rng, groups, thin.reshape(-1, *thin.shape[2:]))
        log_likelihood[name] = (("chain", "draw", *dims), images * log_mass.reshape(*outer, -1))
        predictive[name] = (("chain", "draw", *dims), drawn.reshape(*thin.shape[:2], -1))
        observed[name] = (dims, images)

    groups = tables["replication"]
    accuracy = values["cell_accuracy"][..., pair_of_cells(groups[0])]
    accuracy = accuracy.reshape(*accuracy.shape[:3], -1)
    images = np.concatenate([cells.images for cells in groups])
    right = np.concatenate([cells.correct for cells in groups]).T
    dims = ("classifier", "replication_cell")
    log_right = np.log(accuracy)
    log_mass = right * log_right + (images - right) * np.log1p(-accuracy)
    log_mass += log_binomial(images, right)
    log_likelihood["correct"] = (("chain", "draw", *dims), log_mass.astype(np.float32))
    log_likelihood["log_right"] = (("chain", "draw", *dims), log_right.astype(np.float32))
    thin = accuracy[:, ::every]
    shown = predictive["replication_images"][1][:, :, None] if new_images else images
    drawn = rng.binomial(shown, thin)
    predictive["correct"] = (("chain", "draw", *dims), drawn.astype(np.int32))
    observed["correct"] = (dims, right)
    return {
        "log_likelihood": log_likelihood,
        "posterior_predictive": predictive,
        "observed_data": observed,
    }
