"""Work in pieces over cores or a cluster, kept as it is done, so that a stopped run goes on."""

import hashlib
import json
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bayesrep import parallel
from bayesrep.atomic import replaced_file, writing_to
from bayesrep.errors import OptionError, reason


class WorkPool:
    """A pool with a store of finished pieces of work.

    Parameters
    ----------
    map_tasks
        As `bayesrep.parallel.open_pool` yields it.
    kept
        A file for results as they are made; None keeps nothing.
    identity
        What results depend on besides their tasks: a file of another is refused.
    on_progress
        Called with the number of pieces that are done, whenever some are.
    """

    def __init__(
        self,
        map_tasks: parallel.MapTasks,
        *,
        kept: Path | None = None,
        identity: str = "",
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._map_tasks, self._kept, self._told = map_tasks, kept, on_progress
        self._held = {} if kept is None else _read(kept, identity)

    def __call__(
        self, work: Callable[[Any], Any], tasks: Sequence[Any], names: Sequence[str]
    ) -> list[Any]:
        """Results of all tasks, in their order; those that are kept are not made again."""
        missing = [place for place, name in enumerate(names) if name not in self._held]
        self._told(len(tasks) - len(missing))
        for place, result in self._map_tasks(work, [tasks[place] for place in missing]):
            self._keep(names[missing[place]], result)
            self._told(1)
        return [self._held[name] for name in names]

    def _keep(self, name: str, result: Any) -> None:
        self._held[name] = result
        if self._kept is not None:
            with writing_to(self._kept), self._kept.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps({"key": name, "result": result}) + "\n")


@contextmanager
def open_pool(
    *, jobs: int | None = None, cluster: str | None = None, **options: Any
) -> Generator[WorkPool]:
    """A `WorkPool` whose processes end with the block."""
    with parallel.open_pool(jobs, cluster=cluster) as map_tasks:
        yield WorkPool(map_tasks, **options)


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
