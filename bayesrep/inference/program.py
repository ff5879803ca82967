"""Programs that later processes find as they were traced and compiled.

Tracing a fit's programs and lowering them takes longer than sampling. So beside what XLA compiled,
which JAX keeps, lies what JAX traced: the program in StableHLO, exported by `jax.export`, under a
name that is a digest of all that it was made from. A later process reads it and has it compiled,
which finds what XLA compiled before.
"""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

import jax
from jax import export
from jax.core import Tracer

from bayesrep.atomic import replaced_file
from bayesrep.inference.compiling import CompilerOptions, compiler_options
from bayesrep.inference.device import default_platform

ROOMS = ("inference", "models", "numerics")
"""Rooms of the package that programs are made from."""
LIBRARIES = ("jax", "jaxlib", "numpyro", "numpy")
SETTINGS = (
    "jax_enable_x64",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
    "jax_default_matmul_precision",
    "jax_numpy_dtype_promotion",
    "jax_disable_jit",
)
"""JAX's settings that programs depend on."""
TRUSTED = ("bayesrep.", "numpyro.")
"""Where the types of results come from."""


class Compiled(NamedTuple):
    """A program compiled for arguments of some shapes.

    Attributes
    ----------
    call
        Takes such arguments.
    shape
        Shapes and types of what it returns.
    """

    call: Callable[..., Any]
    shape: Any


class _Kept(NamedTuple):
    """A program compiled for flat arguments, and the tree of its results."""

    call: Any
    results: Any
    shape: Any


@dataclass(frozen=True, eq=False)
class Program:
    """A jitted function that later processes need not trace.

    What is kept lies where JAX keeps what it compiles (`bayesrep.inference.compiling.kept_programs`
    says where); without such a place, or on other devices than the first CPU, this is `jax.jit`,
    and with arguments that are being traced the function itself. Where several threads ask for a
    program, one of them makes it.

    Attributes
    ----------
    function
        What is computed: arrays in trees go in and come out.
    identity
        All that the function closes over, as text: with our code and the shapes of arguments it
        tells one program from any other. Empty: nothing is kept.
    options
        The compiler's.
    """

    function: Callable[..., Any]
    identity: str
    options: CompilerOptions
    _known: dict[Any, _Kept | None] = field(default_factory=dict[Any, _Kept | None], repr=False)
    _making: RLock = field(default_factory=RLock, repr=False)

    @cached_property
    def jitted(self) -> Any:
        """The function as `jax.jit` has it."""
        return jax.jit(self.function, compiler_options=self.options)

    def __call__(self, *arguments: Any) -> Any:
        """What the function returns."""
        leaves, structure = jax.tree.flatten(arguments)
        if any(isinstance(leaf, Tracer) for leaf in leaves):
            return self.function(*arguments)  # a program inside another has no compiler's options
        found = self._find(leaves, structure)
        if found is None:
            return self.jitted(*arguments)
        return jax.tree.unflatten(found.results, found.call(*leaves))

    def lower(self, *arguments: Any) -> Any:
        """Lower it for such arguments, as functions of `jax.jit` are lowered."""
        return self.jitted.lower(*arguments)

    def trace(self, *arguments: Any) -> Any:
        """Trace it for such arguments, as functions of `jax.jit` are traced."""
        return self.jitted.trace(*arguments)

    def compile_for(self, *arguments: Any) -> Compiled:
        """Compile for arguments like these: arrays, or their shapes and types."""
        leaves, structure = jax.tree.flatten(arguments)
        found = self._find(leaves, structure)
        if found is None:
            lowered = self.jitted.lower(*arguments)
            return Compiled(lowered.compile(), jax.eval_shape(self.jitted, *arguments))

        def call(*arguments: Any) -> Any:
            return jax.tree.unflatten(found.results, found.call(*jax.tree.leaves(arguments)))

        return Compiled(call, found.shape)

    def _find(self, leaves: list[Any], structure: Any) -> _Kept | None:
        """The kept program for arguments of these shapes, made where there is none."""
        if not self.identity or not _is_on_first_cpu(leaves):
            return None
        signature = (structure, tuple(map(_describe_leaf, leaves)), _read_settings())
        with self._making:
            if signature not in self._known:
                folder = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
                if folder is None or not jax.config.jax_enable_compilation_cache:  # type: ignore[attr-defined]
                    return None
                parts = _digest_sources(), self.identity, *map(repr, signature)
                file = Path(folder) / f"{_digest(chr(0).join(parts).encode())}.program"
                self._known[signature] = self._read(file) or self._make(leaves, structure, file)
            return self._known[signature]

    def _read(self, file: Path) -> _Kept | None:
        with suppress(Exception):  # whatever is wrong with it, it is made again
            seal, header, data = file.read_bytes().split(b"\n", 2)
            if seal.decode() == _digest(header + data):
                os.utime(file)  # the longest unused go first
                return self._assemble(export.deserialize(bytearray(data)), json.loads(header))
        return None

    def _make(self, leaves: list[Any], structure: Any, file: Path) -> _Kept | None:
        results: list[Any] = []

        def flat(*leaves: Any) -> list[Any]:
            found, tree = jax.tree.flatten(self.function(*jax.tree.unflatten(structure, leaves)))
            results.append(jax.tree.unflatten(tree, list(range(len(found)))))
            return found

        exported = export.export(jax.jit(flat), platforms=[default_platform()])(*leaves)
        try:
            tree = _encode(results[-1])
        except TypeError:  # of another type than ours
            return None
        header, data = json.dumps(tree).encode(), bytes(exported.serialize())
        with suppress(OSError), replaced_file(file) as partial:  # without room nothing is kept
            partial.write_bytes(b"\n".join((_digest(header + data).encode(), header, data)))
        return self._assemble(exported, tree)

    def _assemble(self, exported: export.Exported, tree: Any) -> _Kept:
        results = jax.tree.structure(_decode(tree))
        taken, given = (
            [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in avals]
            for avals in (exported.in_avals, exported.out_avals)
        )
        call = jax.jit(exported.call, compiler_options=self.options).lower(*taken).compile()
        return _Kept(call, results, jax.tree.unflatten(results, given))


