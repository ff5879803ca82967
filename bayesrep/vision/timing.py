"""Times of a run by stage, and the ideal time without any waiting."""

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Self


@dataclass(frozen=True)
class Spent:
    """Seconds of work on some images, summed over threads and devices."""

    read: float = 0.0  # bytes from the disk, and their digest
    decode: float = 0.0  # pixels from bytes
    preprocess: float = 0.0  # resizing and cropping, for all kinds of preprocessing
    compute: float = 0.0  # normalisation, the networks and their five likeliest classes
    compile: float = 0.0  # compiling networks and comparing them with their uncompiled answers

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True)
class Crew:
    """Threads and devices of a pass."""

    readers: int  # threads that read, decode and preprocess
    devices: int  # processors that compute: GPUs, or as many cores as readers
    one_after_other: bool  # true if the readers compute too: then these stages cannot overlap


@dataclass(frozen=True)
class Stages:
    """The time of one pass, or of a whole run, in seconds of the clock on the wall.

    Attributes
    ----------
    classifiers, images
        Numbers of classifiers evaluated together (in a run: of all), and of images (in a run: of
        all passes).
    load
        Loading the classifiers.
    read, decode, preprocess, compute, compile
        See `Spent`; over the number of threads or devices that work at it.
    wait
        Waiting time of the compute cores or GPUs: for images, or for the reader of the answers.
    total
        Elapsed time.
    ideal
        Time without loading, compiling and waiting of the busiest: reading, decoding,
        preprocessing and computing together if the same cores do them, the longer of the two
        sides if a GPU computes while the cores read.
    """

    classifiers: int
    images: int
    load: float
    read: float
    decode: float
    preprocess: float
    compute: float
    compile: float
    wait: float
    total: float
    ideal: float

    @classmethod
    def of(
        cls, classifiers: int, images: int, spent: Spent, crew: Crew, load: float, total: float
    ) -> Self:
        """Compute the stages of one pass of `total` seconds, `load` of them for loading."""
        read, decode, preprocess = (
            part / crew.readers for part in (spent.read, spent.decode, spent.preprocess)
        )
        compute, reading = spent.compute / crew.devices, read + decode + preprocess
        compiling = spent.compile / crew.devices
        working = reading + compute if crew.one_after_other else compute
        wait = max(0.0, total - load - compiling - working)
        ideal = working if crew.one_after_other else max(reading, compute)
        parts = read, decode, preprocess, compute, compiling
        return cls(classifiers, images, load, *parts, wait, total, ideal)

    @classmethod
    def joined(cls, passes: tuple[Self, ...]) -> Self:
        """One pass after the other; zeros where there was none."""
        return cls(*(sum(getattr(each, f.name) for each in passes) for f in fields(cls)))

    def rounded(self) -> dict[str, Any]:
        """All of it by name, to the millisecond."""
        return {
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }

    def line(self) -> str:
        """All of it in words."""
        parts = [f"read {_seconds(self.read)}", f"decode {_seconds(self.decode)}"]
        parts += [f"preprocess {_seconds(self.preprocess)}", f"compute {_seconds(self.compute)}"]
        parts += [f"wait {_seconds(self.wait)}", f"load {_seconds(self.load)}"]
        if self.compile:
            parts.append(f"compile {_seconds(self.compile)}")
        return f"{_seconds(self.total)} s: {', '.join(parts)}; ideal {_seconds(self.ideal)}"


def _seconds(value: float) -> str:
    """Three digits are enough: 0.12, 1.23, 12.3, 1,234."""
    digits = 2 if value < 1 else max(0, 2 - math.floor(math.log10(value)))
    return f"{value:,.{digits}f}"
