"""Classifiers that timm does not have, from torchvision: `torchvision/alexnet`, or with a tag."""

import difflib
import math
from typing import Any

from bayesrep.errors import PredictionError, Violation
from bayesrep.studies.imagenet import N_CLASSES
from bayesrep.vision.torch_loading import load_timm

PREFIX = "torchvision/"


def is_torchvision(name: str) -> bool:
    """Test whether a name is one of torchvision's."""
    return name.startswith(PREFIX)


def _models() -> Any:
    load_timm()  # which imports torchvision also where its compiled part does not load
    import torchvision

    return torchvision.models


def known_names() -> list[str]:
    """The networks for the 1,000 classes of ImageNet, with their prefix."""
    models = _models()
    return [PREFIX + name for name in models.list_models(module=models)]


def explain_unknown_name(name: str) -> Violation | None:
    """Why a name is none of torchvision's, with the nearest one; nothing where it is one."""
    base = name.removeprefix(PREFIX).split(".")[0]
    names = [each.removeprefix(PREFIX) for each in known_names()]
    if base in names:
        return None
    nearest = difflib.get_close_matches(base, names, n=1)
    if not nearest:
        return Violation("classifier-unknown-to-torchvision", classifier=name)
    return Violation(
        "classifier-near-one-of-torchvision", classifier=name, nearest=PREFIX + nearest[0]
    )


def weights_of(name: str) -> Any:
    """The weights that a name means, an entry of torchvision's enumeration."""
    base, _, tag = name.removeprefix(PREFIX).partition(".")
    every = _models().get_model_weights(base)
    if tag and tag not in every.__members__:
        raise PredictionError(
            "unknown-torchvision-weights", classifier=name, choices=", ".join(every.__members__)
        )
    weights = every[tag] if tag else every.DEFAULT
    if len(weights.meta["categories"]) != N_CLASSES:
        raise PredictionError("torchvision-head-not-imagenet", classifier=name)
    return weights


def data_config(weights: Any) -> dict[str, Any]:
    """Describe the preprocessing of images, in the terms of timm's data configuration."""
    transforms = weights.transforms()
    (size,), (resized,) = transforms.crop_size, transforms.resize_size
    ratio = size / resized
    if math.floor(size / ratio) != resized:  # from which timm is to get `resized` back
        ratio = math.nextafter(ratio, 0)
    return {
        "input_size": (3, size, size),
        "crop_pct": ratio,
        "crop_mode": "center",
        "interpolation": transforms.interpolation.value,
        "mean": tuple(transforms.mean),
        "std": tuple(transforms.std),
    }


def build(full_name: str, classes: int = N_CLASSES) -> Any:
    """A network without trained weights, as its published weights fit it but for its outputs."""
    base = full_name.removeprefix(PREFIX).split(".")[0]
    options: dict[str, Any] = {}
    if base in ("googlenet", "inception_v3"):  # weights were trained with auxiliary heads
        options = {"transform_input": True, "aux_logits": True, "init_weights": False}
    return _models().get_model(base, weights=None, num_classes=classes, **options)