def kept_jit(
    function: Callable[..., Any], name: str, made_from: str, *, quick: bool = False
) -> Program:
    """`jax.jit`, for the kind of device that is the default here, and kept for later processes.

    Parameters
    ----------
    function
        As `Program` has it.
    name, made_from
        What tells it from others of the same model, and all that these close over, as text; where
        that is empty, nothing is kept.
    quick
        As [compiler_options][bayesrep.inference.compiling.compiler_options] has it.
    """
    identity = f"{name} {made_from}" if made_from else ""
    return Program(function, identity, compiler_options(quick=quick))


def _is_on_first_cpu(leaves: Sequence[Any]) -> bool:
    """Whether a program of these arguments runs on the first CPU device."""
    if default_platform() != "cpu":
        return False
    first = jax.local_devices(backend="cpu")[0]
    shardings = (getattr(leaf, "sharding", None) for leaf in leaves)
    used = {device for each in shardings if each is not None for device in each.device_set}
    chosen: Any = jax.config.jax_default_device  # type: ignore[attr-defined]
    return used <= {first} and chosen in (None, first)


def _describe_leaf(leaf: Any) -> tuple[Any, ...]:
    kind = jax.typeof(leaf) if not isinstance(leaf, jax.ShapeDtypeStruct) else leaf
    return kind.shape, str(kind.dtype), bool(getattr(kind, "weak_type", False))


def _read_settings() -> tuple[Any, ...]:
    values = tuple(getattr(jax.config, name) for name in SETTINGS)
    return (default_platform(), os.environ.get("XLA_FLAGS", ""), *values)


@cache
def _digest_sources() -> str:
    """A digest of our code that programs are made from, and versions."""
    package = Path(__file__).parents[1]
    files = (file for room in ROOMS for file in sorted((package / room).rglob("*.py")))
    code = b"".join(_digest(file.read_bytes()).encode() for file in files)
    return " ".join([_digest(code), *(version(name) for name in LIBRARIES)])


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _encode(tree: Any) -> Any:
    """A tree of places as JSON.

    Raises
    ------
    TypeError
        Where a part has a type that cannot be told.
    """
    if tree is None or isinstance(tree, int):
        return tree
    if type(tree) is dict and all(isinstance(key, str) for key in tree):
        return {"dict": [[key, _encode(value)] for key, value in tree.items()]}
    name = f"{type(tree).__module__}:{type(tree).__qualname__}"
    named = hasattr(tree, "_fields") and name.startswith(TRUSTED)
    if type(tree) is list or type(tree) is tuple or named:
        return {name: [_encode(value) for value in tree]}
    raise TypeError(name)


def _decode(tree: Any) -> Any:
    if tree is None or isinstance(tree, int):
        return tree
    ((name, parts),) = tree.items()
    if name == "dict":
        return {key: _decode(value) for key, value in parts}
    values = [_decode(value) for value in parts]
    if name == "builtins:list":
        return values
    if name == "builtins:tuple":
        return tuple(values)
    module, _, kind = name.partition(":")
    if not module.startswith(TRUSTED):
        raise ValueError(f"{name} is not a type of ours")
    return getattr(import_module(module), kind)(*values)
