"""Files and folders that appear whole or not at all, and where those go that are only kept."""

import os
import platform
import shutil
import uuid
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


def user_cache() -> Path:
    """Where this user's programs keep what can be made again, ours in a folder of their own."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bayesrep"


def programs_cache() -> Path:
    """Where compiled programs are kept, for each kind of processor: machines share homes."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    said = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    features = said or platform.processor()
    return user_cache() / f"xla-{platform.machine()}-{zlib.crc32(features.encode()):08x}"


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
