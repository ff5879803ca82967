"""Files and folders that appear whole or not at all, and where those go that are only kept."""

import os
import platform
import shutil
import stat
import uuid
import zlib
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

from bayesrep.machine import cores


def user_cache() -> Path:
    """Where this user's programs keep what can be made again, ours in a folder of their own."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bayesrep"


LARGEST_CACHE = 2**28  # bytes; some hundred compiled programs
LEAST_COMPILATION = 0.1  # seconds; what takes less is compiled again as soon


def programs_cache() -> Path:
    """Where compiled programs are kept, for each kind of processor: machines share homes.

    And for each number of cores: XLA parts sums by them, which JAX's own key does not tell, and a
    program that was compiled for another number has other last digits.

    The folder is there, is this user's alone, and has room for more.

    Raises
    ------
    OSError
        Where it cannot be made or others could write to it.
    """
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    said = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    features = said or platform.processor()
    name = f"programs-{platform.machine()}-{zlib.crc32(features.encode()):08x}-{cores()}-cores"
    folder = user_cache() / name
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    refuse_shared(folder)
    make_room(folder.parent.glob("programs-*/*"), LARGEST_CACHE)
    return folder


def refuse_shared(folder: Path) -> None:
    """Refuse a folder whose files will be run, if this user alone cannot decide what is in it.

    Raises
    ------
    PermissionError
        Where another user owns it or can write to it, or can put another in its place by way of a
        folder above it.
    """
    if not hasattr(os, "geteuid"):  # Windows keeps a user's folders from the others
        return
    ways = (folder.absolute(), folder.resolve())
    for each in dict.fromkeys(place for way in ways for place in (way, *way.parents)):
        status, own = each.stat(), each in ways
        if status.st_uid not in {os.geteuid()} | (set() if own else {0}):
            raise PermissionError(f"{each} belongs to another user")
        # Above it a sticky bit keeps others from what is not theirs, as in /tmp.
        if status.st_mode & 0o022 and (own or not status.st_mode & stat.S_ISVTX):
            raise PermissionError(f"others can write to {each} (chmod go-w ends that)")


def make_room(files: Iterable[Path], most: int) -> None:
    """Delete the files that were not used for longest, until at most so many bytes are left."""
    found: list[tuple[float, int, Path]] = []
    for file in files:
        with suppress(OSError):  # another process may be doing the same
            status = file.stat()
            found.append((max(status.st_atime, status.st_mtime), status.st_size, file))
    total = sum(size for _, size, _ in found)
    for _, size, file in sorted(found):
        if total <= most:
            return
        with suppress(OSError):
            file.unlink()
        total -= size


@contextmanager
def replaced_file(target: Path) -> Generator[Path]:
    """A new file beside `target` that takes its place, whatever is there, if the block succeeds."""
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        yield partial
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def replaced_folder(target: Path) -> Generator[Path]:
    """A new folder beside `target` that takes its place, whatever is there, if the block succeeds.

    Its parents are created.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    token = uuid.uuid4().hex[:8]
    partial = target.with_name(f".{target.name}.{token}.partial")
    previous = target.with_name(f".{target.name}.{token}.previous")
    try:
        partial.mkdir()
        yield partial
        if target.exists():
            target.rename(previous)
        partial.rename(target)
    except BaseException:  # Ctrl-C too must leave the old study and nothing half-written
        if previous.exists() and not target.exists():
            previous.rename(target)
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if target.exists():
            shutil.rmtree(previous, ignore_errors=True)
