"""Batched, threaded evaluation of compiled programs."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

from bayesrep.machine import cores
from bayesrep.numerics.settings import own_settings

P = ParamSpec("P")
R = TypeVar("R")


def keep_settings(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function for other threads, with this one's device: JAX's settings are theirs."""
    device: Any = jax.config.jax_default_device  # type: ignore[attr-defined]

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with own_settings(), jax.default_device(device):
            return function(*args, **kwargs)

    return run


def in_batches(
    program: Callable[..., Any], rows: Any, size: int, *, workers: int | None = None
) -> Any:
    """Evaluate a program on all rows [row, ...] in batches of one size, several in parallel."""
    rows = jax.tree.map(np.asarray, rows)
    total = len(jax.tree.leaves(rows)[0])

    # JAX's settings are per thread: worker threads need the caller's.
    @keep_settings
    def batch(begin: int) -> Any:
        # Rows beyond the last repeat it, so that every batch has the compiled shape.
        index = np.minimum(np.arange(begin, begin + size), total - 1)
        return jax.tree.map(np.asarray, program(*jax.tree.map(lambda leaf: leaf[index], rows)))

    first = batch(0)  # compiled once, not by every thread
    # Results are written in place: with thousands of units there is no room for a copy.
    results = jax.tree.map(lambda leaf: np.empty((total, *leaf.shape[1:]), leaf.dtype), first)

    def store(begin: int, part: Any) -> None:
        for leaf, source in zip(jax.tree.leaves(results), jax.tree.leaves(part), strict=True):
            leaf[begin : begin + size] = source[: total - begin]

    store(0, first)
    with ThreadPoolExecutor(workers or cores()) as pool:
        begins = range(size, total, size)
        list(pool.map(lambda begin: store(begin, batch(begin)), begins))  # raises what they raise
    return results
