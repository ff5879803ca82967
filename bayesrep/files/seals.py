"""Digests of what a command has made, so that a later one knows which files are as they were."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple


class Broken(NamedTuple):
    """What is not as it was made: files that are gone or empty, and files of other contents."""

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
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def find_broken(folder: Path, sealed: Mapping[str, str]) -> Broken:
    """Which of the files that are sealed are no more as they were."""
    found = Broken([], [])
    for name, told in sealed.items():
        file = folder / name
        try:
            if not file.is_file() or not file.stat().st_size:
                found.lost.append(name)
            elif digest_file(file) != told:
                found.changed.append(name)
        except FileNotFoundError:  # since it was looked for
            found.lost.append(name)
    return found


def are_seals(value: Any, name: str) -> bool:
    """Whether a value that was read may be what `seal_files` made of a name: nothing outside it."""
    return isinstance(value, dict) and all(
        isinstance(digest, str) and _is_below(path, name) for path, digest in value.items()
    )


def _is_below(path: Any, name: str) -> bool:
    parts = PurePosixPath(path).parts if isinstance(path, str) and path.isprintable() else ()
    return bool(parts) and parts[0] == name and ".." not in parts
