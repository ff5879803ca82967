"""Quantities at many draws, and the likelihood and predictions of the (k, n) cells."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayesrep.files.digests import digest_parts
from bayesrep.inference.density import Draws
from bayesrep.inference.problem import Problem, Programs
from bayesrep.models.counts import complete, pair_of_cells
from bayesrep.models.model import Data
from bayesrep.numerics.codes import encode
from bayesrep.posterior.groups import CellNames
from bayesrep.studies.statistics import Cells
from bayesrep.types import Float, Int, Ints

MAX_DRAWS_PER_CALL, MAX_NUMBERS_PER_CALL = 50, 2**24
"""Most draws evaluated together, and most numbers that the data of these may have."""
MAX_PREDICTIONS = 2**22
"""Most answers for which every draw is predicted, 16 MB."""
MAX_LOGITS = 2**27
"""Most logits of right answers that a posterior stores, half a gigabyte."""


Parts: TypeAlias = Sequence[tuple[Programs, Data, Ints]]
"""Programs and data of the rows of draws [chain × draw] that these evaluate."""


def evaluate(
    draws: Draws,
    parts: Parts,
    # In place of large quantities, by name: the quantity, every how many draws, and a function.
    thinned: Mapping[str, tuple[str, int, Callable[[NDArray[Any]], NDArray[Any]]]] | None = None,
) -> dict[str, NDArray[Any]]:
    """Compute sites and quantities at positions [chain, draw, ...], as arrays of that form."""
    chains, length = draws["shared"].shape[:2]
    flat = {name: np.asarray(leaf).reshape(-1, *leaf.shape[2:]) for name, leaf in draws.items()}
    thinned = thinned or {}
    replaced = {source for source, _, _ in thinned.values()}
    whole: dict[str, NDArray[Any]] = {}
    for compiled, data, chosen in parts:
        some = {name: leaf[chosen] for name, leaf in flat.items()}
        for rows, number, values in _evaluate_distinct(compiled, some, data):
            unthinned = {name: (name, 1, np.asarray) for name in values.keys() - replaced}
            for name, (source, step, function) in {**unthinned, **thinned}.items():
                stored = chosen[rows] % length % step == 0
                if not stored.any():
                    continue
                distinct, place = np.unique(number[stored], return_inverse=True)
                result = function(values[source][distinct])
                if name not in whole:
                    shape = chains, -(-length // step), *result.shape[1:]
                    whole[name] = np.empty(shape, result.dtype)
                chain, draw = np.divmod(chosen[rows[stored]], length)
                whole[name][chain, draw // step] = result[place]
    return dict(sorted(whole.items()))


def _evaluate_distinct(
    compiled: Programs, flat: Mapping[str, NDArray[Any]], data: Data
) -> Iterator[tuple[Ints, Ints, dict[str, NDArray[Any]]]]:
    """Yield rows of draws, the number of each among a batch's values, and these values."""
    # Equal draws, as in a resample of weighted ones, are computed once: the first index of each
    # distinct draw, and the number of every draw among these.
    rows = zip(*flat.values(), strict=True)
    digests = (digest_parts(leaf.tobytes() for leaf in row) for row in rows)
    numbers: dict[str, int] = {}
    same = np.array([numbers.setdefault(digest, len(numbers)) for digest in digests])
    first = np.unique(same, return_index=True)[1]
    a_draw = sum(jnp.size(leaf) for leaf in jax.tree.leaves(data))
    size = max(1, min(MAX_DRAWS_PER_CALL, MAX_NUMBERS_PER_CALL // a_draw))
    # All batches have one shape, so that one program serves: too few draws are repeated, and the
    # last batch overlaps the one before it.
    first = np.resize(first, max(size, len(first)))
    for start in range(0, len(first), size):
        begin = min(start, len(first) - size)
        some = {name: leaf[first[begin : begin + size]] for name, leaf in flat.items()}
        values = {name: np.asarray(v) for name, v in compiled.quantities(some, data).items()}
        chosen = np.flatnonzero((same >= start) & (same < begin + size))
        yield chosen, same[chosen] - begin, values


def completed_cells(problem: Problem) -> dict[str, list[Cells]]:
    """Complete every data set's tables, one for each group, on the pairs that the model uses."""
    return {role: complete([cells[role] for cells in problem.cells]) for role in problem.roles}


def cell_names(problem: Problem) -> dict[str, CellNames]:
    """Name the cells of every data set by group, k and n; groups one after another."""
    names: dict[str, CellNames] = {}
    every = completed_cells(problem)
    for role, tables in every.items():
        groups = np.repeat(np.array(problem.groups), len(tables[0].shown))
        counts = (np.tile(each, len(tables)) for each in (tables[0].selected, tables[0].shown))
        names[role] = CellNames(groups, *counts)
    images = np.concatenate([cells.images for cells in every["replication"]])
    some = np.flatnonzero(images)  # of the others nobody answered
    names["answered"] = CellNames(*(each[some] for each in names["replication"]))
    return names


def _predict_images(
    rng: np.random.Generator, cells: Cells, log_mass: Float[np.ndarray, "draw cell"]
) -> Int[np.ndarray, "draw cell"]:
    """Draw the images per cell given how many images n annotators answered."""
    counts = np.zeros(log_mass.shape, dtype=np.int64)
    for size in np.unique(cells.shown):
        chosen = cells.shown == size
        mass = np.nan_to_num(np.exp(log_mass[:, chosen]))  # a draw far out may have no masses
        outside = np.clip(1 - mass.sum(axis=1, keepdims=True), 0, None)
        complete_mass = np.concatenate([mass, outside], axis=1)
        complete_mass /= complete_mass.sum(axis=1, keepdims=True)
        images = rng.multinomial(int(cells.images[chosen].sum()), complete_mass)
        counts[:, chosen] = images[:, :-1]
    return counts


def thinning(problem: Problem, chains: int, length: int) -> tuple[int, int]:
    """Choose every how many draws of a chain have a log likelihood, and predictions."""
    cells = completed_cells(problem)["replication"]
    answers = len(problem.statistics.classifiers) * sum(len(each.images) for each in cells)
    numbers = chains * length * answers
    step = min(length, -(-numbers // MAX_LOGITS))
    # Few predictions are made for all draws, so that ArviZ finds both for the same draws; many only
    # for about every tenth of the draws with a log likelihood.
    few = numbers <= MAX_PREDICTIONS
    return step, 1 if few else step * -(-10 // step)


def evaluate_cells(
    problem: Problem, draws: Draws, parts: Parts, every: tuple[int, int]
) -> dict[str, NDArray[Any]]:
    """Compute sites and quantities at positions [chain, draw, ...], thinned for `cell_groups`."""
    pairs = pair_of_cells(completed_cells(problem)["replication"][0])

    def on_cells(accuracy: NDArray[Any]) -> NDArray[Any]:
        some = accuracy[..., pairs] if len(pairs) < accuracy.shape[3] else accuracy
        return some.reshape(*some.shape[:2], -1)

    def logit_on_cells(accuracy: NDArray[Any]) -> NDArray[Any]:
        # Draws of small weight may be so far out that a curve rounds to 0 or 1.
        precision = np.finfo(np.float64)
        accuracy = np.clip(on_cells(accuracy), precision.tiny, 1 - precision.epsneg)
        logit = np.log(accuracy)
        logit -= np.log1p(-accuracy)
        return logit.astype(np.float32)

    # `cell_accuracy` is larger than all else for ten thousand classifiers. In its place stand
    # `accuracy` [chain, draw, C, cell] at the predictive draws, and `logit_right` at the draws with
    # a log likelihood.
    thinned = {
        "accuracy": ("cell_accuracy", every[1], on_cells),
        "logit_right": ("cell_accuracy", every[0], logit_on_cells),
    }
    return evaluate(draws, parts, thinned)


def cell_groups(
    problem: Problem,
    values: Mapping[str, NDArray[Any]],
    every: tuple[int, int],
    *,
    seed: int,
    new_images: bool = False,
) -> dict[str, Any]:
    """Build the groups `log_density`, `posterior_predictive` and `observed_data`."""
    rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
    log_density, predictive, observed = {}, {}, {}
    for index, (role, tables) in enumerate(completed_cells(problem).items()):
        log_mass = values[f"log_mass_{index}"][..., pair_of_cells(tables[0])]
        images = np.concatenate([cells.images for cells in tables])
        density_mass, predictive_mass = (log_mass[:, ::step] for step in every)
        flat = predictive_mass.reshape(-1, *predictive_mass.shape[2:])
        predicted = [_predict_images(rng, cells, flat[:, g]) for g, cells in enumerate(tables)]
        predicted = np.concatenate(predicted, axis=1).reshape(*predictive_mass.shape[:2], -1)
        name, dims = f"{role}_images", (f"{role}_cell",)
        of_draws = ("chain", "draw", *dims)
        # Of the images of a cell together; all that is observed is predicted, under the same name.
        log_density[name] = (of_draws, images * density_mass.reshape(*density_mass.shape[:2], -1))
        predictive[name] = (of_draws, predicted)
        observed[name] = (dims, images)

    images = observed["replication_images"][1]
    right = np.concatenate([cells.correct for cells in completed_cells(problem)["replication"]]).T
    some, dims = np.flatnonzero(images), ("classifier", "answered_cell")
    by_cell = ("classifier", "replication_cell")
    # The logit of P(correct | k, n) in steps (`bayesrep.numerics.codes`), from which the likelihood
    # of the answers follows (`bayesrep.posterior.likelihood`).
    coded = encode(values["logit_right"])
    log_density["logit_right"] = (("chain", "draw", *by_cell), coded.code)
    log_density["logit_middle"] = (by_cell, coded.middle)
    log_density["logit_step"] = (by_cell, coded.step)
    for group, step in zip((log_density, predictive), every, strict=True):
        if step > 1:  # the numbers of a thinned group's draws
            group["draw"] = (("draw",), np.arange(0, values["log_mass_0"].shape[1], step))
    # Answers about the observed images of a cell, so that accuracies can be compared, or new ones.
    trials = predictive["replication_images"][1] if new_images else images
    trials = np.broadcast_to(trials, (*values["accuracy"].shape[:2], len(images)))
    correct = np.empty(values["accuracy"].shape, dtype=np.int32)
    answers = problem.options.answer_distribution()
    for place in np.ndindex(correct.shape[:2]):  # all at once take twice the memory
        correct[place] = answers.sample(rng, trials[place], values["accuracy"][place])
    predictive["correct"] = (("chain", "draw", *dims), correct[..., some])
    observed["correct"] = (dims, right[:, some])
    if new_images:
        predictive["replication_right"] = (("chain", "draw", *by_cell), correct)
        observed["replication_right"] = (by_cell, right)
    return {
        "log_density": log_density,
        "posterior_predictive": predictive,
        "observed_data": observed,
    }
