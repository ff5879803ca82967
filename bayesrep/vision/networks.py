"""Classifiers from timm, or torchvision: their names, their weights, and what they want to see.

Weights come from the hub through timm's own loader, or from a folder of files. A name may be that
of a repository of the hub (`hf-hub:user/model`), or of a folder of weights that timm has saved with
a `config.json`, which says the architecture, its outputs and what images go through. Nothing in a
file of weights is executed: safetensors hold none, and other checkpoints go through torch's loader
of weights alone.
"""

import difflib
import warnings
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayesrep.errors import PredictionError, Violation, kind_and_reason, listing, reason
from bayesrep.files.seals import digest_file
from bayesrep.studies import rules
from bayesrep.vision.classes import IMAGENET, Classes
from bayesrep.vision.imports import load_timm
from bayesrep.vision.pixels import Preprocessing
from bayesrep.vision.torchvision_networks import (
    PREFIX,
    build,
    data_config,
    is_torchvision,
    weights_of,
)
from bayesrep.vision.torchvision_networks import explain_unknown_name as not_in_torchvision

HUB = ("hf-hub:", "hf_hub:")
_CONFIG = "config.json"
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
    source
        What timm builds it by: its full name, "hf-hub:..." or "local-dir:...".
    classes
        What its outputs mean.
    """

    name: str
    full_name: str
    weights: str
    file: Path | None
    preprocessing: Preprocessing
    mean: tuple[float, ...]
    std: tuple[float, ...]
    source: str
    classes: Classes = IMAGENET

    @property
    def needs_hub(self) -> bool:
        """Whether timm fetches its weights."""
        return self.file is None and not is_torchvision(self.name)


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
    """

    architecture: Architecture
    module: Any
    size: int
    limit: int | None = None
    compiled: CompiledNetwork | None = None

    def for_batch(self, shape: Sequence[int]) -> Any:
        """What answers a batch of this shape: the compiled network, or the network itself."""
        compiled = self.compiled
        if compiled is None or compiled.why_not or compiled.shape != tuple(shape):
            return self.module
        return compiled.call


def check_names(names: Sequence[str], weights: Path | None = None) -> None:
    """Check that every name is known, and given once; the nearest that timm knows is named."""
    for violation in rules.classifier_violations("classifiers", names):
        raise PredictionError(violation)
    timm = load_timm()
    for name in filter(is_torchvision, names):
        if (why := not_in_torchvision(name)) is not None:
            raise PredictionError(why)
    elsewhere = [n for n in names if is_torchvision(n) or is_of_hub(n) or _saved_folder(n, weights)]
    if unknown := [n for n in names if n not in elsewhere and not timm.is_model(n)]:
        base = unknown[0].split(".")[0]
        near = difflib.get_close_matches(base, timm.list_models(), n=1)
        listed = listing(unknown, "classifier")
        if not near:
            raise PredictionError(
                "classifiers-like-none-of-timm", version=timm.__version__, classifiers=listed
            )
        raise PredictionError(
            "classifiers-unknown-to-timm",
            version=timm.__version__,
            classifiers=listed,
            nearest=near[0],
        )


def is_of_hub(name: str) -> bool:
    """Whether a name is that of a repository of the hub."""
    return name.startswith(HUB)


