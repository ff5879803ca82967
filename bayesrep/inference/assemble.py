"""The ArviZ object of a fit: names, dimensions, coordinates and attributes of its draws."""

import dataclasses
import json
import platform
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrep.inference.annotators import AnnotatorDraws
from bayesrep.inference.cells import cell_groups, cell_names, evaluate_cells, thinning
from bayesrep.inference.image_weights import class_shift, population_accuracy
from bayesrep.inference.problem import Problem
from bayesrep.models.answers import BINOMIAL
from bayesrep.models.model import Data
from bayesrep.posterior.files import Coordinate
from bayesrep.posterior.groups import cell_coordinates
from bayesrep.version import __version__


@lru_cache  # reads a file of every package
def versions() -> dict[str, str]:
    """Read the versions of the packages behind the numbers."""
    packages = ("jax", "jaxlib", "numpyro", "numpy", "arviz")
    return {"bayesrep": __version__, **{name: version(name) for name in packages}}


def posterior_group(
    problem: Problem, data: Data, values: Mapping[str, NDArray[Any]]
) -> dict[str, tuple[tuple[str, ...], NDArray[Any]]]:
    """Name the dimensions of reported quantities of draws [chain, draw, ...]."""
    group = {
        name: (("chain", "draw", *dims), values[name])
        for name, dims in problem.model.dims(data, problem.options).items()
    }
    adjusted = values["adjusted_accuracy"]
    by_classifier = ("chain", "draw", "classifier")
    reference, replication = (
        problem.statistics.accuracy(role) for role in ("reference", "replication")
    )
    group["bias_corrected_gap"] = (by_classifier, reference - adjusted)
    group["selection_gap"] = (by_classifier, adjusted - replication)
    return group


def posterior_groups(
    problem: Problem,
    data: Data,
    draws: AnnotatorDraws,
    stats: Mapping[str, NDArray[Any]],
    *,
    seed: int,
    classes: str,
) -> dict[str, Any]:
    """Build all groups of a fit's ArviZ object from positions [chain, draw, ...]."""
    every = thinning(problem, *draws.position["shared"].shape[:2])
    values = evaluate_cells(problem, draws.position, draws.parts, every)
    log_mass, shape = values["log_mass_0"], values["adjusted_accuracy"].shape
    by_draw, random = ("chain", "draw"), np.random.default_rng([seed, 5])
    by_classifier = (*by_draw, "classifier")
    flat = population_accuracy(problem, log_mass.reshape(-1, *log_mass.shape[2:]), random)
    population = flat.reshape(shape)
    variables = {name: (by_draw, value) for name, value in draws.varied.items()}
    if "dependence" in draws.varied:
        log_prior = -0.5 * np.square(draws.varied["dependence"] / problem.options.dependence_prior)
        values["lp"] = values["lp"] + log_prior
        values["log_prior_shared"] = values["log_prior_shared"] + log_prior
    # Draws of what images weigh, for a population of them and for classes of known shares.
    correction = class_shift(problem, classes, shape[0] * shape[1], random) if classes else None
    if correction is not None:
        shift = correction.reshape(shape)
        values["adjusted_accuracy"] = np.clip(values["adjusted_accuracy"] + shift, 0, 1)
        variables["class_shift"] = by_draw, shift.mean(axis=2)
    return {
        "posterior": {
            **posterior_group(problem, data, values),
            "population_reference_accuracy": (by_classifier, population),
            "population_gap": (by_classifier, population - values["adjusted_accuracy"]),
            **variables,
        },
        "log_prior": {
            "shared": (by_draw, values["log_prior_shared"]),
            "own": (by_classifier, values["log_prior_own"].astype(np.float32)),
        },
        "sample_stats": {
            name: (by_draw, value) for name, value in {**stats, "lp": values["lp"]}.items()
        },
        **cell_groups(problem, values, every, seed=seed),
    }


def coordinates(problem: Problem) -> dict[str, Coordinate]:
    """Build the coordinates: names along dimensions, and counts (k, n) of cells."""
    coordinates: dict[str, Coordinate] = {
        "classifier": ("classifier", np.array(problem.statistics.classifiers)),
        "dataset": ("dataset", np.array(problem.roles)),
        "group": ("group", np.array(problem.groups)),
    }
    for role, cells in cell_names(problem).items():
        coordinates |= cell_coordinates(role, cells)
    return coordinates


def attributes(
    problem: Problem, data: Data, *, method: str, seed: int, **more: Any
) -> dict[str, str | int | float]:
    """Record the settings of a fit, enough to repeat it."""
    model, options = problem.model, problem.options
    dims = model.dims(data, options)
    sites = [name for name in model.start(data, options) if name in dims]
    shared = [name for name in sites if "classifier" not in dims[name]]
    # For readers without the model.
    traits = {"shared": shared, "binomial": options.answer_distribution() == BINOMIAL}
    rules = {role: problem.statistics.cells[role].selection for role in problem.roles}
    return {
        "model": problem.name,
        "method": method,
        "options": json.dumps(dataclasses.asdict(options)),
        "traits": json.dumps(traits),
        "datasets": json.dumps(problem.roles),
        "groups": problem.grouping or "",
        "classifier_weight": float(model.weight(data)),
        "seed": seed,
        "precision": "float64",
        "machine": platform.machine(),
        "versions": json.dumps(versions()),
        "study_fingerprint": "" if problem.study is None else problem.study.fingerprint(),
        "statistics_digest": problem.statistics.digest(),
        "leniency_scale": problem.statistics.leniency_scale,
        "selection": json.dumps({role: r.content() for role, r in rules.items() if r is not None}),
        **{k: v if isinstance(v, str | int | float) else json.dumps(v) for k, v in more.items()},
    }
