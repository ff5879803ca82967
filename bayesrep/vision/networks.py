"""Classifiers with their weights, from timm or torchvision, ready to answer.

Weights come from the hub through timm's own loader, or from a folder of files. Nothing in a file of
weights is executed: safetensors hold none, and other checkpoints go through torch's loader of
weights alone.
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bayesrep.errors import PredictionError, Violation, kind_and_reason, reason
from bayesrep.vision.architectures import Architecture, describe_disagreement
from bayesrep.vision.imports import load_timm
from bayesrep.vision.torchvision_networks import build, is_torchvision, weights_of


@dataclass(frozen=True, eq=False)
class CompiledNetwork:
    """What has come of compiling a network; see `bayesrep.vision.compiling`.

    Attributes
    ----------
    call
        The compiled network.
    shape
        Shape of the only batches that it takes, [n, 3, H, W].
    why_not
        Why it is not used; empty where it is.
    """

    call: Any
    shape: tuple[int, ...]
    why_not: str = ""


@dataclass(eq=False)
class Network:
    """A classifier ready to answer.

    Attributes
    ----------
    architecture
        Which it is.
    module
        In evaluation mode, on its device.
    size
        Bytes of parameters and buffers.
    limit
        Where memory ran out, half the batch that was too large: so many images are sent through it
        at once from then on.
    compiled
        What has come of compiling it; None where nobody tried.
    is_halved, whole
        Whether weights are kept in a shorter type (`halve_weights`), and the module with all of
        their digits, once it was needed.
    """

    architecture: Architecture
    module: Any
    size: int
    limit: int | None = None
    compiled: CompiledNetwork | None = None
    is_halved: bool = False
    whole: Any = None

    def for_batch(self, shape: Sequence[int]) -> Any:
        """What answers a batch of this shape: the compiled network, or the network itself."""
        compiled = self.compiled
        if compiled is None or compiled.why_not or compiled.shape != tuple(shape):
            return self.module
        return compiled.call


def _load_torchvision(architecture: Architecture) -> Any:
    """A network of torchvision with its weights and without the heads that only training uses."""
    module = build(architecture.full_name, len(architecture.classes))
    try:
        state = (
            weights_of(architecture.full_name).get_state_dict(progress=False, check_hash=True)
            if architecture.file is None
            else _read_weights(architecture)
        )
        _check_outputs(architecture, state, [list(module.state_dict())[-1]])
        module.load_state_dict(state)
    except PredictionError:
        raise
    except Exception as error:  # the network, the file system, torch: each raises its own
        raise PredictionError(_load_failure(architecture, error)) from error
    return module


def load_network(architecture: Architecture, device: Any) -> Network:
    """Load a classifier with its weights; a PredictionError where they cannot be had or not fit."""
    if is_torchvision(architecture.name):
        return _make_ready(architecture, _load_torchvision(architecture), device)
    timm = load_timm()
    overlay = None if architecture.file is None else _overlay(architecture)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # renamed models; meta-data of old checkpoints
            module = timm.create_model(
                architecture.source, pretrained=True, pretrained_cfg_overlay=overlay
            )
    except Exception as error:  # the hub, the file system, torch: each raises its own
        raise PredictionError(_load_failure(architecture, error)) from error
    del overlay
    module.pretrained_cfg.pop("state_dict", None)  # else the weights stay in memory twice
    if module.num_classes != architecture.output_count:
        heads = _head(module.num_classes)
        raise PredictionError(
            "loaded-head-disagrees-with-classes",
            classifier=architecture.name,
            head=heads,
            class_count=architecture.output_count,
        )
    return _make_ready(architecture, module, device)


def halve_weights(network: Network, precision: str) -> None:
    """Keep weights in the type to which mixed precision shortens them for each batch.

    These are those of plain linear layers and convolutions. Answers stay the same to the bit: all
    else (normalisation, layers that compute with their weights first) is left as it is.

    Parameters
    ----------
    network
        The network, whose module is changed.
    precision
        "bfloat16" or "float16".
    """
    import torch

    for part in network.module.modules():
        if type(part) in (torch.nn.Linear, torch.nn.Conv2d):
            part.to(getattr(torch, precision))
    network.size, network.is_halved = _count_bytes(network.module), True


def whole_module(network: Network, device: str) -> Any:
    """The module of a network in full precision; it is loaded once more where it was halved."""
    if not network.is_halved:
        return network.module
    if network.whole is None:
        network.whole = load_network(network.architecture, device).module
    return network.whole


def _overlay(architecture: Architecture) -> dict[str, Any]:
    """What timm is told so that it takes the weights of a file, and a head that fits them."""
    state = _read_weights(architecture)
    config = load_timm().get_pretrained_cfg(architecture.full_name)
    heads = getattr(config, "classifier", None) or ()
    heads = (heads,) if isinstance(heads, str) else heads
    _check_outputs(
        architecture,
        state,
        [f"{each}.weight" for each in heads],
        getattr(config, "label_offset", 0),
    )
    overlay: dict[str, Any] = {"state_dict": state, "url": "", "file": ""}
    if architecture.source != architecture.full_name:
        overlay["source"] = ""  # else the folder is read without what protects us
    if architecture.classes.file is not None:
        overlay["num_classes"] = len(architecture.classes)
    return overlay


def _check_outputs(
    architecture: Architecture, state: Any, heads: Iterable[str], more: int | None = 0
) -> None:
    """Refuse weights whose head, where it is found, has not an output for each class."""
    count = architecture.output_count
    for head in heads:
        shape = tuple(getattr(state.get(head), "shape", ()))
        if shape and shape[0] not in (count, count + (more or 0)):
            shown = f"{architecture.name!r} ({architecture.file})"
            raise PredictionError(describe_disagreement(shown, shape[0], architecture.classes))


def _make_ready(architecture: Architecture, module: Any, device: Any) -> Network:
    import torch

    module = module.eval().to(device, memory_format=torch.channels_last)
    return Network(architecture, module, _count_bytes(module))


def _count_bytes(module: Any) -> int:
    tensors: Iterable[Any] = [*module.parameters(), *module.buffers()]
    return sum(each.numel() * each.element_size() for each in tensors)


def _head(classes: int) -> str:
    return f"a head of {classes:,} classes" if classes else "no classification head"


def _read_weights(architecture: Architecture) -> Any:
    load_timm()
    from timm.models import load_state_dict

    try:
        return load_state_dict(str(architecture.file), weights_only=True)
    except Exception as error:  # not safetensors, or a pickle of more than weights
        raise PredictionError(
            "weights-file-unreadable", file=architecture.file, reason=kind_and_reason(error)
        ) from error


def _load_failure(architecture: Architecture, error: Exception) -> Violation:
    shown = architecture.weights.split(":", 1)[1]
    name = architecture.name
    if architecture.file is not None:
        return Violation(
            "weights-misfit-classifier",
            file=architecture.file,
            classifier=name,
            reason=reason(error),
        )
    return Violation(
        "weights-cannot-be-fetched",
        classifier=name,
        weights=shown,
        error_type=type(error).__name__,
        reason=reason(error)[:120],
    )
