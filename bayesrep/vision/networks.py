"""Classifiers with their weights, from timm or torchvision, ready to answer.

Nothing in a file of weights is executed.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bayesrep.errors import (
    PredictionError,
    PredictionWarning,
    Violation,
    kind_and_reason,
    listing,
    reason,
)
from bayesrep.vision.architectures import Architecture, describe_disagreement
from bayesrep.vision.torch_loading import load_timm
from bayesrep.vision.torchvision_networks import build, is_torchvision, weights_of


@dataclass(frozen=True, eq=False)
class CompiledNetwork:
    """Result of compiling a network; see `bayesrep.vision.compiling`."""

    call: Any  # the compiled network
    shape: tuple[int, ...]  # shape of the only batches that it takes, [n, 3, H, W]
    why_not: str = ""  # reason against using it; empty if it is used


@dataclass(eq=False)
class Network:
    """A classifier ready to answer."""

    architecture: Architecture  # its description
    module: Any  # in evaluation mode, on its device
    size: int  # bytes of parameters and buffers
    limit: int | None = None  # largest batch after memory ran out: half of what was too large
    compiled: CompiledNetwork | None = None  # result of compiling it; None before it is tried
    is_halved: bool = False  # true if weights are kept in a shorter type (`halve_weights`)
    whole: Any = None  # the module in full precision, once it was needed

    def for_batch(self, shape: Sequence[int]) -> Any:
        """Return the module for batches of this shape: the compiled network, or the original."""
        compiled = self.compiled
        if compiled is None or compiled.why_not or compiled.shape != tuple(shape):
            return self.module
        return compiled.call


def _load_torchvision(architecture: Architecture) -> Any:
    module = build(architecture.full_name, len(architecture.classes))
    expected, state = set(module.state_dict()), dict[str, Any]()
    try:
        state = (
            weights_of(architecture.full_name).get_state_dict(progress=False, check_hash=True)
            if architecture.file is None
            else _read_weights(architecture, expected)
        )
        _check_outputs(architecture, state, [list(module.state_dict())[-1]])
        module.load_state_dict(state)
    except PredictionError:
        raise
    except Exception as error:  # the network, the file system, torch: each raises its own
        raise PredictionError(_load_failure(architecture, error, expected, set(state))) from error
    return module


def load_network(architecture: Architecture, device: Any) -> Network:
    """Load a classifier with its weights; a PredictionError if they are missing or do not fit."""
    if is_torchvision(architecture.name):
        return _make_ready(architecture, _load_torchvision(architecture), device)
    timm = load_timm()
    overlay, expected, present = None, set[str](), set[str]()
    if architecture.file is not None:
        outlined = outline_network(architecture.source)
        expected = set() if outlined is None else set(outlined.state_dict())
        overlay = _overlay(architecture, expected)
        present = set(overlay["state_dict"])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # renamed models; meta-data of old checkpoints
            module = timm.create_model(
                architecture.source, pretrained=True, pretrained_cfg_overlay=overlay
            )
    except Exception as error:  # the hub, the file system, torch: each raises its own
        raise PredictionError(_load_failure(architecture, error, expected, present)) from error
    del overlay
    module.pretrained_cfg.pop("state_dict", None)  # else the weights stay in memory twice
    if module.num_classes != architecture.output_count:
        classes = module.num_classes
        heads = f"a head of {classes:,} classes" if classes else "no classification head"
        raise PredictionError(
            "loaded-head-disagrees-with-classes",
            classifier=architecture.name,
            head=heads,
            class_count=architecture.output_count,
        )
    return _make_ready(architecture, module, device)


def halve_weights(network: Network, precision: str) -> None:
    """Keep weights of plain layers in the type that mixed precision shortens them to."""
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


def outline_network(full_name: str) -> Any:
    """Build a network without memory for its weights; None if that fails."""
    timm = load_timm()
    import torch

    try:
        with torch.device("meta"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make = build if is_torchvision(full_name) else timm.create_model
            return make(full_name)
    except Exception:  # the hub, names of a user's own, layers that compute while they are made
        return None


def _overlay(architecture: Architecture, expected: set[str]) -> dict[str, Any]:
    """Build timm's options for the weights of a file, and a head that fits them."""
    state = _read_weights(architecture, expected)
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
        overlay["source"] = ""  # else timm reads the folder without these checks
    if architecture.classes.file is not None:
        overlay["num_classes"] = len(architecture.classes)
    return overlay


