"""The methods of a fit: weighted draws of nested Laplace, chains, and chains with cut feedback."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from bayesrep.errors import OptionError
from bayesrep.inference.arrowhead import Whitening, lower_root, whitening
from bayesrep.inference.chains import sample
from bayesrep.inference.density import Density, Draws
from bayesrep.inference.device import DeviceChoice
from bayesrep.inference.image_weights import share_images
from bayesrep.inference.laplace_marginal import Marginal
from bayesrep.inference.marginal_mode import (
    evaluation_program,
    find_marginal_mode,
    move_coordinates,
)
from bayesrep.inference.mode import around_mode, find_mode, mixture_size
from bayesrep.inference.nested_laplace import (
    N_POINTS,
    ImportanceSample,
    Proposal,
    draw_weighted,
    fit_proposal,
    resample,
    sample_marginal,
)
from bayesrep.inference.nuts import Sampler, Target, build_sampler, compile_sampler
from bayesrep.inference.problem import Problem, Programs
from bayesrep.inference.schedule import BLOCK, Schedule
from bayesrep.inference.surrogate import features, fit_surrogate
from bayesrep.machine import cores
from bayesrep.models.model import Data
from bayesrep.posterior.verdict import MAX_PARETO_K
from bayesrep.progress import Progress
from bayesrep.types import Float, Shaped

MethodDraws: TypeAlias = tuple[
    Draws, Mapping[str, Shaped[np.ndarray, "chain draw"]], Mapping[str, float]
]
"""Draws [chain, draw, ...] in the density's coordinates, with statistics and attributes."""


@dataclass(frozen=True, eq=False)
class Run:
    """Arguments of a method: the problem, its programs and data, and the settings of the fit."""

    problem: Problem
    tools: Programs
    data: Data
    schedule: Schedule
    seed: int
    device: DeviceChoice
    bar: Progress
    marginal: ImportanceSample | None  # given all data; None with cut feedback
    folder: Path | None  # of the checkpoint
    times: int = 1  # length of chains in multiples of the usual one

    @property
    def vectorized(self) -> bool:
        """True if chains run as one batch."""
        return self.device.mesh is not None or self.device.device.platform != "cpu"


def sample_around_mode(
    problem: Problem, tools: Programs, data: Data, seed: list[int]
) -> ImportanceSample:
    """Sample the Laplace marginal around the mode above the prior means."""
    normal = around_mode(problem, tools, data)
    setting = find_marginal_mode(tools.density, normal, data, tools.expand)
    setting = share_images(tools.density, setting, problem)
    return sample_marginal(tools.density, setting, np.random.default_rng(seed))