def describe(name: str, weights: Path | None = None, classes: Classes = IMAGENET) -> Architecture:
    """What is known of a classifier without loading it.

    Parameters
    ----------
    name
        timm's name, with or without a tag; names of earlier versions are followed. Or one of
        torchvision's (`bayesrep.vision.torchvision_networks`), or of the hub's.
    weights
        A folder with a file of weights for it, instead of timm's own; names of the hub need none.
    classes
        What its outputs mean.

    Raises
    ------
    PredictionError
        Where the tag is unknown, the head has not an output for each class, the input is not RGB,
        or there are no weights.
    """
    if is_torchvision(name):
        return _of_torchvision(name, weights, classes)
    timm = load_timm()
    if is_of_hub(name):
        return _of_config(name, None, classes)
    if classes.file is not None or not timm.is_model(name):  # else timm itself knows it
        saved = _saved_folder(name, weights)
        if saved is not None:
            return _of_config(name, saved, classes)
    config = _pretrained_config(name)
    tagged = config.tag and config.tag != "untrained"
    full = f"{config.architecture}.{config.tag}" if tagged else str(config.architecture)
    if classes.file is not None and weights is None and config.num_classes != len(classes):
        raise PredictionError(_disagreement(f"{name!r} ({full})", config.num_classes, classes))
    if classes.file is None and config.num_classes != len(classes):
        hint = _alternative(str(config.architecture))
        if not config.num_classes:
            raise PredictionError(
                "classifier-without-head", classifier=name, full_name=full, hint=hint
            )
        raise PredictionError(
            "classifier-head-not-imagenet",
            classifier=name,
            full_name=full,
            output_count=config.num_classes,
            hint=hint,
        )
    _check_input(name, full, config.input_size)
    file = None if weights is None else _weights_file(name, full, weights)
    source = _file_digest(file) if file else _own_weights(name, config)
    return Architecture(name, full, source, file, *_input(config.to_dict()), full, classes)


def _input(config: dict[str, Any]) -> tuple[Preprocessing, tuple[float, ...], tuple[float, ...]]:
    data = load_timm().data.resolve_data_config(pretrained_cfg=config, use_test_size=True)
    return Preprocessing.from_config(data), tuple(data["mean"]), tuple(data["std"])


def _check_input(name: str, full: str, size: Sequence[int]) -> None:
    if size[0] != 3:
        raise PredictionError("classifier-input-not-rgb", classifier=name, full_name=full)


def _saved_folder(name: str, weights: Path | None) -> Path | None:
    """The folder of a classifier that timm has saved with its configuration."""
    folder = None if weights is None else weights / name
    return folder if folder is not None and (folder / _CONFIG).is_file() else None


def _of_config(name: str, folder: Path | None, classes: Classes) -> Architecture:
    """A classifier of the hub, or of a folder, by its own configuration."""
    load_timm()
    from timm.models import load_model_config_from_hf
    from timm.models._hub import load_model_config_from_path  # not among its public names

    identifier = name.split(":", 1)[-1]
    try:
        config, full, _ = (
            load_model_config_from_path(folder) if folder else load_model_config_from_hf(identifier)
        )
        classifiers, shape = int(config["num_classes"]), config.get("input_size", (3,))
        preprocessed = _input(config)
    except Exception as error:  # the hub, the file system, what is in the file
        where = str(folder / _CONFIG) if folder else f"{_CONFIG} of {identifier} on the hub"
        raise PredictionError(
            "classifier-configuration-unusable",
            classifier=name,
            config_place=where,
            error_type=type(error).__name__,
            reason=reason(error)[:120],
        ) from error
    if classifiers != len(classes):
        raise PredictionError(_disagreement(f"{name!r} ({full})", classifiers, classes))
    _check_input(name, full, shape)
    if folder is None:
        source = f"hf-hub:{identifier}"
        return Architecture(name, source, f"hub:{identifier}", None, *preprocessed, source, classes)
    file = _saved_weights(name, folder)
    source = f"local-dir:{folder}"
    return Architecture(name, full, _file_digest(file), file, *preprocessed, source, classes)


def _saved_weights(name: str, folder: Path) -> Path:
    """The weights beside a configuration; never those of the architecture under timm's name."""
    for suffix in _SUFFIXES:
        for stem in ("model", "pytorch_model"):
            if (file := folder / f"{stem}{suffix}").is_file():
                return file
    raise PredictionError("saved-classifier-without-weights", folder=folder, classifier=name)


