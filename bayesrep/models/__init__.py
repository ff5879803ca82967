"""Probability models as plain NumPyro functions; they know no sampler."""

import sys
from collections.abc import Iterator, MutableMapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from bayesrep.errors import OptionError
from bayesrep.plugins import run_plugin, run_plugins

if TYPE_CHECKING:
    from bayesrep.models.model import Model

__all__ = ["MODELS", "Model"]


class _Models(MutableMapping[str, "Model"]):
    """Registry of models: ours, registered ones, those of the user's files and entry points."""

    def __init__(self, **attributes: str) -> None:
        self._ours = attributes  # of the file of that name
        self._others: dict[str, Model] = {}

    def __getitem__(self, name: str) -> "Model":
        if name not in self._ours:
            if name not in self._others:
                run_plugins()
            if name not in self._others and (point := _find_installed(name)):
                self._others[name] = point.load()
            return self._others[name]
        return getattr(import_module(_module_of(name)), self._ours[name])

    def __setitem__(self, name: str, model: "Model") -> None:
        if name in self._ours:
            raise OptionError("model-name-taken", model=name)
        self._others[name] = model

    def __delitem__(self, name: str) -> None:
        del self._others[name]

    def __contains__(self, name: object) -> bool:
        if name in self._ours or name in self._others:
            return True
        if not isinstance(name, str):
            return False
        run_plugins()
        return name in self._others or _find_installed(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter([*self._ours, *self._others])

    def __len__(self) -> int:
        return len(self._ours) + len(self._others)

    def register_file(self, reference: str) -> str:
        """Run the file of "FILE.py:NAME", and return the name of its model, registered."""
        from bayesrep.models.model import Model

        path, _, name = reference.rpartition(":")
        model = getattr(run_plugin(path), name, None)
        if isinstance(model, Model):
            self[name] = model
        if name not in self._others:
            raise OptionError("plugin-without-model", path=path, model=name)
        return name

    def list_own(self) -> "list[Model]":
        """List our models whose files are imported: a wrapper of one may have its name."""
        # A file that is being imported has no model yet.
        files = [(sys.modules.get(_module_of(name)), each) for name, each in self._ours.items()]
        return [vars(file)[each] for file, each in files if file and each in vars(file)]


def _module_of(name: str) -> str:
    return f"{__name__}.{name.replace('-', '_')}"


def _find_installed(name: str) -> EntryPoint | None:
    """Find the entry point of an installed package's model, not loaded."""
    points = tuple(entry_points(group="bayesrep.models", name=name))
    if len(points) > 1:
        packages = " and ".join(sorted(point.dist.name for point in points if point.dist))
        raise OptionError("model-of-two-packages", model=name, packages=packages)
    return points[0] if points else None


MODELS = _Models(joint="JOINT_MODEL", workers="WORKERS_MODEL")


def __getattr__(name: str) -> object:
    """Import the type of models, and JAX with it, at first access."""
    if name != "Model":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.model").Model
