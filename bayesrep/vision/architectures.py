"""Descriptions of classifiers without their weights: names, outputs, preprocessing."""

import difflib
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayesrep.errors import PredictionError, PredictionWarning, Violation, listing, reason
from bayesrep.files.digests import digest_file
from bayesrep.studies import validation
from bayesrep.vision.classes import IMAGENET, Classes
from bayesrep.vision.hub import is_of_hub
from bayesrep.vision.large_heads import LargeHead, find_head, match_names, read_label_names
from bayesrep.vision.pixels import Preprocessing
from bayesrep.vision.torch_loading import load_timm
from bayesrep.vision.torchvision_networks import PREFIX, data_config, is_torchvision, weights_of
from bayesrep.vision.torchvision_networks import explain_unknown_name as not_in_torchvision

_CONFIG_FILE = "config.json"
_WEIGHT_SUFFIXES = (".safetensors", ".pth", ".pt", ".bin", ".pth.tar")


@dataclass(frozen=True)
class Architecture:
    """Description of a classifier before its weights are loaded."""

    name: str  # the user's name
    full_name: str  # timm's architecture and tag of the weights, such as "resnet18.a1_in1k"
    weights: str  # "hub:timm/resnet18.a1_in1k", "url:https://...", or "sha256:..." of a file
    file: Path | None  # the file of weights, if they come from a folder
    preprocessing: Preprocessing  # with timm's test size and crop if it has them
    mean: tuple[float, ...]
    std: tuple[float, ...]
    source: str  # timm's name to build it: its full name, "hf-hub:..." or "local-dir:..."
    classes: Classes = IMAGENET  # classes of its outputs
    head: LargeHead | None = None  # positions of these classes in its outputs, if it has more

    @property
    def output_count(self) -> int:
        """Number of outputs."""
        return self.head.size if self.head else len(self.classes)

    @property
    def needs_hub(self) -> bool:
        """True if timm fetches its weights."""
        return self.file is None and not is_torchvision(self.name)


def check_names(names: Sequence[str], weights: Path | None = None) -> None:
    """Check that every name is known and unique, and suggest timm's nearest name."""
    for violation in validation.classifier_violations("classifiers", names):
        raise PredictionError(violation)
    timm = load_timm()
    for name in filter(is_torchvision, names):
        if (why := not_in_torchvision(name)) is not None:
            raise PredictionError(why)
    elsewhere = [n for n in names if is_torchvision(n) or is_of_hub(n) or _saved_folder(n, weights)]
    if unknown := [n for n in names if n not in elsewhere and not timm.is_model(n)]:
        nearest = difflib.get_close_matches(unknown[0].split(".")[0], timm.list_models(), n=1)
        listed = listing(unknown, "classifier")
        if not nearest:
            raise PredictionError(
                "classifiers-like-none-of-timm", version=timm.__version__, classifiers=listed
            )
        raise PredictionError(
            "classifiers-unknown-to-timm",
            version=timm.__version__,
            classifiers=listed,
            nearest=nearest[0],
        )


def describe(name: str, weights: Path | None = None, classes: Classes = IMAGENET) -> Architecture:
    """Describe a classifier without loading it."""
    if is_torchvision(name):
        return _of_torchvision(name, weights, classes)
    timm = load_timm()
    if is_of_hub(name):
        return _of_config(name, None, classes)
    if weights is not None and not timm.is_model(name) and _saved_folder(name, weights):
        return _of_config(name, _find_weights(name, [name], weights), classes)
    config = _pretrained_config(name)
    tagged = config.tag and config.tag != "untrained"
    full = f"{config.architecture}.{config.tag}" if tagged else str(config.architecture)
    stems = name, full, str(config.architecture)
    file = None if weights is None else _find_weights(name, stems, weights)
    if file is not None and weights is not None and _has_config(file, weights):
        return _of_config(name, file, classes)
    if classes.file is not None and weights is None and config.num_classes != len(classes):
        classifier = f"{name!r} ({full})"
        raise PredictionError(describe_disagreement(classifier, config.num_classes, classes))
    head = find_head(config.num_classes) if classes.file is None else None
    if classes.file is None and head is None and config.num_classes != len(classes):
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
    if file:
        source = _file_digest(file)
    elif config.hf_hub_id or config.url:
        source = f"hub:{config.hf_hub_id}" if config.hf_hub_id else f"url:{config.url}"
    else:
        raise PredictionError("timm-classifier-without-weights", classifier=name)
    return Architecture(name, full, source, file, *_input(config.to_dict()), full, classes, head)


