"""Sites and quantities at many draws: some draws at a time, gathered by chain and draw."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayesrep.inference.density import Draws
from bayesrep.inference.problem import Programs
from bayesrep.models.model import Data
from bayesrep.types import Floats, Int, Shaped

MOST_AT_ONCE = 50
NUMBERS_AT_ONCE = 2**24
"""Draws that are evaluated together: so many, or as many as the data fit into this."""


class Part(NamedTuple):
    """Values of some draws.

    Attributes
    ----------
    rows
        Which of the draws, all chains in a row.
    places
        Where the values of each of these are: draws that are equal have them in common.
    values
        By name.
    """

    rows: Int[np.ndarray, "draw"]
    places: Int[np.ndarray, "draw"]
    values: Mapping[str, NDArray[Any]]


def evaluate(compiled: Programs, draws: Draws, data: Data) -> dict[str, Floats]:
    """Sites and quantities at positions [chain, draw, ...], as NumPy arrays of that form."""
    chains, length = draws["shared"].shape[:2]
    return gather(in_parts(compiled, draws, data), chains, length)


def in_parts(compiled: Programs, draws: Draws, data: Data) -> Iterator[Part]:
    """Yield sites and quantities at positions [chain, draw, ...], some draws at a time."""
    flat = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[2:]), draws)
    first, same = find_distinct(flat)
    size = batch_size(data, len(same))
    # One shape, and one program: of too few the first are there twice, and the last part begins
    # within the one before it.
    first = np.resize(first, max(size, len(first)))
    for start in range(0, len(first), size):
        begin = min(start, len(first) - size)
        part = {name: leaf[first[begin : begin + size]] for name, leaf in flat.items()}
        values = compiled.quantities(part, data)
        rows = np.flatnonzero((same >= start) & (same < begin + size))
        found = {name: np.asarray(value) for name, value in values.items()}
        yield Part(rows, same[rows] - begin, found)


def batch_size(data: Data, draws: int) -> int:
    """Of so many draws, how many are evaluated at once."""
    a_draw = sum(jnp.size(leaf) for leaf in jax.tree.leaves(data))
    return min(draws, max(1, min(MOST_AT_ONCE, NUMBERS_AT_ONCE // a_draw)))


def find_distinct(
    draws: Mapping[str, Shaped[np.ndarray, "draw ..."]],
) -> tuple[Int[np.ndarray, "distinct"], Int[np.ndarray, "draw"]]:
    """Where each distinct draw is first, and which of them every draw is.

    A resample of weighted draws has most of them several times.
    """
    found: dict[bytes, int] = {}
    first: list[int] = []
    same = np.zeros(len(draws["shared"]), dtype=np.int64)
    for row in range(len(same)):
        digest = hashlib.blake2b()
        for leaf in draws.values():
            digest.update(np.ascontiguousarray(leaf[row]).tobytes())
        same[row] = found.setdefault(digest.digest(), len(first))
        if same[row] == len(first):
            first.append(row)
    return np.array(first, dtype=np.int64), same


def gather(
    parts: Iterable[Part], chains: int, length: int, steps: Mapping[str, int] | None = None
) -> dict[str, NDArray[Any]]:
    """Values by name [chain, draw, ...], of parts that together have all draws of each.

    Parameters
    ----------
    parts
        In any order; they need not have the same names.
    chains, length
        Number of chains, and of draws in each.
    steps
        Steps of names of which the parts have only every so many-th draw of each chain.
    """
    whole: dict[str, NDArray[Any]] = {}
    for rows, places, values in parts:
        for name, value in values.items():
            step = (steps or {}).get(name, 1)
            if name not in whole:
                shape = (chains, -(-length // step), *value.shape[1:])
                whole[name] = np.empty(shape, value.dtype)
            whole[name][rows // length, rows % length // step] = value[places]
    return dict(sorted(whole.items()))
