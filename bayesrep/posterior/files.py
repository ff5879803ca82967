"""Draws as an ArviZ object (`InferenceData` of 0.23, `DataTree` from 1.0 on) and as a file."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, cast

import numpy as np
from numpy.typing import NDArray

from bayesrep.atomic import replaced_file
from bayesrep.errors import PosteriorError, Violation, listing, reason
from bayesrep.files import netcdf, sandbox
from bayesrep.files.netcdf import Group, Variable
from bayesrep.posterior import likelihood
from bayesrep.posterior.groups import Posterior, find_group, name_groups, need_group, read_record
from bayesrep.posterior.schema import violations

if TYPE_CHECKING:  # it takes half a second to import
    import xarray as xr

Contents = Mapping[str, tuple[tuple[str, ...], NDArray[Any]]]  # by variable: dimensions and values
Coordinate = tuple[str, NDArray[Any]]  # dimension name and values of a coordinate
Arguments = ParamSpec("Arguments")
INT16_LIMIT = 2**15  # integers below this are written in two bytes


def arviz() -> ModuleType:
    """Import ArviZ without the notice that version 0.23 prints at its first import."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import arviz as module
    return module


def build_posterior(
    groups: Mapping[str, Contents],
    coordinates: Mapping[str, Coordinate],
    attributes: Mapping[str, str | int | float],
) -> Posterior:
    """Build an ArviZ object from groups; see `build_tree`."""
    return in_arviz(build_tree)(groups, coordinates, attributes)


def in_arviz(function: "Callable[Arguments, xr.DataTree]") -> Callable[Arguments, Posterior]:
    """Wrap a function that returns a tree to return the installed ArviZ's type instead."""

    @wraps(function)
    def wrapper(*arguments: Arguments.args, **options: Arguments.kwargs) -> Posterior:
        tree = likelihood.with_log_likelihood(function(*arguments, **options))
        # ArviZ 1.x works on a DataTree directly.
        if int(version("arviz").split(".")[0]) >= 1:
            return tree
        groups = {name: group.to_dataset() for name, group in tree.children.items()}
        return arviz().InferenceData(attrs=dict(tree.attrs), **groups)

    return wrapper


def build_tree(
    groups: Mapping[str, Contents],
    coordinates: Mapping[str, Coordinate],
    attributes: Mapping[str, str | int | float],
) -> "xr.DataTree":
    """Build a tree from groups; dimensions without coordinates count from 0."""
    import xarray as xr

    # Every group has the attributes, so that they survive a round trip through any version.
    datasets = {name: _dataset(group, coordinates, attributes) for name, group in groups.items()}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=dict(attributes)), **datasets})


def _dataset(
    group: Contents,
    coordinates: Mapping[str, Coordinate],
    attributes: Mapping[str, str | int | float],
) -> "xr.Dataset":
    import xarray as xr

    sizes = {
        dim: size for dims, v in group.values() for dim, size in zip(dims, v.shape, strict=True)
    }
    named = {name: each for name, each in coordinates.items() if each[0] in sizes}
    counted = {dim: np.arange(size) for dim, size in sizes.items() if dim not in {*named, *group}}
    dataset = xr.Dataset(dict(group), coords={**counted, **named}, attrs=dict(attributes))
    # Each run has its own encoding: `concat` lets chains of several runs keep their coordinates.
    return dataset.set_coords([name for name in likelihood.CODE_VARS if name in group])


def write_posterior(posterior: Posterior, path: str | Path, *, force: bool = False) -> None:
    """Write an ArviZ object as netCDF, whole or not at all.

    Whole numbers take two bytes where these hold them, curves' terms four, and the log likelihood
    of the answers is left out: `read_posterior` computes it from the rest.

    Raises
    ------
    PosteriorError
        If the path exists and `force` is false, or cannot be written.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> posterior = bayesrep.fit(study, method="laplace", progress=False)
    >>> bayesrep.write_posterior(posterior, "posterior.nc")
    """
    target = Path(path)
    if target.exists() and not force:
        raise PosteriorError("posterior-path-exists", path=target)
    try:
        with replaced_file(target) as partial:
            # Draws hardly get smaller by compression, which takes ten times as long as writing.
            _to_tree(posterior).to_netcdf(str(partial), engine="h5netcdf")
            netcdf.seal(partial)
    except OSError as error:
        raise PosteriorError("file-not-writable", path=target, reason=reason(error)) from None


