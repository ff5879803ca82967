"""Running classifiers on a block of preprocessed images: normalise, forward, top five.

The normalised input is timm's to the last bit (its prefetching loader: x.sub(255 mean).div(255
std)), computed once for all classifiers that share it, in channels-last layout.
"""

import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from threading import Event
from typing import Any, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from bayesrep.choices import Precision
from bayesrep.errors import PredictionError, kind_and_reason
from bayesrep.studies.folder import RANKS
from bayesrep.types import Bools
from bayesrep.vision.architectures import Architecture
from bayesrep.vision.classes import IMAGENET, Classes
from bayesrep.vision.networks import Network
from bayesrep.vision.pixels import ImageBlock, Preprocessing

PRECISIONS = get_args(Precision)
GPU_BATCH, CPU_BATCH = 256, 24  # on a CPU, a batch whose activations stay in the cache is fastest

Input: TypeAlias = tuple[Preprocessing, tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True, eq=False)
class TopFive:
    """A classifier's five likeliest classes for some images, likeliest first.

    Among K < 5 classes there are K answers.

    Attributes
    ----------
    labels : uint16 [n, 5]
        Class numbers.
    probabilities : float32 [n, 5]
        Softmax probabilities.
    seconds
        Time that the classifier itself took.
    logits : [n, K]
        Every output, where these are kept.
    """

    labels: NDArray[np.uint16]
    probabilities: NDArray[np.float32]
    seconds: float
    logits: NDArray[Any] | None = None

    def take(self, chosen: Bools) -> Self:
        """The answers on some of the images [n]."""
        return replace(
            self, labels=self.labels[chosen], probabilities=self.probabilities[chosen], logits=None
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """The answers on several groups of images, one after the other."""
        kept = [part.logits for part in parts if part.logits is not None]
        return cls(
            np.concatenate([part.labels for part in parts]),
            np.concatenate([part.probabilities for part in parts]),
            sum(part.seconds for part in parts),
            np.concatenate(kept) if kept else None,
        )


@dataclass(frozen=True, eq=False)
class Device:
    """Where and how networks are run.

    Attributes
    ----------
    name
        torch's name: "cpu", "cuda", "cuda:1", "mps".
    precision
        "float32", "bfloat16" or "float16"; the last two by automatic mixed precision.
    batch_size
        Images sent through a network at once, to begin with.
    compiles
        Whether networks are compiled; see `bayesrep.vision.compiling`.
    keeps_logits
        Whether answers come with every output; see `bayesrep.vision.logits`.
    """

    name: str
    precision: str
    batch_size: int
    compiles: bool = False
    keeps_logits: bool = False

    @property
    def is_cuda(self) -> bool:
        """Whether this is an NVIDIA (or ROCm) GPU."""
        return self.name.startswith("cuda")


def choose_device(
    name: str = "auto",
    precision: str = "auto",
    batch_size: int | None = None,
    *,
    compiles: bool = False,
    keeps_logits: bool = False,
) -> Device:
    """The device asked for, or the best there is.

    Parameters
    ----------
    name
        "auto" (a GPU where there is one), or torch's name of a device.
    precision
        "auto" (float16 on a CUDA GPU, with images of non-finite outputs done again in float32;
        float32 elsewhere), "float32", "bfloat16" or "float16".
    batch_size
        Images sent through a network at once, at most 24 on a CPU; None to choose.
    compiles, keeps_logits
        Whether networks are compiled, and whether their outputs are kept.

    Raises
    ------
    PredictionError
        Where the device is not there, or an argument has none of these values.
    """
    import torch

    if precision not in PRECISIONS:
        raise PredictionError(
            "unknown-precision", precision=precision, choices=", ".join(PRECISIONS)
        )
    if batch_size is not None and batch_size < 1:
        raise PredictionError("batch-size-below-one", batch_size=batch_size)
    if name == "auto":
        mps = torch.backends.mps.is_available()
        name = "cuda" if torch.cuda.is_available() else "mps" if mps else "cpu"
    # A device may be named and still not be there: try it.
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise PredictionError("device-not-available", device=name) from error
    cuda = name.startswith("cuda")
    # Half precision is the default with CUDA alone.
    if precision == "auto":
        precision = "float16" if cuda else "float32"
    batch_size = batch_size or (CPU_BATCH if name == "cpu" else GPU_BATCH)
    return Device(name, precision, batch_size, compiles, keeps_logits)


def identity_of(architecture: Architecture, device: Device) -> dict[str, str]:
    """What must agree before answers of two runs stand in one file."""
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
        groups[_input(network.architecture)].append(network)
    return dict(groups)


def upload(
    blocks: Sequence[ImageBlock], preprocessings: Iterable[Preprocessing], device: Device
) -> dict[Preprocessing, Any]:
    """The pixels of some blocks on the device, as tensors uint8 [n, H, W, 3].

    On a CUDA device the copies are queued, from pinned memory, on the current stream.
    """
    return {
        key: _on_device([block.pixels[key] for block in blocks], device) for key in preprocessings
    }


def evaluate(
    pixels: Mapping[Preprocessing, Any],
    groups: Mapping[Input, Sequence[Network]],
    device: Device,
    classes: Classes = IMAGENET,
    stop: Event | None = None,
) -> dict[str, TopFive | str]:
    """The answers of every network on some images, or the reason why it has none.

    Parameters
    ----------
    pixels
        uint8 [n, H, W, 3] on the device for every preprocessing (see `upload`).
    groups
        Networks by input (see `in_groups`).
    device
        Where they run.
    classes
        What answers are among.
    stop
        Set where nobody waits for the answers any more: then this ends in a CancelledError.
    """
    import torch

    answers: dict[str, TopFive | str] = {}
    with torch.inference_mode():
        for key, networks in groups.items():
            top_five: dict[str, list[TopFive]] = {n.architecture.name: [] for n in networks}
            for images in in_batches(pixels, key, device):
                for network in networks:
                    name = network.architecture.name
                    if name in answers:
                        continue
                    if stop is not None and stop.is_set():
                        raise CancelledError
                    try:
                        top_five[name].append(answer(network, images, device, classes))
                    except Exception as error:  # a network raises whatever its parts do
                        answers[name] = kind_and_reason(error)
            answers |= {
                name: TopFive.concatenate(p) for name, p in top_five.items() if name not in answers
            }
    return answers


def in_batches(pixels: Mapping[Preprocessing, Any], key: Input, device: Device) -> Iterator[Any]:
    """Yield what networks take, float32 [n, 3, H, W], a batch at a time."""
    for part in pixels[key[0]].split(device.batch_size):
        yield _normalise(part, key)


def _input(architecture: Architecture) -> Input:
    return architecture.preprocessing, architecture.mean, architecture.std


def _on_device(arrays: Sequence[NDArray[np.uint8]], device: Device) -> Any:
    """Pixels uint8 [n, H, W, 3] on the device; what is uploaded is pinned and does not wait."""
    import torch

    tensors = [torch.from_numpy(array) for array in arrays]
    if device.is_cuda:
        tensors = [tensor.pin_memory().to(device.name, non_blocking=True) for tensor in tensors]
    elif device.name != "cpu":
        tensors = [tensor.to(device.name) for tensor in tensors]
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors)


