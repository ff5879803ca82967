"""Classifiers from timm, or torchvision: their names, their weights, and what they want to see.

Weights come from the hub through timm's own loader, or from a folder of files. Nothing in a file of
weights is executed: safetensors hold none, and other checkpoints go through torch's loader of
weights alone.
"""

import difflib
import hashlib
import warnings
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayesrep.errors import PredictionError, kind_and_reason, listing, reason
from bayesrep.studies import rules
from bayesrep.studies.imagenet import CLASSES
from bayesrep.vision.imports import load_timm
from bayesrep.vision.pixels import Preprocessing
from bayesrep.vision.torchvision_networks import (
    PREFIX,
    build,
    data_config,
    is_torchvision,
    weights_of,
)
from bayesrep.vision.torchvision_networks import unknown as not_in_torchvision

_SUFFIXES = (".safetensors", ".pth", ".pt", ".bin", ".pth.tar")


@dataclass(frozen=True)
class Architecture:
    """A classifier as far as it is known before its weights are loaded.

    Attributes
    ----------
    name
        As the user calls it.
    full_name
        timm's architecture and tag of the weights, such as "resnet18.a1_in1k".
    weights
        Where the weights come from: "hub:timm/resnet18.a1_in1k", "url:https://...", or
        "sha256:..." of a file.
    file
        The file of weights, where they come from a folder.
    preprocessing, mean, std
        What its images go through; timm's test size and crop where it gives one for testing.
    """

    name: str
    full_name: str
    weights: str
    file: Path | None
    preprocessing: Preprocessing
    mean: tuple[float, ...]
    std: tuple[float, ...]


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
    """

    architecture: Architecture
    module: Any
    size: int
    limit: int | None = None


def check_names(names: Sequence[str]) -> None:
    """Check that every name is one of timm's, and given once; the nearest known one is named."""
    for violation in rules.classifier_violations("classifiers", names):
        raise PredictionError(violation)
    timm = load_timm()
    for name in filter(is_torchvision, names):
        if (why := not_in_torchvision(name)) is not None:
            raise PredictionError(why)
    if unknown := [name for name in names if not (is_torchvision(name) or timm.is_model(name))]:
        base = unknown[0].split(".")[0]
        near = difflib.get_close_matches(base, timm.list_models(), n=1)
        hint = f"the nearest is {near[0]!r}" if near else "timm.list_models() has them all"
        raise PredictionError(
            f"timm {timm.__version__} does not know {listing(unknown, 'classifier')}; {hint}"
        )


def describe(name: str, weights: Path | None = None) -> Architecture:
    """What is known of a classifier without loading it.

    Parameters
    ----------
    name
        timm's name, with or without a tag; names of earlier versions are followed. Or one of
        torchvision's (`bayesrep.vision.torchvision_networks`).
    weights
        A folder with a file of weights for it, instead of timm's own.

    Raises
    ------
    PredictionError
        Where the tag is unknown, the head is not that of the 1,000 ImageNet classes, the input is
        not RGB, or there are no weights.
    """
    if is_torchvision(name):
        return _of_torchvision(name, weights)
    timm = load_timm()
    config = _pretrained_config(name)
    tagged = config.tag and config.tag != "untrained"
    full = f"{config.architecture}.{config.tag}" if tagged else str(config.architecture)
    if config.num_classes != CLASSES:
        raise PredictionError(
            f"classifier {name!r} ({full}) has {_head(config.num_classes)}, not the 1,000 ImageNet "
            f"classes; {_alternative(str(config.architecture))}"
        )
    if config.input_size[0] != 3:
        raise PredictionError(f"classifier {name!r} ({full}) does not take RGB images; drop it")
    file = None if weights is None else _weights_file(name, full, weights)
    source = _file_digest(file) if file else _own_weights(name, config)
    data = timm.data.resolve_data_config(pretrained_cfg=config.to_dict(), use_test_size=True)
    return Architecture(
        name, full, source, file, Preprocessing.of(data), tuple(data["mean"]), tuple(data["std"])
    )


def _of_torchvision(name: str, folder: Path | None) -> Architecture:
    weights = weights_of(name)
    full = f"{name.split('.')[0]}.{weights.name}"
    file = None if folder is None else _weights_file(name, full, folder)
    source = _file_digest(file) if file else f"url:{weights.url}"
    data = data_config(weights)
    return Architecture(name, full, source, file, Preprocessing.of(data), data["mean"], data["std"])


def _load_torchvision(architecture: Architecture) -> Any:
    """A network of torchvision with its weights and without the heads that only training uses."""
    module = build(architecture.full_name)
    try:
        state = (
            weights_of(architecture.full_name).get_state_dict(progress=False, check_hash=True)
            if architecture.file is None
            else _read_weights(architecture)
        )
        module.load_state_dict(state)
    except PredictionError:
        raise
    except Exception as error:  # the network, the file system, torch: each raises its own
        raise PredictionError(_load_failure(architecture, error)) from error
    return module


