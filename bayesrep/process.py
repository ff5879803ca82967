"""A command in a process of its own: an interrupt reaches it whatever runs, and ends it cleanly.

Python alone loses one in a callback of C, waits for threads, and lets XLA crash its own end.
"""

import gc
import os
import select
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from bayesrep.errors import plain_text, quote_word

END_SIGNALS = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED_STATUS = 130  # what `run`'s command returns where it was interrupted: 128 + SIGINT
GRACE_S = 1.0  # seconds in which a command ends after a signal, or is ended
POLL_S = 0.2  # seconds between looks for an interrupt that was swallowed
GC_THRESHOLD = 100_000  # new objects between searches for cycles: few of JAX's many are in any


class _Stop:
    """One KeyboardInterrupt for the first signal, and a thread that sees to it that it is heard."""

    def __init__(self) -> None:
        self.number = 0  # of the first signal that Python heard; 0 where there was none
        self.raised = False
        self.describe: Callable[[], str] | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Interrupt what runs, once, and in no import, which for some modules in C would crash."""
        self.number = self.number or number
        if not self.raised and not _is_import(frame):
            self.raised = True
            raise KeyboardInterrupt

    def watch(self, arrivals: socket.socket) -> None:
        """Follow the signals, a byte each: repeat a swallowed one, end a command that goes on."""
        first, since, own = 0, 0.0, 0
        while True:
            if select.select([arrivals], [], [], POLL_S if first else None)[0]:
                if not (arrived := arrivals.recv(1)):  # the command is done
                    return arrivals.close()
                if (number := arrived[0]) not in END_SIGNALS:
                    continue
                if own:
                    own -= 1
                elif not first:
                    first, since = number, time.monotonic()
                else:
                    self.end_process(first)
            elif (waited := time.monotonic() - since) > GRACE_S:
                self.end_process(first)
            elif self.number and not self.raised or waited > GRACE_S / 2 and not _being_handled():
                # It was heard in an import, or swallowed.
                self.raised, own = False, own + 1
                if hasattr(signal, "pthread_kill"):
                    signal.pthread_kill(threading.main_thread().ident or 0, first)
                else:
                    signal.raise_signal(first)

    def end_process(self, number: int) -> NoReturn:
        """End the process while the main thread computes or waits for what does."""
        with suppress(Exception):
            if text := self.take_text():
                _say(plain_text(text))
        os._exit(128 + number)

    def take_text(self) -> str | None:
        """Return the text about the interrupt to the first caller, None to later ones."""
        describe, self.describe = self.describe, None
        return None if describe is None else describe()


def _is_import(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _say(text: str) -> None:
    with suppress(OSError):  # nobody reads any more, which must not end who watches
        os.write(2, f"\nbayesrep: {text}\n".encode())


def _being_handled() -> bool:
    every: Any = sys._current_exceptions()  # pyright: ignore[reportPrivateUsage]
    active = every.get(threading.main_thread().ident)
    error = active[1] if isinstance(active, tuple) else active  # a tuple until Python 3.11
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False


def _ignore_interrupt(lost: Any) -> None:
    """Say nothing of an interrupt that a callback swallowed: it is raised again."""
    if not isinstance(lost.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(lost)


_stop = _Stop()


def program() -> str:
    """The command line's name as this process's user can type it again."""
    called = Path(sys.argv[0])
    if called.parts[-2:] == ("bayesrep", "__main__.py"):
        return f"{_typed_name(Path(sys.executable))} -m bayesrep"
    return _typed_name(called) if called.stem == "bayesrep" else "bayesrep"


def command(*words: object) -> str:
    """A whole command, as this process's user can type it."""
    return " ".join([program(), *(quote_word(str(word)) for word in words)])


def _typed_name(path: Path) -> str:
    """A program as it is typed: by its name where the shell finds it, else by its path."""
    installed = shutil.which(path.name)
    if installed is not None and Path(installed).absolute() == path.absolute():
        return path.name
    folder, whole = Path.cwd(), path.absolute()
    return quote_word(str(whole.relative_to(folder) if whole.is_relative_to(folder) else whole))


def is_stopped() -> bool:
    """Return whether a signal has asked this process to end."""
    return bool(_stop.number)


def on_interrupt(describe: Callable[[], str]) -> None:
    """Say what removes what is half-written and returns the line that is said of an interrupt."""
    _stop.describe = describe


def interrupt_text() -> str | None:
    """Return that line; None where it has been printed."""
    return _stop.take_text()


def run(command: Callable[[], int]) -> NoReturn:
    """Run a command and end the process with the status that it returns."""
    ours = [number for number in END_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in ours:  # what the parent ignores stays ignored: background jobs, nohup
        signal.signal(number, _stop)
    arrivals, sent = socket.socketpair()
    sent.settimeout(0)
    signal.set_wakeup_fd(sent.fileno(), warn_on_full_buffer=False)
    watcher = threading.Thread(target=_stop.watch, args=(arrivals,), daemon=True)
    watcher.start()
    sys.unraisablehook = _ignore_interrupt
    gc.set_threshold(GC_THRESHOLD)
    try:
        status = command()
    except KeyboardInterrupt:  # before the command itself began
        _say("interrupted; nothing was written")
        status = INTERRUPTED_STATUS
    for number in ours:  # the command is done: a signal to what Python tidies up changes nothing
        signal.signal(number, signal.SIG_IGN)
    if not is_stopped():
        signal.set_wakeup_fd(-1)
        sent.close()
        watcher.join(GRACE_S)
        gc.freeze()  # Python would look through all that JAX holds once more: up to a second
        sys.exit(status)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            continue
    # Not through the interpreter's end: XLA's threads may still be computing.
    os._exit(128 + _stop.number if status == INTERRUPTED_STATUS else status)
