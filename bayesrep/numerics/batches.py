"""Programs on many rows, in batches of one size, side by side."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

from bayesrep.machine import cores
from bayesrep.types import Ints

P = ParamSpec("P")
R = TypeVar("R")


def keep_settings(function: Callable[P, R]) -> Callable[P, R]:
    """The same function for other threads: with this one's device, and 64-bit floats.

    JAX keeps both settings per thread.
    """
    device: Any = jax.config.jax_default_device  # type: ignore[attr-defined]

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(new_val=True), jax.default_device(device):
            return function(*args, **kwargs)

    return run


def in_batches(program: Callable[..., Any], rows: Any, size: int) -> Any:
    """Results of a program for all rows, so many at a time, a batch on each core.

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

    Returns
    -------
    tree
        What the program gives, of NumPy arrays [row, ...].
    """
    rows = jax.tree.map(np.asarray, rows)
    total = len(jax.tree.leaves(rows)[0])
    whole = np.minimum(np.arange(-(-total // size) * size), total - 1)

    @keep_settings
    def batch(some: Ints) -> Any:
        return jax.tree.map(np.asarray, program(*jax.tree.map(lambda leaf: leaf[some], rows)))

    first, *others = np.split(whole, len(whole) // size)
    ends = [batch(first)]  # compiled once, not by every thread
    with ThreadPoolExecutor(cores()) as pool:
        ends += pool.map(batch, others)
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:total], *ends)
