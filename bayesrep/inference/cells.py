"""Pointwise log likelihood and posterior predictive draws, one entry per (k, n) cell.

With groups of images a cell belongs to one group.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrep.inference.density import Draws
from bayesrep.inference.problem import Problem, Programs
from bayesrep.inference.quantities import Part, gather, in_parts
from bayesrep.models.counts import complete, pair_of_cells
from bayesrep.models.model import Data
from bayesrep.numerics.codes import encode
from bayesrep.posterior.groups import CellNames
from bayesrep.studies.statistics import Cells
from bayesrep.types import Float, Int

PREDICTIVE_EVERY = 10
LARGEST_PREDICTIONS = 2**22
"""Answers that are predicted of every draw at most, 16 MB."""
LARGEST_LIKELIHOOD = 2**27
"""Numbers that the logits of right answers hold at most, half a gigabyte."""


def completed_cells(problem: Problem) -> dict[str, list[Cells]]:
    """Every data set's tables, one for each group, on the pairs that the model uses."""
    return {role: complete([cells[role] for cells in problem.cells]) for role in problem.roles}


def cell_names(problem: Problem) -> dict[str, CellNames]:
    """Which images the cells of every data set are about, groups one after another."""
    names: dict[str, CellNames] = {}
    every = completed_cells(problem)
    for role, tables in every.items():
        groups = np.repeat(np.array(problem.groups), len(tables[0].shown))
        counts = (np.tile(each, len(tables)) for each in (tables[0].selected, tables[0].shown))
        names[role] = CellNames(groups, *counts)
    some = np.flatnonzero(_answers(every["replication"])[0])  # of the others nobody answered
    names["answered"] = CellNames(*(each[some] for each in names["replication"]))
    return names


def _predict_counts(
    rng: np.random.Generator, cells: Cells, log_mass: Float[np.ndarray, "draw cell"]
) -> Int[np.ndarray, "draw cell"]:
    """Images per cell given how many images were shown to n annotators."""
    counts = np.zeros(log_mass.shape, dtype=np.int64)
    for size in np.unique(cells.shown):
        chosen = cells.shown == size
        mass = np.nan_to_num(np.exp(log_mass[:, chosen]))  # a draw far out may have no masses
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


class Thinning(NamedTuple):
    """Every how many draws of a chain the log likelihood of the cells is kept, or predicted."""

    likelihood: int
    predictive: int


