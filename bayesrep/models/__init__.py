"""Probability models as plain NumPyro functions; they know no sampler.

`MODELS` is what `bayesrep.fit` chooses from. A model is added here and in a file of its own:
nothing above this room asks for its name. Its file is imported, and JAX with it, where the model is
asked for; the names alone cost nothing.
"""

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayesrep.models.model import Model

__all__ = ["MODELS", "Model"]


class _Models(MutableMapping[str, "Model"]):
    """Models by name: each in the file of that name, and those that were added."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._added: dict[str, Model] = {}

    def __getitem__(self, name: str) -> "Model":
        if name in self._added or name not in self._names:
            return self._added[name]
        return import_module(f"{__name__}.{name.replace('-', '_')}").MODEL

    def __setitem__(self, name: str, model: "Model") -> None:
        self._added[name] = model

    def __delitem__(self, name: str) -> None:
        del self._added[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names or name in self._added

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._names, *self._added)))

    def __len__(self) -> int:
        return len(list(iter(self)))


MODELS: MutableMapping[str, "Model"] = _Models("joint", "shared-difficulty", "workers")


def __getattr__(name: str) -> object:
    """The type of models, which imports JAX, where it is asked for."""
    if name != "Model":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.model").Model