def _input(config: dict[str, Any]) -> tuple[Preprocessing, tuple[float, ...], tuple[float, ...]]:
    data = load_timm().data.resolve_data_config(pretrained_cfg=config, use_test_size=True)
    return Preprocessing.from_config(data), tuple(data["mean"]), tuple(data["std"])


def _check_input(name: str, full: str, size: Sequence[int]) -> None:
    if size[0] != 3:
        raise PredictionError("classifier-input-not-rgb", classifier=name, full_name=full)


def _saved_folder(name: str, weights: Path | None) -> Path | None:
    """The folder of a classifier that timm has saved with its configuration."""
    folder = None if weights is None else weights / name
    return folder if folder is not None and (folder / _CONFIG_FILE).is_file() else None


def _of_config(name: str, file: Path | None, classes: Classes) -> Architecture:
    load_timm()
    from timm.models import load_model_config_from_hf
    from timm.models._hub import load_model_config_from_path  # not among its public names

    identifier, folder = name.split(":", 1)[-1], file.parent if file else None
    try:
        config, full, _ = (
            load_model_config_from_path(folder) if folder else load_model_config_from_hf(identifier)
        )
        output_count, shape = int(config["num_classes"]), config.get("input_size", (3,))
        preprocessed, names = _input(config), read_label_names(config, classes)
    except Exception as error:  # the hub, the file system, what is in the file
        where = (
            str(folder / _CONFIG_FILE) if folder else f"{_CONFIG_FILE} of {identifier} on the hub"
        )
        raise PredictionError(
            "classifier-configuration-unusable",
            classifier=name,
            config_place=where,
            error_type=type(error).__name__,
            reason=reason(error)[:120],
        ) from error
    head = find_head(output_count) if classes.file is None else None
    if head is None and output_count != len(classes):
        raise PredictionError(describe_disagreement(f"{name!r} ({full})", output_count, classes))
    head = _find_outputs(name, names, classes, output_count) if names else head
    _check_input(name, full, shape)
    if file is None:
        source = f"hf-hub:{identifier}"
        source_weights_file = source, f"hub:{identifier}", None
    else:
        source = f"local-dir:{folder}"
        source_weights_file = full, _file_digest(file), file
    return Architecture(name, *source_weights_file, *preprocessed, source, classes, head)


def _find_outputs(
    name: str, names: Sequence[str], classes: Classes, output_count: int
) -> LargeHead | None:
    """Find the classes among named outputs; None if each is in its place."""
    head = match_names(names, classes) if len(names) == output_count else None
    if head is not None and head.outputs == tuple(range(output_count)):
        return None
    class_names = {name.casefold() for name in classes.index}
    if head is None and (classes.file is None or class_names & {name.casefold() for name in names}):
        raise PredictionError(
            "classifier-names-other-classes",
            classifier=name,
            label_names=listing(names, "output"),
            known_classes=classes.description,
        )
    explanation = (
        f"are taken in the order of {classes.file}, which has none of these names"
        if head is None
        else f"are found by these names among the {classes.description}"
    )
    warnings.warn(
        f"classifier {name!r}: its configuration (label_names) names its "
        f"{listing(names, 'output')}, which {explanation}",
        PredictionWarning,
        stacklevel=2,
    )
    return head