def _disagreement(shown: str, outputs: int, classes: Classes) -> Violation:
    """Say that a classifier has not an output for each class."""
    plural = "s" if outputs != 1 else ""
    if classes.file is None:
        return Violation(
            "classifier-outputs-not-imagenet",
            classifier=shown,
            output_count=outputs,
            plural=plural,
        )
    return Violation(
        "classifier-outputs-disagree-with-classes",
        classifier=shown,
        output_count=outputs,
        plural=plural,
        classes_file=classes.file,
        class_count=len(classes),
    )


def _of_torchvision(name: str, folder: Path | None, classes: Classes) -> Architecture:
    weights = weights_of(name)
    if folder is None and len(classes) != len(IMAGENET):
        raise PredictionError(_disagreement(repr(name), len(IMAGENET), classes))
    full = f"{name.split('.')[0]}.{weights.name}"
    file = None if folder is None else _weights_file(name, full, folder)
    source = _file_digest(file) if file else f"url:{weights.url}"
    data = data_config(weights)
    preprocessed = Preprocessing.from_config(data), data["mean"], data["std"]
    return Architecture(name, full, source, file, *preprocessed, full, classes)


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
    if module.num_classes != len(architecture.classes):
        heads = _head(module.num_classes)
        raise PredictionError(
            "loaded-head-disagrees-with-classes",
            classifier=architecture.name,
            head=heads,
            class_count=len(architecture.classes),
        )
    return _make_ready(architecture, module, device)


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
    count = len(architecture.classes)
    for head in heads:
        shape = tuple(getattr(state.get(head), "shape", ()))
        if shape and shape[0] not in (count, count + (more or 0)):
            shown = f"{architecture.name!r} ({architecture.file})"
            raise PredictionError(_disagreement(shown, shape[0], architecture.classes))


def _make_ready(architecture: Architecture, module: Any, device: Any) -> Network:
    import torch

    module = module.eval().to(device, memory_format=torch.channels_last)
    tensors: Iterable[Any] = [*module.parameters(), *module.buffers()]
    return Network(architecture, module, sum(t.numel() * t.element_size() for t in tensors))


@contextmanager
def offline_without_hub(*, needed: bool) -> Generator[None]:
    """Ask the hub once whether it is there; without it, take what is cached and never wait.

    Where it is not needed, nothing is asked.
    """
    if not needed:
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
            "unknown-weights-tag",
            classifier=name,
            reason=reason(error),
            hint=_alternative(name.split(".")[0]),
        ) from error
    return config


def _head(classes: int) -> str:
    return f"a head of {classes:,} classes" if classes else "no classification head"


def _alternative(architecture: str) -> str:
    """Name trained weights of an architecture for the 1,000 classes, where timm has some."""
    timm = load_timm()
    candidates = timm.list_pretrained(f"{architecture}.*")
    fit = [
        name for name in candidates if timm.get_pretrained_cfg(name).num_classes == len(IMAGENET)
    ]
    return f"use for example {fit[0]}" if fit else "leave it out"


def _own_weights(name: str, config: Any) -> str:
    if config.hf_hub_id:
        return f"hub:{config.hf_hub_id}"
    if config.url:
        return f"url:{config.url}"
    raise PredictionError("timm-classifier-without-weights", classifier=name)


def _weights_file(name: str, full: str, folder: Path) -> Path:
    if not folder.is_dir():
        raise PredictionError("weights-folder-missing", folder=folder)
    plain = [each.removeprefix(PREFIX) for each in (name, full)]
    stems = dict.fromkeys((*plain, plain[1].split(".")[0]))
    for stem in stems:
        for suffix in _SUFFIXES:
            for file in (folder / f"{stem}{suffix}", folder / stem / f"model{suffix}"):
                if file.is_file():
                    return file
    looked = " or ".join(f"{stem}.safetensors" for stem in stems)
    raise PredictionError(
        "weights-folder-lacks-classifier", folder=folder, classifier=name, expected_files=looked
    )


def _file_digest(file: Path) -> str:
    return f"sha256:{digest_file(file)}"


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
