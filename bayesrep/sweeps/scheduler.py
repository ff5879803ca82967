"""Making the runs that are missing, in this process or in several, and when that will end.

A finished run is written before anything is said of it: of a Ray cluster by who asked for it.
"""

import os
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from bayesrep.inference.program import kept_programs
from bayesrep.parallel import call_apart, joined_cluster, map_on_cluster, open_pool
from bayesrep.sweeps.claims import claim, open_claims
from bayesrep.sweeps.coverage import scores
from bayesrep.sweeps.execute import Result, result_of
from bayesrep.sweeps.grid import Grid, read_grid
from bayesrep.sweeps.run_spec import SweepRun
from bayesrep.sweeps.store import (
    begin,
    find_finished,
    keep_result,
    working_seconds,
    write_tables,
)
from bayesrep.sweeps.studies import add_contents

SIZE_AXES = ("study_images", "study_classifiers", "model", "chains", "warmup", "draws", "bootstrap")
"""Axes that decide how long a method takes, beside which study it is."""
OnResult: TypeAlias = Callable[[SweepRun, Result], None]  # called with every finished run


class FinishedRun(NamedTuple):
    """A finished run, as far as the time that others take can be told from it."""

    method: str
    size: tuple[Any, ...]
    seconds: float


def finished_run(run: SweepRun, result: Result) -> FinishedRun:
    """A finished run."""
    seconds = working_seconds(result["seconds"]) + result["seconds"]["study"]
    return FinishedRun(run.method, size_of(run), seconds)


def size_of(run: SweepRun) -> tuple[Any, ...]:
    """Return the features that determine how long a method takes."""
    axes = run.axes()
    return (run.study.name, *(axes.get(name) for name in SIZE_AXES))


class Forecast(NamedTuple):
    """Expected duration of the remaining runs."""

    seconds: float  # seconds of the runs whose method has been timed
    untimed: Mapping[str, int]  # how many there are of each other method


def forecast(done: Sequence[FinishedRun], remaining: Sequence[SweepRun], jobs: int) -> Forecast:
    """The time that is left, from finished runs of the same method and size; else at any size."""
    seconds, untimed = 0.0, dict[str, int]()
    means: dict[tuple[str, tuple[Any, ...] | None], float] = {}
    for method, size in {(run.method, size_of(run)) for run in remaining}:
        of_method = [each for each in done if each.method == method]
        same_size = [each.seconds for each in of_method if each.size == size]
        if times := same_size or [each.seconds for each in of_method]:
            means[method, size] = statistics.fmean(times[1:] or times)  # the first compiles for all
    for run in remaining:
        mean = means.get((run.method, size_of(run)))
        if mean is None:
            untimed[run.method] = untimed.get(run.method, 0) + 1
        else:
            seconds += mean
    return Forecast(seconds / jobs, untimed)


def sweep(
    grid: str | Path | Mapping[str, Any], out: str | Path, *, jobs: int | None = None
) -> pl.DataFrame:
    """Make the missing runs of a grid, and summarize all of them.

    Parameters
    ----------
    grid
        A file as of `bayesrep sweep`, or what it would say as a dictionary.
    out
        The folder of the runs; those that it holds are not made again, and processes on one folder
        share the others.
    jobs
        Number of processes; as many as there are GPUs, else 1, where it is not given.

    Returns
    -------
    polars.DataFrame
        A row a method and combination of the axes that vary, as the command prints them; `out` has
        a row a run (`runs.parquet`, `estimates.parquet`).

    Raises
    ------
    OptionError
        With all faults of the grid, or where the folder is of another one.

    Examples
    --------
    >>> study = {"simulate": {"images": 300, "annotators": 8, "classifiers": 2, "seed": 1}}
    >>> grid = {"method": ["raw", "naive"], "study": [study]}
    >>> bayesrep.sweep(grid, "runs")["method"].to_list()
    ['raw', 'naive']
    """
    read = read_grid(grid if isinstance(grid, Mapping) else Path(grid))
    runs, done = begin_grid(read, Path(out))
    missing = [each for each in runs if each.key not in done]
    make_here(missing, Path(out), jobs, lambda _: lambda *_: None)
    return scores(*write_tables(Path(out)))


def begin_grid(grid: Grid, out: Path) -> tuple[tuple[SweepRun, ...], dict[str, Result]]:
    """Begin or go on in a folder; return the runs of the grid and the results that are there."""
    runs = grid.runs(add_contents(grid.studies))
    begin(out, grid.file, runs)
    return runs, find_finished(out, runs)


