"""What runs of the tests keep for the next one, in a folder of the checkout: it may be removed."""

import hashlib
import os
import platform
import shutil
from importlib.metadata import version
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / ".cache"
LARGEST = 2 * 2**30  # bytes of compiled programs; one run of everything has about half of it
GENERATIONS = 4  # folders of programs, or of posteriors: those of a few stacks, or of recent code


def programs_folder(flags: str) -> Path:
    """Where compiled programs are kept: one folder for each jaxlib, set of flags and processor."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        features = next(
            line for line in text.splitlines() if line.startswith(("flags", "Features"))
        )
    except (OSError, StopIteration):
        features = platform.processor()
    digest = hashlib.sha256(f"{flags} {platform.machine()} {features}".encode()).hexdigest()[:12]
    return FOLDER / "programs" / f"jaxlib-{version('jaxlib')}-{os.cpu_count()}-cores-{digest}"


def mark_used(folder: Path) -> Path:
    """Make a folder, or note that it is used now: no run that begins later takes it for old."""
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    return folder


def forget_old() -> None:
    """Keep the folders used last, and of the programs in each those used last."""
    for kind in ("programs", "posteriors"):
        folders = sorted((FOLDER / kind).glob("*/"), key=lambda path: path.stat().st_mtime)
        for folder in folders[:-GENERATIONS]:
            shutil.rmtree(folder, ignore_errors=True)
    for folder in (FOLDER / "programs").glob("*/"):
        files = [(path.stat(), path) for path in folder.iterdir() if path.is_file()]
        size = sum(status.st_size for status, _ in files)
        for status, path in sorted(files, key=lambda file: file[0].st_atime):
            if size <= LARGEST:
                break
            path.unlink(missing_ok=True)
            size -= status.st_size
