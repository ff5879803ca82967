"""All that `bayesrep bench` measures, the most wanted first; what fails leaves the others."""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import jax

from bayesrep.bench.advice import advice
from bayesrep.bench.agreement import compare_devices
from bayesrep.bench.cases import FULL_SIZES, QUICK_SIZES, Sizes, Subjects
from bayesrep.bench.measure import draws, gradients, gradients_in_32_bits
from bayesrep.bench.roofline import bound_us, roofline
from bayesrep.bench.timing import error_text
from bayesrep.inference.device import find_devices, find_platform
from bayesrep.machine import machine_facts, torch_sees
from bayesrep.version import __version__

BENCH_PACKAGES = ("jax", "jaxlib", "numpyro", "numpy")
Part: TypeAlias = Callable[[Subjects, Mapping[str, Any]], dict[str, Any]]
BENCH_PARTS: Mapping[str, tuple[str, Part]] = {
    "right": ("is it right", compare_devices),
    "gradients": ("gradients", gradients),
    "draws": ("draws by NUTS", draws),
    "roofline": ("what the device can do", lambda _, devices: roofline(devices)),
    "gradients_32": ("gradients in 32 bits", gradients_in_32_bits),
}
"""Label and function of each measurement."""


def run_bench(
    *,
    device: str = "auto",
    quick: bool = False,
    tell: Callable[[str], None] | None = None,
    keep: Callable[[Mapping[str, Any]], None] | None = None,
    sizes: Sizes | None = None,
) -> dict[str, Any]:
    """Measure every kind of device that JAX finds."""
    devices = _devices(device)
    say = tell or (lambda _: None)
    say("measuring: what machine this is")
    measured: dict[str, Any] = {"quick": quick, "machine": _machine(), "devices": _kinds(devices)}
    seconds: dict[str, float] = {}
    measured["seconds"] = seconds
    subjects = Subjects.of_size(sizes or (QUICK_SIZES if quick else FULL_SIZES))
    for name, (what, part) in BENCH_PARTS.items():
        say(f"measuring: {what}")
        begin = time.perf_counter()
        try:
            measured[name] = part(subjects, devices)
        except Exception as error:  # the others are still wanted
            measured[name] = {"error": error_text(error), "rows": []}
        seconds[name] = round(time.perf_counter() - begin, 1)
        _add_bounds(measured)
        measured["advice"] = advice(measured)
        if keep is not None:
            keep(measured)
    return measured


def _devices(device: str) -> dict[str, Any]:
    if device == "auto":
        return dict(reversed(find_devices().items()))  # the CPU first
    name = find_platform(device)
    return {name: find_devices()[name]}


def _machine() -> dict[str, Any]:
    """Describe the machine; torch is asked only where there is a GPU for it to see."""
    facts = machine_facts(BENCH_PACKAGES)
    versions = {"bayesrep": __version__, **facts["versions"]}
    return facts | {"versions": versions, "torch": torch_sees() if facts["gpus"] else None}


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


def _add_bounds(results: dict[str, Any]) -> None:
    """To every gradient the least time by what its device can do, once that is known."""
    limits = {row["device"]: row for row in results.get("roofline", {}).get("rows", ())}
    for name in ("gradients", "gradients_32"):
        for row in results.get(name, {}).get("rows", ()):
            if row["device"] in limits and "us" in row:
                row["bound_us"] = bound_us(row, limits[row["device"]])
