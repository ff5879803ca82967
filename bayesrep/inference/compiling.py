"""How the programs of a fit are compiled."""

import os
from functools import lru_cache
from importlib.metadata import version

import jax

CompilerOptions = dict[str, int | bool]
"""Options of XLA for one program, as `jax.jit(..., compiler_options=...)` takes them."""


@lru_cache(maxsize=4)
def _options(flags: str, *, quick: bool) -> CompilerOptions:
    # jaxlib 0.10 has a new way to write kernels, which is slow to compile: without it and with
    # fewer passes of LLVM the block of draws of 136 classifiers compiles in 3.4 s instead of 5.8 s
    # and runs as fast. Later versions do not know the first option and gain nothing by the second.
    spared: CompilerOptions = {}
    if version("jaxlib").startswith("0.10.") and jax.default_backend() == "cpu":
        spared = {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 1}
    wanted = {**spared, "xla_backend_optimization_level": 0} if quick else spared
    return {name: value for name, value in wanted.items() if name not in flags}


def compiler_options(*, quick: bool = False) -> CompilerOptions:
    """What has a program compiled sooner that runs no slower, by the version of jaxlib.

    Only a program that is called from outside any other takes options. What the environment's
    `XLA_FLAGS` says of one of them rules.

    Parameters
    ----------
    quick
        For a program that runs a few times only: it compiles in half the time again, and runs half
        as fast.
    """
    return dict(_options(os.environ.get("XLA_FLAGS", ""), quick=quick))
