"""Compiled programs, and their storage for later processes as JAX traced them.

Tracing and lowering take longer than sampling. So next to JAX's cache of XLA's executables lie the
traced programs in StableHLO, exported by `jax.export`, under a digest of all that they were made
from. A later process has one compiled, which finds XLA's executable in the cache.
"""

import os
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

import jax
from jax import export
from jax.core import Tracer
from jax.experimental.compilation_cache.compilation_cache import reset_cache
from jax.stages import Compiled

from bayesrep.atomic import LEAST_COMPILATION, programs_cache, replaced_file
from bayesrep.files.digests import digest_parts
from bayesrep.inference.device import default_platform
from bayesrep.progress import Stopwatch

Kind = TypeVar("Kind")


@dataclass(frozen=True, eq=False)
class Program:
    """A jitted function that later processes need not trace.

    Stored programs lie in JAX's compilation cache (`kept_programs` says where); without one, or on
    other devices than the first CPU, this is `jax.jit`, and with arguments that are being traced
    the function itself. If several threads ask for a program, one of them makes it.
    """

    function: Callable[..., Any]  # arrays in trees go in and come out
    name: str  # among the programs of the same model
    identity: str  # all that these close over, as text; programs without it are not stored
    quick: bool = field(default=False, kw_only=True)  # as in `compiler_options`
    _compiled: dict[Any, Compiled] = field(default_factory=dict[Any, Compiled], repr=False)
    _lock: RLock = field(default_factory=RLock, repr=False)

    @cached_property
    def jitted(self) -> Any:
        """The jitted function."""
        return jax.jit(self.function, compiler_options=compiler_options(quick=self.quick))

    def __call__(self, *arguments: Any) -> Any:
        """Compute the function."""
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(arguments)):
            return self.function(*arguments)  # a program inside another takes no compiler options
        return (self._find(arguments) or self.jitted)(*arguments)

    def compile_for(self, *arguments: Any) -> Compiled:
        """Compile for arguments like these: arrays, or their shapes and types."""
        return self._find(arguments) or self.jitted.lower(*arguments).compile()

    def _find(self, arguments: tuple[Any, ...]) -> Compiled | None:
        """Find the stored program for arguments of these shapes, or make it."""
        leaves, structure = jax.tree.flatten(arguments)
        if not self.identity or not _is_on_first_cpu(leaves):
            return None
        kinds = [x if isinstance(x, jax.ShapeDtypeStruct) else jax.typeof(x) for x in leaves]
        shapes = tuple((x.shape, str(x.dtype), bool(x.weak_type)) for x in kinds)
        signature = structure, shapes, _read_settings()
        with self._lock:
            if signature not in self._compiled:
                folder = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
                if folder is None or not jax.config.jax_enable_compilation_cache:  # type: ignore[attr-defined]
                    return None
                parts = _digest_sources(), self.name, self.identity, *map(repr, signature)
                file = Path(folder) / f"{digest_parts([chr(0).join(parts).encode()])}.program"
                compiled = self._read(file, arguments)
                self._compiled[signature] = compiled or self._compile(self._make(file, arguments))
            return self._compiled[signature]

    def _read(self, file: Path, arguments: tuple[Any, ...]) -> Compiled | None:
        with suppress(Exception):  # a damaged file is made again
            seal, data = file.read_bytes().split(b"\n", 1)
            if seal.decode() == digest_parts([data]):
                os.utime(file)  # the cache drops the least recently used first
                in_tree = jax.tree.structure((arguments, {}))
                return self._compile(replace(export.deserialize(bytearray(data)), in_tree=in_tree))
        return None

    def _compile(self, exported: export.Exported) -> Compiled:
        shapes = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in exported.in_avals]
        arguments, _ = jax.tree.unflatten(exported.in_tree, shapes)
        options = compiler_options(quick=self.quick)
        return jax.jit(exported.call, compiler_options=options).lower(*arguments).compile()

    def _make(self, file: Path, arguments: tuple[Any, ...]) -> export.Exported:
        """Trace the program, and store it if a later process can restore its results' types."""
        exported = export.export(self.jitted, platforms=["cpu"])(*arguments)
        # Whoever reads it has arguments with the trees of their types.
        flat = replace(exported, in_tree=jax.tree.structure((exported.in_avals, {})))
        with suppress(ValueError, OSError):  # a result that is not `storable`, a full disk
            data = bytes(flat.serialize())
            with replaced_file(file) as partial:
                partial.write_bytes(digest_parts([data]).encode() + b"\n" + data)
        return exported


