"""Choice of the device of a fit, by timing a few steps on each."""

from collections.abc import Callable
from timeit import repeat
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from bayesrep.errors import OptionError
from bayesrep.machine import cores

N_TIMED_STEPS = 16
"""Steps that are timed, one after the other without the host, as in a trajectory."""


class DeviceChoice(NamedTuple):
    """A device, the reason for it in words, and all devices if it is the first of several."""

    device: Any
    reason: str
    mesh: Mesh | None = None


def find_devices() -> dict[str, Any]:
    """Find the first device of every platform that JAX can use here, by platform name."""
    devices = {device.platform: device for device in reversed(jax.devices())}
    return {**devices, "cpu": jax.devices("cpu")[0]}


def default_platform() -> str:
    """Read the platform on which this thread's programs run, such as "cpu"."""
    device: Any = jax.config.jax_default_device  # type: ignore[attr-defined]
    return jax.default_backend() if device is None else device.platform


def choose(
    device: str, chains: int, build_steps: Callable[[int], Callable[[], Any]]
) -> DeviceChoice:
    """Choose the device to sample on, the fastest at steps of so many chains if it is "auto"."""
    devices = find_devices()
    if device != "auto":
        name = find_platform(device)
        return DeviceChoice(devices[name], f"{name}: as asked")
    if len(devices) == 1:
        return DeviceChoice(devices["cpu"], "cpu: the only device that JAX finds here")
    # On a CPU chains share the cores, several in turn; elsewhere they are one batch.
    seconds: dict[str, float] = {}
    for name, candidate in devices.items():
        batch, turns = (1, -(-chains // min(chains, cores()))) if name == "cpu" else (chains, 1)
        with jax.default_device(candidate):
            steps = build_steps(batch)
            steps()  # compiles
            seconds[name] = turns * min(repeat(steps, number=1, repeat=5)) / N_TIMED_STEPS
    name = min(seconds, key=lambda key: seconds[key] * (1 if key == "cpu" else 2))
    listed = ", ".join(f"{1e3 * value:.2f} ms on {key}" for key, value in seconds.items())
    worth = "others than the cpu have to be 2 times as fast: programs compile longer there"
    return DeviceChoice(devices[name], f"{name}: one step of all chains takes {listed}; {worth}")


def find_platform(device: str) -> str:
    """Find JAX's name of a kind of device."""
    devices = find_devices()
    name = next((n for n in devices if n == device or (device, n) == ("gpu", "cuda")), None)
    if name is None:
        raise OptionError("device-not-present", device=device, choices=", ".join(devices))
    return name


def spread_over(device: str, count: int) -> DeviceChoice:
    """Take the first `count` devices of a kind; all but the chains runs on the first one."""
    name = jax.default_backend() if device == "auto" else find_platform(device)
    devices = jax.devices(name)
    if not 1 <= count <= len(devices):
        raise OptionError(
            "device-count-out-of-range", most=len(devices), platform=name, count=count
        )
    mesh = Mesh(np.array(devices[:count]), ("devices",))
    return DeviceChoice(devices[0], f"{count} devices, as asked", mesh)
