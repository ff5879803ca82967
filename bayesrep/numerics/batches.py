"""Programs on many rows, in batches of one size."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from bayesrep.types import Ints


def in_batches(program: Callable[..., Any], rows: Any, size: int) -> Any:
    """Results of a program for all rows, so many at a time.

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

    def batch(some: Ints) -> Any:
        return jax.tree.map(np.asarray, program(*jax.tree.map(lambda leaf: leaf[some], rows)))

    ends = [batch(some) for some in np.split(whole, len(whole) // size)]
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:total], *ends)
