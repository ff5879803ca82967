"""The one door to a posterior: data in, ArviZ object out."""

import dataclasses
import json
import os
import platform
import warnings
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import version
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayesrep import __version__
from bayesrep.errors import ConvergenceWarning
from bayesrep.inference.arrowhead import Whitening, arrowhead_hessian, whitening
from bayesrep.inference.cells import cell_groups
from bayesrep.inference.density import Density, Position, build_density
from bayesrep.inference.mode import Climb, climb
from bayesrep.inference.nuts import (
    Sampler,
    Schedule,
    Transition,
    build_sampler,
    compiled,
    sample,
    unwhiten,
)
from bayesrep.inference.posterior import build_posterior
from bayesrep.inference.progress import progress_bar
from bayesrep.inference.verdict import diagnostics, judge
from bayesrep.models import MODELS, Model
from bayesrep.statistics import SufficientStatistics
from bayesrep.study import Study

PACKAGES = ("jax", "jaxlib", "numpyro", "numpy", "arviz")


class _Program(NamedTuple):
    """Everything compiled for one model, its options, a schedule and the shapes of the data."""

    density: Density
    climb: Any
    whiten: Any
    sampler: Sampler
    quantities: Any


@lru_cache(maxsize=8)
def _program(
    name: str, options: Any, schedule: Schedule, structure: Any, shapes: Any, *, vectorized: bool
) -> _Program:
    model = MODELS[name]
    leaves = [jnp.zeros(shape) for shape in shapes]
    example = jax.tree.unflatten(structure, leaves)
    density = build_density(lambda data: model.function(data, options), example)

    def find_mode(start: Position, data: Any) -> Climb:
        on_part = climb(density, start, model.first_data(data))
        return climb(density, on_part.position, data)

    def whiten(at: Position, data: Any) -> Whitening:
        return whitening(arrowhead_hessian(lambda q: density.potential(q, data), at), at)

    def quantities(draws: Position, data: Any, transform: Whitening) -> dict[str, Any]:
        def one(standard: Position) -> dict[str, Any]:
            return density.quantities(transform(standard), data)

        return jax.lax.map(one, draws, batch_size=50)

    return _Program(
        density,
        jax.jit(find_mode),
        jax.jit(whiten),
        build_sampler(density, schedule, vectorized=vectorized),
        jax.jit(quantities),
    )


def fit(
    study: Study | SufficientStatistics,
    *,
    model: str = "joint",
    chains: int = 4,
    warmup: int = 500,
    draws: int = 500,
    seed: int = 0,
    progress: bool = True,
    options: Any = None,
) -> Any:
    """Sample the joint posterior of selection frequencies and accuracy curves with NUTS.

    Time and memory depend on the number of classifiers and of distinct (k, n) pairs, never on the
    number of images. Chains run in threads on a CPU and as one batch on a GPU, in float64 either
    way; JAX's configuration is left as it was. The same arguments on the same machine give the
    same draws, with or without the progress bar.

    Parameters
    ----------
    study
        Annotation counts and correctness, or their sufficient statistics.
    model
        ``"joint"``: :mod:`bayesrep.models.joint`.
    chains, warmup, draws
        Number of chains, and of adaptation steps and kept draws in each. Three NUTS transitions
        are made for every kept draw.
    seed
        Seed of everything random.
    progress
        Show a bar on standard error.
    options
        Sizes and priors, ``bayesrep.models.joint.JointOptions(...)``; default: the recommended.

    Returns
    -------
    arviz.InferenceData (ArviZ 0.23) or xarray.DataTree (ArviZ 1.x)
        Group ``posterior``: ``adjusted_accuracy``, ``bias_corrected_gap`` and ``selection_gap``
        (chain, draw, classifier), ``mean_selection_frequency`` (chain, draw, dataset), mixture
        and curve parameters with named dimensions. Groups ``log_likelihood``,
        ``posterior_predictive`` (every tenth draw) and ``observed_data`` hold one entry per
        (k, n) cell. ``sample_stats``: ``diverging``, ``num_steps``, ``energy``,
        ``acceptance_rate``, ``step_size``, ``lp``. Attributes: versions, device, precision, seed,
        options, fingerprint of the study and the convergence verdict.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Warns
    -----
    ConvergenceWarning
        If R-hat > 1.01, an effective sample size < 400 or a draw diverged; says which quantity
        and what to try.
    """
    chosen = _chosen_model(model, chains, warmup, draws)
    statistics = SufficientStatistics.from_study(study) if isinstance(study, Study) else study
    options = chosen.options() if options is None else options
    schedule = Schedule(chains=chains, warmup=warmup, draws=draws)
    total = chains * (warmup + draws)
    with jax.enable_x64(new_val=True), progress_bar(total, show=progress) as bar:
        data = chosen.data(statistics)
        leaves, structure = jax.tree.flatten(data)
        vectorized = jax.default_backend() != "cpu"
        shapes = tuple(jnp.shape(leaf) for leaf in leaves)
        program = _program(model, options, schedule, structure, shapes, vectorized=vectorized)
        bar.stage("finding the mode")
        start = program.density.to_position(chosen.start(data, options))
        mode = program.climb(start, data)
        transform = program.whiten(mode.position, data)

        bar.stage("compiling")
        keys = jax.random.split(jax.random.key(seed), chains)
        sampler = compiled(program.sampler, keys if vectorized else keys[0], data, transform)
        bar.stage("sampling")
        workers = min(chains, os.cpu_count() or 1)
        result = sample(sampler, keys, data, transform, schedule, bar.advance, workers=workers)
        sites = unwhiten(program.density, transform, result.position)
        values = _quantities(program, result.position, data, transform)
    posterior = _pack(chosen, statistics, sites, values, result, seed=seed)
    attributes = _attributes(statistics, model, options, schedule, seed)
    return _judged(posterior, attributes, result, _coordinates(statistics))