def _normalise(pixels: Any, key: Input) -> Any:
    """The input float32 [n, 3, H, W] in channels-last layout from uint8 [n, H, W, 3]."""
    import torch

    (_, mean, std), (count, height, width, _) = key, pixels.shape
    # A row of the image at a time: the same sums, with all channels in one contiguous operand.
    row = [torch.tensor([255 * x for x in values]).repeat(width) for values in (mean, std)]
    center, scale = (values.to(pixels.device) for values in row)
    flat = pixels.reshape(count * height, 3 * width).to(torch.float32)
    flat.sub_(center).div_(scale)
    return flat.view(count, height, width, 3).permute(0, 3, 1, 2)


def answer(network: Network, images: Any, device: Device, classes: Classes = IMAGENET) -> TopFive:
    """The answers of a network on one batch [n, 3, H, W]."""
    import torch

    start = time.perf_counter()
    with _precision(device):
        logits = _logits(network, images, device)
    if not bool(torch.isfinite(logits).all()):
        logits = _logits(network, images, device, as_it_is=True)  # without mixed precision
        if not bool(torch.isfinite(logits).all()):
            raise ArithmeticError("outputs are not finite, the weights may be damaged")
    if device.precision == "float16":
        # As they are kept: answers are the same whether or not these are asked for later.
        halved = logits.half()
        if bool(torch.isfinite(halved).all()):
            logits = halved
        elif device.keeps_logits:
            raise ArithmeticError("outputs are beyond float16, in which they would be kept")
    logits = logits if logits.dtype == torch.float16 else logits.float()
    if (head := network.architecture.head) is not None:
        logits = head.take_classes(logits)
    top_five = rank_outputs(logits.float(), classes, start)
    return replace(top_five, logits=logits.cpu().numpy()) if device.keeps_logits else top_five


def rank_outputs(logits: Any, classes: Classes, start: float) -> TopFive:
    """The likeliest of some classes by the outputs float32 [n, K] of a network, begun at `start`.

    Where several outputs stand for one class, it has the largest of them.

    Raises
    ------
    PredictionError
        Where the network has an output for none of the classes.
    """
    import torch

    if all(len(outputs) == 1 for outputs in classes.outputs):
        chosen = [output for (output,) in classes.outputs]
        logits = logits[:, chosen] if chosen else logits
    else:
        logits = torch.stack([logits[:, [*each]].amax(1) for each in classes.outputs], 1)
    probabilities, labels = logits.softmax(-1).topk(min(RANKS, logits.shape[-1]))
    values = probabilities.cpu().numpy()  # waits for the device
    if np.isnan(values).any():
        raise PredictionError("no-output-of-chosen-classes")
    return TopFive(labels.cpu().numpy().astype(np.uint16), values, time.perf_counter() - start)


def _logits(network: Network, images: Any, device: Device, *, as_it_is: bool = False) -> Any:
    """Return [n, K], in smaller and smaller batches while memory runs out."""
    import torch

    while True:
        limit = min(network.limit or len(images), len(images))
        try:
            parts = images.split(limit)
            if as_it_is:
                return torch.cat([network.module(part) for part in parts])
            return torch.cat([network.for_batch(part.shape)(part) for part in parts])
        except (RuntimeError, MemoryError) as error:
            if limit == 1 or not _out_of_memory(error):
                raise
        network.limit = limit // 2
        if device.is_cuda:
            torch.cuda.empty_cache()


@contextmanager
def _precision(device: Device) -> Generator[None]:
    import torch

    dtype = {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(device.precision)
    kind = device.name.split(":")[0]
    with torch.autocast(kind, dtype) if dtype else nullcontext():
        yield


def _out_of_memory(error: BaseException) -> bool:
    import torch

    words = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(
        word in str(error).lower() for word in words
    )
