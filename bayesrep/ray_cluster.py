"""Ray clusters: joining one, or starting one here, and work on it (extra `[ray]`)."""

import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bayesrep.errors import ClusterError, reason

MAX_RETRIES = 3
"""Retries of a task whose worker died."""


def join_cluster(address: str, workers: int | None = None) -> tuple[Any, bool]:
    """The package `ray`, joined to a cluster, and whether it is the caller's to leave.

    It is not where somebody had joined one before.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ClusterError("ray-not-installed") from error
    if ray.is_initialized():
        return ray, False
    local = address == "local"
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        if host and port.isdecimal():  # Ray itself would try for minutes
            socket.create_connection((host, int(port)), timeout=10).close()
        options: dict[str, Any] = {"num_cpus": workers} if local and workers else {}
        options |= {"logging_level": "ERROR", "include_dashboard": False if local else None}
        ray.init(address=address, log_to_driver=False, **options)
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        raise ClusterError(
            "ray-cluster-unreachable", address=address, reason=reason(error)
        ) from error
    return ray, True


def map_on_cluster(
    ray: Any, work: Callable[[Any], Any], tasks: Sequence[Any], **needs: float
) -> Iterator[tuple[int, Any]]:
    """Yield places of tasks and what a module's function makes of them, as each is done."""
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
