"""JAX settings of our programs, independent of those of the calling process."""

import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

import numpy as np

from bayesrep.errors import OptionError

_users = set[int]()  # processes that have computed: this one and those it was forked from


def refuse_fork() -> None:
    """Refuse to compute in a fork of a process that has: XLA and Polars would deadlock."""
    _users.add(os.getpid())
    if len(_users) > 1:
        raise OptionError("forked-after-computing")


@contextmanager
def own_settings() -> Generator[None]:
    """Run a block with our settings of JAX; refused without a device, or in a fork."""
    import jax

    refuse_fork()
    try:
        jax.devices()
    except (AssertionError, RuntimeError):  # the first where a plugin is not installed
        platforms = jax.config.jax_platforms  # type: ignore[attr-defined]
        name = "JAX_PLATFORMS" if platforms else "JAX_PLATFORM_NAME"
        requested = f"{name}={platforms or os.environ.get(name)}"
        raise OptionError("jax-without-device", asked=requested) from None
    with ExitStack() as settings:
        settings.enter_context(jax.enable_x64(new_val=True))
        settings.enter_context(jax.numpy_dtype_promotion("standard"))
        settings.enter_context(jax.default_matmul_precision(None))
        settings.enter_context(jax.threefry_partitionable(new_val=True))
        for unwanted in (jax.debug_nans, jax.debug_infs, jax.check_tracer_leaks, jax.log_compiles):
            settings.enter_context(unwanted(new_val=False))
        settings.enter_context(jax.disable_jit(disable=False))
        settings.enter_context(jax.transfer_guard("allow"))
        settings.enter_context(np.errstate(all="warn", under="ignore"))  # as NumPy has it unasked
        yield