def thinning(problem: Problem, chains: int, length: int) -> Thinning:
    """That of a fit: the log likelihood of all draws, unless it is too large.

    Predictions are of all draws where they are few, so that ArviZ finds both of the same draws, and
    else of about every tenth of those of which the log likelihood is kept.
    """
    cells = completed_cells(problem)["replication"]
    answers = len(problem.statistics.classifiers) * sum(len(each.images) for each in cells)
    numbers = chains * length * answers
    kept = min(length, -(-numbers // LARGEST_LIKELIHOOD))
    few = numbers <= LARGEST_PREDICTIONS
    return Thinning(kept, 1 if few else kept * -(-PREDICTIVE_EVERY // kept))


def evaluate_cells(
    problem: Problem, tools: Programs, data: Data, draws: Draws, every: Thinning
) -> dict[str, NDArray[Any]]:
    """Sites and quantities at positions [chain, draw, ...]; of the cells what `cell_groups` takes.

    In place of `cell_accuracy` stand `accuracy` [chain, draw, C, cell] at the draws that predict,
    and `logit_right` at those of which the log likelihood is kept. All of it is never in memory: of
    ten thousand classifiers it is more than all else together.
    """
    chains, length = draws["shared"].shape[:2]
    tables = completed_cells(problem)["replication"]
    pairs = pair_of_cells(tables[0])

    def parts() -> Iterator[Part]:
        for rows, places, values in in_parts(tools, draws, data):
            accuracy = values["cell_accuracy"]
            yield Part(rows, places, {name: v for name, v in values.items() if v is not accuracy})
            if len(pairs) < accuracy.shape[3]:
                accuracy = accuracy[..., pairs]
            accuracy = accuracy.reshape(*accuracy.shape[:2], -1)
            predicting, kept = (rows % length % step == 0 for step in every[::-1])
            yield Part(rows[predicting], places[predicting], {"accuracy": accuracy})
            # Draws that no weight holds back may be so far out that a curve rounds to 0 or 1.
            precision = np.finfo(np.float64)
            some, places = np.unique(places[kept], return_inverse=True)
            accuracy = np.clip(accuracy[some], precision.tiny, 1 - precision.epsneg)
            logit = np.log(accuracy)
            logit -= np.log1p(-accuracy)
            yield Part(rows[kept], places, {"logit_right": logit.astype(np.float32)})

    steps = {"accuracy": every.predictive, "logit_right": every.likelihood}
    return gather(parts(), chains, length, steps)


def _answers(
    tables: Sequence[Cells],
) -> tuple[Int[np.ndarray, "all_cells"], Int[np.ndarray, "classifier all_cells"]]:
    """Images, and right answers, groups one after another."""
    images = np.concatenate([cells.images for cells in tables])
    return images, np.concatenate([cells.correct for cells in tables]).T


def cell_groups(
    problem: Problem,
    values: Mapping[str, NDArray[Any]],
    every: Thinning,
    *,
    seed: int,
    new_images: bool = False,
) -> dict[str, Any]:
    """Groups `log_density`, `posterior_predictive` and `observed_data`.

    Parameters
    ----------
    problem
        What was fitted.
    values, every
        `log_mass_i` [chain, draw, G, M] of data set i on the model's pairs, and what else
        `evaluate_cells` says of cells, with its thinning.
    seed
        Seed of the predictive draws.
    new_images
        Predict answers on the predicted images of each cell (all of them: `replication_right`);
        otherwise on the observed ones, so that accuracies by cell can be compared with the
        observed.

    Returns
    -------
    dict
        `log_density` holds for every data set `ROLE_images` (the images of a cell together) and
        `logit_right`, the logit of P(correct | k, n) in steps of `logit_step` from `logit_middle`
        (`bayesrep.numerics.codes`), from which the likelihood of the answers follows
        (`bayesrep.posterior.likelihood`). `correct` is of the cells with images
        (`answered_cell`). All that is observed is predicted, under the same name. Where a group is
        thinned, its `draw` says which draws it has.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
    log_density, predictive, observed = {}, {}, {}
    tables = completed_cells(problem)
    for index, (role, groups) in enumerate(tables.items()):
        log_mass = values[f"log_mass_{index}"][..., pair_of_cells(groups[0])]
        name, dims = f"{role}_images", (f"{role}_cell",)
        images = np.concatenate([cells.images for cells in groups])
        thin = log_mass[:, :: every.predictive]
        drawn = predicted_images(rng, groups, thin.reshape(-1, *thin.shape[2:]))
        kept = log_mass[:, :: every.likelihood]
        kept = images * kept.reshape(*kept.shape[:2], -1)
        log_density[name] = (("chain", "draw", *dims), kept)
        predictive[name] = (("chain", "draw", *dims), drawn.reshape(*thin.shape[:2], -1))
        observed[name] = (dims, images)

    images, right = _answers(tables["replication"])
    some, dims = np.flatnonzero(images), ("classifier", "answered_cell")
    by_cell = ("classifier", "replication_cell")
    coded = encode(values["logit_right"])
    log_density["logit_right"] = (("chain", "draw", *by_cell), coded.code)
    log_density["logit_middle"] = (by_cell, coded.middle)
    log_density["logit_step"] = (by_cell, coded.step)
    for group, step in ((log_density, every.likelihood), (predictive, every.predictive)):
        if step > 1:
            group["draw"] = (("draw",), np.arange(0, values["log_mass_0"].shape[1], step))
    shown = predictive["replication_images"][1] if new_images else images
    shown = np.broadcast_to(shown, (*values["accuracy"].shape[:2], len(images)))
    drawn = np.empty(values["accuracy"].shape, dtype=np.int32)
    for place in np.ndindex(drawn.shape[:2]):  # all at once take twice the memory
        drawn[place] = rng.binomial(shown[place], values["accuracy"][place])
    predictive["correct"] = (("chain", "draw", *dims), drawn[..., some])
    if new_images:
        predictive["replication_right"] = (("chain", "draw", *by_cell), drawn)
        observed["replication_right"] = (by_cell, right)
    observed["correct"] = (dims, right[:, some])
    return {
        "log_density": log_density,
        "posterior_predictive": predictive,
        "observed_data": observed,
    }