def storable(kind: type[Kind]) -> type[Kind]:
    """Have programs stored whose results hold NamedTuples of this kind."""
    with suppress(ValueError):  # known already, as after a module is loaded again
        name = f"{kind.__module__}.{kind.__qualname__}"
        export.register_namedtuple_serialization(kind, serialized_name=name)
    return kind


def compiler_options(*, quick: bool = False) -> dict[str, int | bool]:
    """Choose the default device's compiler options that shorten compilation and not slow programs.

    A `quick` program, one that runs a few times only, compiles in half the time again, and runs
    half as fast. The environment's `XLA_FLAGS` override the options.
    """
    options: dict[str, int | bool] = {}
    if default_platform() != "cpu":
        # Autotuning of small products makes an H200 compile three to seven times as long for
        # gradients that run 4 to 23 % faster (docs/results/sampling.md). cuBLAS needs no
        # autotuning; Triton compiles for some shapes only with it.
        options = {"xla_gpu_enable_triton_gemm": False, "xla_gpu_autotune_level": 0}
    else:
        # jaxlib 0.10's fusion emitters are slow to compile: without them and with fewer passes of
        # LLVM the block of draws of 136 classifiers compiles in 3.4 s instead of 5.8 s and runs as
        # fast. Later versions do not know the first option and gain nothing by the second.
        if version("jaxlib").startswith("0.10."):
            options["xla_cpu_use_fusion_emitters"] = False
        if quick:
            options["xla_backend_optimization_level"] = 0
    flags = os.environ.get("XLA_FLAGS", "")
    return {name: value for name, value in options.items() if name not in flags}


@contextmanager
def kept_programs() -> Generator[None]:
    """Keep programs compiled inside for later processes, where JAX's settings name no folder."""
    settings: Any = jax.config
    place, least = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"
    ours: dict[str, Any] = {}
    if getattr(settings, place) is None and settings.jax_enable_compilation_cache:
        try:  # JAX runs what it finds there: see `bayesrep.atomic.refuse_shared`
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
        reset_cache()  # JAX reads the folder of its cache only once


@contextmanager
def compilation_timed(watch: Stopwatch) -> Generator[None]:
    """Time JAX's tracing and compilation inside as a stage of its own."""

    def record_span(event: str, start_time: float, end_time: float, **_: str | int) -> None:
        if event.startswith("/jax/core/compile/"):
            watch.span("compiling", start_time, end_time)

    jax.monitoring.register_event_time_span_listener(record_span)
    try:
        yield
    finally:
        jax.monitoring.unregister_event_time_span_listener(record_span)


def _is_on_first_cpu(leaves: Sequence[Any]) -> bool:
    """Check that a program of these arguments runs on the first CPU device."""
    if default_platform() != "cpu":
        return False
    first = jax.local_devices(backend="cpu")[0]
    shardings = (getattr(leaf, "sharding", None) for leaf in leaves)
    used = {device for each in shardings if each is not None for device in each.device_set}
    chosen: Any = jax.config.jax_default_device  # type: ignore[attr-defined]
    return used <= {first} and chosen in (None, first)


def _read_settings() -> tuple[Any, ...]:
    """Read the settings of JAX and XLA that programs depend on."""
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
    """Digest our code that programs are made from, and versions."""
    package = Path(__file__).parents[1]
    rooms = (package / room for room in ("inference", "models", "numerics"))
    files = (file for room in rooms for file in sorted(room.rglob("*.py")))
    code = digest_parts(file.read_bytes() for file in files)
    return " ".join([code, *map(version, ("jax", "jaxlib", "numpyro", "numpy"))])
