"""Sandbox: another process reads a stranger's file first, so that a crash is one line here.

It has limits of time and memory; digests of files that were sound are kept for this user.
"""

import atexit
import importlib
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bayesrep.atomic import refuse_shared, user_cache
from bayesrep.errors import Violation, kind_and_reason
from bayesrep.files.digests import digest_file, digest_value
from bayesrep.version import __version__

BASE_SECONDS, BYTES_PER_SECOND = 3.0, 5e6  # of computing
CLOCK_FACTOR = 10  # times as many by the clock
BASE_MEMORY_BYTES, MEMORY_PER_BYTE = 2**29, 100  # bytes; above what the helper has before it reads
MAX_RECORD_BYTES = 2**20  # bytes; of some 16,000 trials
READER_PACKAGES = ("h5py", "numpy", "polars", "scipy")  # libraries that read a tried file

# The paths of modules are those of this process: the helper must not look in the current folder,
# which may be the stranger's.
_HELPER_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from bayesrep.files.sandbox import serve; serve()"
)
_READY_LINE = "ready\n"
_UNABLE_STATUS = 97  # the helper's exit status where it cannot import what it should call
_HELPER_ENVIRONMENT = {
    "POLARS_MAX_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
    "RUST_BACKTRACE": "0",
}


def fault(
    examine: Callable[..., Violation | None], file: str | Path, where: str, *arguments: Any
) -> Violation | None:
    """Say in one line what is wrong with a file, or nothing where it can be read here."""
    path, function = os.path.abspath(file), [examine.__module__, examine.__name__]
    status, trial = os.stat(path), None
    size = status.st_size
    with suppress(OSError):  # what cannot be digested, as a device that need not end, is tried anew
        if stat.S_ISREG(status.st_mode):
            readers = [__version__, _digest_code(examine), sys.version]
            readers += map(version, READER_PACKAGES)
            trial = digest_value([function, list(arguments), digest_file(path), readers])
    if trial in _sound.trials:
        return None
    request = {
        "function": function,
        "arguments": [path, where, *arguments],
        "memory": BASE_MEMORY_BYTES + MEMORY_PER_BYTE * size,
        "seconds": BASE_SECONDS + size / BYTES_PER_SECOND,
    }
    if (violation := _helper.ask(request)) is None and trial is not None:
        _sound.add(trial)
    return violation


@cache
def _digest_code(function: Callable[..., Any]) -> str:
    return digest_file(function.__code__.co_filename)


class _SoundFiles:
    """Digests of trials that found no fault, by this process and this user's earlier ones."""

    @cached_property
    def file(self) -> Path | None:
        """Return their file; None without a folder that this user alone can write to."""
        try:
            folder = user_cache()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            refuse_shared(folder)
        except OSError:
            return None
        return folder / "sound-files"

    @cached_property
    def trials(self) -> set[str]:
        if self.file is not None:
            with suppress(OSError, ValueError):
                return set(self.file.read_text(encoding="ascii").split())
        return set()

    def add(self, trial: str) -> None:
        """Keep one more; of too many, all are forgotten."""
        self.trials.add(trial)
        if self.file is None:
            return
        with suppress(OSError):  # without room nothing is kept
            with open(self.file, "a", encoding="ascii") as stream:
                stream.write(f"{trial}\n")
            if self.file.stat().st_size > MAX_RECORD_BYTES:
                self.file.unlink()


class _Helper:
    """The process, its pipe, and a lock so that threads may share it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: subprocess.Popen[str] | None = None
        self.owner = 0
        self.ready = False

    def ask(self, request: dict[str, Any]) -> Violation | None:
        with self.lock:
            process = self._start_process()
            if process is None:
                return _answer(request)
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                # It reports once that it has started; otherwise no helper can run here.
                self.ready = self.ready or process.stdout.readline() == _READY_LINE
                if self.ready:
                    process.stdin.write(json.dumps(request) + "\n")
                    process.stdin.flush()
                line = process.stdout.readline()
            except BrokenPipeError:
                line = ""
            except BaseException:  # Ctrl-C: nobody reads a later answer
                self.stop()
                raise
            if line.endswith("\n"):
                answer = json.loads(line)
                return answer and Violation.of_json(answer)
            able, code = self.ready, self.stop()
            return _death(request, code) if able and code != _UNABLE_STATUS else _answer(request)

    def _start_process(self) -> subprocess.Popen[str] | None:
        # A fork has the pipe of its parent, and must not use it.
        if self.process is not None and self.owner == os.getpid():
            if self.process.poll() is None:
                return self.process
            self.stop()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", _HELPER_PROGRAM, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **_HELPER_ENVIRONMENT},
                text=True,
                encoding="ascii",
            )
        except (OSError, TypeError):  # no processes here, or no interpreter to start
            self.process = None
        self.owner, self.ready = os.getpid(), False
        return self.process

    def stop(self) -> int | None:
        """End the process, whatever it is doing; return its exit status."""
        process, self.process = self.process, None
        if process is None or self.owner != os.getpid():
            return None
        process.kill()
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):  # what could not be sent is not missed
                assert stream is not None
                stream.close()
        return process.wait()


_helper = _Helper()
_sound = _SoundFiles()
atexit.register(_helper.stop)


def _death(request: dict[str, Any], code: int | None) -> Violation:
    where = request["arguments"][1]
    if code is None or code >= 0:
        return Violation("file-ends-its-reader", where=where)
    name = signal.Signals(-code).name
    if (clock := name == "SIGALRM") or name == "SIGPROF":
        seconds = request["seconds"] * (CLOCK_FACTOR if clock else 1)
        return Violation("file-takes-too-much-time", where=where, seconds=seconds)
    return Violation("file-kills-its-reader", where=where, signal=name)


def serve() -> None:
    """Answer requests until there are no more: the helper's whole life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends this
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what libraries print is not an answer
    answers.write(_READY_LINE)
    answers.flush()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            _load(request)
        except Exception:  # where modules are found in ways of their own: the parent reads alone
            os._exit(_UNABLE_STATUS)
        _limit(request)
        answer = _answer(request)
        _set_alarm(0)
        answers.write(json.dumps(answer and answer.to_json()) + "\n")
        answers.flush()


def _load(request: dict[str, Any]) -> Callable[..., Violation | None]:
    module, name = request["function"]
    return getattr(importlib.import_module(module), name)


def _limit(request: dict[str, Any]) -> None:
    _set_alarm(request["seconds"])
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as status:
            now = int(status.read().split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        soft = now + request["memory"]
        if hard == resource.RLIM_INFINITY or soft < hard:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    except (ImportError, OSError, ValueError):
        return


def _set_alarm(seconds: float) -> None:
    """Let the system end this process, native code and all, when the time is over."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, CLOCK_FACTOR * seconds)


def _answer(request: dict[str, Any]) -> Violation | None:
    where = request["arguments"][1]
    try:
        return _load(request)(*request["arguments"])
    except MemoryError:
        gigabytes = request["memory"] / 2**30
        return Violation("file-takes-too-much-memory", where=where, gigabytes=gigabytes)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # Rust's panics are no Exceptions
        return Violation("file-not-readable", where=where, reason=kind_and_reason(error))
