"""Chains run to their end, block by block: in threads, or as one batch.

Chains run for themselves. Where a draw diverged, the warm-up has seen too little of how sharply the
posterior bends: all are drawn again in steps half as long. A host loop over short blocks makes
progress, interruption, checkpoint and draws independent of each other.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from threading import Event
from typing import Any, TypeAlias

import jax
import numpy as np
from jax import Array

from bayesrep.inference.checkpoint import Checkpoint
from bayesrep.inference.nuts import Sampler, State, Target, Transition
from bayesrep.inference.schedule import BLOCK, Schedule
from bayesrep.numerics.batches import keep_settings
from bayesrep.types import Float

HALVINGS = 3
"""Of the step size, at most, where draws diverge."""


Report: TypeAlias = Callable[[int, int], None]
"""Called with the number of draws a block finished and its divergences after warm-up; less than
none where draws are made again."""


Feed: TypeAlias = Callable[[int, int], Float[Array, "*chain draw held"]]
"""Held coordinates of the block that begins at a draw (counted from the start of warm-up) of a
chain; `feed(0, 0)` has the shapes of all."""


@dataclass(frozen=True, eq=False)
class _Runner:
    """A sampler with all that it needs to run blocks and to keep them."""

    sampler: Sampler
    target: Target
    feed: Feed
    schedule: Schedule
    report: Report
    checkpoint: Checkpoint | None
    stop: Event

    def block(self, chain: int, number: int, state: Any) -> tuple[Any, Transition]:
        """The next state and the transitions of one block, on the host."""
        if self.stop.is_set():
            raise InterruptedError
        begin, warmup = number * BLOCK, self.schedule.warmup
        end = min(begin + BLOCK, warmup + self.schedule.draws)
        last = self.checkpoint and self.checkpoint.load(chain, number, self.sampler.block.out_info)
        if last is None:
            last = self.sampler.block(state, self.target, self.feed(chain, begin))
            if self.checkpoint is not None:
                self.checkpoint.save(chain, number, last)
        state, made = last
        window = (slice(None),) * self.sampler.vectorized + (slice(0, end - begin),)
        made = jax.tree.map(lambda leaf: np.asarray(leaf[window]), made)
        self.report(made.diverging.size, int(made.diverging.sum()) if begin >= warmup else 0)
        return state, made

    def blocks(self, chain: int, numbers: range, state: Any) -> tuple[Any, list[Transition]]:
        """The state after some blocks, and their transitions."""
        kept: list[Transition] = []
        for number in numbers:
            state, made = self.block(chain, number, state)
            kept.append(made)
        return state, kept


def sample(
    sampler: Sampler,
    states: Sequence[Any],
    target: Target,
    feed: Feed,
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

    Raises
    ------
    ValueError
        If the warm-up is not of whole blocks.

    Returns
    -------
    Transition
        NumPy arrays [chain, draw, ...].
    """
    runner = _Runner(sampler, target, feed, schedule, report, checkpoint, Event())
    warm, beyond = divmod(schedule.warmup, BLOCK)
    if beyond:
        raise ValueError(f"a warm-up is of blocks of {BLOCK} draws; got {schedule.warmup}")
    rest = range(warm, -(-(schedule.warmup + schedule.draws) // BLOCK))
    with ThreadPoolExecutor(workers) as pool:

        def together(numbers: range) -> tuple[list[Any], list[list[Transition]]]:
            jobs = [(runner.blocks, c, numbers, state) for c, state in enumerate(states)]
            ended, kept = zip(*_run_jobs(pool, runner.stop, jobs), strict=True)
            return list(ended), list(kept)

        states, _ = together(range(warm))
        for halvings in range(HALVINGS + 1):
            made = _all_draws(together(rest)[1], stacked=sampler.vectorized)
            diverging = int(made.diverging.sum())
            if not diverging or halvings == HALVINGS:
                return made
            report(-made.diverging.size, -diverging)
            states = [_halve_step(state) for state in states]
            if checkpoint is not None:
                again = replace(checkpoint, part=f"{checkpoint.part}-halved{halvings + 1}")
                runner = replace(runner, checkpoint=again)
    raise AssertionError  # the last of the loop returns


def _all_draws(kept: Sequence[Sequence[Transition]], *, stacked: bool) -> Transition:
    """The transitions of all chains, from blocks of each, or of all where they are stacked."""
    axis = 1 if stacked else 0
    chains = [
        jax.tree.map(lambda *parts: np.concatenate(parts, axis=axis), *blocks) for blocks in kept
    ]
    return chains[0] if stacked else jax.tree.map(lambda *each: np.stack(each), *chains)


def _halve_step(state: State) -> State:
    """The same, with a step half as long."""
    adapted = state.hmc.adapt_state
    halved = adapted._replace(step_size=adapted.step_size / 2)
    return state._replace(hmc=state.hmc._replace(adapt_state=halved))


def _run_jobs(
    pool: ThreadPoolExecutor,
    stop: Event,
    jobs: Sequence[tuple[Callable[..., Any], *tuple[Any, ...]]],
) -> list[Any]:
    """Results of jobs that run side by side; an interrupt stops them all."""
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
