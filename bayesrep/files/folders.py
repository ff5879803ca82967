"""Folders that are replaced whole, without ever removing somebody else's files."""

from collections.abc import Iterable
from pathlib import Path

from bayesrep.atomic import find_foreign
from bayesrep.errors import OptionError, listing


def refuse_foreign(folder: Path, ours: Iterable[str]) -> None:
    """Refuse to replace a folder, or a file in its place, that holds what is not ours."""
    if folder.exists() and not folder.is_dir():
        raise OptionError("output-not-a-folder", path=folder)
    if foreign := find_foreign(folder, ours):
        raise OptionError("folder-holds-other-files", path=folder, names=listing(foreign, "file"))
