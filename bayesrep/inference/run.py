"""A fit while it is made: what every way to the posterior is given, what it returns, its chains."""

from collections.abc import Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh

from bayesrep.inference.arrowhead import Whitening
from bayesrep.inference.checkpoint import Checkpoint
from bayesrep.inference.density import Density, Draws
from bayesrep.inference.device import Choice
from bayesrep.inference.image_weights import share_images
from bayesrep.inference.marginal import Marginal, Setting
from bayesrep.inference.nuts import (
    Sampler,
    Transition,
    build_sampler,
    compile_sampler,
    of_marginal,
)
from bayesrep.inference.problem import Problem, Programs, around_mode
from bayesrep.inference.sampling import Feed, sample
from bayesrep.inference.schedule import BLOCK, Schedule
from bayesrep.inference.settle import learn_more, look_at_draws, make_look, settle
from bayesrep.machine import cores
from bayesrep.models.model import Data
from bayesrep.numerics.batches import keep_settings
from bayesrep.progress import Progress
from bayesrep.types import Shaped

GOOD = 0.9
"""Share of accepted moves at which a surrogate need not learn more."""
STATISTICS = ("diverging", "num_steps", "acceptance_rate", "energy", "step_size", "lp")


@dataclass(frozen=True, eq=False)
class Run:
    """What to sample and how.

    `folder` is that of its checkpoint, if it has one, and `times` how much longer than usual chains
    are.
    """

    problem: Problem
    tools: Programs
    data: Data
    schedule: Schedule
    seed: int
    device: Choice
    bar: Progress
    folder: Path | None
    times: int = 1

    @property
    def vectorized(self) -> bool:
        """Whether chains run as one batch."""
        return self.device.mesh is not None or self.device.device.platform != "cpu"

    def share_images(self, setting: Setting) -> Setting:
        """The setting whose noise knows that all classifiers answer the same images."""
        return share_images(self.tools.density, setting, self.problem)

    def prefix(self, part: str) -> str:
        """How the names of a part's files begin; those of longer chains are others."""
        return part if self.times == 1 else f"{part}-{self.times}"

    def key(self, stage: int) -> Array:
        """Of everything random in a stage of the fit."""
        return jax.random.fold_in(jax.random.key(self.seed), stage)

    def keys(self, stage: int) -> Array:
        """Keys [chain, 2] of a stage."""
        return self.schedule.keys(self.key(stage))


class Drawn(NamedTuple):
    """Draws [chain, draw, ...] in the density's coordinates, and what more to record of them."""

    position: Draws
    stats: Mapping[str, Shaped[np.ndarray, "chain draw"]]
    facts: Mapping[str, float]


def of_chains(result: Transition) -> Drawn:
    """Draws with the sampler's statistics."""
    return Drawn(result.position, {name: getattr(result, name) for name in STATISTICS}, {})


def nuts(run: Run) -> Drawn:
    """Draws of the posterior given everything."""
    return of_chains(chains_around_mode(run, run.data, part="joint", stage=0))


def chains_around_mode(run: Run, data: Data, *, part: str, stage: int) -> Transition:
    """Chains in coordinates in which the normal approximation at the mode is standard."""
    with compiled_meanwhile(run, data) as ready:
        run.bar.stage("finding the mode")
        normal = around_mode(run.problem, run.tools, data)
        return chains(run, data, normal, ready, part=part, stage=stage)


def hold_nothing(run: Run) -> Feed:
    """The feed of chains that hold no coordinate."""
    given = jnp.zeros((run.schedule.chains, BLOCK, 0) if run.vectorized else (BLOCK, 0))
    return lambda chain, begin: given


@contextmanager
def compiled_meanwhile(run: Run, data: Data, *, held: int = 0) -> Generator[Future[Sampler]]:
    """Compile the sampler in a thread, beside what comes before sampling."""
    device, chains = run.device.device, run.schedule.chains
    given = jax.ShapeDtypeStruct((BLOCK, held), float)
    keys = jax.eval_shape(lambda: run.keys(0))
    if run.vectorized:
        given = jax.ShapeDtypeStruct((chains, BLOCK, held), float)
    else:
        keys = jax.ShapeDtypeStruct((2,), keys.dtype)
    leaves, structure = jax.tree.flatten(data)
    shapes = tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)

    @keep_settings
    def ready() -> Sampler:
        return _compile_on(
            run.tools.density,
            run.schedule,
            structure,
            shapes,
            keys,
            given,
            vectorized=run.vectorized,
            mesh=run.device.mesh,
            device=device,
        )

    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(ready)


def chains(
    run: Run,
    data: Data,
    normal: Whitening,
    ready: Future[Sampler],
    *,
    part: str,
    stage: int,
    feed: Feed | None = None,
    stay: bool = False,
) -> Transition:
    """Run the chains of one stage; `part` begins the names of its files.

    Without a `feed` nothing is held. `stay` leaves the coordinates as they are: some are held.
    """
    # The mass may lie away from the mode, where chains from there would not come to in time: look
    # for it first.
    run.bar.stage("looking around")
    look, seed = make_look(run.tools.density), [run.seed, 4, stage]
    expand = None if stay else run.tools.expand
    settled = settle(run.tools.density, normal, data, look, seed, expand=expand)
    settled = settled._replace(setting=run.share_images(settled.setting))

    def tune(setting: Setting, made: Transition) -> Setting:
        nonlocal settled
        # Chains that accept little have come to places that the points looked at do not cover.
        if made.acceptance_rate.mean() > GOOD:
            return setting
        shared = np.asarray(made.position["shared"])
        seen = look_at_draws(settled.setting, look, shared.reshape(-1, shared.shape[2]))
        settled = learn_more(run.tools.density, settled, seen)
        return settled.setting

    # The compiler has been at work beside the search: what is waited for is what is left of it.
    run.bar.stage("compiling")
    sampler = ready.result()
    run.bar.stage("sampling")
    keys = run.keys(stage)
    return sample(
        sampler,
        sampler.states(keys),
        settled.setting,
        feed or hold_nothing(run),
        run.schedule,
        run.bar.advance,
        tune=tune,
        workers=min(len(keys), cores()),
        checkpoint=None if run.folder is None else Checkpoint(run.folder, run.prefix(part)),
    )


@lru_cache(maxsize=4)
def _compile_on(
    density: Density,
    schedule: Schedule,
    structure: Any,
    shapes: Any,
    keys: Any,
    given: Any,
    *,
    vectorized: bool,
    mesh: Mesh | None,
    device: Any,
) -> Sampler:
    """The compiled sampler for arguments of these shapes and types on a device."""
    del device  # part of the cache's key: compilation is for the default device
    data = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(*shape) for shape in shapes])
    marginal = Marginal(density)
    setting = jax.eval_shape(lambda data: marginal.first_setting(data, density.origin()), data)
    held = given.shape[-1]
    sampler = build_sampler(
        of_marginal(marginal), schedule, vectorized=vectorized, mesh=mesh, held=held
    )
    return compile_sampler(sampler, keys, setting, given)