def laplace(run: Run) -> MethodDraws:
    """Draw from the posterior by weighting draws of the nested Laplace approximation."""
    assert run.marginal is not None
    run.bar.stage("sampling")
    random = np.random.default_rng([run.seed, 2])
    n_returned = run.schedule.chains * run.schedule.draws
    # A third of the returned draws: the weights are even enough for few repetitions.
    count = max(n_returned // 3, 1000)
    draws, log_weight, psis = draw_weighted(run.tools.density, run.marginal, random, count)
    if psis.pareto_k < MAX_PARETO_K:
        rows = resample(random, psis.log_weight, n_returned)
    else:
        # Unreliable weights would repeat a few draws many times over: draws at random, since draws
        # that are each there twice are taken for two runs.
        usable = np.flatnonzero(np.isfinite(log_weight))
        rows = random.choice(usable if len(usable) else len(log_weight), n_returned)
    run.bar.advance(1)
    position, log_weight = jax.tree.map(lambda leaf: leaf[rows][None], (draws.position, log_weight))
    facts = {"pareto_k": psis.pareto_k, "ess": psis.ess}
    return position, {"log_weight": log_weight}, facts


def nuts(run: Run) -> MethodDraws:
    """Draw from the posterior given everything by chains."""
    assert run.marginal is not None
    return _sample_around(run, run.marginal, part="joint", stage=0)


def cut(run: Run) -> MethodDraws:
    """Draw mixtures given the annotations, and curves given each of them, by chains.

    Plummer (2015), "Cuts in Bayesian graphical models", section 4: the curves' own chain goes
    through the mixture's draws one by one, with a few transitions at each from where the last one
    ended.
    """
    model, schedule, density = run.problem.model, run.schedule, run.tools.density
    # What is held is the first of the shared coordinates.
    shared = [n in model.mixture_sites for n in density.sites if n not in density.unit_axes]
    if shared != sorted(shared, reverse=True):
        raise OptionError("model-takes-no-cut", model=run.problem.name)
    run.bar.stage("finding the mode")
    annotations = model.annotations(run.data)
    marginal = sample_around_mode(run.problem, run.tools, annotations, [run.seed, 4])
    alone, *_ = _sample_around(run, marginal, part="mixtures", stage=0)
    size = mixture_size(density, model)
    mixture = np.asarray(alone["shared"])[:, :, :size]
    run.bar.stage("finding the mode")
    normal = _around_mixtures(run, mixture)
    # Mixtures come first and the root is lower triangular: fixing a mixture is fixing the first
    # coordinates, and the others are measured from the conditional mode given it, to first order.
    root = np.asarray(normal.to_shared)[:size, :size]
    center = np.asarray(normal.center["shared"])[:size]
    standard = np.linalg.solve(root, (mixture - center)[..., None])[..., 0]

    # The warm-up adapts to mixtures in random order; draws past the end fill the last block.
    random = np.random.default_rng([run.seed, 1])
    any_order = random.integers(schedule.draws, size=(schedule.chains, schedule.warmup))
    early = np.take_along_axis(standard, any_order[:, :, None], axis=1)
    last = np.broadcast_to(standard[:, -1:], (schedule.chains, BLOCK, size))
    fixed_values = np.concatenate([early, standard, last], axis=1)

    setting = Marginal(density).setting(run.data, normal)
    # Points are not draws of the posterior: a regression takes several for each coefficient.
    count = max(N_POINTS, 8 * len(features(np.zeros(density.shared))))
    origin = Proposal(np.zeros(density.shared), np.eye(density.shared))
    points = origin.draw(random, count)
    values = evaluation_program(density)(setting, points)
    surrogate = fit_surrogate(density, setting, points, *values)
    target = share_images(density, setting, run.problem), surrogate
    return _run_chains(run, target, fixed_values, part="curves", stage=1)


def _around_mixtures(run: Run, mixture: Float[np.ndarray, "chain draw fixed"]) -> Whitening:
    """Build coordinates in which draws of mixtures, and curves given them, are about normal."""
    tools, size = run.tools, mixture.shape[2]
    draws = mixture.reshape(-1, size)
    start = tools.start(run.problem.start(run.data))
    start = start | {"shared": start["shared"].at[:size].set(draws.mean(axis=0))}
    # The mixtures' covariance is that of their draws, the curves' that of the Hessian given them.
    mode = find_mode(tools.expand, start, run.data, n_fixed=size)
    spread = lower_root((draws - draws.mean(axis=0)).T / np.sqrt(len(draws)))
    return whitening(mode.expansion.hessian, mode.position, fixed_root=spread)


def build_target(density: Density, sample: ImportanceSample) -> Target:
    """Build the target of chains: coordinates whitened by the points, and a surrogate in these."""
    # Whitened by the points' covariance, NUTS meets about a standard normal.
    proposal = fit_proposal(sample.shared, sample.psis)
    setting = move_coordinates(sample.setting, proposal.center, proposal.root)
    shared = np.linalg.solve(proposal.root, (sample.shared - proposal.center).T).T
    return setting, fit_surrogate(density, setting, shared, sample.potential, sample.center)


def _sample_around(run: Run, marginal: ImportanceSample, *, part: str, stage: int) -> MethodDraws:
    """Run chains of all coordinates, in those of an importance sample's shape."""
    rows = run.schedule.warmup + run.schedule.draws + BLOCK
    nothing_fixed = np.zeros((run.schedule.chains, rows, 0))
    target = build_target(run.tools.density, marginal)
    return _run_chains(run, target, nothing_fixed, part=part, stage=stage)


def _run_chains(
    run: Run,
    target: Target,
    fixed_values: Float[np.ndarray, "chain step fixed"],
    *,
    part: str,
    stage: int,
) -> MethodDraws:
    """Run the chains of one stage; `part` begins the names of its files."""
    run.bar.stage("compiling")
    keys = run.schedule.keys(jax.random.fold_in(jax.random.key(run.seed), stage))
    fixed = fixed_values[:, :BLOCK]
    arguments = (keys, target, fixed) if run.vectorized else (keys[0], target, fixed[0])
    leaves, structure = jax.tree.flatten(arguments)
    sampler = _compile(
        run.tools.density,
        replace(run.schedule, chains=0, draws=0),  # the program does not depend on these
        structure,
        tuple(jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves),
        run.device.device,
        run.device.mesh,
        fixed_values.shape[2],
    )
    run.bar.stage("sampling")
    # Longer chains have files of their own.
    prefix = part if run.times == 1 else f"{part}-{run.times}"
    draws = sample(
        sampler,
        keys,
        target,
        fixed_values,
        run.schedule,
        run.bar.advance,
        workers=min(len(keys), cores()),
        checkpoint=run.folder and run.folder / prefix,
    )
    statistics = draws._asdict()
    return statistics.pop("position"), statistics, {}


@lru_cache(maxsize=4)
def _compile(
    density: Density,
    schedule: Schedule,
    structure: Any,
    leaves: Any,
    device: Any,
    mesh: Mesh | None,
    n_fixed: int,
) -> Sampler:
    """Compile a sampler for keys, a target and fixed values of these shapes, on a device."""
    vectorized = mesh is not None or device.platform != "cpu"
    sampler = build_sampler(density, schedule, vectorized=vectorized, mesh=mesh, n_fixed=n_fixed)
    return compile_sampler(sampler, *jax.tree.unflatten(structure, leaves))
