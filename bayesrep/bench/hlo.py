"""How many kernels a compiled program launches, counted in its HLO."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NO_KERNEL = frozenset(
    {"parameter", "get-tuple-element", "tuple", "constant", "bitcast", "after-all"}
    | {"add-dependency", "partition-id", "replica-id", "async-done", "copy-done"}
)
"""Instructions for which nothing is launched."""
_HEAD = re.compile(r"(ENTRY )?%?([\w.\-]+) .*->.*\{\s*$")
_INSTRUCTION = re.compile(r"\s+(?:ROOT )?%?[\w.\-]+ = .*?\s([a-z][\w\-]*)\(")
_ENTRY = ""


@dataclass(frozen=True)
class Launches:
    """What one call launches.

    Attributes
    ----------
    kernels
        Instructions that launch something; those of a loop as often as it turns, where that is
        known, otherwise once.
    loops
        Loops of a known number of turns.
    waits
        Loops whose end depends on data: at each turn something looks whether to go on.
    """

    kernels: int
    loops: int = 0
    waits: int = 0

    def __add__(self, other: "Launches") -> "Launches":
        """Both, one after the other."""
        return Launches(
            self.kernels + other.kernels, self.loops + other.loops, self.waits + other.waits
        )


def launches(text: str) -> Launches:
    """Of the entry computation of a compiled module, as `Compiled.as_text()` prints it."""
    return _of(_computations(text), _ENTRY)


def _computations(text: str) -> dict[str, list[str]]:
    """Lines of instructions by the name of their computation; that of the entry is empty."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if head := _HEAD.match(line):
            lines = found.setdefault(_ENTRY if head[1] else head[2], [])
        elif line.startswith(" "):
            lines.append(line)
    return found


def _of(computations: Mapping[str, Sequence[str]], name: str) -> Launches:
    total = Launches(0)
    for line in computations.get(name, ()):
        instruction = _INSTRUCTION.match(line)
        if instruction is None or instruction[1] in NO_KERNEL:
            continue
        if instruction[1] == "while":
            total += _loop(computations, line)
        elif instruction[1] == "call":
            total += _of(computations, _named("to_apply", line))
        else:
            total += Launches(1)
    return total


def _loop(computations: Mapping[str, Sequence[str]], line: str) -> Launches:
    body = _of(computations, _named("body", line))
    turns = re.search(r'known_trip_count":?\s*\{"?n"?:"?(\d+)', line)
    if turns is None:
        condition = _of(computations, _named("condition", line))
        return body + condition + Launches(0, waits=1)
    times = int(turns[1])
    return Launches(body.kernels * times, 1 + body.loops, body.waits)


def _named(key: str, line: str) -> str:
    found = re.search(rf"{key}=%?([\w.\-]+)", line)
    return found[1] if found else _ENTRY + "?"
