"""Work in pieces over cores or a cluster, kept as it is done, so that a stopped run goes on."""

import gc
import hashlib
import json
import multiprocessing
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bayesrep.atomic import replaced_file, writing_to
from bayesrep.errors import OptionError, reason
from bayesrep.machine import cores
from bayesrep.ray_cluster import join_cluster, map_on_cluster

Work = Callable[[Any], Any]
"""A module's function of an argument that can be pickled; its result can be JSON."""


class WorkPool:
    """Executor of pieces of work in processes or on a cluster, with a store of finished ones.

    Parameters
    ----------
    jobs
        Processes; 1: this one.
    cluster
        A Ray cluster's address in place of processes: "local", "auto" or HOST:PORT.
    kept
        A file for results as they are made; None keeps nothing.
    identity
        What results depend on besides their tasks: a file of another is refused.
    told
        Called with the number of pieces that are done, whenever some are.
    """

    def __init__(
        self,
        *,
        jobs: int | None = None,
        cluster: str | None = None,
        kept: Path | None = None,
        identity: str = "",
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._jobs = jobs if jobs is not None else cores()
        if self._jobs < 1:
            raise OptionError("jobs-below-one", jobs=jobs)
        self._kept, self._told = kept, on_progress
        self._held = {} if kept is None else _read(kept, identity)
        self._ray, self._own = (None, False) if cluster is None else join_cluster(cluster)
        self._pool: ProcessPoolExecutor | None = None

    def __call__(self, work: Work, tasks: Sequence[Any], names: Sequence[str]) -> list[Any]:
        """Results of all tasks, in their order; those that are kept are not made again."""
        missing = [place for place, name in enumerate(names) if name not in self._held]
        self._told(len(tasks) - len(missing))
        for place, result in self._make_results(work, [tasks[place] for place in missing]):
            self._keep(names[missing[place]], result)
            self._told(1)
        return [self._held[name] for name in names]

    def close(self, *, at_once: bool = False) -> None:
        """Let the processes go."""
        if self._pool is not None:
            if at_once:
                for process in multiprocessing.active_children():
                    process.terminate()
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
            gc.collect()  # its semaphores, which an end of the process without ceremony would leave
        if self._ray is not None and self._own:
            self._ray.shutdown()

    def _keep(self, name: str, result: Any) -> None:
        self._held[name] = result
        if self._kept is not None:
            with writing_to(self._kept), self._kept.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps({"key": name, "result": result}) + "\n")

    def _make_results(self, work: Work, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        if self._ray is not None:
            yield from map_on_cluster(self._ray, work, tasks)
        elif self._jobs == 1 or len(tasks) < 2:
            yield from ((place, work(task)) for place, task in enumerate(tasks))
        else:
            if self._pool is None:
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(self._jobs, context, _ignore_interrupts)
            places: dict[Future[Any], int] = {
                self._pool.submit(work, task): place for place, task in enumerate(tasks)
            }
            waiting = set(places)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from ((places[each], each.result()) for each in done)


@contextmanager
def open_pool(**options: Any) -> Generator[WorkPool]:
    """A `WorkPool` whose processes end with the block, at once where it fails."""
    spread = WorkPool(**options)
    try:
        yield spread
    except BaseException:
        spread.close(at_once=True)
        raise
    spread.close()


def _ignore_interrupts() -> None:
    """Processes are ended by the one that began them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _read(path: Path, identity: str) -> dict[str, Any]:
    """Results in a file, whose first line says whose they are; a last line cut short is removed."""
    mine = hashlib.sha256(identity.encode()).hexdigest()[:16]
    if not path.exists():
        _write(path, json.dumps({"of": mine}) + "\n")
        return {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        whole = lines if not lines or lines[-1].endswith("\n") else lines[:-1]
        if not whole:
            raise OptionError("kept-work-unreadable", path=path, reason="no line of it is whole")
        first, *rest = map(json.loads, whole)
        if first["of"] != mine:
            raise OptionError("kept-work-of-another-plan", path=path)
        results = {each["key"]: each["result"] for each in rest}
        if len(whole) < len(lines):  # only now it is known to be ours
            _write(path, "".join(whole))
        return results
    except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, OptionError):
            raise
        raise OptionError("kept-work-unreadable", path=path, reason=reason(error)) from error


def _write(path: Path, text: str) -> None:
    with replaced_file(path) as partial:
        partial.write_text(text, encoding="utf-8")
