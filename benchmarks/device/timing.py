"""Programs compiled side by side, and how long a call of one takes."""

import statistics
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from bayesrep.inference.program import compiler_options
from bayesrep.machine import cores
from benchmarks.device.hlo import Launches, launches

PROGRAMS_AT_ONCE = 12
"""Programs that are compiled side by side, at most."""
BUDGET_SECONDS = 0.3
"""Seconds that a measurement takes, about."""
MOST_TURNS = 300
"""Turns of a loop that is timed."""
TRACE_LOCK = Lock()
"""NumPyro's handlers are those of a process: one program at a time is traced."""
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Job:
    """A program to be compiled: a function or a `Program`, with its arguments' device and bits.

    `arguments()` makes them, as trees of NumPy's arrays or JAX's. `quick` is `compiler_options`'.
    """

    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    device: Any
    bits: int = 64
    quick: bool = False

    def settings(self) -> ExitStack:
        """Device and precision of everything inside."""
        stack = ExitStack()
        stack.enter_context(jax.enable_x64(new_val=self.bits == 64))
        stack.enter_context(jax.default_device(self.device))
        return stack


@dataclass(frozen=True)
class CompiledJob:
    """A program on a device with its arguments there, and what the compiler says of it."""

    job: Job
    program: Any
    arguments: tuple[Any, ...]
    compile_s: float
    launches: Launches
    flops: float | None
    bytes: float | None

    def __call__(self) -> Any:
        """Results of the program; they may still be on their way."""
        return self.program(*self.arguments)

    def facts(self) -> dict[str, Any]:
        """Return the facts for a row of numbers."""
        return {
            "compile_s": round(self.compile_s, 2),
            "kernels": self.launches.kernels,
            "waits": self.launches.waits,
            "flops": self.flops,
            "bytes": self.bytes,
        }


Outcome: TypeAlias = CompiledJob | Exception


def compile_together(jobs: Mapping[Key, Job]) -> dict[Key, Outcome]:
    """Compile programs side by side; in the place of one that cannot be: why."""
    with ThreadPoolExecutor(min(PROGRAMS_AT_ONCE, cores())) as pool:
        waiting = {key: pool.submit(compile_job, job) for key, job in jobs.items()}
        return {key: _outcome(each) for key, each in waiting.items()}


def compile_job(job: Job) -> CompiledJob:
    """Trace and compile a program for its device."""
    with job.settings():
        arguments = to_device(job)
        options = compiler_options(quick=job.quick)  # those of a fit
        plain: Any = jax.jit(job.function, compiler_options=options)
        function = getattr(job.function, "jitted", plain)
        with TRACE_LOCK:
            lowered = function.lower(*arguments)
        begin = time.perf_counter()
        program = lowered.compile()
        took = time.perf_counter() - begin
        flops, size = (_cost(program, name) for name in ("flops", "bytes accessed"))
        counted = launches(program.as_text() or "")
    return CompiledJob(job, program, arguments, took, counted, flops, size)


def _outcome(waiting: Future[CompiledJob]) -> Outcome:
    try:
        return waiting.result()
    except Exception as error:  # the others are still wanted
        return error


def _cost(program: Any, name: str) -> float | None:
    """Return the compiler's count of a cost; None where it has none."""
    try:
        costs = program.cost_analysis()
    except (NotImplementedError, jax.errors.JaxRuntimeError):
        return None
    first: Any = costs[0] if isinstance(costs, list) else costs
    value = (first or {}).get(name)
    return float(value) if value is not None and value > 0 else None


def to_device(job: Job) -> tuple[Any, ...]:
    """A program's arguments on its device; use it inside its settings."""
    return jax.device_put(cast(job.arguments(), job.bits), job.device)


def cast(tree: Any, bits: int) -> Any:
    """A tree with its floats in 32 bits where these are asked for, otherwise as it is."""

    def cast_leaf(leaf: Any) -> Any:
        real = bits == 32 and jnp.issubdtype(leaf.dtype, jnp.floating)
        return np.asarray(leaf, np.float32) if real else leaf

    return jax.tree.map(cast_leaf, tree)


def blocking_seconds(call: Callable[[], Any]) -> float:
    """Median time of calls that are waited for."""
    return statistics.median(_time_calls(call))


def least_seconds(call: Callable[[], Any]) -> float:
    """The time of the quickest call: what a device can do where nothing else runs."""
    return min(_time_calls(call))


def _time_calls(call: Callable[[], Any]) -> list[float]:
    """Times of calls that are waited for, 3 to 30 as the budget allows."""
    once = _time_once(call)
    times: list[float] = []
    for _ in range(int(np.clip(BUDGET_SECONDS / once, 3, 30))):
        begin = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - begin)
    return times


def loop_job(job: Job) -> Job:
    """A gradient's program, as often as its first argument says, in a loop as samplers have it.

    On a GPU a call that is waited for takes the way to it and back besides.
    """

    def loop(count: Any, position: Any, data: Any) -> Any:
        def step(_: Any, at: Any) -> Any:
            return jax.tree.map(lambda x, g: x - 1e-12 * g, at, job.function(at, data)[1])

        return jax.lax.fori_loop(0, count, step, position)

    return replace(job, function=loop, arguments=lambda: (np.int32(1), *job.arguments()))


def loop_seconds(loop: CompiledJob, once: float) -> float:
    """Seconds of a turn of a loop, of which one takes about so many."""
    count = int(np.clip(BUDGET_SECONDS / once, 3, MOST_TURNS))
    turns = jax.device_put(np.int32(count), loop.job.device)
    return blocking_seconds(lambda: loop.program(turns, *loop.arguments[1:])) / count


def _time_once(call: Callable[[], Any]) -> float:
    jax.block_until_ready(call())
    begin = time.perf_counter()
    jax.block_until_ready(call())
    return max(time.perf_counter() - begin, 1e-7)


def peak_bytes(device: Any) -> int | None:
    """Most memory of a device that this process has used so far; None where it does not say."""
    stats: Any = device.memory_stats()
    return (stats or {}).get("peak_bytes_in_use")


def error_text(error: Exception) -> str:
    """Describe an error in one short line."""
    first = next((line for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first}"[:300]
