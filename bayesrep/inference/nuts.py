"""NUTS in whitened coordinates: one compiled block of draws, chains side by side.

The sampler is NumPyro's. What is ours is its setting: coordinates in which the normal
approximation at the mode is standard (`bayesrep.inference.dense.Transform`), data
passed as arguments so that one compilation serves every study of the same shape, and a host loop
over short blocks, so that progress, interruption and draws do not depend on each other.

Whitened chains swing from one side of the posterior to the other, which makes means very precise
but lets spreads mix slowly; `thinning` transitions are therefore made for every draw kept.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from threading import Event
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro.infer.hmc import hmc

from bayesrep.inference.checkpoint import Checkpoint
from bayesrep.inference.dense import Transform
from bayesrep.inference.density import Position
from bayesrep.models.model import Data
from bayesrep.types import Shaped

BLOCK = 25
MAX_TREE_DEPTH = 10
FORGETTING = 3


Statistic: TypeAlias = Shaped[Array, "..."] | Shaped[np.ndarray, "..."]


class Transition(NamedTuple):
    """One kept draw and what the sampler did for it; stacked, [draw, ...].

    `diverging` is any of the thinned transitions, `num_steps` are the gradient evaluations of all,
    the others are of the last one; `lp` is the log density of the unconstrained parameters.
    """

    position: Position
    diverging: Statistic
    num_steps: Statistic
    acceptance_rate: Statistic
    energy: Statistic
    step_size: Statistic
    lp: Statistic


Potential: TypeAlias = Callable[[Position, Data], Array]
"""Negative log density of the unconstrained parameters and the data."""
Report: TypeAlias = Callable[[int, int], None]
"""Called with the number of draws a block finished and its divergences after warm-up."""


@dataclass(frozen=True)
class Schedule:
    """How long to run and how carefully.

    Chosen so that R-hat <= 1.01 holds for every parameter, without divergences, on small studies of
    few annotators too, whose posteriors are far from normal (docs/model.md).
    """

    chains: int
    warmup: int
    draws: int
    thinning: int = 3
    target_accept: float = 0.98

    def thrifty(self) -> "Schedule":
        """The same for a model whose gradient is dear.

        Twice as large steps and no thinning: spreads mix no faster by the draw, but five times as
        many draws cost the same.
        """
        return replace(self, thinning=1, target_accept=0.95)


@dataclass(frozen=True, eq=False)
class Sampler:
    """NUTS for one density and schedule; both functions are jitted or compiled.

    Attributes
    ----------
    start : (key, data, whitening) -> state
    block : (state, data, whitening) -> state, Transition of `BLOCK` draws
        Of a sampler that `varies`, `data` is a pair whose second part has one entry per draw.
    vectorized
        Whether both take keys and states stacked over chains.
    shape
        Shapes and types of what a compiled `block` returns.
    """

    start: Callable[..., Any]
    block: Callable[..., Any]
    vectorized: bool
    shape: Any = None

    def states(self, keys: Array, data: Data, whitening: Transform) -> list[Any]:
        """First states for one key of each chain, as `sample` takes them."""
        batches = [keys] if self.vectorized else keys
        return [self.start(batch, data, whitening) for batch in batches]


def build_sampler(
    potential: Potential, schedule: Schedule, *, vectorized: bool = False, varies: bool = False
) -> Sampler:
    """Put NumPyro's NUTS to work on a density in whitened coordinates.

    Parameters
    ----------
    potential, schedule
        What to sample and how long; both are fixed in the compiled program, the data are not.
    vectorized
        Run all chains in lock step as one batch, as a GPU likes it.
    varies
        The density conditions on pairs (data, x) where x is another for every draw: each draw
        begins at the last one's position, so it takes `FORGETTING` times as many transitions.
    """

    def whitened(data: Data, whitening: Transform) -> Callable[[Position], Array]:
        return lambda standard: potential(whitening(standard), data)

    initialize, transition = hmc(potential_fn_gen=whitened, algo="NUTS")

    def start(key: Array, data: Data, whitening: Transform) -> Any:
        """Begin at half a standard deviation around the mode, differently in every chain."""
        keys = jax.random.split(key, 3)
        shapes = [whitening.center[name].shape for name in ("shared", "units")]
        standard = {
            "shared": jax.random.normal(keys[0], shapes[0]) / 2,
            "units": jax.random.normal(keys[1], shapes[1]) / 2,
        }
        return initialize(
            standard,
            schedule.warmup,
            step_size=0.3,
            target_accept_prob=schedule.target_accept,
            max_tree_depth=MAX_TREE_DEPTH,
            dense_mass=[("shared",)],  # type: ignore[arg-type]  # annotated as bool only
            model_args=(data, whitening),
            rng_key=keys[2],
        )

    kept_after = schedule.thinning * (FORGETTING if varies else 1)

    def block(state: Any, data: Data, whitening: Transform) -> tuple[Any, Transition]:
        def draw(state: Any, own: Any) -> tuple[Any, Transition]:
            given = (data[0], own) if varies else data
            if varies:
                energy, gradient = jax.value_and_grad(whitened(given, whitening))(state.z)
                state = state._replace(potential_energy=energy, z_grad=gradient)

            def once(_: Any, carry: tuple[Any, Array, Array]) -> tuple[Any, Array, Array]:
                state, steps, diverging = carry
                state = transition(state, (given, whitening))
                return state, steps + state.num_steps, diverging | state.diverging

            repeats = jnp.where(state.i < schedule.warmup, 1, kept_after)
            nothing = (state, jnp.zeros_like(state.num_steps), jnp.zeros_like(state.diverging))
            state, steps, diverging = jax.lax.fori_loop(0, repeats, once, nothing)
            return state, Transition(
                position=state.z,
                diverging=diverging,
                num_steps=steps,
                acceptance_rate=state.accept_prob,
                energy=state.energy,
                step_size=state.adapt_state.step_size,
                lp=-state.potential_energy,
            )

        return jax.lax.scan(draw, state, data[1] if varies else None, length=BLOCK)

    if vectorized:
        over = (None, 0) if varies else None
        start = jax.vmap(start, in_axes=(0, None, None))
        block = jax.vmap(block, in_axes=(0, over, None))
    return Sampler(jax.jit(start), jax.jit(block), vectorized)


def compiled(sampler: Sampler, key: Any, first: Data, data: Data, whitening: Any) -> Sampler:
    """The sampler compiled for arguments of these shapes (arrays or their shapes and types).

    `first` is the data of `start`, `data` that of `block`. `start` is traced before
    `block` because NumPyro's pair shares its settings through it.
    """
    start = sampler.start.lower(key, first, whitening).compile()  # type: ignore[attr-defined]
    state = jax.eval_shape(sampler.start, key, first, whitening)
    block = sampler.block.lower(state, data, whitening).compile()  # type: ignore[attr-defined]
    shape = jax.eval_shape(sampler.block, state, data, whitening)
    return Sampler(start, block, sampler.vectorized, shape)


Feed: TypeAlias = Callable[[int, int], Data]
"""Data of the block that begins at transition `begin` (counted from the start of warm-up) of a
chain; `feed(0, 0)` has the shapes of all."""


def _run(
    sampler: Sampler,
    chain: int,
    state: Any,
    feed: Feed,
    whitening: Transform,
    schedule: Schedule,
    report: Report,
    stop: Event,
    checkpoint: Checkpoint | None,
) -> Transition:
    """All draws after warm-up of the chain (or stacked chains) in `state`, on the host."""
    kept: list[Transition] = []
    axis = np.ndim(state.i)
    total = schedule.warmup + schedule.draws
    for number, begin in enumerate(range(0, total, BLOCK)):
        if stop.is_set():
            raise InterruptedError
        end = min(begin + BLOCK, total)
        last = checkpoint and checkpoint.load(chain, number, sampler.shape)
        if last is None:
            last = sampler.block(state, feed(chain, begin), whitening)
            if checkpoint is not None:
                checkpoint.save(chain, number, last)
        state, transitions = last
        first = max(schedule.warmup - begin, 0)
        window = (slice(None),) * axis + (slice(min(first, end - begin), end - begin),)
        host = jax.tree.map(lambda leaf, w=window: np.asarray(leaf[w]), transitions)
        kept.append(host)
        report((end - begin) * (len(state.i) if axis else 1), int(host.diverging.sum()))
    return jax.tree.map(lambda *parts: np.concatenate(parts, axis=axis), *kept)


def sample(
    sampler: Sampler,
    states: Sequence[Any],
    feed: Feed,
    whitening: Transform,
    schedule: Schedule,
    report: Report,
    *,
    workers: int,
    checkpoint: Checkpoint | None = None,
) -> Transition:
    """Run chains from their first states; a vectorised sampler has one state for all chains.

    Otherwise chains run in `workers` threads of this process: XLA releases the interpreter lock,
    so threads use as many cores as there are workers. Draws do not depend on the number of
    workers, on `report` or on `checkpoint`.

    Returns
    -------
    Transition
        NumPy arrays [chain, draw, ...] in whitened coordinates.
    """
    stop = Event()

    def chain(number: int) -> Transition:
        with jax.enable_x64(new_val=True):  # JAX keeps this setting per thread
            state = states[number]
            return _run(sampler, number, state, feed, whitening, schedule, report, stop, checkpoint)

    if sampler.vectorized:
        return chain(0)
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(chain, number) for number in range(len(states))]
        try:
            # A signal may arrive in a thread of XLA; only a main thread that wakes up sees it.
            while wait(futures, timeout=0.2, return_when=FIRST_EXCEPTION).not_done:
                if any(future.done() and future.exception() for future in futures):
                    break
            results = [future.result() for future in futures]
        except BaseException:
            stop.set()
            for future in futures:
                future.cancel()
            raise
    return jax.tree.map(lambda *chains: np.stack(chains), *results)


def unwhiten(whitening: Transform, draws: Position | dict[str, np.ndarray]) -> Position:
    """Unconstrained parameters [chain, draw, ...] of whitened draws."""
    return jax.jit(jax.vmap(jax.vmap(whitening.__call__)))(draws)
