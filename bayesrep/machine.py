"""Resources of this machine that the process may use, and the machine's description."""

import os
from collections.abc import Iterable


def cores() -> int:
    """The number of processor cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def versions(names: Iterable[str]) -> dict[str, str]:
    """Versions of the packages among these that are installed."""
    from importlib.metadata import PackageNotFoundError, version  # every command would wait for it

    installed: dict[str, str] = {}
    for name in names:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    return installed
