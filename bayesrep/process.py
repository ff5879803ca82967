"""A command in a process of its own: an interrupt reaches it whatever runs, and ends it cleanly.

Left to itself, Python loses an interrupt that arrives inside a callback of a library written in C
(as JAX has while it is imported), ends on SIGTERM without tidying up, and lets XLA's threads
compute on while it takes the interpreter apart, which crashes the process after its last message.
"""

import os
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["INTERRUPTED", "program", "run", "stopped"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED = 130  # what `run`'s command returns where it was interrupted: 128 + SIGINT
AGAIN_SECONDS = 0.1


class _Stop:
    """The signals that have arrived, and what follows from each."""

    def __init__(self) -> None:
        self.number = 0  # of the first signal; 0 where there was none
        self.count = 0

    def __call__(self, number: int, _: Any) -> None:
        self.number = self.number or number
        self.count += 1
        if self.count == 1:
            raise KeyboardInterrupt
        # The command is tidying up, which another KeyboardInterrupt would leave undone.
        if self.count == 2:
            os.write(2, b"bayesrep: stopping; once more ends it at once\n")
        else:
            os._exit(128 + number)

    def again(self, lost: Any) -> None:
        """Send an interrupt that a callback swallowed once more, as `sys.unraisablehook`."""
        if not (self.count and isinstance(lost.exc_value, KeyboardInterrupt)):
            sys.__unraisablehook__(lost)
            return
        self.count = 0
        threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), self.number)).start()


_stop = _Stop()


def program() -> str:
    """The command line's name as this process's user can type it again."""
    called = Path(sys.argv[0])
    if called.parts[-2:] == ("bayesrep", "__main__.py"):
        return f"{_typed(Path(sys.executable))} -m bayesrep"
    return _typed(called) if called.stem == "bayesrep" else "bayesrep"


def _typed(path: Path) -> str:
    """A program as it is typed: by its name where the shell finds it, else by its path."""
    found = shutil.which(path.name)
    if found is not None and Path(found).absolute() == path.absolute():
        return path.name
    here, whole = Path.cwd(), path.absolute()
    return shlex.quote(str(whole.relative_to(here) if whole.is_relative_to(here) else whole))


def stopped() -> bool:
    """Whether a signal has asked this process to end."""
    return bool(_stop.number)


def run(command: Callable[[], int]) -> NoReturn:
    """Run a command and end the process with the status that it returns.

    Parameters
    ----------
    command
        Sees SIGINT and SIGTERM as one KeyboardInterrupt, or as what a library makes of it (then
        `stopped` tells), and returns `INTERRUPTED` after it.
    """
    for number in SIGNALS:
        # What the parent ignores stays ignored: a background job of a shell, nohup.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    sys.unraisablehook = _stop.again
    try:
        status = command()
    except KeyboardInterrupt:  # before the command itself began
        status = INTERRUPTED
    if not stopped():
        sys.exit(status)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            continue
    # Not through the interpreter's end: XLA's threads may still be computing.
    os._exit(128 + _stop.number if status == INTERRUPTED else status)
