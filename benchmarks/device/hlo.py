"""Count the kernels that a compiled program launches, from its HLO."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

NO_KERNEL = frozenset(
    {"parameter", "get-tuple-element", "tuple", "constant", "bitcast", "after-all"}
    | {"add-dependency", "partition-id", "replica-id", "async-done", "copy-done", "fusion-done"}
)
"""Instructions for which nothing is launched."""
_COMPUTATION_HEAD = re.compile(r"(ENTRY )?%?([\w.\-]+) .*->.*\{\s*$")
_INSTRUCTION_LINE = re.compile(r"\s+(?:ROOT )?%?[\w.\-]+ = .*?\s([a-z][\w\-]*)\(")
_ENTRY_NAME = ""


class Loop(NamedTuple):
    """Kernels launched by one turn of a loop itself; the entry is the loop of depth 0.

    `turns` is 0 where the end depends on data: at each turn something looks whether to go on.
    """

    depth: int
    turns: int
    kernels: int


class Launches(NamedTuple):
    """Kernels and loops of one call."""

    # Instructions that launch something; those of a loop as often as it turns, where that is known,
    # otherwise once
    kernels: int
    loops: int = 0  # loops of a known number of turns
    waits: int = 0  # loops whose end depends on data


def launches(text: str) -> Launches:
    """Count the launches of one call of a compiled module, from its `Compiled.as_text()`."""
    entry, *inner = read_loops(text)
    kernels, times = entry.kernels, [1]
    for depth, turns, own in inner:
        times[depth:] = [times[depth - 1] * max(turns, 1)]
        kernels += times[depth] * own
    waits = sum(not loop.turns for loop in inner)
    return Launches(kernels, len(inner) - waits, waits)


def read_loops(text: str) -> list[Loop]:
    """The entry of a compiled module and all loops in it, from the outside in."""
    return list(_loops(_computations(text), [_ENTRY_NAME], depth=0, turns=1))


def _computations(text: str) -> dict[str, list[str]]:
    """Lines of instructions by the name of their computation; that of the entry is empty."""
    bodies: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if head := _COMPUTATION_HEAD.match(line):
            lines = bodies.setdefault(_ENTRY_NAME if head[1] else head[2], [])
        elif line.startswith(" "):
            lines.append(line)
    return bodies


def _loops(
    computations: Mapping[str, Sequence[str]], names: Sequence[str], *, depth: int, turns: int
) -> Iterator[Loop]:
    """A loop of these computations, which call others, and the loops in it."""
    kernels, inside = 0, list[Loop]()
    waiting = list(names)
    while waiting:
        for line in computations.get(waiting.pop(), ()):
            instruction = _INSTRUCTION_LINE.match(line)
            if instruction is None or instruction[1] in NO_KERNEL:
                continue
            if instruction[1] == "call":
                waiting.append(_named_computation("to_apply", line))
            elif instruction[1] == "while":
                trip_count = re.search(r'known_trip_count":?\s*\{"?n"?:"?(\d+)', line)
                parts = [
                    _named_computation(key, line)
                    for key in (("body",) if trip_count else ("body", "condition"))
                ]
                count = int(trip_count[1]) if trip_count else 0
                inside += _loops(computations, parts, depth=depth + 1, turns=count)
            else:
                kernels += 1
    yield Loop(depth, turns, kernels)
    yield from inside


def _named_computation(key: str, line: str) -> str:
    match = re.search(rf"{key}=%?([\w.\-]+)", line)
    return match[1] if match else _ENTRY_NAME + "?"
