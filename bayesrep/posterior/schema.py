"""The schema of a posterior file, checked on reading so that nothing fails later."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bayesrep.bounds import LARGEST_COUNT
from bayesrep.errors import PosteriorError, StudyError, Violation
from bayesrep.files.netcdf import Group
from bayesrep.files.strict_json import parse
from bayesrep.models import MODELS
from bayesrep.posterior.groups import CellNames, Posterior, draw_indices, read_group
from bayesrep.posterior.likelihood import CODE_VARS
from bayesrep.posterior.verdict import DRAW_DIMS
from bayesrep.studies.selection import Selection
from bayesrep.studies.validation import REQUIRED_ROLES

Dims = tuple[str, ...]
BY_CLASSIFIER: Dims = (*DRAW_DIMS, "classifier")
BY_CELL: Dims = (*BY_CLASSIFIER, "replication_cell")
BY_ANSWERED: Dims = (*BY_CLASSIFIER, "answered_cell")
VAR_DIMS: Mapping[str, Mapping[str, Dims]] = {
    "posterior": {
        "adjusted_accuracy": BY_CLASSIFIER,
        "bias_corrected_gap": BY_CLASSIFIER,
        "selection_gap": BY_CLASSIFIER,
        "population_reference_accuracy": BY_CLASSIFIER,
        "mean_selection_frequency": (*DRAW_DIMS, "dataset"),
    },
    "log_prior": {"shared": DRAW_DIMS, "own": BY_CLASSIFIER},
    "log_likelihood": {"correct": BY_ANSWERED},
    "log_density": {
        "logit_right": BY_CELL,
        "logit_middle": BY_CELL[2:],
        "logit_step": BY_CELL[2:],
        "reference_images": (*DRAW_DIMS, "reference_cell"),
        "replication_images": (*DRAW_DIMS, "replication_cell"),
    },
    "posterior_predictive": {
        "correct": BY_ANSWERED,
        "reference_images": (*DRAW_DIMS, "reference_cell"),
        "replication_images": (*DRAW_DIMS, "replication_cell"),
    },
    "observed_data": {
        "correct": BY_ANSWERED[2:],
        "replication_right": BY_CELL[2:],
        "reference_images": ("reference_cell",),
        "replication_images": ("replication_cell",),
    },
    "sample_stats": {},
}
"""Dimensions of the variables that are read again, by group. All but observed_data have draws."""
NAMED_DIMS = ("classifier", "dataset", "group")  # dimensions whose coordinates are names
CELL_DIMS = ("reference_cell", "replication_cell", "answered_cell")  # described by `CellNames`
IMAGE_VARS = ("reference_images", "replication_images")  # required where the group is present
THINNED_GROUPS = ("posterior_predictive", "log_likelihood", "log_density")  # may hold fewer draws
TEXT_ATTRS = ("study_fingerprint", "model", "options", "traits", "datasets", "groups")
JSON_ATTRS: Mapping[str, type] = {
    "options": dict,
    "datasets": list,
    "selection": dict,
    "schedule": dict,
    "versions": dict,
    "traits": dict,
}
ATTR_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "statistics_digest": str,
    "selection": str,
    "schedule": str,
    "versions": str,
    "method": str,
    "asked_method": str,
    "tried": str,
    "classifier_weight": (float, np.floating),
    "feedback": str,
    "verdict": str,
    "advice": str,
    "words": str,
    "seed": (int, np.integer),
    "converged": (int, np.integer),
    "superchains": (int, np.integer),
    "pareto_k": (int, float, np.integer, np.floating),
    "ess": (int, float, np.integer, np.floating),
}


def violations(posterior: Posterior) -> Iterator[Violation]:
    """Yield every violation of the schema by groups, variables, names and attributes."""
    groups = {dim: each for dim in VAR_DIMS if (each := read_group(posterior, dim)) is not None}
    if "posterior" not in groups or "adjusted_accuracy" not in groups["posterior"]:
        yield Violation("adjusted-accuracy-missing")
        return
    yield from _attribute_violations(groups["posterior"].attrs)
    # A dimension has one length, or one list of names, in all groups; thinned ones have their own.
    sizes: dict[str, Any] = {}
    for name, group in groups.items():
        yield from _group_violations(name, group)
        for dim, length in group.sizes.items():
            key = f"{name}, {dim}" if dim == "draw" and name in THINNED_GROUPS else dim
            named = dim in NAMED_DIMS and dim in group.coords
            size = group.coords[dim].values.tolist() if named else length
            if sizes.setdefault(key, size) != size and dim in (*DRAW_DIMS, *NAMED_DIMS, *CELL_DIMS):
                yield Violation("posterior-group-sizes-differ", dimension=dim)
    for name in {"log_likelihood", "log_density"} & groups.keys():
        try:
            draw_indices(groups[name], groups["posterior"])
        except (KeyError, TypeError, PosteriorError):
            yield Violation("posterior-group-draws-differ")
    # Summaries and checks rely on probabilities without NaN.
    accuracy = groups["posterior"]["adjusted_accuracy"].values
    if (
        accuracy.dtype.kind != "f"
        or not accuracy.size
        or not ((accuracy >= 0) & (accuracy <= 1)).all()  # NaN is not
    ):
        yield Violation("adjusted-accuracy-out-of-range")


def _group_violations(name: str, group: Group) -> Iterator[Violation]:
    expected = VAR_DIMS[name]
    if name in ("observed_data", "log_density"):
        yield from (
            Violation("posterior-variable-missing", group=name, variable=each)
            for each in IMAGE_VARS
            if each not in group
        )
    # Offsets and steps of codes are coordinates; after ArviZ's `concat` they have a chain each.
    meanings = {each: group.coords[each] for each in CODE_VARS if each in group.coords}
    for variable, array in {**group.data_vars, **meanings}.items():
        dims = array.dims[1:] if variable in CODE_VARS and "chain" in array.dims else array.dims
        if array.dtype.kind not in "biuf":
            yield Violation("posterior-variable-not-numbers", group=name, variable=variable)
        elif dims != expected.get(variable, dims):
            yield Violation(
                "posterior-variable-dimensions-wrong",
                group=name,
                variable=variable,
                dimensions=", ".join(dims),
            )
        elif (
            name != "observed_data"
            and dims[:2] != DRAW_DIMS == expected.get(variable, DRAW_DIMS)[:2]
        ):
            yield Violation("posterior-variable-without-draws", group=name, variable=variable)
    for dim in NAMED_DIMS:
        if dim not in group.sizes:
            continue
        names = group.coords.get(dim)
        values = [] if names is None else names.values.tolist()
        if names is None or len(names.dims) != 1 or not all(map(_is_text, values)):
            yield Violation("posterior-names-missing", where=f"{name}/{dim}")
        elif len(set(values)) < len(values):
            yield Violation("posterior-name-repeated", where=f"{name}/{dim}")
    roles = [dim.removesuffix("_cell") for dim in group.sizes if dim.endswith("_cell")]
    for role in roles:
        yield from _cell_violations(name, group, role)
    coordinates = {f"{role}_{each}" for role in roles for each in CellNames._fields}
    if strange := sorted(set(group.coords) - coordinates - set(group.sizes) - set(meanings)):
        yield Violation("posterior-coordinate-foreign", group=name, coordinate=strange[0])


def _cell_violations(name: str, group: Group, role: str) -> Iterator[Violation]:
    dim, where = f"{role}_cell", f"{name}/{role}_cell"
    coordinates = [group.coords.get(f"{role}_{each}") for each in CellNames._fields]
    if any(each is None or each.dims != (dim,) for each in coordinates):
        yield Violation("posterior-cells-undescribed", where=where)
        return
    names, selected, shown = (each.values for each in coordinates if each is not None)
    if not all(map(_is_text, names.tolist())):
        yield Violation("posterior-names-missing", where=where)
    elif (
        selected.dtype.kind not in "iu"
        or shown.dtype.kind not in "iu"
        or not ((selected >= 0) & (selected <= shown) & (shown >= 1)).all()
        or (shown > LARGEST_COUNT).any()
    ):
        yield Violation("posterior-cell-counts-impossible", where=where)
    elif len(set(zip(names.tolist(), selected.tolist(), shown.tolist(), strict=True))) < len(names):
        yield Violation("posterior-cell-repeated", where=where)


def _is_text(value: object) -> bool:
    """Check for Unicode text: bytes that are not are read as halves of surrogate pairs."""
    try:
        return isinstance(value, str) and value.encode().decode() == value
    except UnicodeEncodeError:
        return False


def _attribute_violations(attributes: Mapping[Any, Any]) -> Iterator[Violation]:
    for name, value in attributes.items():
        if isinstance(value, str) and not _is_text(value):
            yield Violation("posterior-attribute-not-text", attribute=str(name))
            return
    # Each step reads what the steps before it have found sound: the first violation ends the rest.
    missing = [name for name in TEXT_ATTRS if not isinstance(attributes.get(name), str)]
    if missing:
        yield Violation(
            "posterior-attributes-missing",
            plural_ending=("s" if len(missing) > 1 else ""),
            attributes=", ".join(missing),
        )
        return
    for name, kind in ATTR_TYPES.items():
        if name in attributes and not isinstance(attributes[name], kind):
            yield Violation("posterior-attribute-type-wrong", attribute=name)
            return
    # netCDF has no mappings: they are written as JSON, and one left out is an empty one.
    parsed: dict[str, Any] = {}
    for name, kind in JSON_ATTRS.items():
        try:
            parsed[name] = parse(attributes.get(name, "{}"))
        except ValueError:
            parsed[name] = None
        if name in attributes and not isinstance(parsed[name], kind):
            yield Violation("posterior-attribute-unreadable", attribute=name)
            return
    # Wrong names of data sets do not keep the rules of selection from being read.
    if not all(isinstance(role, str) for role in parsed["datasets"]):
        yield Violation("posterior-data-sets-unnamed")
    elif tuple(parsed["datasets"][:2]) != REQUIRED_ROLES:
        yield Violation(
            "posterior-data-sets-misordered", expected_data_sets=" and ".join(REQUIRED_ROLES)
        )
    try:
        for rule in parsed["selection"].values():
            Selection.parse(rule)
    except StudyError:
        yield Violation("posterior-selection-without-rule")
        return
    model = attributes["model"]
    if model not in MODELS:
        yield Violation("posterior-of-unknown-model", model=model[:50], choices=", ".join(MODELS))
