"""Importing torch, torchvision and timm, also where torchvision's compiled part does not load."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from bayesrep.errors import PredictionError

_MISSING_OPERATOR = "operator torchvision::nms does not exist"
_OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_definitions: list[Any] = []  # torch forgets a library's operators when the library is collected


@cache
def load_timm() -> ModuleType:
    """The module timm, imported with what it needs."""
    try:
        _load_torchvision()
        import_module("timm.data")  # evaluation settings and transforms
        return import_module("timm")
    except ModuleNotFoundError as error:
        name = (error.name or "timm").split(".")[0]
        raise PredictionError("timm-extra-not-installed", package=name) from error


@contextmanager
def own_defaults() -> Generator[None]:
    """Torch's defaults of device and type as torch has them, whatever the process has set."""
    load_timm()
    import torch

    kind = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float32)
        with torch.device("cpu"):
            yield
    finally:
        torch.set_default_dtype(kind)


def _load_torchvision() -> None:
    import torch

    try:
        import_module("torchvision")
    except RuntimeError as error:
        if _MISSING_OPERATOR not in str(error):
            raise
        library = torch.library.Library("torchvision", "FRAGMENT")
        for operator in _OPERATORS:
            library.define(operator)
        _definitions.append(library)
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        import_module("torchvision")
