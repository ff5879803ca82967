"""Locks by which several processes share the runs: a process locks a run's byte of a file.

They go where the process ends, or closes the file anywhere: all of one are in one opening.
"""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where every process makes all runs
    fcntl = None

FOLDER_CLAIM = "0"  # claim on writing the record and the tables; every other key is a run's


@contextmanager
def open_claims(out: Path) -> Generator[int]:
    """The file of claims of a folder, whose closing ends those of this process."""
    descriptor = os.open(out / ".claims", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def claim(claims: int, key: str, *, wait: bool) -> bool:
    """Try to lock a run for this process; where it may wait, wait for the lock."""
    if fcntl is None:
        return True
    try:
        act = fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB
        fcntl.lockf(claims, act, 1, int(key[:15], 16))
    except OSError as error:  # where the file system knows no locks, all is everybody's
        return error.errno not in (errno.EACCES, errno.EAGAIN)
    return True
