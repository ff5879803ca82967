"""A fit while it is made: what every way to the posterior is given, what it returns, its chains."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bayesrep.inference.checkpoint import Checkpoint
from bayesrep.inference.density import Density, Position
from bayesrep.inference.device import Choice
from bayesrep.inference.marginal import Marginal, Setting
from bayesrep.inference.nuts import (
    BLOCK,
    Feed,
    Sampler,
    Schedule,
    Target,
    Transition,
    Tune,
    build_sampler,
    compiled,
    of_density,
    of_marginal,
    sample,
)
from bayesrep.inference.problem import Problem, Programs, find_mode
from bayesrep.inference.tuning import Visits, learn
from bayesrep.models.model import Data
from bayesrep.progress import Progress
from bayesrep.types import Shaped

STATISTICS = ("diverging", "num_steps", "acceptance_rate", "energy", "step_size", "lp")


@dataclass(frozen=True, eq=False)
class Run:
    """What to sample and how; `folder` is that of its checkpoint, if it has one."""

    problem: Problem
    tools: Programs
    data: Data
    schedule: Schedule
    seed: int
    device: Choice
    bar: Progress
    folder: Path | None

    @property
    def vectorized(self) -> bool:
        """Whether chains run as one batch."""
        return self.device.together or self.device.device.platform != "cpu"

    def key(self, stage: int) -> Array:
        """Of everything random in a stage of the fit."""
        return jax.random.fold_in(jax.random.key(self.seed), stage)

    def keys(self, stage: int) -> Array:
        """One key for each chain of a stage."""
        return jax.random.split(self.key(stage), self.schedule.chains)


class Drawn(NamedTuple):
    """Draws [chain, draw, ...] in the density's coordinates, and what more to record of them."""

    position: Position
    stats: Mapping[str, Shaped[np.ndarray, "chain draw"]]
    facts: Mapping[str, float]


def of_chains(result: Transition) -> Drawn:
    """Draws with the sampler's statistics."""
    return Drawn(result.position, {name: getattr(result, name) for name in STATISTICS}, {})


def nuts(run: Run) -> Drawn:
    """Draws of the posterior given everything."""
    return of_chains(around_mode(run, run.data, part="joint", stage=0))


def around_mode(run: Run, data: Data, *, part: str, stage: int) -> Transition:
    """Chains in coordinates in which the normal approximation at the mode is standard."""
    run.bar.stage("finding the mode")
    whitening = find_mode(run.problem, run.tools, data)
    return chains(run, data, whitening, part=part, stage=stage)


def nothing_held(_: int, __: int) -> Array:
    """The feed of chains that hold no coordinate."""
    return jnp.zeros((BLOCK, 0))


def improve(setting: Setting, visits: Sequence[Visits]) -> Setting:
    """The setting with what was learnt from visits."""
    return setting._replace(guide=learn(setting.guide, visits))


def chains(
    run: Run,
    data: Data,
    whitening: Any,
    *,
    part: str,
    stage: int,
    feed: Feed = nothing_held,
    held: int = 0,
) -> Transition:
    """Compile and run the chains of one stage; `part` begins the names of its files."""
    run.bar.stage("compiling")
    density = run.tools.density
    if run.tools.separable:
        setting: Any = Setting(data, whitening, Marginal(density).untaught())
        tune: Tune = improve
    else:
        setting, tune = (data, whitening), lambda setting, _: setting
    keys = run.keys(stage)
    leaves, structure = jax.tree.flatten((keys if run.vectorized else keys[0], setting, feed(0, 0)))
    ready = _ready(
        density,
        run.schedule,
        structure,
        tuple((leaf.shape, leaf.dtype) for leaf in map(jnp.asarray, leaves)),
        separable=run.tools.separable,
        vectorized=run.vectorized,
        held=held,
        device=run.device.device,
    )
    run.bar.stage("sampling")
    return sample(
        ready,
        ready.states(keys),
        setting,
        feed,
        run.schedule,
        run.bar.advance,
        tune=tune,
        workers=min(len(keys), os.cpu_count() or 1),
        checkpoint=None if run.folder is None else Checkpoint(run.folder, part),
    )


@lru_cache(maxsize=4)
def _ready(
    density: Density,
    schedule: Schedule,
    structure: Any,
    types: Any,
    *,
    separable: bool,
    vectorized: bool,
    held: int,
    device: Any,
) -> Sampler:
    """The compiled sampler for arguments of these shapes and types on a device."""
    del device  # part of the cache's key: compilation is for the default device
    leaves = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in types]
    key, setting, given = jax.tree.unflatten(structure, leaves)
    target = of_marginal(Marginal(density)) if separable else of_density(density, setting[1].center)
    sampler = build_sampler(target, schedule, vectorized=vectorized, held=held)
    return compiled(sampler, key, setting, given)
