"""Files that are given twice, whose rows would count twice."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from bayesrep.errors import StudyError


def refuse_copies(paths: Iterable[str | Path]) -> None:
    """Refuse files of which two hold the same, under one name or under two.

    Of a file that cannot be read nothing is said, since its reader does.

    Raises
    ------
    StudyError
        Naming both.
    """
    sizes: dict[int, list[str | Path]] = {}
    for path in paths:
        try:
            alike = sizes.setdefault(os.stat(path).st_size, [])
            digest = _digest(path) if alike else b""
            for other in alike:
                if _digest(other) == digest:
                    raise StudyError("same-file-twice", path=path, other=other)
        except OSError:
            continue
        alike.append(path)


def _digest(path: str | Path) -> bytes:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()
