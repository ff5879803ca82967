"""How the programs of a fit are compiled, where they are kept, and how long that takes."""

import os
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import jax
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from bayesrep.atomic import LEAST_COMPILATION, programs_cache
from bayesrep.inference.device import default_platform
from bayesrep.progress import Stopwatch

CompilerOptions = dict[str, int | bool]
"""Options of XLA for one program, as `jax.jit(..., compiler_options=...)` takes them."""

COMPILATION = "/jax/core/compile/"
"""How JAX's events begin that tell of tracing and compilation."""


@lru_cache(maxsize=8)
def _options(flags: str, platform: str, *, quick: bool) -> CompilerOptions:
    if platform != "cpu":
        # Kernels of small products are tried in many forms, so that an H200 compiles three to seven
        # times as long for gradients that run 4 to 23 % faster (docs/results/gpu.md). Products by
        # cuBLAS need no trying; those by Triton compile for some shapes only where they are tried.
        untried = {"xla_gpu_enable_triton_gemm": False, "xla_gpu_autotune_level": 0}
        return {name: value for name, value in untried.items() if name not in flags}
    # jaxlib 0.10 has a new way to write kernels, which is slow to compile: without it and with
    # fewer passes of LLVM the block of draws of 136 classifiers compiles in 3.4 s instead of 5.8 s
    # and runs as fast. Later versions do not know the first option and gain nothing by the second.
    spared: CompilerOptions = {}
    if version("jaxlib").startswith("0.10."):
        spared = {"xla_cpu_use_fusion_emitters": False}
    wanted = {**spared, "xla_backend_optimization_level": 0} if quick else spared
    return {name: value for name, value in wanted.items() if name not in flags}


def compiler_options(*, quick: bool = False) -> CompilerOptions:
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
    return dict(_options(os.environ.get("XLA_FLAGS", ""), default_platform(), quick=quick))


@contextmanager
def kept_programs() -> Generator[None]:
    """Keep the programs compiled inside for later processes, unless the user decided where.

    The user decides by JAX's own settings, such as `JAX_COMPILATION_CACHE_DIR`. They are the same
    afterwards. JAX runs what it finds there: see `bayesrep.atomic.refuse_shared`.
    """
    settings: Any = jax.config
    place, least = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"
    before = {name: getattr(settings, name) for name in (place, least)}
    if before[place] is not None or not settings.jax_enable_compilation_cache:
        yield
        return
    try:
        folder = programs_cache()
    except OSError as error:
        warnings.warn(f"compiled programs are not kept: {error}", stacklevel=6)
        yield
        return
    try:
        _configure({place: str(folder), least: LEAST_COMPILATION})
        yield
    finally:
        _configure(before)


def _configure(settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        jax.config.update(name, value)
    reset_cache()  # JAX reads where its cache is once


@contextmanager
def compilation_timed(watch: Stopwatch) -> Generator[None]:
    """Count as a stage of its own what JAX traces and compiles inside, in whatever stage."""

    def hear(event: str, start_time: float, end_time: float, **_: str | int) -> None:
        if event.startswith(COMPILATION):
            watch.span("compiling", start_time, end_time)

    jax.monitoring.register_event_time_span_listener(hear)
    try:
        yield
    finally:
        jax.monitoring.unregister_event_time_span_listener(hear)
