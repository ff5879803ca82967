"""Folders that are written whole: what somebody else put there is never removed with them."""

from collections.abc import Iterable
from pathlib import Path

from bayesrep.atomic import find_foreign
from bayesrep.errors import OptionError, listing


def refuse_foreign(folder: Path, ours: Iterable[str]) -> None:
    """Refuse to replace a folder, or a file in its place, that holds what is not ours.

    Parameters
    ----------
    folder
        What is to be written; it need not be there.
    ours
        Patterns of the names of what is in such a folder.

    Raises
    ------
    OptionError
        Naming what else is there.
    """
    if folder.exists() and not folder.is_dir():
        raise OptionError("output-not-a-folder", path=folder)
    if foreign := find_foreign(folder, ours):
        raise OptionError("folder-holds-other-files", path=folder, names=listing(foreign, "file"))
