"""Which device a fit runs on, by timing one gradient on each."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

REPEATS = 5


@dataclass(frozen=True)
class Choice:
    """A device and why it was chosen.

    Attributes
    ----------
    device
        A JAX device.
    reason
        One sentence with the times that were compared, if any were.
    """

    device: Any
    reason: str


def available() -> dict[str, Any]:
    """The first device of every platform that JAX can use here, by platform name."""
    devices = {device.platform: device for device in reversed(jax.devices())}
    return {**devices, "cpu": jax.devices("cpu")[0]}


def choose(device: str, chains: int, gradient: Callable[[Any, int], Any]) -> Choice:
    """Decide where to sample.

    Parameters
    ----------
    device
        ``"auto"``, or a platform of JAX such as ``"cpu"`` or ``"gpu"``.
    chains
        Chains of the fit: on a CPU they share the cores, elsewhere they run as one batch.
    gradient
        ``gradient(device, batch)`` evaluates ``batch`` gradients on a device, compiled at the
        first call, and waits for them.

    Raises
    ------
    ValueError
        For a platform that JAX does not have here.
    """
    devices = available()
    if device != "auto":
        name = next((n for n in devices if n == device or (device, n) == ("gpu", "cuda")), None)
        if name is None:
            raise ValueError(f"device {device!r} is not here; JAX has {', '.join(devices)}")
        return Choice(devices[name], f"{name}: as asked")
    if len(devices) == 1:
        return Choice(devices["cpu"], "cpu: the only device that JAX finds here")
    times: dict[str, float] = {}
    for name, one in devices.items():
        batch = 1 if name == "cpu" else chains
        turns = -(-chains // min(chains, os.cpu_count() or 1)) if name == "cpu" else 1
        times[name] = turns * _seconds(lambda one=one, batch=batch: gradient(one, batch))
    return fastest(devices, times)


def fastest(devices: Mapping[str, Any], seconds: Mapping[str, float]) -> Choice:
    """The device with the shortest time for one gradient of every chain."""
    name = min(seconds, key=lambda key: seconds[key])
    listed = ", ".join(f"{1e3 * value:.2f} ms on {key}" for key, value in seconds.items())
    return Choice(devices[name], f"{name}: one gradient of all chains takes {listed}")


def _seconds(call: Callable[[], Any]) -> float:
    call()
    times: list[float] = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)
