"""Chains run to their end, block by block: in threads, or as one batch.

A host loop over short blocks makes progress, interruption, checkpoint and draws independent of each
other.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bayesrep.inference.checkpoint import load_block, save_block
from bayesrep.inference.nuts import Sampler, State, Target, Transition
from bayesrep.inference.schedule import BLOCK, Schedule
from bayesrep.numerics.batches import keep_settings
from bayesrep.types import Float

MAX_HALVINGS = 3
"""Most halvings of the step size after divergences."""


def sample(
    sampler: Sampler,
    keys: Array,
    target: Target,
    fixed_values: Float[np.ndarray, "chain step fixed"],  # from the warm-up to the last whole block
    schedule: Schedule,
    report: Callable[[int, int], None],  # draws of a block, and its divergences after warm-up
    *,
    workers: int,  # chains at a time, in threads: XLA releases the interpreter lock
    checkpoint: Path | None = None,  # folder of blocks' files, and the prefix of their names
) -> Transition:
    """Run chains of a compiled sampler from their keys [chain, 2], to arrays [chain, draw, ...]."""
    warm, remainder = divmod(schedule.warmup, BLOCK)
    if remainder:
        raise ValueError(f"a warm-up is of blocks of {BLOCK} draws; got {schedule.warmup}")
    length = schedule.warmup + schedule.draws
    stop = Event()
    # Arrays of one device, or of the host, are distributed over the devices of the program.
    of_state, of_target, _ = sampler.block.input_shardings[0]
    # A vectorised sampler has one state for all chains.
    starts = map(sampler.start, [keys] if sampler.vectorized else keys)
    states = [jax.device_put(state, of_state) for state in starts]
    target = jax.device_put(target, of_target)

    def block(state: State, chain: int, number: int, suffix: str) -> tuple[State, Transition]:
        # Load one block from the checkpoint or compute it.
        name = f"-chain-{chain}-block-{number:05d}.npz"
        file = checkpoint and checkpoint.with_name(f"{checkpoint.name}{suffix}{name}")
        if file is not None and file.exists():
            return load_block(file, sampler.block.out_info)
        rows = slice(number * BLOCK, (number + 1) * BLOCK)
        fixed = fixed_values[:, rows] if sampler.vectorized else fixed_values[chain, rows]
        result = sampler.block(state, target, jnp.asarray(fixed))
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
