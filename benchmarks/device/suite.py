"""All that is measured, the most wanted first; what fails leaves the others."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import jax

from bayesrep.inference.device import find_devices, find_platform
from bayesrep.version import __version__
from benchmarks._requirements import say
from benchmarks.device.agreement import compare_devices
from benchmarks.device.cases import FULL_SIZES, QUICK_SIZES, Subjects
from benchmarks.device.forms import compare_forms
from benchmarks.device.images import fit_images
from benchmarks.device.kernels import count_kernels
from benchmarks.device.measure import draws, gradients
from benchmarks.device.output import advice
from benchmarks.device.roofline import bound_us, roofline
from benchmarks.device.sampling import compare_samplers
from benchmarks.device.timing import error_text
from experiments.machine import machine_facts

PACKAGES = ("jax", "jaxlib", "numpyro", "numpy")
Part: TypeAlias = Callable[[Subjects, Mapping[str, Any]], dict[str, Any]]
PARTS: Mapping[str, Part] = {
    "right": compare_devices,
    "gradients": gradients,
    "draws": draws,
    "roofline": lambda _, devices: roofline(devices),
    "forms": compare_forms,
    "images": lambda subjects, _: fit_images(subjects.sizes),
    "kernels": lambda subjects, _: count_kernels(subjects.study),
    "sampling": lambda subjects, _: compare_samplers(subjects.sizes),
}
DEVICE_PARTS = ("right", "gradients", "draws", "roofline")
"""Parts that are measured unasked."""


def measure_parts(
    parts: Sequence[str], *, device: str = "auto", quick: bool = False
) -> Iterator[dict[str, Any]]:
    """All that is measured so far, after each part, on every kind of device that JAX finds."""
    if device == "auto":
        devices = dict(reversed(find_devices().items()))  # the CPU first
    else:
        name = find_platform(device)
        devices = {name: find_devices()[name]}
    say("measuring: what machine this is")
    measured: dict[str, Any] = {"quick": quick, "facts": _machine(), "devices": _kinds(devices)}
    seconds: dict[str, float] = {}
    measured["seconds"] = seconds
    subjects = Subjects.of_size(QUICK_SIZES if quick else FULL_SIZES)
    for name in parts:
        say(f"measuring: {name}")
        begin = time.perf_counter()
        try:
            measured[name] = PARTS[name](subjects, devices)
        except Exception as error:  # the others are still wanted
            measured[name] = {"error": error_text(error), "rows": []}
        seconds[name] = round(time.perf_counter() - begin, 1)
        _add_bounds(measured)
        yield measured | {"advice": advice(measured)}


def _machine() -> dict[str, Any]:
    """Describe the machine; torch is asked only where there is a GPU for it to see."""
    facts = machine_facts(PACKAGES)
    versions = {"bayesrep": __version__, **facts["versions"]}
    return facts | {"versions": versions, "torch": _torch_text() if facts["gpus"] else None}


def _torch_text() -> str:
    """Torch's version and whether it sees a GPU, asked in a process of its own."""
    script = "import torch; print(torch.__version__, 'sees a GPU:', torch.cuda.is_available())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    return done.stdout.strip() or "none"


def _kinds(devices: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each device as JAX knows it."""
    return [
        {
            "device": name,
            "kind": one.device_kind,
            "count": len(jax.devices(name)),
            "runtime": str(one.client.platform_version).splitlines()[-1],
        }
        for name, one in devices.items()
    ]


def _add_bounds(measured: dict[str, Any]) -> None:
    """To every gradient the least time by what its device can do, once that is known."""
    limits = {row["device"]: row for row in measured.get("roofline", {}).get("rows", ())}
    for name in ("gradients", "forms"):
        for row in measured.get(name, {}).get("rows", ()):
            if row["device"] in limits and "us" in row:
                row["bound_us"] = bound_us(row, limits[row["device"]])
