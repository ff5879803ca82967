"""Programs: how they are compiled, and how later processes find them as they were traced.

Tracing a fit's programs and lowering them takes longer than sampling. So beside what XLA compiled,
which JAX keeps, lies what JAX traced: the program in StableHLO, exported by `jax.export`, under a
name that is a digest of all that it was made from. A later process reads it and has it compiled,
which finds what XLA compiled before.
"""

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from threading import RLock
from typing import Any

import jax
from jax import export
from jax.core import Tracer
from jax.experimental.compilation_cache.compilation_cache import reset_cache
from jax.stages import Compiled

from bayesrep.atomic import LEAST_COMPILATION, programs_cache, replaced_file
from bayesrep.inference.device import default_platform
from bayesrep.progress import Stopwatch


@dataclass(frozen=True, eq=False)
class Program:
    """A jitted function that later processes need not trace.

    What is kept lies where JAX keeps what it compiles (`kept_programs` says where); without such a
    place, or on other devices than the first CPU, this is `jax.jit`, and with arguments that are
    being traced the function itself. Where several threads ask for a program, one of them makes it.

    Attributes
    ----------
    function
        What is computed: arrays in trees go in and come out.
    name, made_from
        What tells it from others of the same model, and all that these close over, as text: with
        our code and the shapes of arguments they tell one program from any other. Where
        `made_from` is empty, nothing is kept.
    quick
        As [compiler_options][bayesrep.inference.program.compiler_options] has it.
    """

    function: Callable[..., Any]
    name: str
    identity: str
    quick: bool = field(default=False, kw_only=True)
    _compiled: dict[Any, Compiled] = field(default_factory=dict[Any, Compiled], repr=False)
    _lock: RLock = field(default_factory=RLock, repr=False)

    @cached_property
    def jitted(self) -> Any:
        """The function as `jax.jit` has it."""
        return jax.jit(self.function, compiler_options=compiler_options(quick=self.quick))

    def __call__(self, *arguments: Any) -> Any:
        """What the function returns."""
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(arguments)):
            return self.function(*arguments)  # a program inside another has no compiler's options
        return (self._find(arguments) or self.jitted)(*arguments)

    def compile_for(self, *arguments: Any) -> Compiled:
        """Compile for arguments like these: arrays, or their shapes and types."""
        return self._find(arguments) or self.jitted.lower(*arguments).compile()

    def _find(self, arguments: tuple[Any, ...]) -> Compiled | None:
        """The kept program for arguments of these shapes, made where there is none."""
        leaves, structure = jax.tree.flatten(arguments)
        if not self.identity or not _is_on_first_cpu(leaves):
            return None
        signature = (structure, tuple(map(_describe_leaf, leaves)), _read_settings())
        with self._lock:
            if signature not in self._compiled:
                folder = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
                if folder is None or not jax.config.jax_enable_compilation_cache:  # type: ignore[attr-defined]
                    return None
                parts = _digest_sources(), self.name, self.identity, *map(repr, signature)
                file = Path(folder) / f"{_digest(chr(0).join(parts).encode())}.program"
                compiled = self._read(file, arguments)
                self._compiled[signature] = compiled or self._compile(self._make(file, arguments))
            return self._compiled[signature]

    def _read(self, file: Path, arguments: tuple[Any, ...]) -> Compiled | None:
        with suppress(Exception):  # whatever is wrong with it, it is made again
            seal, header, data = file.read_bytes().split(b"\n", 2)
            if seal.decode() == _digest(header + data):
                os.utime(file)  # the longest unused go first
                trees = {
                    "in_tree": jax.tree.structure((arguments, {})),
                    "out_tree": jax.tree.structure(_decode(json.loads(header))),
                }
                return self._compile(replace(export.deserialize(bytearray(data)), **trees))
        return None

    def _compile(self, exported: export.Exported) -> Compiled:
        shapes = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in exported.in_avals]
        arguments, _ = jax.tree.unflatten(exported.in_tree, shapes)
        options = compiler_options(quick=self.quick)
        return jax.jit(exported.call, compiler_options=options).lower(*arguments).compile()

    def _make(self, file: Path, arguments: tuple[Any, ...]) -> export.Exported:
        """Trace it, and keep it where its results are of types that a later process finds."""
        exported = export.export(self.jitted, platforms=["cpu"])(*arguments)
        places = list(range(len(exported.out_avals)))
        try:
            tree = _encode(jax.tree.unflatten(exported.out_tree, places))
        except TypeError:
            return exported
        in_tree = jax.tree.structure((exported.in_avals, {}))
        flat = replace(exported, in_tree=in_tree, out_tree=jax.tree.structure(places))
        header, data = json.dumps(tree).encode(), bytes(flat.serialize())
        with suppress(OSError), replaced_file(file) as partial:  # without room nothing is kept
            partial.write_bytes(b"\n".join((_digest(header + data).encode(), header, data)))
        return exported


