"""Which device a fit runs on, by timing a few steps on each."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from bayesrep.errors import OptionError
from bayesrep.machine import cores

REPEATS = 5
WORTH = 2
"""How many times as fast as the CPU another device has to be."""
STEPS = 16
"""How many steps are timed: one after the other without the host, as in a trajectory."""


@dataclass(frozen=True)
class Choice:
    """A device and why it was chosen.

    Attributes
    ----------
    device
        A JAX device.
    reason
        One sentence with the times that were compared, if any were.
    mesh
        All devices, where it is the first of several.
    """

    device: Any
    reason: str
    mesh: Mesh | None = None


def find_devices() -> dict[str, Any]:
    """The first device of every platform that JAX can use here, by platform name."""
    devices = {device.platform: device for device in reversed(jax.devices())}
    return {**devices, "cpu": jax.devices("cpu")[0]}


def default_platform() -> str:
    """The platform on which this thread's programs run, such as "cpu"."""
    device: Any = jax.config.jax_default_device  # type: ignore[attr-defined]
    return jax.default_backend() if device is None else device.platform


def choose(device: str, chains: int, build_steps: Callable[[int], Callable[[], Any]]) -> Choice:
    """Decide where to sample.

    Parameters
    ----------
    device
        `"auto"`, or a platform of JAX such as `"cpu"` or `"gpu"`.
    chains
        Chains of the fit: on a CPU they share the cores, elsewhere they run as one batch.
    build_steps
        `build_steps(batch)` returns a function that takes `STEPS` steps of so many chains on the
        default device, compiled at the first call, and waits for them.

    Raises
    ------
    OptionError
        For a platform that JAX does not have here.
    """
    devices = find_devices()
    if device != "auto":
        name = find_platform(device)
        return Choice(devices[name], f"{name}: as asked")
    if len(devices) == 1:
        return Choice(devices["cpu"], "cpu: the only device that JAX finds here")
    times: dict[str, float] = {}
    for name, one in devices.items():
        batch = 1 if name == "cpu" else chains
        turns = -(-chains // min(chains, cores())) if name == "cpu" else 1
        with jax.default_device(one):
            times[name] = turns * _seconds(build_steps(batch)) / STEPS
    return choose_fastest(devices, times)


def find_platform(device: str) -> str:
    """JAX's name of a kind of device that is here.

    Raises
    ------
    OptionError
        If it is not.
    """
    devices = find_devices()
    name = next((n for n in devices if n == device or (device, n) == ("gpu", "cuda")), None)
    if name is None:
        raise OptionError("device-not-present", device=device, choices=", ".join(devices))
    return name


def spread_over(device: str, count: int) -> Mesh:
    """A mesh of the first `count` devices of a kind, for chains to be spread over.

    Parameters
    ----------
    device
        A platform of JAX; `"auto"` for JAX's default.
    count
        At least 1.

    Raises
    ------
    OptionError
        If there are not as many.
    """
    name = jax.default_backend() if device == "auto" else find_platform(device)
    devices = jax.devices(name)
    if not 1 <= count <= len(devices):
        raise OptionError(
            "device-count-out-of-range", most=len(devices), platform=name, count=count
        )
    return Mesh(np.array(devices[:count]), ("devices",))


def use_all(mesh: Mesh) -> Choice:
    """All devices of a mesh; what they need not share is done on the first one."""
    return Choice(mesh.devices.flat[0], f"{mesh.size} devices, as asked", mesh)


def choose_fastest(devices: Mapping[str, Any], seconds: Mapping[str, float]) -> Choice:
    """The device with the shortest time for one step of every chain.

    Others than the CPU have to be `WORTH` times as fast: their programs compile longer.
    """
    name = min(seconds, key=lambda key: seconds[key] * (1 if key == "cpu" else WORTH))
    listed = ", ".join(f"{1e3 * value:.2f} ms on {key}" for key, value in seconds.items())
    worth = f"others than the cpu have to be {WORTH} times as fast: programs compile longer there"
    return Choice(devices[name], f"{name}: one step of all chains takes {listed}; {worth}")


def _seconds(call: Callable[[], Any]) -> float:
    call()
    times: list[float] = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)
