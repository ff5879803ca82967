"""Lists of classifiers that papers evaluated, under the names they have in timm today.

Tags are of the weights that timm gave in the paper's year, checked against its accuracies.
"""

import csv
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from bayesrep.errors import PredictionError, PredictionWarning
from bayesrep.vision.torch_loading import load_timm
from bayesrep.vision.torchvision_networks import explain_unknown_name, is_torchvision

CATALOG_TITLES = {
    "anzaku2022": "Anzaku et al. (2022), A principled evaluation protocol, table 3 (of its 286 "
    "networks of ImageNet the paper names these)",
    "engstrom2020": "Engstrom et al. (2020), Identifying Statistical Bias in Dataset Replication, "
    "table 2",
    "shankar2020": "Shankar et al. (2020), Evaluating Machine Accuracy on ImageNet, table 1 (of "
    "its 72 networks the paper names these)",
    "tsipras2020": "Tsipras et al. (2020), From ImageNet to Image Classification, table 1",
}


@dataclass(frozen=True)
class Entry:
    """A classifier of a paper."""

    classifier: str  # the paper's name
    timm: str  # today's name in timm with the tag of the same weights, or torchvision's, if any
    note: str  # remark


@cache
def read_catalog(name: str) -> tuple[Entry, ...]:
    """Read the classifiers of a catalog, in the paper's order.

    Raises
    ------
    PredictionError
        Where there is no such catalog.
    """
    if name not in CATALOG_TITLES:
        choices = ", ".join(CATALOG_TITLES)
        raise PredictionError("unknown-classifier-catalog", catalog=name, choices=choices)
    text = files("bayesrep.vision.catalogs").joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return tuple(Entry(**row) for row in csv.DictReader(text.splitlines()))


def catalog_names(name: str) -> tuple[list[str], list[Entry]]:
    """List the names of a catalog's available classifiers, and the entries without one.

    Raises
    ------
    PredictionError
        Where there is no such catalog.
    """
    available = {*load_timm().list_pretrained()}
    entries = read_catalog(name)
    of_torchvision = {entry.timm for entry in entries if is_torchvision(entry.timm)}
    available |= {each for each in of_torchvision if explain_unknown_name(each) is None}
    available_names = [entry.timm for entry in entries if entry.timm in available]
    return available_names, [entry for entry in entries if entry.timm not in available]


def expand_catalogs(names: Sequence[str]) -> list[str]:
    """Replace the name of a catalog by those of its classifiers that can be had; warn of others."""
    classifiers: list[str] = []
    for name in names:
        if name not in CATALOG_TITLES:
            classifiers.append(name)
            continue
        known, vanished = catalog_names(name)
        for entry in vanished:
            warnings.warn(f"{entry.classifier}: {entry.note}", PredictionWarning, stacklevel=3)
        # Papers share classifiers, and one may be named beside them.
        classifiers += [each for each in known if each not in {*classifiers, *names}]
    return classifiers