def compiler_options(*, quick: bool = False) -> dict[str, int | bool]:
    """What has a program compiled sooner that runs no slower, by the version of jaxlib.

    For the device on which the program will run: ask with that as the default.

    Only a program that is called from outside any other takes options. What the environment's
    `XLA_FLAGS` says of one of them rules.

    Parameters
    ----------
    quick
        For a program that runs a few times only: it compiles in half the time again, and runs half
        as fast.
    """
    options: dict[str, int | bool] = {}
    if default_platform() != "cpu":
        # Kernels of small products are tried in many forms, so that an H200 compiles three to seven
        # times as long for gradients that run 4 to 23 % faster (docs/results/gpu.md). Products by
        # cuBLAS need no trying; those by Triton compile for some shapes only where they are tried.
        options = {"xla_gpu_enable_triton_gemm": False, "xla_gpu_autotune_level": 0}
    else:
        # jaxlib 0.10 has a new way to write kernels, which is slow to compile: without it and with
        # fewer passes of LLVM the block of draws of 136 classifiers compiles in 3.4 s instead of
        # 5.8 s and runs as fast. Later versions do not know the first option and gain nothing by
        # the second.
        if version("jaxlib").startswith("0.10."):
            options["xla_cpu_use_fusion_emitters"] = False
        if quick:
            options["xla_backend_optimization_level"] = 0
    flags = os.environ.get("XLA_FLAGS", "")
    return {name: value for name, value in options.items() if name not in flags}


@contextmanager
def kept_programs() -> Generator[None]:
    """Keep the programs compiled inside for later processes, unless the user decided where.

    The user decides by JAX's own settings, such as `JAX_COMPILATION_CACHE_DIR`. They are the same
    afterwards. JAX runs what it finds there: see `bayesrep.atomic.refuse_shared`.
    """
    settings: Any = jax.config
    place, least = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"
    ours: dict[str, Any] = {}
    if getattr(settings, place) is None and settings.jax_enable_compilation_cache:
        try:
            ours = {place: str(programs_cache()), least: LEAST_COMPILATION}
        except OSError as error:
            warnings.warn(f"compiled programs are not kept: {error}", stacklevel=6)
    before = {name: getattr(settings, name) for name in ours}
    try:
        _configure(ours)
        yield
    finally:
        _configure(before)


def _configure(settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        jax.config.update(name, value)
    if settings:
        reset_cache()  # JAX reads where its cache is once


@contextmanager
def compilation_timed(watch: Stopwatch) -> Generator[None]:
    """Count as a stage of its own what JAX traces and compiles inside, in whatever stage."""

    def record_span(event: str, start_time: float, end_time: float, **_: str | int) -> None:
        if event.startswith("/jax/core/compile/"):
            watch.span("compiling", start_time, end_time)

    jax.monitoring.register_event_time_span_listener(record_span)
    try:
        yield
    finally:
        jax.monitoring.unregister_event_time_span_listener(record_span)


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
    """JAX's settings that programs depend on, and XLA's."""
    settings: Any = jax.config
    return (
        default_platform(),
        os.environ.get("XLA_FLAGS", ""),
        settings.jax_enable_x64,
        settings.jax_default_prng_impl,
        settings.jax_threefry_partitionable,
        settings.jax_default_matmul_precision,
        settings.jax_numpy_dtype_promotion,
        settings.jax_disable_jit,
    )


@cache
def _digest_sources() -> str:
    """A digest of our code that programs are made from, and versions."""
    package = Path(__file__).parents[1]
    rooms = (package / room for room in ("inference", "models", "numerics"))
    files = (file for room in rooms for file in sorted(room.rglob("*.py")))
    code = b"".join(_digest(file.read_bytes()).encode() for file in files)
    return " ".join([_digest(code), *map(version, ("jax", "jaxlib", "numpyro", "numpy"))])


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _encode(tree: Any) -> Any:
    """A tree of numbers as JSON, in which every part has the name of its type.

    Raises
    ------
    TypeError
        Where `_decode` would not take a part for what it is.
    """
    if tree is None or isinstance(tree, int | str):
        return tree
    kind: Any = type(tree)
    name = f"{kind.__module__}:{kind.__qualname__}"
    if _find_type(name) is not kind:
        raise TypeError(name)
    return {name: [_encode(part) for part in (tree.items() if kind is dict else tree)]}


def _decode(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    ((name, parts),) = tree.items()
    kind = _find_type(name)
    return getattr(kind, "_make", kind)(map(_decode, parts))


def _find_type(name: str) -> Any:
    """A plain container, or a NamedTuple of ours or of NumPyro's; a TypeError for what is none."""
    for plain in (list, tuple, dict):
        if name == f"builtins:{plain.__qualname__}":
            return plain
    module, _, kind = name.partition(":")
    ours = module.startswith(("bayesrep.", "numpyro."))
    found_type = getattr(import_module(module), kind, None) if ours else None
    if not hasattr(found_type, "_make"):
        raise TypeError(f"{name} is not a type of ours")
    return found_type
