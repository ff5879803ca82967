"""Probability models as plain NumPyro functions; they know no sampler.

`MODELS` is what `bayesrep.fit` chooses from. A model is added here and in a file of its own:
nothing above this room asks for its name. Its file is imported, and JAX with it, where the model is
asked for; the names alone cost nothing.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayesrep.models.model import Model

__all__ = ["MODELS", "Model"]


class _Models(Mapping[str, "Model"]):
    """Models by name, each in the file of that name."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __getitem__(self, name: str) -> "Model":
        if name not in self._names:
            raise KeyError(name)
        return import_module(f"{__name__}.{name.replace('-', '_')}").MODEL

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


MODELS: Mapping[str, "Model"] = _Models("joint", "shared-difficulty", "workers")


def __getattr__(name: str) -> object:
    """The type of models, which imports JAX, where it is asked for."""
    if name != "Model":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.model").Model
