"""Networks compiled by `torch.compile`, each first compared with its own uncompiled answers."""

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from types import FunctionType
from typing import Any

import numpy as np

from bayesrep.errors import PredictionError, kind_and_reason, reason
from bayesrep.vision.devices import Device
from bayesrep.vision.forward import Input, TopFive, answer, in_batches
from bayesrep.vision.networks import CompiledNetwork, Network

CHECKED_IMAGES = 96  # images whose answers are compared, at least one batch
PROBABILITY_TOLERANCES = {"float32": 2e-3, "float16": 2e-2, "bfloat16": 5e-2}  # of probabilities
_number = count()


def check_compiler(device: Device) -> None:
    """Compile a small function on the device, to refuse a missing compiler in one line."""
    import torch

    now = time.time()  # in the code, so that no cache answers for a compiler that is gone
    try:
        torch.compile(_separate_call(lambda values: values.sin() + now))(
            torch.zeros(8, device=device.name)
        )
    except Exception as error:  # no compiler, no Triton, a Python that torch cannot compile yet
        raise PredictionError(
            "compiling-unavailable", device=device.name, reason=reason(error)[:160]
        ) from error


def compile_networks(
    groups: Mapping[Input, Sequence[Network]], batches: Sequence[Mapping[Any, Any]], device: Device
) -> dict[str, str]:
    """Compile networks that were not tried yet, and return reasons against compiled ones."""
    import torch

    reasons: dict[str, str] = {}
    with torch.inference_mode():
        for key, networks in groups.items():
            images = [part for pixels in batches for part in in_batches(pixels, key, device)]
            for network in networks if images else ():
                if network.compiled is None:
                    network.compiled = _compile_network(network, images, device)
                    reasons[network.architecture.name] = network.compiled.why_not
    return reasons


def _compile_network(network: Network, images: Sequence[Any], device: Device) -> CompiledNetwork:
    import torch

    shape = tuple(max(images, key=len).shape)
    same = [part for part in images if tuple(part.shape) == shape]
    try:
        expected = TopFive.concatenate([answer(network, part, device) for part in same])
    except Exception:  # it has no answers: the pass over the images will say so
        return CompiledNetwork(None, shape, "it has no usable answers")
    call = torch.compile(_separate_call(network.module), dynamic=False)
    network.compiled = CompiledNetwork(call, shape)
    try:
        actual = TopFive.concatenate([answer(network, part, device) for part in same])
    except Exception as error:  # whatever compiling stumbles over
        return CompiledNetwork(None, shape, f"compiling fails ({kind_and_reason(error)[:200]})")
    return CompiledNetwork(call, shape, _difference(expected, actual, device))


def _difference(expected: TopFive, compiled: TopFive, device: Device) -> str:
    """Describe the difference between answers; empty if there is none."""
    others = int((expected.labels[:, 0] != compiled.labels[:, 0]).sum())
    if others:
        return f"compiled, it finds other labels on {others} of {len(compiled.labels)} images"
    largest = float(np.abs(expected.probabilities[:, 0] - compiled.probabilities[:, 0]).max())
    if largest > PROBABILITY_TOLERANCES[device.precision]:
        return f"compiled, its probabilities differ by up to {largest:.2g}"
    return ""


def forget_compiled() -> None:
    """Release compiled code, and with it the networks."""
    import torch

    torch.compiler.reset()


def _separate_call(module: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A call of a network in code of its own: torch compiles the same code but eight times."""

    def network(images: Any) -> Any:
        return module(images)

    code = network.__code__.replace(co_name=f"network_{next(_number)}")
    return FunctionType(code, network.__globals__, closure=network.__closure__)