def make_here(
    missing: Sequence[SweepRun], out: Path, jobs: int | None, watch: Callable[[int], OnResult]
) -> int:
    """Make runs on this machine, by default one process for each GPU, whose memory a fit takes."""
    if not missing:
        return 0
    gpus = count_gpus()
    jobs = min(jobs or max(gpus, 1), len(missing))
    return make(missing, out, jobs=jobs, gpus=gpus, on_result=watch(jobs))


def make(
    missing: Sequence[SweepRun], out: Path, *, jobs: int, gpus: int, on_result: OnResult
) -> int:
    """Make runs that no other process makes and keep what each comes to; how many these were."""
    n_made = 0
    with ExitStack() as stack:
        if jobs == 1:
            stack.enter_context(kept_programs())
        take_share = partial(_take_share, jobs=jobs, gpus=gpus)
        map_tasks = stack.enter_context(open_pool(jobs, begin=take_share))
        for wait in (False, True):  # at the end for other processes, whose runs may have died
            others: list[SweepRun] = []
            for place, made in map_tasks(_make_run, [(run, out, wait) for run in missing]):
                if made is None:
                    others.append(missing[place])
                else:
                    n_made += made[1]
                    on_result(missing[place], made[0])
            missing = others
    return n_made


def make_on_cluster(
    missing: Sequence[SweepRun], out: Path, *, cluster: str, on_result: Callable[[int], OnResult]
) -> int:
    """Make runs on a Ray cluster, one a GPU or else a machine, and keep them: how many."""
    with joined_cluster(cluster) as ray:
        every = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        cores = [machine["CPU"] for machine in every if machine.get("CPU")]
        gpus = int(sum(machine.get("GPU", 0) for machine in every))
        needs = {"num_gpus": 1} if gpus else {"num_cpus": min(cores)}
        take_run = on_result(gpus or len(cores))
        with open_claims(out) as claims:
            own = [run for run in missing if claim(claims, run.key, wait=False)]
            tasks = [(run, Path.cwd()) for run in own]
            for place, result in map_on_cluster(ray, needs, _make_elsewhere, tasks):
                keep_result(out, own[place], result)
                take_run(own[place], result)
        others = [run for run in missing if run not in own]
        return len(own) + make(others, out, jobs=1, gpus=0, on_result=take_run)


def _make_elsewhere(task: tuple[SweepRun, Path]) -> Result:
    run, folder = task
    os.chdir(folder)  # a grid's paths may start there
    with kept_programs():
        return result_of(run)


def _make_run(task: tuple[SweepRun, Path, bool]) -> tuple[Result, bool] | None:
    """Make a run unless another process does; return its result and whether it was made now."""
    run, out, wait = task
    with open_claims(out) as claims:
        if not claim(claims, run.key, wait=wait):
            return None
        if done := find_finished(out, [run]):
            return done[run.key], False
        result = result_of(run)
        keep_result(out, run, result)
        return result, True


_PROCESS_CONTEXT = ExitStack()  # contexts entered for as long as a process lives


def _take_share(place: int, jobs: int, gpus: int) -> None:
    """Settle a process: its cores, its GPU, and where its programs are kept."""
    if hasattr(os, "sched_setaffinity"):  # Linux
        os.sched_setaffinity(0, cores_of(place, jobs, os.sched_getaffinity(0)))
    if gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu_of(place, gpus, os.environ)
        if jobs > gpus:  # JAX takes most of a GPU's memory for the first who asks
            os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    _PROCESS_CONTEXT.enter_context(kept_programs())  # those of so many cores


def cores_of(place: int, jobs: int, every: Iterable[int]) -> list[int]:
    """The share of the cores that one of several processes has; one, where these are more."""
    cores = sorted(every)
    return cores[place::jobs] or [cores[place % len(cores)]]


def gpu_of(place: int, gpus: int, environment: Mapping[str, str]) -> str:
    """The GPU of one of several processes, among those that the environment names."""
    named = environment.get("CUDA_VISIBLE_DEVICES", "")
    devices = named.split(",") if named else [str(number) for number in range(gpus)]
    return devices[place % len(devices)]


def count_gpus() -> int:
    """Count JAX's GPUs in a process of its own, which releases them again."""
    if not entry_points(group="jax_plugins"):  # JAX for CPUs alone
        return 0
    return call_apart(_gpus)


def _gpus() -> int:
    import jax

    return sum(device.platform == "gpu" for device in jax.devices())
