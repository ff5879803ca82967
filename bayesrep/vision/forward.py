"""Run classifiers on a block of preprocessed images: normalise (as timm), forward, top five."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from threading import Event
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import PredictionError, kind_and_reason
from bayesrep.studies.layout import MAX_RANKS
from bayesrep.types import Bools
from bayesrep.vision.architectures import Architecture
from bayesrep.vision.classes import IMAGENET, Classes
from bayesrep.vision.devices import Device, DeviceClock
from bayesrep.vision.networks import Network, whole_module
from bayesrep.vision.pixels import ImageBlock, Preprocessing

Input: TypeAlias = tuple[Preprocessing, tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True, eq=False)
class TopFive:
    """A classifier's five (or all fewer) likeliest classes for some images, likeliest first."""

    labels: NDArray[np.uint16]  # uint16 [n, 5]: class numbers
    probabilities: NDArray[np.float32]  # float32 [n, 5]: softmax probabilities
    seconds: float  # time that the classifier itself took
    logits: NDArray[Any] | None = None  # [n, K]: every output, where these are kept

    def take(self, chosen: Bools) -> Self:
        """The answers on some of the images [n]."""
        return replace(
            self, labels=self.labels[chosen], probabilities=self.probabilities[chosen], logits=None
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Concatenate the answers on several groups of images."""
        logits = [part.logits for part in parts if part.logits is not None]
        return cls(
            np.concatenate([part.labels for part in parts]),
            np.concatenate([part.probabilities for part in parts]),
            sum(part.seconds for part in parts),
            np.concatenate(logits) if logits else None,
        )


def identity_of(architecture: Architecture, device: Device) -> dict[str, str]:
    """Return the facts that must agree for answers of two runs to share a file."""
    identity = {
        "full_name": architecture.full_name,
        "weights": architecture.weights,
        "preprocessing": str(architecture.preprocessing),
        "precision": device.precision,
    }
    return identity | ({"head": architecture.head.description} if architecture.head else {})


def in_groups(networks: Iterable[Network]) -> dict[Input, list[Network]]:
    """Group networks by what they want to see."""
    groups: defaultdict[Input, list[Network]] = defaultdict(list)
    for network in networks:
        wanted = network.architecture
        groups[wanted.preprocessing, wanted.mean, wanted.std].append(network)
    return dict(groups)


def upload(
    blocks: Sequence[ImageBlock], preprocessings: Iterable[Preprocessing], device: Device
) -> dict[Preprocessing, Any]:
    """Pixels uint8 [n, H, W, 3] of blocks on the device, on CUDA by queued, pinned copies."""
    import torch

    pixels: dict[Preprocessing, Any] = {}
    for key in preprocessings:
        tensors = [torch.from_numpy(block.pixels[key]) for block in blocks]
        if device.is_cuda:  # pinned, so that nothing waits
            tensors = [each.pin_memory().to(device.name, non_blocking=True) for each in tensors]
        elif device.name != "cpu":
            tensors = [each.to(device.name) for each in tensors]
        pixels[key] = tensors[0] if len(tensors) == 1 else torch.cat(tensors)
    return pixels


def start_evaluation(
    pixels: Mapping[Preprocessing, Any],
    groups: Mapping[Input, Sequence[Network]],
    device: Device,
    classes: Classes = IMAGENET,
    stop: Event | None = None,
) -> Callable[[], tuple[dict[str, TopFive | str], float]]:
    """Send some images to every network, without waiting for the results."""
    import torch

    failures: dict[str, str] = {}
    sent: defaultdict[str, list[Callable[[], TopFive]]] = defaultdict(list)
    clock = DeviceClock(device)
    with torch.inference_mode():
        for key, networks in groups.items():
            for part in pixels[key[0]].split(device.batch_size):
                images, repeat = _normalise(part, key), partial(_normalise, part, key)
                for network in networks:
                    name = network.architecture.name
                    if name in failures:
                        continue
                    if stop is not None and stop.is_set():
                        raise CancelledError
                    try:
                        sent[name].append(send_batch(network, images, device, classes, repeat))
                    except Exception as error:  # networks raise many types
                        failures[name] = kind_and_reason(error)
    clock.stop()

    def finish() -> tuple[dict[str, TopFive | str], float]:
        answers: dict[str, TopFive | str] = {**failures}
        for name, batches in sent.items():
            if name not in failures:
                try:
                    answers[name] = TopFive.concatenate([fetch() for fetch in batches])
                except Exception as error:
                    answers[name] = kind_and_reason(error)
        return answers, clock.seconds()

    return finish


def in_batches(pixels: Mapping[Preprocessing, Any], key: Input, device: Device) -> Iterator[Any]:
    """Yield what networks take, float32 [n, 3, H, W], a batch at a time."""
    for part in pixels[key[0]].split(device.batch_size):
        yield _normalise(part, key)


def _normalise(pixels: Any, key: Input) -> Any:
    """The input float32 [n, 3, H, W] in channels-last layout from uint8 [n, H, W, 3]."""
    import torch

    (_, mean, std), (count, height, width, _) = key, pixels.shape
    # A row of the image at a time: the same sums, with all channels in one contiguous operand.
    center, scale = (_repeat_values(values, width, pixels.device) for values in (mean, std))
    flat = pixels.reshape(count * height, 3 * width).to(torch.float32)
    flat.sub_(center).div_(scale)
    return flat.view(count, height, width, 3).permute(0, 3, 1, 2)


@lru_cache(64)
def _repeat_values(values: tuple[float, ...], width: int, device: Any) -> Any:
    """A row of 255 times some values; made once, since the device waits for what is sent to it."""
    import torch

    return torch.tensor([255 * x for x in values]).repeat(width).to(device)


def answer(network: Network, images: Any, device: Device, classes: Classes = IMAGENET) -> TopFive:
    """The answers of a network on one batch [n, 3, H, W]."""
    return send_batch(network, images, device, classes, lambda: images)()


def send_batch(
    network: Network,
    images: Any,
    device: Device,
    classes: Classes,
    repeat: Callable[[], Any],  # makes the batch for full precision, where outputs are not finite
    *,
    exact: bool = False,
) -> Callable[[], TopFive]:
    """Send a network one batch [n, 3, H, W]; what is returned waits for its answers."""
    import torch

    clock, kind = DeviceClock(device), device.name.split(":")[0]
    dtype = None if exact or not device.is_mixed else getattr(torch, device.precision)
    with torch.inference_mode(), torch.autocast(kind, dtype) if dtype else nullcontext():
        logits = _logits(network, images, device, exact=exact)
    with torch.inference_mode():
        finite = whole = torch.isfinite(logits).all()
        # Rank the rounded outputs, so that answers from kept outputs are the same.
        if device.precision == "float16":
            halved = logits.half()
            whole = torch.isfinite(halved).all()
            rounded = torch.where(whole, halved.float(), logits.float())
            logits = halved if device.keeps_logits else rounded
        else:
            logits = logits.float()
        if (head := network.architecture.head) is not None:
            logits = head.take_classes(logits)
        ranked = _take_likeliest(compute_probabilities(logits.float(), classes))
        sent = (*ranked, finite, whole, *((logits,) if device.keeps_logits else ()))
        # Start the transfer now, between the device's current work and its next batch.
        probabilities, labels, is_finite, is_whole, *kept_logits = (
            each.to("cpu", non_blocking=device.is_cuda) for each in sent
        )
    clock.stop()

    def fetch() -> TopFive:
        seconds = clock.seconds()
        if not bool(is_finite):
            if exact:
                raise ArithmeticError("outputs are not finite, the weights may be damaged")
            return send_batch(network, repeat(), device, classes, repeat, exact=True)()
        if kept_logits and not bool(is_whole):
            raise ArithmeticError("outputs are beyond float16, in which they would be kept")
        top_five = _make_top_five(probabilities, labels, seconds)
        return replace(top_five, logits=kept_logits[0].numpy()) if kept_logits else top_five

    return fetch


def compute_probabilities(logits: Any, classes: Classes) -> Any:
    """The softmax [n, C] of outputs among some classes."""
    return choose_outputs(logits, classes).softmax(-1)


def rank_probabilities(probabilities: Any, start: float) -> TopFive:
    """The likeliest classes by probabilities float32 [n, C], whose computation began at `start`."""
    values, labels = (each.cpu() for each in _take_likeliest(probabilities))
    return _make_top_five(values, labels, time.perf_counter() - start)


def _take_likeliest(probabilities: Any) -> tuple[Any, Any]:
    return probabilities.topk(min(MAX_RANKS, probabilities.shape[-1]))


def choose_outputs(logits: Any, classes: Classes) -> Any:
    """The outputs [n, C] of some classes among those [n, K] of a network, the largest of each."""
    import torch

    if all(len(outputs) == 1 for outputs in classes.outputs):
        chosen = [output for (output,) in classes.outputs]
        return logits[:, chosen] if chosen else logits
    return torch.stack([logits[:, [*each]].amax(1) for each in classes.outputs], 1)


def _make_top_five(probabilities: Any, labels: Any, seconds: float) -> TopFive:
    values = probabilities.numpy()
    if np.isnan(values).any():
        raise PredictionError("no-output-of-chosen-classes")
    return TopFive(labels.numpy().astype(np.uint16), values, seconds)


_MEMORY_WORDS = ("out of memory", "can't allocate memory", "not enough memory")


def _logits(network: Network, images: Any, device: Device, *, exact: bool) -> Any:
    """Return [n, K], in smaller and smaller batches while memory runs out."""
    import torch

    while True:
        limit = min(network.limit or len(images), len(images))
        try:
            parts = images.split(limit)
            if exact:
                module = whole_module(network, device.name)
                return torch.cat([module(part) for part in parts])
            return torch.cat([network.for_batch(part.shape)(part) for part in parts])
        except (RuntimeError, MemoryError) as error:
            known = isinstance(error, torch.OutOfMemoryError | MemoryError)
            if limit == 1 or not (known or any(w in str(error).lower() for w in _MEMORY_WORDS)):
                raise
        network.limit = limit // 2
        if device.is_cuda:
            torch.cuda.empty_cache()
