"""Where the time of a run goes, and what it would be were nothing ever waiting.

Whoever reads or computes counts its own seconds (`Spent`). `Stages` puts them on one clock: each
stage's seconds over the number of those who work at it, so that they can be held against the time
that passed.
"""

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Self


@dataclass(frozen=True)
class Spent:
    """Seconds of work on some images, summed over all who did it.

    Attributes
    ----------
    read
        Bytes from the disk, and their digest.
    decode
        Pixels from bytes.
    preprocess
        Resizing and cropping, for all kinds of preprocessing.
    compute
        Normalisation, the networks and their five likeliest classes.
    compile
        Compiling networks and holding them to what they answer uncompiled.
    """

    read: float = 0.0
    decode: float = 0.0
    preprocess: float = 0.0
    compute: float = 0.0
    compile: float = 0.0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True)
class Crew:
    """Who works on a pass.

    Attributes
    ----------
    readers
        Threads that read, decode and preprocess.
    devices
        Processors that compute: GPUs, or as many cores as readers.
    one_after_other
        Whether the readers are the ones that compute: then these stages cannot overlap.
    """

    readers: int
    devices: int
    one_after_other: bool


@dataclass(frozen=True)
class Stages:
    """The time of one pass, or of a whole run, in seconds of the clock on the wall.

    Attributes
    ----------
    classifiers, images
        How many classifiers answered together (of a run: in all), and the images that went by (of
        a run: in all passes).
    load
        Loading the classifiers.
    read, decode, preprocess, compute, compile
        See `Spent`; over the number of threads or devices that work at it.
    wait
        What the compute cores or GPUs had to wait: for images, or for whoever takes the answers.
    total
        All that passed.
    ideal
        What it would have been, but for loading and compiling, had the busiest never waited:
        reading, decoding, preprocessing and computing together where the same cores do them, the
        longer of the two sides where a GPU computes while the cores read.
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
        """The stages of one pass that took `total` seconds, `load` of them for loading."""
        read, decode, preprocess = (
            part / crew.readers for part in (spent.read, spent.decode, spent.preprocess)
        )
        compute, reading = spent.compute / crew.devices, read + decode + preprocess
        compiling = spent.compile / crew.devices
        working = reading + compute if crew.one_after_other else compute
        return cls(
            classifiers,
            images,
            load,
            read,
            decode,
            preprocess,
            compute,
            compiling,
            max(0.0, total - load - compiling - working),
            total,
            working if crew.one_after_other else max(reading, compute),
        )

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
