"""Draws on disk while they are made, so that a killed fit goes on where it was.

A folder: `checkpoint.json` says which fit it belongs to, and every chain writes one file per block,
with its draws and the state the next block starts from. Files hold plain arrays only (no pickle).
"""

import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayesrep.atomic import replaced_file
from bayesrep.errors import PosteriorError, reason
from bayesrep.files import npy
from bayesrep.store import open_store

open_checkpoint = partial(open_store, name="checkpoint.json", refusal=PosteriorError)
"""Create the folder of a checkpoint, or check that it belongs to the fit of some facts."""


def save_block(path: Path, tree: Any) -> None:
    """Write a tree of arrays and random keys to one file, whole or not at all."""
    arrays = {
        str(number): np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
        for number, leaf in enumerate(jax.tree.leaves(tree))
    }
    try:
        with replaced_file(path) as partial, partial.open("wb") as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]
    except OSError as error:
        raise PosteriorError("file-not-writable", path=path, reason=reason(error)) from None


def load_block(path: Path, template: Any) -> Any:
    """Read what `save_block` wrote of a tree of the template's form, shapes and types."""
    leaves, structure = jax.tree.flatten(template)
    try:
        arrays: dict[str, NDArray[Any]] = {}
        with zipfile.ZipFile(path) as archive:
            for each in archive.infolist():
                if each.compress_type != zipfile.ZIP_STORED or each.file_size != each.compress_size:
                    raise ValueError("its arrays are compressed, as none of ours are")
                with archive.open(each) as stream:
                    arrays[each.filename] = npy.read(stream, each.file_size)
    # A damaged archive may also ask for a password, or another version of the format.
    except (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile) as error:
        raise PosteriorError("checkpoint-file-damaged", path=path, reason=reason(error)) from None
    if set(arrays) != {f"{number}.npy" for number in range(len(leaves))}:
        raise PosteriorError("checkpoint-arrays-differ", path=path)
    values: list[Any] = []
    try:
        for number, leaf in enumerate(leaves):
            value = jnp.asarray(arrays[f"{number}.npy"])
            values.append(jax.random.wrap_key_data(value) if _is_key(leaf) else value)
            if (values[-1].shape, values[-1].dtype) != (leaf.shape, leaf.dtype):
                raise TypeError
    except (TypeError, ValueError):  # text or times, or no key, or of another shape
        raise PosteriorError("checkpoint-arrays-shape-differs", path=path) from None
    return jax.tree.unflatten(structure, values)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
