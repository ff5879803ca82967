"""Files as they are given: of which data set, and none twice."""

import os
from collections.abc import Iterable
from pathlib import Path

from bayesrep.errors import StudyError
from bayesrep.files.digests import digest_file


def split_name(path: str | Path) -> tuple[str, Path]:
    """Part NAME=FILE, a file of one data set; the name is empty if none is given."""
    name, equals, file = str(path).partition("=")
    if not (name and equals and file) or "/" in name or Path(path).exists():
        return "", Path(path)
    return name, Path(file)


def refuse_copies(paths: Iterable[str | Path]) -> None:
    """Refuse files of which two hold the same; whatever cannot be read is left to its reader."""
    sizes: dict[int, list[str | Path]] = {}
    for path in paths:
        try:
            same_size = sizes.setdefault(os.stat(path).st_size, [])
            digest = digest_file(path) if same_size else ""
            for other in same_size:
                if digest_file(other) == digest:
                    raise StudyError("same-file-twice", path=path, other=other)
        except OSError:
            continue
        same_size.append(path)
