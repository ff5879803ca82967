"""Readers of published data and of your own tables, one file a source.

`READERS` maps a source's name to its main function, which takes the paths given by the user and
returns a `bayesrep.Study`; what the files are is in the docstring of each reader's module.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from bayesrep.sources import arrays, cifar10_1, cifar10h, evals, imagenetv2, madrylab, tables
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.study import Study

__all__ = ["ANSWERED", "ANSWERS", "READERS", "Reader"]

# Called with a sequence of paths, and options by keyword where a reader has any: cifar10h takes
# seed; evals, imagenetv2 and tables take reference and replication; evals and tables take name.
Reader: TypeAlias = Callable[..., Study]

READERS: Mapping[str, Reader] = {
    "cifar10h": cifar10h.read,
    "evals": evals.read,
    "imagenetv2": imagenetv2.read,
    "madrylab": madrylab.read,
    "tables": tables.read_tables,
}

# Of the sources that know what classifiers answered: called as their readers are, they return the
# study (tables without predictions: its annotations) and the answers.
ANSWERED: Mapping[str, Callable[..., tuple[Any, list[Predictions]]]] = {
    "imagenetv2": imagenetv2.read_answered,
    "tables": tables.read_answered,
}

# Of sources without counts of annotators: what classifiers answered on the reference and on the
# replication. ImageNet-v2's folder alone is one of them; with a table of counts it is a study.
ANSWERS: Mapping[str, Callable[..., list[Predictions]]] = {
    "arrays": arrays.read_answers,
    "cifar10.1": cifar10_1.read_imported,
    "imagenetv2": imagenetv2.read_answers,
}
