"""Description of the machine on which numbers are measured."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bayesrep.machine import cores, versions

TIMEOUT_S = 60
"""Seconds after which a program that tells of the machine is given up."""
QUERIED_FIELDS = {
    "name": "name",
    "driver": "driver_version",
    "memory": "memory.total",
    "clock": "clocks.max.sm",
    "mig": "mig.mode.current",
}
"""Fields that nvidia-smi is asked for about each GPU, by our names."""


def cpu_model() -> str:
    """The processor by its maker's name, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def memory_bytes() -> int | None:
    """Main memory; None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows has no such call
        return None


def gpus() -> list[dict[str, str]]:
    """Each GPU as nvidia-smi tells of it, with the newest CUDA of its driver; none without it."""
    output = _ask(
        "nvidia-smi", f"--query-gpu={','.join(QUERIED_FIELDS.values())}", "--format=csv,noheader"
    )
    rows = [[cell.strip() for cell in line.split(",")] for line in output.splitlines()]
    queried = [
        dict(zip(QUERIED_FIELDS, row, strict=True))
        for row in rows
        if len(row) == len(QUERIED_FIELDS)
    ]
    cuda = re.search(r"CUDA Version:\s*([\d.]+)", _ask("nvidia-smi")) if queried else None
    return [each | ({"cuda": cuda[1]} if cuda else {}) for each in queried]


def machine_facts(packages: Iterable[str]) -> dict[str, Any]:
    """Describe the machine: system, processor, GPUs, Python and packages."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": cpu_model(),
        "cores": cores(),
        "memory_bytes": memory_bytes(),
        "gpus": gpus(),
        "versions": versions(packages),
    }


def _ask(*command: str) -> str:
    """Standard output of a program; empty where it is not there, fails or takes too long."""
    program = shutil.which(command[0])
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, *command[1:]], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    return done.stdout
