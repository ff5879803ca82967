"""Readers of published data and of your own tables, one file a source.

`READERS` maps a source's name to its main function, which takes the paths given by the user and
returns `bayesrep.studies.contents.StudyContents`: a study, or what one needs as far as the files
go. What the files are is in the docstring of each reader's module.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from bayesrep.sources import arrays, cifar10_1, cifar10h, evals, imagenetv2, madrylab, tables
from bayesrep.studies.contents import StudyContents

__all__ = ["READERS", "UNCOUNTED", "Reader"]

# Called with a sequence of paths, and options by keyword where a reader has any: cifar10h takes
# seed; evals, imagenetv2 and tables take reference and replication; evals and tables take name.
Reader: TypeAlias = Callable[..., StudyContents]

READERS: Mapping[str, Reader] = {
    "arrays": arrays.read,
    "cifar10.1": cifar10_1.read,
    "cifar10h": cifar10h.read,
    "evals": evals.read_evaluations,
    "imagenetv2": imagenetv2.read,
    "madrylab": madrylab.read,
    "tables": tables.read,
}
UNCOUNTED = frozenset({"arrays", "cifar10.1"})
"""Sources whose files never hold counts of annotators."""
