"""The timm companion: from folders of images and names of classifiers to predictions.

`predict` is the door. Images are listed by `images` and `labels`, decoded and preprocessed by
`pixels`, kept by `cache`; `networks` loads classifiers, `evaluate` runs them on a block of images,
`local` and `cluster` go through all blocks, `results` keeps what they found.

Importing this package loads neither torch nor timm; both come with the extra ``[timm]``.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayesrep.vision.catalogs import catalog_names, read_catalog
    from bayesrep.vision.prediction import Report, predict

__all__ = ["Report", "catalog_names", "predict", "read_catalog"]

_DEFINED_IN = {
    "Report": "bayesrep.vision.prediction",
    "catalog_names": "bayesrep.vision.catalogs",
    "predict": "bayesrep.vision.prediction",
    "read_catalog": "bayesrep.vision.catalogs",
}


def __getattr__(name: str) -> object:
    """Load a public name from the module that defines it."""
    if name not in _DEFINED_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_DEFINED_IN[name]), name)