def _to_tree(posterior: Posterior) -> "xr.DataTree":
    """Build the tree that is written, with redundant groups left out."""
    attributes, names = cast(Any, posterior).attrs, name_groups(posterior)
    groups = {name: group for name in names if (group := find_group(posterior, name)) is not None}
    density = groups.get("log_density", ())
    # It follows from the logits, and is as large as they are.
    if all(name in density for name in likelihood.LOGIT_VARS):
        groups.pop(likelihood.GROUP_NAME, None)
    compact = {
        name: Group(
            {each: _downcast(each, variable) for each, variable in group.data_vars.items()},
            group.coords,
            group.attrs,
        )
        for name, group in groups.items()
    }
    return _build_xarray(compact, attributes)


def _build_xarray(groups: Mapping[str, Group], attributes: Mapping[str, Any]) -> "xr.DataTree":
    import xarray as xr

    datasets = {
        name: xr.Dataset(
            {each: (variable.dims, variable.values) for each, variable in group.data_vars.items()},
            {each: (variable.dims, variable.values) for each, variable in group.coords.items()},
            dict(group.attrs),
        )
        for name, group in groups.items()
    }
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=dict(attributes)), **datasets})


def _downcast(name: str, variable: Variable) -> Variable:
    """Cast a variable to fewer bytes, if no reported number changes."""
    values = variable.values
    if name == "classifier_curve":
        return Variable(variable.dims, values.astype(np.float32))
    if values.dtype.kind == "i" and values.size and np.abs(values).max() < INT16_LIMIT:
        return Variable(variable.dims, values.astype(np.int16))
    return variable


@dataclass(frozen=True, eq=False)
class StoredPosterior:
    """A posterior as stored in its file: groups by name, and attributes."""

    children: Mapping[str, Group]
    attrs: Mapping[str, Any]

    def __getitem__(self, name: str, /) -> Group:
        return self.children[name]


def order_posterior(posterior: Posterior, names: Mapping[str, Sequence[str]]) -> Posterior:
    """Reorder a posterior along dimensions to match given names."""
    source: Any = posterior
    groups = {each: source[each] for each in name_groups(posterior)}
    reordered = dict[str, Group]()
    for each, group in groups.items():
        # Each group has names of its own: users may have selected or sorted one alone.
        for dim in names.keys() & set(group.sizes):
            labels = list(map(str, group.coords[dim].values)) if dim in group.coords else []
            if labels == list(names[dim]):
                continue
            if sorted(labels) != sorted(names[dim]):
                unmatched = sorted({*labels} ^ {*names[dim]}) or labels
                raise PosteriorError(
                    "posterior-of-other-names", dimension=dim, names=listing(unmatched, "name")
                )
            full_group = reordered.get(each) or need_group(posterior, each)
            reordered[each] = full_group.take(dim, [labels.index(name) for name in names[dim]])
    return StoredPosterior({**groups, **reordered}, source.attrs) if reordered else posterior


def order_alike(posterior: Posterior) -> Posterior:
    """Reorder the classifiers of every group to match the group "posterior"."""
    group = need_group(posterior, "posterior", "adjusted_accuracy")
    return order_posterior(posterior, {"classifier": group["classifier"].values.tolist()})


@in_arviz
def read_posterior(path: str | Path) -> "xr.DataTree":
    """Read a file of `write_posterior`, wholly into memory.

    Raises
    ------
    PosteriorError
        If the file is missing, damaged or holds no posterior of bayesrep.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> posterior = bayesrep.fit(study, method="laplace", progress=False)
    >>> bayesrep.write_posterior(posterior, "posterior.nc", force=True)
    >>> bayesrep.read_posterior("posterior.nc")["posterior"].sizes["classifier"]
    3
    """
    posterior = read_tree(path)
    try:
        _ = read_record(posterior).options
    except PosteriorError as error:
        raise PosteriorError(netcdf.describe_foreign_file(error.violation, Path(path))) from error
    return _build_xarray(posterior.children, posterior.attrs)


def read_tree(path: str | Path) -> StoredPosterior:
    """Read a posterior as `read_posterior` does, without importing ArviZ, xarray or JAX."""
    source = Path(path)
    if source.is_dir():
        raise PosteriorError("posterior-path-is-folder", path=source)
    if not source.is_file():
        raise PosteriorError("posterior-file-missing", path=source)
    if (line := sandbox.fault(netcdf.examine, source, str(source))) is not None:
        raise PosteriorError(line)
    try:
        # Attributes of the root are those of the fit; the groups repeat them.
        groups = netcdf.read(source)
        posterior = StoredPosterior(groups, groups.pop("/").attrs)
        broken = next(violations(posterior), None)
    except Exception as error:  # a stranger's file makes these libraries raise nearly anything
        strange = Violation("posterior-file-unreadable", reason=reason(error))
        raise PosteriorError(netcdf.describe_foreign_file(strange, source)) from error
    if broken is not None:
        raise PosteriorError(netcdf.describe_foreign_file(broken, source))
    return posterior
