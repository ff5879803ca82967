"""What an ArviZ object holds, by group; and the cells that its variables are about."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrep.errors import StudyError
from bayesrep.studies.study import AnnotatedSet


def find_group(posterior: Any, name: str) -> xr.Dataset | None:
    """A group of an ArviZ object as a data set (its variables not copied); None if missing."""
    try:
        group = posterior[name]
    except KeyError:
        return None
    return group.to_dataset() if isinstance(group, xr.DataTree) else group


def need_group(posterior: Any, name: str, *variables: str) -> xr.Dataset:
    """A group that must be there with some variables.

    Raises
    ------
    StudyError
        If it is not.
    """
    group = find_group(posterior, name)
    missing = [v for v in variables if group is None or v not in group]
    if group is None or missing:
        what = f"{name} ({', '.join(missing)})" if missing else name
        raise StudyError(f"the posterior has no {what}; fit the study again with this version")
    return group


def thinned(variable: xr.DataArray, draws: int) -> NDArray[Any]:
    """At most ``draws`` of the draws [chain, draw, ...], evenly spaced, as [S, ...]."""
    chains, length = variable.shape[:2]
    each = max(1, min(length, draws // chains))
    chosen = np.linspace(0, length - 1, each).round().astype(int)
    return variable.values[:, chosen].reshape(-1, *variable.shape[2:])


class Cell(NamedTuple):
    """What a cell's name "group: k/n" says."""

    group: str
    selected: int
    shown: int


def parse_cell(name: str) -> Cell:
    """Take the name of a cell apart."""
    group, _, pair = name.rpartition(": ")
    selected, _, shown = pair.partition("/")
    return Cell(group, int(selected), int(shown))


def cell_of_images(data: AnnotatedSet, names: NDArray[Any], column: str) -> NDArray[np.intp]:
    """Index among the named cells of every image; ``column`` holds its group, if there are any."""
    cells = [parse_cell(str(name)) for name in names]
    place = {cell: index for index, cell in enumerate(cells)}
    if column and column not in data.groups:
        raise StudyError(f"the posterior has groups by {column[:50]!r}, which the study lacks")
    groups = data.groups[column] if column else np.full(len(data.shown), "")
    return np.array(
        [
            place[Cell(str(g), int(k), int(n))]
            for g, k, n in zip(groups, data.selected, data.shown, strict=True)
        ]
    )
