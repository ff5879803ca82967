"""Files and folders that appear whole or not at all, and where those go that are only kept."""

import ctypes
import errno
import glob
import os
import platform
import re
import shutil
import signal
import stat
import sys
import threading
import uuid
import zlib
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from fnmatch import fnmatchcase
from pathlib import Path
from types import FrameType

from bayesrep.machine import cores


def user_cache() -> Path:
    """Return this user's cache folder for bayesrep."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bayesrep"
    except RuntimeError:  # Python's word for a user without a home
        raise FileNotFoundError("this user has no home; set HOME or XDG_CACHE_HOME") from None


LARGEST_CACHE = 2**28  # bytes; some hundred compiled programs
LEAST_COMPILATION = 0.1  # seconds; what takes less is compiled again as soon


def programs_cache() -> Path:
    """The folder of compiled programs, this user's own, for this processor and number of cores."""
    # XLA parts sums by the cores, which JAX's own key does not tell: last digits would be others.
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    cpu_flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    features = cpu_flags or platform.processor()
    name = f"programs-{platform.machine()}-{zlib.crc32(features.encode()):08x}-{cores()}-cores"
    folder = user_cache() / name
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    refuse_shared(folder)
    make_room(folder.parent.glob("programs-*/*"), LARGEST_CACHE)
    return folder


def refuse_shared(folder: Path) -> None:
    """Refuse a folder whose files will be run, if this user alone cannot decide what is in it."""
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
    entries: list[tuple[float, int, Path]] = []
    for file in files:
        with suppress(OSError):  # another process may be doing the same
            status = file.stat()
            entries.append((max(status.st_atime, status.st_mtime), status.st_size, file))
    total = sum(size for _, size, _ in entries)
    for _, size, file in sorted(entries):
        if total <= most:
            return
        with suppress(OSError):
            file.unlink()
        total -= size


_IS_LINUX = sys.platform == "linux"
PLACED_FILES: ContextVar[list[Path] | None] = ContextVar("PLACED_FILES", default=None)
"""Files and folders that have taken their place, in order, where somebody wants to know."""


_PARTIAL_FILES: set[Path] = set()  # which this process is writing


def remove_partials() -> None:
    """Remove what is being written, where the process ends before who writes it can."""
    for partial in tuple(_PARTIAL_FILES):
        _remove(partial)


def find_foreign(folder: Path, ours: Iterable[str]) -> list[str]:
    """Names in a folder, in order, that no pattern has and that are not hidden: another's files."""
    names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    patterns = (".*", *ours)
    return [name for name in names if not any(fnmatchcase(name, each) for each in patterns)]


def replaced_file(target: Path) -> AbstractContextManager[Path]:
    """A new file beside `target` that takes its place, whatever is there, if the block succeeds."""
    return _replace_path(target, is_folder=False)


def replaced_folder(target: Path) -> AbstractContextManager[Path]:
    """The same of a folder."""
    return _replace_path(target, is_folder=True)


@contextmanager
def _replace_path(target: Path, *, is_folder: bool) -> Generator[Path]:
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.partial")
    _PARTIAL_FILES.add(partial)
    try:
        with writing_to(target, by_way_of=partial):
            if is_folder:
                target.parent.mkdir(parents=True, exist_ok=True)
                partial.mkdir()
            yield partial
            with _delay_signals():
                if is_folder:
                    _exchange(target, partial, partial.with_suffix(".previous"))
                else:
                    os.replace(partial, target)
                if (placed := PLACED_FILES.get()) is not None:
                    placed.append(target)
    finally:
        with _delay_signals():
            _remove(partial)
        _PARTIAL_FILES.discard(partial)


def _exchange(target: Path, partial: Path, previous: Path) -> None:
    """Put one folder in another's place, which goes; or leave all as it is."""
    if not os.path.lexists(target):
        partial.rename(target)
    elif _swap(partial, target):
        _remove(partial)
    else:
        target.rename(previous)  # where a killed process leaves it to `find_moved_aside`
        try:
            partial.rename(target)
        except BaseException:
            previous.rename(target)
            raise
        _remove(previous)


def _swap(one: Path, other: Path) -> bool:
    """Let two paths change places in one step; False where this system or its files cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if _IS_LINUX else None
    if rename is None:
        return False
    here, swap = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of renameat2
    return rename(here, os.fsencode(one), here, os.fsencode(other), swap) == 0


def find_moved_aside(target: Path) -> Path | None:
    """The older folder that a killed process had moved out of this place, if it is there still."""
    if os.path.lexists(target):
        return None
    return next(iter(sorted(target.parent.glob(f".{glob.escape(target.name)}.*.previous"))), None)


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _delay_signals() -> Generator[None]:
    """Signals that ask for the end of the process are heard after the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    heeded = {n: act for n, act in usual.items() if act not in (signal.SIG_IGN, None)}

    def hear(number: int, _: FrameType | None) -> None:
        heard.append(number)

    try:
        for number in heeded:
            signal.signal(number, hear)
        yield
    finally:
        for number, act in heeded.items():
            signal.signal(number, act)
        for number in heard[:1]:
            act = usual[signal.Signals(number)]
            if callable(act):
                act(number, None)
            else:
                signal.raise_signal(number)


NO_SPACE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""System errors of a file that cannot grow; most libraries pass them on without its name."""
_ERROR_NUMBER = re.compile(r"\(os error (\d+)\)|\berrno = (\d+)")  # of Rust and HDF5


@contextmanager
def writing_to(target: Path, *, by_way_of: Path | None = None) -> Generator[None]:
    """Name `target` where it cannot be written, in whatever words a library says so."""
    try:
        yield
    except Exception as error:
        partial = target if by_way_of is None else by_way_of
        explained = _explain_unwritten(error, partial)
        if explained is None:
            raise
        number, inside = explained
        raise OSError(number, os.strerror(number), str(target / inside)) from error


def _explain_unwritten(error: Exception, partial: Path) -> tuple[int, Path] | None:
    """The system's number for what is wrong with a file or folder, and where in it."""
    named = getattr(error, "filename", None)
    number = getattr(error, "errno", None)
    if isinstance(named, str | os.PathLike) and isinstance(number, int):
        path = Path(named)
        return (number, path.relative_to(partial)) if path.is_relative_to(partial) else None
    if number is None and (match := _ERROR_NUMBER.search(str(error))):
        number = int(match[1] or match[2])
    return (number, Path()) if number in NO_SPACE_ERRORS else None
