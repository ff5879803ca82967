"""What an ArviZ object holds: its groups, its cells, and what it records of how it was made."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import PosteriorError
from bayesrep.files.netcdf import Group, Variable
from bayesrep.models import MODELS
from bayesrep.posterior.verdict import certify_draws
from bayesrep.studies.selection import Selection
from bayesrep.studies.words import Words, named_words
from bayesrep.types import Int, Shaped

if TYPE_CHECKING:
    from bayesrep.models.model import Model


@runtime_checkable  # the tests check every annotation at every call
class Posterior(Protocol):
    """An ArviZ object: `InferenceData` of ArviZ 0.23, xarray's `DataTree` from 1.0 on.

    Or the groups of a file.
    """

    def __getitem__(self, name: str, /) -> Any:
        """A group by name; KeyError where there is none."""
        ...


def find_group(posterior: Posterior, name: str) -> Group | None:
    """A group of an ArviZ object (its variables not copied); None if missing.

    Raises
    ------
    PosteriorError
        If it is no such object, or its draws are not all there once, along their dimensions.
    """
    group = read_group(posterior, name)
    if group is None or name != "posterior" or "adjusted_accuracy" not in group:
        return group
    if (dims := group["adjusted_accuracy"].dims) != ("chain", "draw", "classifier"):
        raise PosteriorError("posterior-dimensions-changed", dimensions=", ".join(dims))
    if "classifier" not in group.coords:
        raise PosteriorError("posterior-names-missing", where="posterior/classifier")
    try:
        return certify_draws(group, read_group(posterior, "sample_stats"))
    except PosteriorError:
        raise
    except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
        raise PosteriorError("posterior-origin-unknown") from error


def read_group(posterior: Posterior, name: str) -> Group | None:
    """A group as it is, whatever it says of its draws."""
    try:
        group = posterior[name]
    except (KeyError, TypeError) as error:
        if isinstance(error, KeyError) and not isinstance(posterior, dict):
            return None
        kind = f"an object of type {type(posterior).__name__}"
        found = repr(posterior) if isinstance(posterior, str) else kind
        raise PosteriorError("object-not-a-posterior", found=found) from None
    if isinstance(group, Group):
        return group
    data_vars, coords = (
        {str(key): Variable(tuple(map(str, each.dims)), each.values) for key, each in part.items()}
        for part in (group.data_vars, group.coords)
    )
    return Group(data_vars, coords, group.attrs)


def name_groups(posterior: Posterior) -> list[str]:
    """Names of all groups of an ArviZ object."""
    given: Any = posterior
    return list(given.children if hasattr(given, "children") else given.groups())


def need_group(posterior: Posterior, name: str, *variables: str) -> Group:
    """A group that must be there with some variables.

    Raises
    ------
    PosteriorError
        If it is not.
    """
    group = find_group(posterior, name)
    missing = [v for v in variables if group is None or v not in group]
    if group is None or missing:
        what = f"{name} ({', '.join(missing)})" if missing else name
        raise PosteriorError("posterior-part-missing", missing_part=what)
    return group


def thinned_draws(variable: Variable, draws: int) -> NDArray[Any]:
    """At most `draws` of the draws [chain, draw, ...], evenly spaced, as [S, ...]."""
    chains, length = variable.shape[:2]
    if draws < chains:
        some = np.linspace(0, chains - 1, draws).round().astype(int)
        return variable.values[some, -1]
    each = min(length, draws // chains)
    chosen = np.linspace(0, length - 1, each).round().astype(int)
    return variable.values[:, chosen].reshape(-1, *variable.shape[2:])


def draws_of(thinned: Group, group: Group) -> Int[np.ndarray, "kept"]:
    """Which draws of a group another holds that may have only some of them, in each chain.

    Raises
    ------
    PosteriorError
        If it has draws that the group lacks.
    """
    known, wanted = (
        each["draw"].values if "draw" in each else np.arange(each.sizes["draw"])
        for each in (group, thinned)
    )
    place = np.searchsorted(known, wanted)
    together = thinned.sizes["chain"] == group.sizes["chain"] and np.isin(wanted, known).all()
    if (np.diff(known) <= 0).any() or not together:
        raise PosteriorError("log-likelihood-draws-differ")
    return place


@dataclass(frozen=True)
class FitRecord:
    """How a posterior was made, by its attributes.

    Attributes
    ----------
    name, given
        Name of the model, and its options as they are recorded. `model` and `options` are the
        model itself and what it makes of them; asking for them imports JAX.
    shared
        The latent sites that all classifiers share.
    roles
        Roles of the data sets in the model.
    grouping
        The study's column that divides the images into groups, or None.
    method
        What made the draws, a name of `bayesrep.fit`'s.
    cut
        Whether the mixtures know the annotations alone.
    thinning
        Transitions of a chain from one kept draw to the next.
    max_tree_depth
        Doublings of a trajectory, at most.
    weight
        What a classifier's answers counted for what all share; 1 where it is not recorded.
    selections
        The rules by which the counts at hand selected a data set's images, by role.
    words
        Words of the study.
    """

    name: str
    given: Mapping[str, Any]
    shared: tuple[str, ...]
    roles: tuple[str, ...]
    grouping: str | None
    method: str
    cut: bool
    thinning: int
    max_tree_depth: int
    weight: float
    selections: Mapping[str, Selection]
    words: Words

    @property
    def model(self) -> "Model":
        """The model itself."""
        return MODELS[self.name]

    @cached_property
    def options(self) -> Any:
        """Its options; JSON knows no tuples.

        Raises
        ------
        PosteriorError
            If they are another model's.
        """
        given = {k: tuple(v) if isinstance(v, list) else v for k, v in self.given.items()}
        try:
            return self.model.options(**given)
        except (TypeError, ValueError) as error:
            raise PosteriorError("posterior-options-of-other-model", model=self.name) from error

    @property
    def dependence(self) -> float:
        """Intraclass correlation of the annotators' answers about an image that was assumed."""
        return float(self.given.get("dependence", 0.0))


