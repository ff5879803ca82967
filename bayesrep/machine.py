"""What of the machine this process may use."""

import os


def cores() -> int:
    """The number of processor cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux
    return len(affinity(0)) if affinity else os.cpu_count() or 1
