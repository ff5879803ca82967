"""Chains run to their end, block by block: in threads, or as one batch.

A host loop over short blocks makes progress, interruption, checkpoint and draws independent of each
other.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event
from typing import Any, TypeAlias

import jax
import numpy as np
from jax import Array

from bayesrep.inference.checkpoint import load_block, save_block
from bayesrep.inference.nuts import Sampler, State, Target, Transition
from bayesrep.inference.schedule import BLOCK, Schedule
from bayesrep.numerics.batches import keep_settings
from bayesrep.types import Float

MAX_HALVINGS = 3
"""Most halvings of the step size after divergences."""

FixedValues: TypeAlias = Callable[[int, int], Float[Array, "*chain draw fixed"]]
"""`fixed_values(chain, draw)`: coordinates that are not sampled, for the block from a draw (counted
from the start of warm-up) of a chain on; `fixed_values(0, 0)` has the shapes of all."""


def sample(
    sampler: Sampler,
    states: Sequence[State],
    target: Target,
    fixed_values: FixedValues,
    schedule: Schedule,
    report: Callable[[int, int], None],
    *,
    workers: int,
    checkpoint: Path | None = None,
) -> Transition:
    """Run chains of a compiled sampler from their first states, to arrays [chain, draw, ...].

    A vectorised sampler has one state for all chains. Otherwise `workers` chains run at a time, in
    threads: XLA releases the interpreter lock. `report` is called with the number of draws that a
    block finished and its divergences after warm-up, less than none where draws are made again;
    `checkpoint` is the folder of blocks' files, and the prefix of their names.
    """
    warm, remainder = divmod(schedule.warmup, BLOCK)
    if remainder:
        raise ValueError(f"a warm-up is of blocks of {BLOCK} draws; got {schedule.warmup}")
    length = schedule.warmup + schedule.draws
    stop = Event()
    # Arrays of one device, or of the host, are distributed over the devices of the program.
    of_state, of_target, _ = sampler.block.input_shardings[0]
    states = [jax.device_put(state, of_state) for state in states]
    target = jax.device_put(target, of_target)

    def block(state: State, chain: int, number: int, suffix: str) -> tuple[State, Transition]:
        # Load one block from the checkpoint or compute it.
        name = f"-chain-{chain}-block-{number:05d}.npz"
        file = checkpoint and checkpoint.with_name(f"{checkpoint.name}{suffix}{name}")
        if file is not None and file.exists():
            return load_block(file, sampler.block.out_info)
        result = sampler.block(state, target, fixed_values(chain, number * BLOCK))
        if file is not None:
            save_block(file, result)
        return result

    def run(state: State, chain: int, numbers: range, suffix: str) -> tuple[State, Transition]:
        # Run some blocks: the state after them, and their transitions on the host.
        blocks: list[Transition] = []
        for number in numbers:
            if stop.is_set():
                raise InterruptedError
            state, draws = block(state, chain, number, suffix)
            # The last block may be longer than the chain: its surplus draws are dropped.
            window = (slice(None),) * sampler.vectorized + (slice(0, length - number * BLOCK),)
            draws = jax.tree.map(lambda leaf, window=window: np.asarray(leaf[window]), draws)
            diverging = int(draws.diverging.sum()) if number >= warm else 0
            report(draws.diverging.size, diverging)
            blocks.append(draws)
        axis = 1 if sampler.vectorized else 0
        return state, jax.tree.map(lambda *parts: np.concatenate(parts, axis=axis), *blocks)

    with ThreadPoolExecutor(workers) as pool:

        def run_all(states: Sequence[State], numbers: range, suffix: str = "") -> list[Any]:
            jobs = [(run, state, chain, numbers, suffix) for chain, state in enumerate(states)]
            return _run_jobs(pool, stop, jobs)

        if warm:
            states = [state for state, _ in run_all(states, range(warm))]
        for halvings in range(MAX_HALVINGS + 1):
            suffix = f"-halved{halvings}" if halvings else ""
            # The suffix keeps blocks of every step size apart in a checkpoint.
            numbers = range(warm, -(-length // BLOCK))
            chains = [draws for _, draws in run_all(states, numbers, suffix)]
            draws = chains[0]
            if not sampler.vectorized:
                draws = jax.tree.map(lambda *each: np.stack(each), *chains)
            diverging = int(draws.diverging.sum())
            if not diverging or halvings == MAX_HALVINGS:
                return draws
            # The step size is too large for the posterior's sharpest curvature: draws are
            # discarded, also from the progress bar, and made again with half of it.
            report(-draws.diverging.size, -diverging)
            for place, state in enumerate(states):
                adapted = state.hmc.adapt_state
                halved = adapted._replace(step_size=adapted.step_size / 2)
                states[place] = state._replace(hmc=state.hmc._replace(adapt_state=halved))
    raise AssertionError  # the last of the loop returns


def _run_jobs(
    pool: ThreadPoolExecutor,
    stop: Event,
    jobs: Sequence[tuple[Callable[..., Any], *tuple[Any, ...]]],
) -> list[Any]:
    """Run jobs side by side and return their results; an interrupt stops them all."""
    futures = [pool.submit(keep_settings(function), *arguments) for function, *arguments in jobs]
    try:
        # A signal may arrive in a thread of XLA; only a main thread that wakes up sees it.
        while wait(futures, timeout=0.2, return_when=FIRST_EXCEPTION).not_done:
            if any(future.done() and future.exception() for future in futures):
                break
        return [future.result() for future in futures]
    except BaseException:
        stop.set()
        for future in futures:
            future.cancel()
        raise
