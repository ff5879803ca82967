"""Devices of networks: precision, batch size and clock."""

import time
from dataclasses import dataclass
from typing import Any, get_args

from bayesrep.choices import Precision
from bayesrep.errors import PredictionError

PRECISION_NAMES = get_args(Precision)
GPU_BATCH, CPU_BATCH = 256, 24  # on a CPU, a batch whose activations stay in the cache is fastest


@dataclass(frozen=True, eq=False)
class Device:
    """A device and its settings for networks."""

    name: str  # torch's name: "cpu", "cuda", "cuda:1", "mps"
    precision: str  # "float32", or by automatic mixed precision "bfloat16" or "float16"
    batch_size: int  # initial number of images of a batch
    compiles: bool = False  # true to compile networks; see `bayesrep.vision.compiling`
    keeps_logits: bool = False  # true to return every output with the answers

    @property
    def is_mixed(self) -> bool:
        """True if networks compute in mixed precision."""
        return self.precision != "float32"

    @property
    def is_cuda(self) -> bool:
        """True for an NVIDIA (or ROCm) GPU."""
        return self.name.startswith("cuda")


class DeviceClock:
    """Clock of a device's work from now on."""

    def __init__(self, device: Device) -> None:
        self._device, self._marks = device, [self._mark(device)]

    def stop(self) -> None:
        """Let it run no further."""
        self._marks.append(self._mark(self._device))

    def seconds(self) -> float:
        """Return the seconds until it was stopped, after waiting for the device to get there."""
        begin, end = self._marks
        if not self._device.is_cuda:
            return end - begin
        end.synchronize()
        return begin.elapsed_time(end) / 1000

    @staticmethod
    def _mark(device: Device) -> Any:
        if not device.is_cuda:
            return time.perf_counter()
        import torch

        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(device.name))
        return event


def choose_device(
    name: str = "auto",
    precision: str = "auto",
    batch_size: int | None = None,
    *,
    compiles: bool = False,
    keeps_logits: bool = False,
) -> Device:
    """Choose the requested device, or the best available."""
    import torch

    if precision not in PRECISION_NAMES:
        raise PredictionError(
            "unknown-precision", precision=precision, choices=", ".join(PRECISION_NAMES)
        )
    if batch_size is not None and batch_size < 1:
        raise PredictionError("batch-size-below-one", batch_size=batch_size)
    if name == "auto":
        mps = torch.backends.mps.is_available()
        name = "cuda" if torch.cuda.is_available() else "mps" if mps else "cpu"
    # A named device may be missing: try it.
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise PredictionError("device-not-available", device=name) from error
    cuda = name.startswith("cuda")
    if precision == "auto":
        precision = "float16" if cuda else "float32"
    batch_size = batch_size or (CPU_BATCH if name == "cpu" else GPU_BATCH)
    return Device(name, precision, batch_size, compiles, keeps_logits)