def _check_outputs(
    architecture: Architecture, state: Any, heads: Iterable[str], more: int | None = 0
) -> None:
    """Refuse weights whose head, if it is found, has not an output for each class."""
    count = architecture.output_count
    for head in heads:
        shape = tuple(getattr(state.get(head), "shape", ()))
        if shape and shape[0] not in (count, count + (more or 0)):
            classifier = f"{architecture.name!r} ({architecture.file})"
            raise PredictionError(describe_disagreement(classifier, shape[0], architecture.classes))


def _make_ready(architecture: Architecture, module: Any, device: Any) -> Network:
    import torch

    module = module.eval().to(device, memory_format=torch.channels_last)
    return Network(architecture, module, _count_bytes(module))


def _count_bytes(module: Any) -> int:
    tensors: Iterable[Any] = [*module.parameters(), *module.buffers()]
    return sum(each.numel() * each.element_size() for each in tensors)


def _read_weights(architecture: Architecture, expected: set[str]) -> dict[str, Any]:
    """A file's weights from the entry or prefix with the network's names, averages first."""
    load_timm()
    import torch
    from safetensors.torch import load_file
    from timm.models import load_state_dict

    # Counters of batches are only for training, and may be missing.
    needed = {name for name in expected if not name.endswith("num_batches_tracked")}
    file, first = str(architecture.file), min(needed, default="")
    try:
        is_safe = file.endswith(".safetensors")
        loaded = load_file(file) if is_safe else torch.load(file, "cpu", weights_only=True)
        if not (flat := dict(_list_tensors(loaded))):
            raise ValueError("it holds no weights")  # which timm would take for those of its hub
        places = [name.removesuffix(first) for name in flat if f".{name}".endswith(f".{first}")]
        states = {
            place: {n.removeprefix(place): v for n, v in flat.items() if n.startswith(place)}
            for place in sorted(places, key=lambda place: "ema" not in place)
        }
        fits = [place for place, state in states.items() if needed <= set(state) <= expected]
        chosen = next(iter(fits), None)
        if chosen is None:
            return load_state_dict(file, weights_only=True)
    except Exception as error:  # not safetensors, or a pickle of more than weights
        raise PredictionError(
            "weights-file-unreadable", file=file, reason=kind_and_reason(error)
        ) from error
    most = {
        place for place, state in states.items() if 2 * len(expected & set(state)) > len(expected)
    }
    others = sorted(most - {chosen})
    if others or chosen not in ("", "state_dict.", "model."):
        unused = f", not the {listing(others, 'name')}" if others else ""
        warnings.warn(
            f"classifier {architecture.name!r}: {file}: the weights under {chosen!r} are used"
            f"{unused}",
            PredictionWarning,
            stacklevel=2,
        )
    return states[chosen]


def _list_tensors(entries: Mapping[Any, Any], place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all tensors, named by the entries that they are in and dots."""
    for name, value in entries.items():
        if isinstance(value, Mapping):
            yield from _list_tensors(value, f"{place}{name}.")
        elif hasattr(value, "shape"):
            yield f"{place}{name}", value


def _load_failure(
    architecture: Architecture, error: Exception, expected: set[str], present: set[str]
) -> Violation:
    origin = architecture.weights.split(":", 1)[1]
    name = architecture.name
    if architecture.file is not None:
        faults = [
            f"{verb} {listing(sorted(names), 'weight')}"
            for verb, names in (("it lacks", expected - present), ("it holds", present - expected))
            if names and expected
        ]
        messages = [line.strip() for line in str(error).splitlines()[1:2]] or [reason(error)]
        return Violation(
            "weights-misfit-classifier",
            file=architecture.file,
            classifier=name,
            reason=" and ".join(faults or messages),
        )
    return Violation(
        "weights-cannot-be-fetched",
        classifier=name,
        weights=origin,
        error_type=type(error).__name__,
        reason=reason(error)[:120],
    )
