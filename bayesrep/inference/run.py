"""A fit while it is made: what every way to the posterior is given, what it returns, its chains."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bayesrep.inference.checkpoint import Checkpoint
from bayesrep.inference.dense import Transform
from bayesrep.inference.density import Position
from bayesrep.inference.device import Choice
from bayesrep.inference.laplace import normal_at
from bayesrep.inference.nuts import (
    Feed,
    Potential,
    Sampler,
    Schedule,
    Transition,
    build_sampler,
    compiled,
    sample,
    unwhiten,
)
from bayesrep.inference.problem import Problem, Programs, find_mode
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
        key = self.key(stage) if stage else jax.random.key(self.seed)
        return jax.random.split(key, self.schedule.chains)


class Drawn(NamedTuple):
    """Draws [chain, draw, ...] in the density's coordinates, and what more to record of them."""

    position: Position
    stats: Mapping[str, Shaped[np.ndarray, "chain draw"]]
    facts: Mapping[str, float]


def of_chains(position: Position, result: Transition) -> Drawn:
    """Draws with the sampler's statistics."""
    return Drawn(position, {name: getattr(result, name) for name in STATISTICS}, {})


def nuts(run: Run) -> Drawn:
    """Draws of the posterior given everything."""
    return of_chains(*around_mode(run, run.data, part="joint", stage=0))


def around_mode(run: Run, data: Data, *, part: str, stage: int) -> tuple[Position, Transition]:
    """Chains in coordinates in which the normal approximation at the mode is standard."""
    run.bar.stage("finding the mode")
    mode = find_mode(run.problem, run.tools, data)
    transform = normal_at(run.tools, mode.position, data, run.key(stage))
    potential = run.tools.density.potential
    result = chains(run, potential, transform, lambda *_: data, data, part=part, stage=stage)
    return unwhiten(transform, result.position), result


def chains(
    run: Run,
    potential: Potential,
    transform: Transform,
    feed: Feed,
    first: Data,
    *,
    part: str,
    stage: int,
    varies: bool = False,
) -> Transition:
    """Compile and run the chains of one stage; `part` begins the names of its files."""
    run.bar.stage("compiling")
    keys = run.keys(stage)
    leaves, structure = jax.tree.flatten(
        (keys if run.vectorized else keys[0], first, feed(0, 0), transform)
    )
    ready = _ready(
        potential,
        run.schedule,
        structure,
        tuple((leaf.shape, leaf.dtype) for leaf in map(jnp.asarray, leaves)),
        vectorized=run.vectorized,
        varies=varies,
        device=run.device.device,
    )
    run.bar.stage("sampling")
    return sample(
        ready,
        ready.states(keys, first, transform),
        feed,
        transform,
        run.schedule,
        run.bar.advance,
        workers=min(len(keys), os.cpu_count() or 1),
        checkpoint=None if run.folder is None else Checkpoint(run.folder, part),
    )


@lru_cache(maxsize=4)
def _ready(
    potential: Potential,
    schedule: Schedule,
    structure: Any,
    types: Any,
    *,
    vectorized: bool,
    varies: bool,
    device: Any,
) -> Sampler:
    """The compiled sampler for arguments of these shapes and types on a device."""
    del device  # part of the cache's key: compilation is for the default device
    leaves = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in types]
    key, first, data, transform = jax.tree.unflatten(structure, leaves)
    sampler = build_sampler(potential, schedule, vectorized=vectorized, varies=varies)
    return compiled(sampler, key, first, data, transform)
