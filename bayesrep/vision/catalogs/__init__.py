"""Lists of classifiers that papers evaluated, under the names they have in timm today.

Each catalog is a table: the paper's name, timm's name with the tag of the same weights (or, of what
timm lacks, torchvision's with the prefix "torchvision/"; empty where neither has them), and a note.
Where an architecture has several weights, the tag is that of the weights timm gave in the paper's
year, checked against the accuracies the paper prints.
"""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from bayesrep.errors import PredictionError
from bayesrep.vision.imports import load_timm
from bayesrep.vision.torchvision_networks import explain_unknown_name, is_torchvision

__all__ = ["CATALOGS", "Entry", "catalog_names", "read_catalog"]

CATALOGS = {
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
    """A classifier of a paper.

    Attributes
    ----------
    classifier
        The paper's name.
    timm
        Today's name in timm with the tag of the same weights, or torchvision's; empty where it has
        vanished.
    note
        What to know about it.
    """

    classifier: str
    timm: str
    note: str


@cache
def read_catalog(name: str) -> tuple[Entry, ...]:
    """The classifiers of a catalog, in the paper's order.

    Raises
    ------
    PredictionError
        Where there is no such catalog.
    """
    if name not in CATALOGS:
        known = ", ".join(CATALOGS)
        raise PredictionError("unknown-classifier-catalog", catalog=name, choices=known)
    text = files("bayesrep.vision.catalogs").joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return tuple(Entry(**row) for row in csv.DictReader(text.splitlines()))


def catalog_names(name: str) -> tuple[list[str], list[Entry]]:
    """The names of a catalog's classifiers that can be had, and the entries that cannot.

    Raises
    ------
    PredictionError
        Where there is no such catalog.
    """
    available = {*load_timm().list_pretrained()}
    available |= {entry.timm for entry in read_catalog(name) if _in_torchvision(entry.timm)}
    entries = read_catalog(name)
    here = [entry.timm for entry in entries if entry.timm in available]
    return here, [entry for entry in entries if entry.timm not in available]


def _in_torchvision(name: str) -> bool:
    return is_torchvision(name) and explain_unknown_name(name) is None
