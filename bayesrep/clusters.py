"""Ray clusters: joining one, or starting one on this machine (extra `[ray]`)."""

import socket
from typing import Any

from bayesrep.errors import PredictionError, reason


def join_cluster(address: str, workers: int | None = None) -> tuple[Any, bool]:
    """The package `ray`, joined to a cluster, and whether it is the caller's to leave.

    It is not where somebody had joined one before.

    Parameters
    ----------
    address
        "local" to start Ray on this machine, "auto" or an address to join a cluster.
    workers
        Cores of one that is started; None for all.

    Raises
    ------
    PredictionError
        Where Ray is not installed, or the cluster cannot be reached.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        raise PredictionError("ray-not-installed") from error
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
        raise PredictionError(
            "ray-cluster-unreachable", address=address, reason=reason(error)
        ) from error
    return ray, True
