"""Work in processes here or on a Ray cluster (extra `[ray]`), each result as soon as it is made."""

import gc
import os
import signal
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from itertools import islice
from multiprocessing import active_children, connection, get_context, parent_process
from multiprocessing.queues import SimpleQueue
from typing import Any, TypeAlias

from bayesrep.errors import ClusterError, OptionError, reason
from bayesrep.machine import cores

MAX_RETRIES = 3  # retries of a task whose worker on a cluster died
MapTasks: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[tuple[int, Any]]]
"""Yields places of tasks and what a module's function makes of them, as each is done."""


@contextmanager
def open_pool(
    jobs: int | None = None,
    *,
    cluster: str | None = None,
    begin: Callable[[int], None] | None = None,  # called first in each process, with its number
) -> Generator[MapTasks]:
    """Map tasks in so many processes (one a core; 1: this one), or on a cluster at an address."""
    jobs = cores() if jobs is None else jobs
    if jobs < 1:
        raise OptionError("jobs-below-one", jobs=jobs)
    if cluster is not None:
        with joined_cluster(cluster) as ray:
            yield partial(map_on_cluster, ray, {})
    elif jobs == 1:
        yield lambda work, tasks: ((place, work(task)) for place, task in enumerate(tasks))
    else:
        with _open_processes(jobs, begin) as map_tasks:
            yield map_tasks


def call_apart(work: Callable[[], Any]) -> Any:
    """Call a module's function in a process of its own, which releases what it took."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(work).result()


@contextmanager
def _open_processes(jobs: int, begin: Callable[[int], None] | None) -> Generator[MapTasks]:
    context = get_context("spawn")
    numbers: SimpleQueue[int] = context.SimpleQueue()
    for number in range(jobs):
        numbers.put(number)
    pool = ProcessPoolExecutor(jobs, context, _begin_process, (numbers, begin))

    def map_tasks(work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        # Not all at once: who interrupts does not wait, and tasks are done in their order.
        left, running = enumerate(tasks), dict[Future[Any], int]()
        while True:
            for place, task in islice(left, jobs + 1 - len(running)):
                running[pool.submit(work, task)] = place
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()

    try:
        yield map_tasks
    except BaseException:
        for process in active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        del pool, numbers
        gc.collect()  # their semaphores, which an end of the process without ceremony would leave


def _begin_process(numbers: "SimpleQueue[int]", begin: Callable[[int], None] | None) -> None:
    """Settle a process, which ends with the one that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it hears Ctrl-C and ends it
    parent = parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    if begin is not None:
        begin(numbers.get())


def _end_with(parent: int) -> None:
    connection.wait([parent])
    os._exit(1)


@contextmanager
def joined_cluster(address: str, workers: int | None = None) -> Generator[Any]:
    """The package `ray` in a cluster ("local": started here), which is left with the block."""
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ClusterError("ray-not-installed") from error
    if ray.is_initialized():
        yield ray
        return
    local = address == "local"
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        if host and port.isdecimal():  # Ray itself would try for minutes
            socket.create_connection((host, int(port)), timeout=10).close()
        options: dict[str, Any] = {"num_cpus": workers} if local and workers else {}
        options |= {"logging_level": "ERROR", "include_dashboard": False if local else None}
        ray.init(address=address, log_to_driver=False, **options)
    except Exception as error:  # Ray's own are of no common kind
        raise ClusterError(
            "ray-cluster-unreachable", address=address, reason=reason(error)
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def map_on_cluster(
    ray: Any, needs: Mapping[str, float], work: Callable[[Any], Any], tasks: Sequence[Any]
) -> Iterator[tuple[int, Any]]:
    """Map tasks, each of which takes resources of the cluster."""
    remote = ray.remote(work).options(max_retries=MAX_RETRIES, **needs)
    places = {remote.remote(task): place for place, task in enumerate(tasks)}
    waiting, failed = list(places), ray.exceptions
    while waiting:
        (ready, *_), waiting = ray.wait(waiting, num_returns=1)
        try:
            yield places[ready], ray.get(ready)
        except (failed.WorkerCrashedError, failed.NodeDiedError, failed.OutOfMemoryError) as error:
            facts = {"deaths": 1 + MAX_RETRIES, "reason": reason(error)}
            raise ClusterError("ray-workers-keep-dying", **facts) from error
