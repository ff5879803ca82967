"""Draws on disk while they are made, so that a killed fit goes on where it was.

A checkpoint is a folder: `checkpoint.json` says which fit it belongs to, and every chain writes
one file per block of transitions, with its draws and the state the next block starts from. Files
are written under another name and renamed, and hold plain arrays only (no pickle).
"""

import json
import os
import zipfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import PosteriorError, reason
from bayesrep.files import npy, strict_json

MANIFEST = "checkpoint.json"


@dataclass(frozen=True)
class Checkpoint:
    """Where the blocks of one part of a fit are kept.

    Attributes
    ----------
    folder
        Made by `open_checkpoint`.
    part
        Beginning of its file names.
    """

    folder: Path
    part: str

    def path(self, chain: int, block: int) -> Path:
        """The file of one block of one chain."""
        return self.folder / f"{self.part}-chain-{chain}-block-{block:05d}.npz"

    def save(self, chain: int, block: int, tree: Any) -> None:
        """Write a block's arrays."""
        leaves = jax.tree.leaves(tree)
        write_arrays(self.path(chain, block), {str(i): _to_array(x) for i, x in enumerate(leaves)})

    def load(self, chain: int, block: int, like: Any) -> Any:
        """Read a block as a tree of the form of `like`, or None where there is none yet."""
        path = self.path(chain, block)
        if not path.exists():
            return None
        arrays = read_arrays(path)
        leaves, structure = jax.tree.flatten(like)
        if set(arrays) != {str(i) for i in range(len(leaves))}:
            raise PosteriorError("checkpoint-arrays-differ", path=path)
        return jax.tree.unflatten(
            structure, [_restore_leaf(path, arrays[str(i)], leaf) for i, leaf in enumerate(leaves)]
        )


def open_checkpoint(folder: str | Path, identity: Mapping[str, Any]) -> Path:
    """Make the folder of a checkpoint, or make sure that it belongs to this very fit.

    Parameters
    ----------
    folder
        A checkpoint, an empty folder or nothing yet.
    identity
        What has to be the same: the data, the model, the schedule, the versions.

    Raises
    ------
    PosteriorError
        Naming what differs, or why the folder cannot be used.
    """
    target = Path(folder)
    manifest = target / MANIFEST
    wanted = json.loads(json.dumps(identity))
    try:
        target.mkdir(parents=True, exist_ok=True)
        if not manifest.exists():
            if any(entry.name != f".{MANIFEST}.part" for entry in target.iterdir()):
                raise PosteriorError("checkpoint-folder-not-empty", path=target)
            with _replace_whole(manifest) as part:
                part.write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")
            return target
        found = strict_json.load(manifest)
    except PosteriorError:
        raise
    except (OSError, ValueError) as error:
        raise PosteriorError(
            "checkpoint-folder-unusable", path=target, reason=reason(error)
        ) from None
    if not isinstance(found, dict) or set(found) != set(wanted):
        raise PosteriorError("checkpoint-of-another-version", manifest=manifest)
    for name, value in wanted.items():
        if found[name] != value:
            raise PosteriorError(
                "checkpoint-of-another-fit",
                path=target,
                setting=name,
                checkpoint_value=_shorten_json(found[name]),
                fit_value=_shorten_json(value),
            )
    return target


def _shorten_json(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays to one file, whole or not at all."""
    try:
        with _replace_whole(path) as part, part.open("wb") as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]
    except OSError as error:
        raise PosteriorError("file-not-writable", path=path, reason=reason(error)) from None


@contextmanager
def _replace_whole(path: Path) -> Generator[Path]:
    """What takes the place of a file; a killed process leaves one, whose name stays the same."""
    part = path.with_name(f".{path.name}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read what `write_arrays` wrote.

    Raises
    ------
    PosteriorError
        Where the file is damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return {
                member.filename.removesuffix(".npy"): _array(archive, member)
                for member in archive.infolist()
            }
    # A damaged archive may also ask for a password, or another version of the format.
    except (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile) as error:
        raise PosteriorError("checkpoint-file-damaged", path=path, reason=reason(error)) from None


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
        raise ValueError("its arrays are compressed, as none of ours are")
    with archive.open(member) as stream:
        return npy.read(stream, member.file_size)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _to_array(leaf: Any) -> NDArray[Any]:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _restore_leaf(path: Path, array: NDArray[Any], leaf: Any) -> Any:
    """The array as the kind of leaf that it was saved from."""
    try:
        value = jnp.asarray(array)
        value = jax.random.wrap_key_data(value) if _is_key(leaf) else value
    except (TypeError, ValueError):  # text or times, or no key
        value = None
    if value is None or value.shape != leaf.shape or value.dtype != leaf.dtype:
        raise PosteriorError("checkpoint-arrays-shape-differs", path=path)
    return value