def _chosen_model(model: str, chains: int, warmup: int, draws: int) -> Model:
    if model not in MODELS:
        raise ValueError(f"model must be one of {', '.join(MODELS)}; got {model!r}")
    if chains < 1 or warmup < 10 or draws < 10:
        raise ValueError(
            "a fit needs chains >= 1, warmup >= 10 and draws >= 10; "
            f"got {chains}, {warmup} and {draws}"
        )
    return MODELS[model]


def _quantities(
    program: _Program, draws: Position, data: Any, transform: Whitening
) -> dict[str, NDArray[np.float64]]:
    """The model's deterministic quantities at all draws, [chain, draw, ...]."""
    shape = draws["shared"].shape[:2]
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), draws)
    values = program.quantities(flat, data, transform)
    names = set(values) - set(program.density.sites)
    return {n: np.asarray(values[n]).reshape(*shape, *values[n].shape[1:]) for n in sorted(names)}


def _pack(
    model: Model,
    statistics: SufficientStatistics,
    sites: Mapping[str, NDArray[Any]],
    values: Mapping[str, NDArray[Any]],
    result: Transition,
    *,
    seed: int,
) -> dict[str, Any]:
    """Groups of the ArviZ object."""
    posterior = {
        name: (("chain", "draw", *dims), {**sites, **values}[name])
        for name, dims in model.dims.items()
    }
    adjusted = values["adjusted_accuracy"]
    by_classifier = ("chain", "draw", "classifier")
    reference, replication = (statistics.accuracy(r) for r in ("reference", "replication"))
    posterior["bias_corrected_gap"] = (by_classifier, reference - adjusted)
    posterior["selection_gap"] = (by_classifier, adjusted - replication)
    stats = {name: (("chain", "draw"), getattr(result, name)) for name in STATISTICS}
    return {
        "posterior": posterior,
        "sample_stats": stats,
        **cell_groups(statistics, values, seed=seed),
    }


STATISTICS = ("diverging", "num_steps", "acceptance_rate", "energy", "step_size", "lp")


def _coordinates(statistics: SufficientStatistics) -> dict[str, NDArray[Any]]:
    def names(role: str) -> NDArray[Any]:
        cells = statistics.cells[role]
        return np.array([f"{k}/{n}" for k, n in zip(cells.selected, cells.shown, strict=True)])

    return {
        "classifier": np.array(statistics.classifiers),
        "dataset": np.array(["reference", "replication"]),
        "reference_cell": names("reference"),
        "replication_cell": names("replication"),
    }


def _attributes(
    statistics: SufficientStatistics, model: str, options: Any, schedule: Schedule, seed: int
) -> dict[str, str | int | float]:
    return {
        "model": model,
        "options": json.dumps(dataclasses.asdict(options)),
        "schedule": json.dumps(dataclasses.asdict(schedule)),
        "seed": seed,
        "precision": "float64",
        "device": jax.devices()[0].device_kind,
        "machine": platform.machine(),
        "versions": json.dumps(
            {"bayesrep": __version__, **{name: version(name) for name in PACKAGES}}
        ),
        "study_fingerprint": statistics.fingerprint(),
    }


def _judged(
    groups: dict[str, Any],
    attributes: dict[str, str | int | float],
    result: Transition,
    coordinates: Mapping[str, NDArray[Any]],
) -> Any:
    """Assemble the object with its verdict, warning if it is not a good one."""
    draft = build_posterior(groups, coordinates, attributes)
    verdict = judge(
        diagnostics(draft.posterior),
        int(result.diverging.sum()),
        result.diverging.size,
    )
    if not verdict.converged:
        warnings.warn(verdict.sentence, ConvergenceWarning, stacklevel=3)
    attributes |= {"converged": int(verdict.converged), "verdict": verdict.sentence}
    return build_posterior(groups, coordinates, attributes)
