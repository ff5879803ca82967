"""Readers of published data and of your own tables, one file a source.

`READERS` maps a source's name to how it is read: by a function from the paths given by the user to
`bayesrep.studies.contents.StudyContents`, a study, or what one needs as far as the files go. What
the files are is in the docstring of each reader's module. `STATEMENTS` are the sources without
files: the function makes the text that a database is to be asked.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bayesrep.sources import arrays, cifar10_1, cifar10h, evals, imagenetv2, madrylab, sql, tables
from bayesrep.studies.contents import StudyContents

__all__ = ["READERS", "STATEMENTS", "Reader"]


@dataclass(frozen=True)
class Reader:
    """How one source is read.

    Attributes
    ----------
    read
        Function that takes a sequence of paths, and options by keyword where it has any.
    has_counts
        Whether its files may hold counts of annotators.
    adds_counts
        Whether its counts may be added to answers that await them.
    survey
        Function that says what the files hold before anything of them is chosen: a row a data set,
        and groups of these; with paths and options as `read`.
    """

    read: Callable[..., StudyContents]
    has_counts: bool = True
    adds_counts: bool = False
    survey: Callable[..., Any] | None = None


READERS: Mapping[str, Reader] = {
    "arrays": Reader(arrays.read, has_counts=False),
    "cifar10.1": Reader(cifar10_1.read, has_counts=False),
    "cifar10h": Reader(cifar10h.read),
    "evals": Reader(evals.read_evaluations, survey=evals.list_contents),
    "imagenetv2": Reader(imagenetv2.read),
    "madrylab": Reader(madrylab.read),
    "tables": Reader(tables.read, adds_counts=True),
}
STATEMENTS: Mapping[str, Callable[..., str]] = {"sql": sql.statement}
