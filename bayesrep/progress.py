"""Progress of a long computation, on standard error."""

import sys
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from threading import Lock
from typing import Any

from tqdm import tqdm


class Stopwatch:
    """Time spent in stages, each of which ends when the next begins, and in spans within them."""

    def __init__(self, first: str = "") -> None:
        self._stages: list[tuple[str, float]] = []
        self._spans: list[tuple[str, float, float]] = []
        if first:
            self.stage(first)

    def stage(self, name: str) -> None:
        """End the stage before and begin this one, which may have begun before."""
        self._stages.append((name, time.time()))

    def span(self, name: str, begin: float, end: float) -> None:
        """Count what any thread did between two times (`time.time`) as a stage of its own."""
        self._spans.append((name, begin, end))

    def seconds(self) -> dict[str, float]:
        """Seconds of every stage until now, in the order in which they began."""
        totals = dict.fromkeys([name for name, _ in self._stages], 0.0)
        ends = [*(begin for _, begin in self._stages[1:]), time.time()]
        for (name, begin), end in zip(self._stages, ends, strict=True):
            totals[name] += end - begin
            for other in dict.fromkeys(each for each, _, _ in self._spans):
                own = [(max(b, begin), min(e, end)) for n, b, e in self._spans if n == other]
                covered = _covered_length(own)
                totals[name] -= covered
                totals[other] = totals.get(other, 0.0) + covered
        return {name: round(value, 3) for name, value in totals.items()}


def _covered_length(spans: Iterable[tuple[float, float]]) -> float:
    """Return the length that intervals cover; those that end before they begin are empty."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(end - max(begin, reached), 0.0)
        reached = max(reached, end)
    return total


class Progress:
    """A bar with speed and time left, or silence; its stages are told to a stopwatch."""

    def __init__(self, bar: Any, noun: str, watch: Stopwatch) -> None:
        self._bar, self._noun, self._watch, self._count, self._lock = bar, noun, watch, 0, Lock()

    def stage(self, name: str) -> None:
        """Name what is being done; the time since the last step, as of compilers, slows no step."""
        self._watch.stage(name)
        self._bar.unpause()
        self._bar.set_description_str(name)

    def advance(self, steps: int, count: int = 0) -> None:
        """Take finished steps, and what else happened in them; safe to call from any thread."""
        with self._lock:
            self._count += count
            if self._noun:
                self._bar.set_postfix_str(f"{self._count} {self._noun}", refresh=not steps)
            self._bar.update(steps)

    def pause(self) -> None:
        """Clear the line for a warning."""
        self._bar.clear()

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        if not self._bar.disable:
            self._bar.write(text, file=sys.stderr)


@contextmanager
def progress_bar(
    total: int, unit: str, noun: str = "", *, show: bool, watch: Stopwatch | None = None
) -> Generator[Progress]:
    """A `Progress` over `total` units on standard error, silent unless `show`."""
    options: Any = {"file": sys.stderr, "dynamic_ncols": True, "disable": not show}
    with tqdm(total=total, unit=unit, **options) as bar:
        yield Progress(bar, noun, watch or Stopwatch())