def read_record(posterior: Posterior) -> FitRecord:
    """What a posterior records of how it was made.

    Raises
    ------
    PosteriorError
        If it lacks what this version records, or names a model that this version does not know.
    """
    attributes = need_group(posterior, "posterior").attrs
    try:
        name = str(attributes["model"])
        if name not in MODELS:
            raise KeyError(name)
        schedule = json.loads(str(attributes.get("schedule", "{}")))
        return FitRecord(
            name,
            dict(json.loads(str(attributes["options"]))),
            tuple(map(str, json.loads(str(attributes["traits"]))["shared"])),
            tuple(map(str, json.loads(str(attributes["datasets"])))),
            str(attributes["groups"]) or None,
            str(attributes.get("method", "nuts")),
            attributes.get("feedback") == "cut",
            max(1, int(schedule.get("thinning", 1))),
            int(schedule.get("max_tree_depth", 10)),
            float(attributes.get("classifier_weight", 1.0)),
            {
                str(role): Selection.parse(rule)
                for role, rule in json.loads(str(attributes.get("selection", "{}"))).items()
            },
            named_words(attributes),
        )
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise PosteriorError("posterior-origin-unknown") from error


class CellNames(NamedTuple):
    """Which images a cell of a posterior is about: an entry each along its dimension."""

    group: Shaped[np.ndarray, "cell"]  # names, empty without groups
    selected: Int[np.ndarray, "cell"]
    shown: Int[np.ndarray, "cell"]


def cell_coordinates(role: str, cells: CellNames) -> dict[str, tuple[str, NDArray[Any]]]:
    """The coordinates that say it, of the dimension `ROLE_cell`."""
    return {f"{role}_{name}": (f"{role}_cell", getattr(cells, name)) for name in CellNames._fields}


def cells_along(group: Group, role: str) -> CellNames:
    """The cells of one data set in a group of an ArviZ object.

    Raises
    ------
    PosteriorError
        If the group does not say.
    """
    names = [f"{role}_{name}" for name in CellNames._fields]
    if missing := [name for name in names if name not in group.coords]:
        raise PosteriorError("posterior-coordinate-missing", coordinate=missing[0])
    return CellNames(*(group.coords[name].values for name in names))


def right_answers(observed: Group) -> Int[np.ndarray, "classifier cell"]:
    """Every classifier's right answers by cell of the replication, none where nobody answered."""
    names, answered = cells_along(observed, "replication"), cells_along(observed, "answered")
    right = np.zeros((observed.sizes["classifier"], len(names.shown)), dtype=np.int64)
    right[:, place_of_cells(names, *answered)] = observed["correct"].values
    return right


def place_of_cells(
    cells: CellNames,
    group: Shaped[np.ndarray, "image"],
    selected: Int[np.ndarray, "image"],
    shown: Int[np.ndarray, "image"],
) -> Int[np.ndarray, "image"]:
    """Index among the cells of every image, given its group and counts.

    Raises
    ------
    PosteriorError
        If there is an image in none of them.
    """
    # One number for a group and its counts, the same in both.
    key = np.zeros(len(cells.shown) + len(shown), dtype=np.int64)
    for pair in zip(cells, (group, selected, shown), strict=True):
        values, code = np.unique(np.concatenate(pair), return_inverse=True)
        key = key * len(values) + code
    known, wanted = np.split(key, [len(cells.shown)])
    order = np.argsort(known)
    place = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
    if (known[place] != wanted).any():
        raise PosteriorError("posterior-lacks-study-cells")
    return place