def load_network(architecture: Architecture, device: Any) -> Network:
    """Load a classifier with its weights; a PredictionError where they cannot be had or not fit."""
    if is_torchvision(architecture.name):
        return _ready(architecture, _load_torchvision(architecture), device)
    timm = load_timm()
    own = architecture.file is None
    overlay = None if own else {"state_dict": _read_weights(architecture), "url": "", "file": ""}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # renamed models; meta-data of old checkpoints
            module = timm.create_model(
                architecture.full_name, pretrained=True, pretrained_cfg_overlay=overlay
            )
    except Exception as error:  # the hub, the file system, torch: each raises its own
        raise PredictionError(_load_failure(architecture, error)) from error
    del overlay
    module.pretrained_cfg.pop("state_dict", None)  # else the weights stay in memory twice
    if module.num_classes != CLASSES:
        heads = _head(module.num_classes)
        raise PredictionError(f"classifier {architecture.name!r} has {heads}, not 1,000")
    return _ready(architecture, module, device)


def _ready(architecture: Architecture, module: Any, device: Any) -> Network:
    import torch

    module = module.eval().to(device, memory_format=torch.channels_last)
    tensors: Iterable[Any] = [*module.parameters(), *module.buffers()]
    return Network(architecture, module, sum(t.numel() * t.element_size() for t in tensors))


@contextmanager
def offline_without_hub(architectures: Sequence[Architecture]) -> Generator[None]:
    """Ask the hub once whether it is there; without it, take what is cached and never wait.

    Where all that will be loaded comes from files, nothing is asked.
    """
    if all(each.file is not None or is_torchvision(each.name) for each in architectures):
        yield
        return
    import huggingface_hub
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    try:
        if not before:
            huggingface_hub.get_session().head(constants.ENDPOINT, timeout=10)
    except Exception:  # whichever client is behind it, it could not connect
        constants.HF_HUB_OFFLINE = True  # its environment variable is read at import only
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _pretrained_config(name: str) -> Any:
    timm = load_timm()
    try:
        config = timm.get_pretrained_cfg(name)
        if config is None:  # a name of an earlier version: only building it tells the new one
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = timm.create_model(name).pretrained_cfg
            config = timm.get_pretrained_cfg(f"{made['architecture']}.{made['tag']}".rstrip("."))
    except (RuntimeError, ValueError) as error:
        raise PredictionError(
            f"classifier {name!r}: {reason(error)} {_alternative(name.split('.')[0])}"
        ) from error
    return config


def _head(classes: int) -> str:
    return f"a head of {classes:,} classes" if classes else "no classification head"


def _alternative(architecture: str) -> str:
    """Name trained weights of an architecture for the 1,000 classes, where timm has some."""
    timm = load_timm()
    candidates = timm.list_pretrained(f"{architecture}.*")
    fit = [name for name in candidates if timm.get_pretrained_cfg(name).num_classes == CLASSES]
    return f"use for example {fit[0]}" if fit else "leave it out"


def _own_weights(name: str, config: Any) -> str:
    if config.hf_hub_id:
        return f"hub:{config.hf_hub_id}"
    if config.url:
        return f"url:{config.url}"
    raise PredictionError(
        f"timm has no trained weights of classifier {name!r}; leave it out or give a file of "
        "weights (--weights DIR)"
    )


def _weights_file(name: str, full: str, folder: Path) -> Path:
    if not folder.is_dir():
        raise PredictionError(f"{folder} is not a folder; give one with files of weights")
    plain = [each.removeprefix(PREFIX) for each in (name, full)]
    stems = dict.fromkeys((*plain, plain[1].split(".")[0]))
    for stem in stems:
        for suffix in _SUFFIXES:
            for file in (folder / f"{stem}{suffix}", folder / stem / f"model{suffix}"):
                if file.is_file():
                    return file
    looked = " or ".join(f"{stem}.safetensors" for stem in stems)
    raise PredictionError(
        f"{folder} holds no weights of classifier {name!r}; looked for {looked} (or .pth, .pt, "
        ".bin)"
    )


def _file_digest(file: Path) -> str:
    with file.open("rb") as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"


def _read_weights(architecture: Architecture) -> Any:
    load_timm()
    from timm.models import load_state_dict

    try:
        return load_state_dict(str(architecture.file), weights_only=True)
    except Exception as error:  # not safetensors, or a pickle of more than weights
        raise PredictionError(
            f"{architecture.file} cannot be read as weights alone ({kind_and_reason(error)}); "
            "restore it, or convert it to safetensors"
        ) from error


def _load_failure(architecture: Architecture, error: Exception) -> str:
    shown = architecture.weights.split(":", 1)[1]
    name = architecture.name
    if architecture.file is not None:
        return f"{architecture.file} does not fit classifier {name!r} ({reason(error)})"
    return (
        f"the weights of classifier {name!r} ({shown}) are not on this machine and cannot be "
        f"fetched ({type(error).__name__}: {reason(error)[:120]}); connect once, or give a folder "
        "of weights (--weights DIR)"
    )