def describe_disagreement(classifier: str, outputs: int, classes: Classes) -> Violation:
    """Describe a classifier that has not one output for each class."""
    plural = "s" if outputs != 1 else ""
    if classes.file is None:
        return Violation(
            "classifier-outputs-not-imagenet",
            classifier=classifier,
            output_count=outputs,
            plural=plural,
        )
    return Violation(
        "classifier-outputs-disagree-with-classes",
        classifier=classifier,
        output_count=outputs,
        plural=plural,
        classes_file=classes.file,
        class_count=len(classes),
    )


def _of_torchvision(name: str, folder: Path | None, classes: Classes) -> Architecture:
    weights = weights_of(name)
    if folder is None and len(classes) != len(IMAGENET):
        raise PredictionError(describe_disagreement(repr(name), len(IMAGENET), classes))
    full = f"{name.split('.')[0]}.{weights.name}"
    plain = [each.removeprefix(PREFIX) for each in (name, full, full.split(".")[0])]
    file = None if folder is None else _find_weights(name, plain, folder)
    source = _file_digest(file) if file else f"url:{weights.url}"
    data = data_config(weights)
    preprocessed = Preprocessing.from_config(data), data["mean"], data["std"]
    return Architecture(name, full, source, file, *preprocessed, full, classes)


def _pretrained_config(name: str) -> Any:
    timm = load_timm()
    try:
        config = timm.get_pretrained_cfg(name)
        if config is None:  # a name of an earlier version: building it gives the new one
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                built = timm.create_model(name).pretrained_cfg
            config = timm.get_pretrained_cfg(f"{built['architecture']}.{built['tag']}".rstrip("."))
    except (RuntimeError, ValueError) as error:
        raise PredictionError(
            "unknown-weights-tag",
            classifier=name,
            reason=reason(error),
            hint=_alternative(name.split(".")[0]),
        ) from error
    return config


def _alternative(architecture: str) -> str:
    """Name trained weights of an architecture for the 1,000 classes, where timm has some."""
    timm = load_timm()
    candidates = timm.list_pretrained(f"{architecture}.*")
    fit = [
        name for name in candidates if timm.get_pretrained_cfg(name).num_classes == len(IMAGENET)
    ]
    return f"use for example {fit[0]}" if fit else "leave it out"


def _find_weights(name: str, stems: Iterable[str], folder: Path) -> Path:
    """Find a classifier's file of weights: first with its own configuration, then safetensors."""
    if not folder.is_dir():
        raise PredictionError("weights-folder-missing", folder=folder)
    stems = list(dict.fromkeys(stems))
    files = [
        file
        for stem in stems
        for suffix in _WEIGHT_SUFFIXES
        for called in (stem, f"{stem}/model", f"{stem}/pytorch_model")
        if (file := folder / f"{called}{suffix}").is_file()
    ]
    files.sort(key=lambda file: not _has_config(file, folder))
    saved = [folder / stem for stem in stems if _saved_folder(stem, folder)]
    if saved and not (files and _has_config(files[0], folder)):
        raise PredictionError("saved-classifier-without-weights", folder=saved[0], classifier=name)
    if not files:
        looked = " or ".join(f"{stem}.safetensors" for stem in stems)
        raise PredictionError(
            "weights-folder-lacks-classifier", folder=folder, classifier=name, expected_files=looked
        )
    unused = [str(each) for each in (*files[1:], folder / _CONFIG_FILE) if each.is_file()]
    if unused:
        warnings.warn(
            f"classifier {name!r}: {files[0]} is used, not the {listing(unused, 'file')} (a "
            f"configuration is read in a folder of the classifier's name)",
            PredictionWarning,
            stacklevel=2,
        )
    return files[0]


def _has_config(file: Path, folder: Path) -> bool:
    return file.parent != folder and (file.parent / _CONFIG_FILE).is_file()


def _file_digest(file: Path) -> str:
    return f"sha256:{digest_file(file)}"
