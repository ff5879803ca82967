"""The process that reads: `python -m experiments.fuzzing.worker TARGET SEED START STOP FOLDER`.

Prints one JSON line before and one after each input. The parent watches the time; memory is
limited here, and whatever would start another process is refused and told. Everything that a
reader, or a library under it, prints by itself is taken for a foreign message.
"""

import json
import os
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from experiments.fuzzing.samples import Files
from experiments.fuzzing.targets import REFUSALS, TARGETS, Target, digest

MEMORY = 2 * 1024**3
"""Bytes of address space above what the sound files need."""
STARTS = {"subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
STARTS |= {"os.startfile", "os.spawn", "pty.spawn"}
PRINTED = "printed"
"""The file for what is printed, in the worker's folder."""
OURS = ("bayesrep.", "builtins.UserWarning")

started: list[str] = []
watching: list[bool] = []


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event in STARTS and watching:
        words = [str(word) for word in arguments[1]] if len(arguments) > 1 else []
        # The one process of ours, which tries binary files before we read them.
        if not (event == "subprocess.Popen" and "bayesrep.files.sandbox" in "".join(words[2:4])):
            started.append(f"{event} {words or arguments}"[:200])


def _children() -> int:
    tasks = Path("/proc/self/task").glob("*/children")
    return sum(len(task.read_text().split()) for task in tasks)


def _limit() -> None:
    """Limit the address space to what is used now and twice `MEMORY`, of which much is never used.

    What is used is compared with `MEMORY` itself after each input.
    """
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + 2 * MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _most_used() -> int:
    """Bytes of memory that this process has used at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def outcome(target: Target, root: Path, wanted: str, kind: str, *, sealed: bool) -> dict[str, str]:
    """Read, and say what came of it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = digest(target.read(root))
        except REFUSALS as error:
            foreign = _foreign(caught)
            if _has_memory_error(error):
                return {"outcome": "memory", "text": repr(error)}
            return {"outcome": "traceback", "text": foreign} if foreign else {"outcome": "refused"}
        except MemoryError:
            return {"outcome": "memory", "text": traceback.format_exc(limit=-4)}
        except BaseException:  # Rust's panics are no Exceptions
            return {"outcome": "traceback", "text": traceback.format_exc(limit=-4)}
        if foreign := _foreign(caught):
            return {"outcome": "traceback", "text": foreign}
        if found == wanted:
            return {"outcome": "equal"}
        if caught:
            return {"outcome": "warned"}
        return {"outcome": "altered" if sealed and kind == "bytes" else "another"}


def _foreign(caught: list[warnings.WarningMessage]) -> str:
    for each in caught:
        if not f"{each.category.__module__}.{each.category.__name__}".startswith(OURS):
            return f"{each.category.__name__}: {each.message}"
    return ""


def _has_memory_error(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


class _Printed:
    """Standard output and error of this process, native code included."""

    def __init__(self, path: Path) -> None:
        self.protocol = os.fdopen(os.dup(1), "w")
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        os.dup2(self.file, 1)
        os.dup2(self.file, 2)

    def say(self, **facts: Any) -> None:
        self.protocol.write(json.dumps(facts) + "\n")
        self.protocol.flush()

    def taken(self) -> str:
        """What was printed since the last time."""
        sys.stdout.flush()
        sys.stderr.flush()
        size = os.fstat(self.file).st_size
        if not size:
            return ""
        text = os.pread(self.file, 600, 0).decode("utf-8", "replace")
        os.ftruncate(self.file, 0)
        return text


def write(root: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder of files."""
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)


def prepare(name: str, root: Path) -> tuple[Target, Files, dict[str, str]]:
    """Write the sound files, and read them: what each reader says of them, by changed file."""
    target = TARGETS[name]
    files = target.sample()
    write(root, files)
    wanted: dict[str, str] = {}
    if name == "options":
        # What commands compile, no option makes longer.
        (root / "command").write_text("estimate\0{study}", encoding="utf-8")
        with suppress(Exception):
            target.read(root)
        return target, files, {"command": ""}
    for each, data in files.items():
        if not target.changed or each.endswith(target.changed):
            os.utime(root / each)  # some targets read what was changed last
            (root / each).write_bytes(data)
            wanted[each] = digest(target.read(root))
    return target, files, wanted


def random_of(name: str, seed: int, number: int) -> Random:
    """The generator of one input, the same everywhere."""
    return Random(f"{seed}:{name}:{number}")


def one(
    target: Target, files: Files, root: Path, random: Random, wanted: Mapping[str, str]
) -> dict[str, str]:
    """Change a file, read, and put the file back."""
    changed, data, kind = target.input(random, files)
    (root / changed).write_bytes(data)
    try:
        sealed = changed.endswith(target.sealed) if target.sealed else False
        facts = outcome(target, root, wanted[changed], kind, sealed=sealed)
    finally:
        if changed in files:
            (root / changed).write_bytes(files[changed])
    return {"file": changed, "kind": kind, **facts}


def serve(name: str, seed: int, numbers: range, root: Path) -> None:
    """Read all inputs and tell the outcome of each."""
    printed = _Printed(root.parent / PRINTED)
    target, files, wanted = prepare(name, root)
    printed.taken()
    _limit()
    sys.addaudithook(_watch)
    watching.append(True)
    children, most = _children(), _most_used() + MEMORY
    for number in numbers:
        printed.say(begin=number)
        facts = one(target, files, root, random_of(name, seed, number), wanted)
        noise = printed.taken()
        if (used := _most_used()) > most:
            facts |= {"outcome": "memory", "text": f"{used / 2**30:.1f} GB are used"}
            most = used
        if started or _children() > children + 1:
            facts |= {"outcome": "subprocess", "text": "; ".join(started) or "a child process"}
            started.clear()
        elif (root / "FUZZED").exists() or Path("FUZZED").exists():
            facts |= {"outcome": "subprocess", "text": "code of the file was run"}
        elif noise and name != "options" and facts["outcome"] not in ("memory", "traceback"):
            facts |= {"outcome": "traceback", "text": noise}
        told = {name: text.replace(f"{root}/", "") for name, text in facts.items()}
        printed.say(end=number, **told)


def main() -> None:
    """Serve the range of inputs named on the command line."""
    name, seed, start, stop = sys.argv[1], *map(int, sys.argv[2:5])
    root = Path(sys.argv[5]) / "files"
    root.mkdir()
    os.chdir(root.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    serve(name, seed, range(start, stop), root)


if __name__ == "__main__":
    main()
