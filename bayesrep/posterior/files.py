"""Draws as an ArviZ object and as a file.

ArviZ 0.23 keeps groups in `InferenceData`, ArviZ 1.x in xarray's `DataTree`; both are built
here from one xarray data set per group, with names and coordinates alike. Commands do without
either.
"""

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
from bayesrep.files import netcdf, trial
from bayesrep.files.netcdf import Group, Variable
from bayesrep.posterior import likelihood
from bayesrep.posterior.contract import violations
from bayesrep.posterior.groups import Posterior, find_group, name_groups, need_group, read_record

if TYPE_CHECKING:  # it takes half a second to import
    import xarray as xr

Contents = Mapping[str, tuple[tuple[str, ...], NDArray[Any]]]
"""Variable name -> (dimension names, values)."""
Coordinate = tuple[str, NDArray[Any]]
"""The dimension along which it is, and its values."""
Arguments = ParamSpec("Arguments")
SMALL = 2**15
"""Below this whole numbers are written in two bytes."""


def arviz() -> ModuleType:
    """The arviz module, without the notice that version 0.23 prints at its first import."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import arviz as module
    return module


def build_posterior(
    groups: Mapping[str, Contents],
    coordinates: Mapping[str, Coordinate],
    attributes: Mapping[str, str | int | float],
) -> Posterior:
    """An ArviZ object of the given groups; see `build_tree`."""
    return in_arviz(build_tree)(groups, coordinates, attributes)


def in_arviz(function: "Callable[Arguments, xr.DataTree]") -> Callable[Arguments, Posterior]:
    """A function that returns the tree of another as the installed ArviZ keeps it.

    It then has the log likelihood of the answers, too, which ArviZ looks for. ArviZ takes a second
    to import. Who only writes the tree calls the function inside (`inspect.unwrap`).
    """

    @wraps(function)
    def wrapper(*arguments: Arguments.args, **options: Arguments.kwargs) -> Posterior:
        tree = likelihood.with_log_likelihood(function(*arguments, **options))
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
    """A tree of the given groups.

    Parameters
    ----------
    groups
        By group name ("posterior", "sample_stats", ...).
    coordinates
        By name; dimensions without one of their own name, nor a variable of it in their group,
        count from 0.
    attributes
        Attached to every group, so that they survive a round trip through any version.
    """
    import xarray as xr

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
    # What codes mean is each run's own: `concat` lets chains of several keep their coordinates.
    return dataset.set_coords([name for name in likelihood.MEANINGS if name in group])


def write_posterior(posterior: Posterior, path: str | Path, *, force: bool = False) -> None:
    """Write an ArviZ object as netCDF, whole or not at all.

    Whole numbers take two bytes where these hold them, curves' terms four, and the log likelihood
    of the answers is left out: `read_posterior` makes it of what else there is.

    Raises
    ------
    PosteriorError
        If the path exists and `force` is false, or cannot be written.
    """
    target = Path(path)
    if target.exists() and not force:
        raise PosteriorError("posterior-path-exists", path=target)
    try:
        with replaced_file(target) as partial:
            # Draws hardly get smaller by compression, which takes ten times as long as writing.
            _written(posterior).to_netcdf(str(partial), engine="h5netcdf")
            netcdf.seal(partial)
    except OSError as error:
        raise PosteriorError("file-not-writable", path=target, reason=reason(error)) from None


def _written(posterior: Posterior) -> "xr.DataTree":
    """The tree that is written of an ArviZ object."""
    attributes, names = cast(Any, posterior).attrs, name_groups(posterior)
    found = {name: group for name in names if (group := find_group(posterior, name)) is not None}
    if "log_density" in found and all(name in found["log_density"] for name in likelihood.LOGITS):
        found.pop(likelihood.GROUP, None)
    smaller = {
        name: Group(
            {each: _smaller(each, variable) for each, variable in group.data_vars.items()},
            group.coords,
            group.attrs,
        )
        for name, group in found.items()
    }
    return _build_xarray(smaller, attributes)


def _build_xarray(groups: Mapping[str, Group], attributes: Mapping[str, Any]) -> "xr.DataTree":
    """Groups as xarray has them."""
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


def _smaller(name: str, variable: Variable) -> Variable:
    """A variable as it is written: smaller where nothing that is told of it changes."""
    values = variable.values
    if name == "classifier_curve":
        return Variable(variable.dims, values.astype(np.float32))
    if values.dtype.kind == "i" and values.size and np.abs(values).max() < SMALL:
        return Variable(variable.dims, values.astype(np.int16))
    return variable


@dataclass(frozen=True, eq=False)
class StoredPosterior:
    """A posterior as its file holds it: groups by name, and what is told beside them."""

    children: Mapping[str, Group]
    attrs: Mapping[str, Any]

    def __getitem__(self, name: str, /) -> Group:
        """A group; KeyError where there is none."""
        return self.children[name]


def order_posterior(posterior: Posterior, names: Mapping[str, Sequence[str]]) -> Posterior:
    """The posterior with what lies along dimensions in the order of the names that these have.

    Raises
    ------
    PosteriorError
        If a dimension lacks one of its names, or has others.
    """
    given: Any = posterior
    groups = {each: given[each] for each in name_groups(posterior)}
    moved = dict[str, Group]()
    for each, group in groups.items():
        for dim in names.keys() & set(group.sizes):
            told = list(map(str, group.coords[dim].values)) if dim in group.coords else []
            if told == list(names[dim]):
                continue
            if sorted(told) != sorted(names[dim]):
                odd = sorted({*told} ^ {*names[dim]}) or told
                raise PosteriorError(
                    "posterior-of-other-names", dimension=dim, names=listing(odd, "name")
                )
            whole = moved.get(each) or need_group(posterior, each)
            moved[each] = whole.take(dim, [told.index(name) for name in names[dim]])
    return StoredPosterior({**groups, **moved}, given.attrs) if moved else posterior


def order_alike(posterior: Posterior) -> Posterior:
    """The posterior with classifiers in every group in the order of its draws."""
    group = need_group(posterior, "posterior", "adjusted_accuracy")
    return order_posterior(posterior, {"classifier": group["classifier"].values.tolist()})


@in_arviz
def read_posterior(path: str | Path) -> "xr.DataTree":
    """Read what `write_posterior` wrote, wholly into memory.

    Raises
    ------
    PosteriorError
        If the file is missing, damaged or holds no posterior of bayesrep.
    """
    posterior = read_tree(path)
    try:
        _ = read_record(posterior).options
    except PosteriorError as error:
        raise PosteriorError(netcdf.describe_foreign_file(error.violation, Path(path))) from error
    return _build_xarray(posterior.children, posterior.attrs)


def read_tree(path: str | Path) -> StoredPosterior:
    """What `read_posterior` reads, without ArviZ and xarray, nor JAX to make sense of options.

    Raises
    ------
    PosteriorError
        If the file is missing, damaged or holds no posterior of bayesrep.
    """
    source = Path(path)
    if source.is_dir():
        raise PosteriorError("posterior-path-is-folder", path=source)
    if not source.is_file():
        raise PosteriorError("posterior-file-missing", path=source)
    if (line := trial.fault(netcdf.examine, source, str(source))) is not None:
        raise PosteriorError(line)
    try:
        groups = netcdf.read(source)
        posterior = StoredPosterior(groups, groups.pop("/").attrs)
        broken = next(violations(posterior), None)
    except Exception as error:  # a stranger's file makes these libraries raise nearly anything
        strange = Violation("posterior-file-unreadable", reason=reason(error))
        raise PosteriorError(netcdf.describe_foreign_file(strange, source)) from error
    if broken is not None:
        raise PosteriorError(netcdf.describe_foreign_file(broken, source))
    return posterior
