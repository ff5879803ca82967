"""Groups, cells and the fit's record of an ArviZ object."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bayesrep.choices import makes_chains
from bayesrep.errors import PosteriorError
from bayesrep.files.netcdf import Group, Variable
from bayesrep.models import MODELS
from bayesrep.models.answers import BINOMIAL, AnswerDistribution
from bayesrep.posterior.verdict import certify_draws
from bayesrep.studies.selection import Selection
from bayesrep.studies.vocabulary import Words, named_words
from bayesrep.types import Int, Shaped

if TYPE_CHECKING:
    from bayesrep.models.model import Model


@runtime_checkable  # the tests check every annotation at every call
class Posterior(Protocol):
    """ArviZ's `InferenceData` (0.23) or `DataTree` (from 1.0 on), or the groups of a file."""

    def __getitem__(self, name: str, /) -> Any: ...


def find_group(posterior: Posterior, name: str) -> Group | None:
    """Find a group of an ArviZ object (its variables not copied); None if missing."""
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
    """Read a group as it is, without checking its draws."""
    try:
        group = posterior[name]
    except (KeyError, TypeError) as error:
        # A dict raises KeyError too, but is no ArviZ object.
        if isinstance(error, KeyError) and not isinstance(posterior, dict):
            return None
        kind = f"an object of type {type(posterior).__name__}"
        description = repr(posterior) if isinstance(posterior, str) else kind
        raise PosteriorError("object-not-a-posterior", found=description) from None
    if isinstance(group, Group):
        return group
    data_vars, coords = (
        {str(key): Variable(tuple(map(str, each.dims)), each.values) for key, each in part.items()}
        for part in (group.data_vars, group.coords)
    )
    return Group(data_vars, coords, group.attrs)


def name_groups(posterior: Posterior) -> list[str]:
    """List the names of all groups of an ArviZ object."""
    tree: Any = posterior
    return list(tree.children if hasattr(tree, "children") else tree.groups())


def need_group(posterior: Posterior, name: str, *variables: str) -> Group:
    """Return a group with required variables."""
    group = find_group(posterior, name)
    missing = [v for v in variables if group is None or v not in group]
    if group is None or missing:
        what = f"{name} ({', '.join(missing)})" if missing else name
        raise PosteriorError("posterior-part-missing", missing_part=what)
    return group


def thinned_draws(variable: Variable, draws: int) -> NDArray[Any]:
    """Select at most `draws` of the draws [chain, draw, ...], evenly spaced, as [S, ...]."""
    chains, length = variable.shape[:2]
    # Fewer draws than chains: the last draw of some chains.
    if draws < chains:
        sampled_chains = np.linspace(0, chains - 1, draws).round().astype(int)
        return variable.values[sampled_chains, -1]
    per_chain = min(length, draws // chains)
    indices = np.linspace(0, length - 1, per_chain).round().astype(int)
    return variable.values[:, indices].reshape(-1, *variable.shape[2:])


def draw_indices(thinned: Group, group: Group) -> Int[np.ndarray, "stored"]:
    """Find the indices, along each chain of `group`, of the draws that `thinned` holds."""
    draws, subset = (
        each["draw"].values if "draw" in each else np.arange(each.sizes["draw"])
        for each in (group, thinned)
    )
    indices = np.searchsorted(draws, subset)
    contained = thinned.sizes["chain"] == group.sizes["chain"] and np.isin(subset, draws).all()
    if (np.diff(draws) <= 0).any() or not contained:
        raise PosteriorError("log-likelihood-draws-differ")
    return indices


@dataclass(frozen=True)
class FitRecord:
    """Model, options and sampler of a fit; `model` and `options` import JAX."""

    name: str  # of the model
    recorded_options: Mapping[str, Any]  # as its attributes have them
    shared: tuple[str, ...]  # names of the global sites
    has_binomial_answers: bool  # right answers, for readers without model and JAX
    roles: tuple[str, ...]  # data sets in the model
    grouping: str | None  # the study's column that divides images into groups
    method: str  # a name that `bayesrep.fit` takes
    cut: bool  # mixtures are of the annotations alone (cut feedback)
    thinning: int  # transitions of a chain from one kept draw to the next
    max_tree_depth: int  # most doublings of a NUTS trajectory
    weight: float  # w of each classifier's likelihood for the global parameters; 1 if not recorded
    selections: Mapping[str, Selection]  # rules by which the counts at hand selected images
    words: Words

    @property
    def model(self) -> "Model":
        """The model itself."""
        return MODELS[self.name]

    @cached_property
    def options(self) -> Any:
        """The model's options; JSON lists become tuples."""
        items = self.recorded_options.items()
        options = {k: tuple(v) if isinstance(v, list) else v for k, v in items}
        try:
            return self.model.options(**options)
        except (TypeError, ValueError) as error:
            raise PosteriorError("posterior-options-of-other-model", model=self.name) from error

    @property
    def is_mcmc(self) -> bool:
        """True if the draws are chains, not weighted."""
        return makes_chains(self.method)

    @property
    def answers(self) -> AnswerDistribution:
        """Distribution of the classifiers' right answers."""
        return BINOMIAL if self.has_binomial_answers else self.options.answer_distribution()

    @property
    def dependence(self) -> float:
        """Assumed intraclass correlation of the annotators' answers about an image."""
        return float(self.recorded_options.get("dependence") or 0.0)


def read_record(posterior: Posterior) -> FitRecord:
    """Read the record of the fit from the attributes of a posterior."""
    attributes = need_group(posterior, "posterior").attrs
    try:
        name = str(attributes["model"])
        if name not in MODELS:
            raise KeyError(name)
        schedule = json.loads(str(attributes.get("schedule", "{}")))
        traits = json.loads(str(attributes["traits"]))
        return FitRecord(
            name,
            dict(json.loads(str(attributes["options"]))),
            tuple(map(str, traits["shared"])),
            traits.get("binomial") is True,
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
    """Group and counts that define each cell, along the dimension of cells."""

    group: Shaped[np.ndarray, "cell"]  # names, empty without groups
    selected: Int[np.ndarray, "cell"]
    shown: Int[np.ndarray, "cell"]


def cell_coordinates(role: str, cells: CellNames) -> dict[str, tuple[str, NDArray[Any]]]:
    """Build the coordinates of the dimension `ROLE_cell`."""
    return {f"{role}_{name}": (f"{role}_cell", getattr(cells, name)) for name in CellNames._fields}


def cells_along(group: Group, role: str) -> CellNames:
    """Read the cells of one data set in a group of an ArviZ object."""
    names = [f"{role}_{name}" for name in CellNames._fields]
    if missing := [name for name in names if name not in group.coords]:
        raise PosteriorError("posterior-coordinate-missing", coordinate=missing[0])
    return CellNames(*(group.coords[name].values for name in names))


def right_answers(observed: Group) -> Int[np.ndarray, "classifier cell"]:
    """Count each classifier's right answers by cell of the replication; 0 if unanswered."""
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
    """Find the index of each image's cell, by its group and counts."""
    # Encode (group, selected, shown) as one integer, the same for cells and images.
    key = np.zeros(len(cells.shown) + len(shown), dtype=np.int64)
    for pair in zip(cells, (group, selected, shown), strict=True):
        values, code = np.unique(np.concatenate(pair), return_inverse=True)
        key = key * len(values) + code
    keys, queries = np.split(key, [len(cells.shown)])
    order = np.argsort(keys)
    place = order[np.minimum(np.searchsorted(keys, queries, sorter=order), len(keys) - 1)]
    if (keys[place] != queries).any():
        raise PosteriorError("posterior-lacks-study-cells")
    return place
