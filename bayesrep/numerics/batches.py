"""Programs on many rows, in batches of one size, side by side."""

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
    """The same function for other threads: with this one's device, and 64-bit floats.

    JAX keeps both settings per thread.
    """
    device: Any = jax.config.jax_default_device  # type: ignore[attr-defined]

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with own_settings(), jax.default_device(device):
            return function(*args, **kwargs)

    return run


def in_batches(
    program: Callable[..., Any], rows: Any, size: int, *, workers: int | None = None
) -> Any:
    """Results of a program for all rows, so many at a time, batches side by side.

    The last batch is filled up with the last row: batches of one size take one program, traced and
    compiled once for any number of rows.

    Parameters
    ----------
    program
        Takes the trees of `rows`, and gives a tree, of arrays [row, ...].
    rows
        A tuple of trees of arrays [row, ...], at least one row.
    size
        Rows of a batch.
    workers
        Batches at a time; as many as there are cores by default.

    Returns
    -------
    tree
        What the program gives, of NumPy arrays [row, ...].
    """
    rows = jax.tree.map(np.asarray, rows)
    total = len(jax.tree.leaves(rows)[0])

    @keep_settings
    def batch(begin: int) -> Any:
        some = np.minimum(np.arange(begin, begin + size), total - 1)
        return jax.tree.map(np.asarray, program(*jax.tree.map(lambda leaf: leaf[some], rows)))

    first = batch(0)  # compiled once, not by every thread
    # Filled in place: of thousands of units there is no room for a copy.
    whole = jax.tree.map(lambda leaf: np.empty((total, *leaf.shape[1:]), leaf.dtype), first)

    def keep(begin: int, found: Any) -> None:
        def put(leaf: Any, part: Any) -> None:
            leaf[begin : begin + size] = part[: total - begin]

        jax.tree.map(put, whole, found)

    keep(0, first)
    with ThreadPoolExecutor(workers or cores()) as pool:
        begins = range(size, total, size)
        list(pool.map(lambda begin: keep(begin, batch(begin)), begins))  # raises what they raise
    return whole
