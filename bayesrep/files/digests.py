"""Digests of a command's files, by which a later command detects changes."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple


class Broken(NamedTuple):
    """Changed files: those that are gone or empty, and those of other contents."""

    lost: list[str]
    changed: list[str]


def seal_files(folder: Path, name: str) -> dict[str, str]:
    """The SHA-256 digest of a file of a folder, or of all files below a folder in it, by path."""
    place = folder / name
    files = [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.is_file())
    return {file.relative_to(folder).as_posix(): digest_file(file) for file in files}


def digest_file(file: str | Path) -> str:
    """The SHA-256 digest of a file's contents."""
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_value(value: Any) -> str:
    """The SHA-256 digest of a value of JSON, whatever the order of its keys."""
    return digest_parts([json.dumps(value, sort_keys=True).encode()])


def digest_parts(parts: Iterable[bytes]) -> str:
    """The SHA-256 digest of bytes that are one after the other."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def short_digest(data: bytes, size: int = 8, *, key: bytes = b"") -> bytes:
    """The BLAKE2b digest of so many bytes: quick, and where there is a key, only with it."""
    return hashlib.blake2b(data, digest_size=size, key=key).digest()


def find_broken(folder: Path, sealed: Mapping[str, str]) -> Broken:
    """Find the sealed files that are lost or changed."""
    broken = Broken([], [])
    for name, digest in sealed.items():
        file = folder / name
        try:
            if not file.is_file() or not file.stat().st_size:
                broken.lost.append(name)
            elif digest_file(file) != digest:
                broken.changed.append(name)
        except FileNotFoundError:  # since it was looked for
            broken.lost.append(name)
    return broken
