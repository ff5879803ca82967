"""Time gradients and draws on every device."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from bayesrep.inference.nuts import Sampler, build_sampler
from bayesrep.inference.schedule import BLOCK, Schedule
from bayesrep.machine import cores
from benchmarks.device.cases import Case, Subject, Subjects
from benchmarks.device.timing import (
    CompiledJob,
    Job,
    Outcome,
    blocking_seconds,
    compile_together,
    error_text,
    loop_job,
    loop_seconds,
    peak_bytes,
)

WARMUP_BLOCKS, TIMED_BLOCKS = 4, 5
"""Blocks of the warm-up, and those that are timed."""
MOST_ON_CPU = 16
"""Chains on a CPU, each in a thread: as many as cores, at most."""


def gradients(subjects: Subjects, devices: Mapping[str, Any]) -> dict[str, Any]:
    """Times of the joint model's gradients; in 32 bits no fit is made."""
    sizes = subjects.sizes
    rows = time_cases(subjects, devices, lambda name: sizes.cpu if name == "cpu" else sizes.other)
    return {"rows": rows, "peak_bytes": _peaks(devices)}


def time_cases(
    subjects: Subjects, devices: Mapping[str, Any], cases: Callable[[str], Sequence[Case]]
) -> list[dict[str, Any]]:
    """Times of gradients on devices, all of them compiled side by side."""
    jobs: dict[tuple[str, Case, str], Job] = {}
    for name, device in devices.items():
        for case in cases(name):
            job = subjects.job(case, device)
            jobs |= {(name, case, "call"): job, (name, case, "loop"): loop_job(job)}
    compiled = subjects.compile_jobs(jobs)
    rows: list[dict[str, Any]] = []
    for name, case in dict.fromkeys((name, case) for name, case, _ in jobs):
        both = [compiled.pop((name, case, what)) for what in ("call", "loop")]
        rows.append({"device": name, **vars(case), **time_program(*both)})
        for what in ("call", "loop"):
            subjects.release((name, case, what))
    return rows


def time_program(outcome: Outcome, loop: Outcome) -> dict[str, Any]:
    """Microseconds of a call and of a turn, and what compilation tells; or what went wrong."""
    if isinstance(outcome, Exception):
        return {"error": error_text(outcome)}
    try:
        alone = blocking_seconds(outcome)
        if isinstance(loop, Exception):
            raise loop
        turn = loop_seconds(loop, alone)
    except Exception as error:
        return {"error": error_text(error), **outcome.facts()}
    return {"us": 1e6 * turn, "us_alone": 1e6 * alone, **outcome.facts()}


def _peaks(devices: Mapping[str, Any]) -> dict[str, int | None]:
    return {name: peak_bytes(device) for name, device in devices.items()}


def draws(subjects: Subjects, devices: Mapping[str, Any]) -> dict[str, Any]:
    """Draws a second of the joint model by NUTS, and the time of one of its steps.

    On a CPU chains run side by side in threads, elsewhere as one batch, as in a fit.
    """
    subject, of_cpu = subjects.joint_subject(), (min(cores(), MOST_ON_CPU),)
    settings = [
        (name, chains)
        for name in devices
        for chains in (of_cpu if name == "cpu" else subjects.sizes.chains)
    ]
    first = _first_states(subject, max(chains for _, chains in settings))
    jobs = {
        (name, chains): _block_job(subject, chains, first, devices[name], batch=name != "cpu")
        for name, chains in settings
    }
    compiled = compile_together(jobs)
    rows = [
        {
            "device": name,
            "chains": chains,
            **_measure_draws(compiled.pop((name, chains)), chains, first),
        }
        for name, chains in settings
    ]
    return {"classifiers": subjects.sizes.classifiers, "rows": rows, "peak_bytes": _peaks(devices)}


def _sampler(subject: Subject, chains: int, *, batch: bool) -> Sampler:
    schedule = Schedule(chains, WARMUP_BLOCKS * BLOCK, TIMED_BLOCKS * BLOCK)
    return build_sampler(subject.tools.density, schedule, vectorized=batch)


def _first_states(subject: Subject, chains: int) -> Any:
    """First states of chains, made on the CPU, where that is compiled soonest."""
    with Job(len, tuple, jax.devices("cpu")[0]).settings():
        sampler = _sampler(subject, chains, batch=True)
        return sampler.start(_keys(chains))


def _keys(chains: int) -> Any:
    return Schedule(chains, warmup=0, draws=0).keys(jax.random.key(0))


def _take_chains(states: Any, which: Any) -> Any:
    """The states of one or some of the chains; what is a number all have in common."""
    return jax.tree.map(lambda leaf: leaf[which] if leaf.ndim else leaf, states)


def _block_job(subject: Subject, chains: int, first: Any, device: Any, *, batch: bool) -> Job:
    """A block of draws: of all chains as a batch, or of one."""
    job = Job(len, tuple, device)
    with job.settings():
        sampler = _sampler(subject, chains, batch=batch)
        keys = _keys(chains)
        # NumPyro's kernel knows how deep its trees are once it was started.
        jax.eval_shape(sampler.start, keys if batch else keys[0])
        state = _take_chains(first, slice(chains) if batch else 0)
    fixed = np.zeros((*((chains,) if batch else ()), BLOCK, 0))
    return replace(job, function=sampler.block, arguments=lambda: (state, subject.target, fixed))


def _measure_draws(outcome: Outcome, chains: int, first: Any) -> dict[str, Any]:
    if isinstance(outcome, Exception):
        return {"error": error_text(outcome)}
    try:
        timings = _side_by_side(outcome, chains, first)
    except Exception as error:
        return {"error": error_text(error), **outcome.facts()}
    block_s = float(np.median([took for took, _ in timings]))
    steps = float(np.median([count for _, count in timings]))
    return {
        "draws_per_s": BLOCK * chains / block_s,
        "us_a_step": 1e6 * block_s / steps,
        "steps_a_draw": steps / BLOCK,
        **outcome.facts(),
    }


def _side_by_side(outcome: CompiledJob, chains: int, first: Any) -> list[tuple[float, float]]:
    """Time one batch, or chains in threads, each from its own start."""
    state, *_ = outcome.arguments
    if state.hmc.z.ndim == first.hmc.z.ndim:
        return [_blocks(outcome, state)]

    def time_chain(chain: int) -> tuple[float, float]:
        with outcome.job.settings():
            state = _take_chains(first, chain)
        return _blocks(outcome, jax.device_put(state, outcome.job.device))

    with ThreadPoolExecutor(chains) as pool:
        return list(pool.map(time_chain, range(chains)))


def _blocks(outcome: CompiledJob, state: Any) -> tuple[float, float]:
    """Median seconds of a block, and of its steps, all chains waiting for the longest."""
    _, target, fixed = outcome.arguments
    took: list[float] = []
    steps: list[float] = []
    with outcome.job.settings():
        for _ in range(WARMUP_BLOCKS + TIMED_BLOCKS):
            begin = time.perf_counter()
            state, draws_made = jax.block_until_ready(outcome.program(state, target, fixed))
            took.append(time.perf_counter() - begin)
            n_steps = np.asarray(draws_made.num_steps)  # [draw] or [chain, draw]
            steps.append(float(n_steps.reshape(-1, BLOCK).max(axis=0).sum()))
    return float(np.median(took[WARMUP_BLOCKS:])), float(np.median(steps[WARMUP_BLOCKS:]))
