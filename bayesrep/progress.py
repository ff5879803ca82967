"""What a long computation says on standard error."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from tqdm import tqdm


class Progress:
    """A bar with speed and time left, or silence; it never touches what is computed.

    Parameters
    ----------
    bar
        tqdm's.
    noun
        What is counted beside the steps, empty where nothing is.
    """

    def __init__(self, bar: Any, noun: str) -> None:
        self._bar, self._noun, self._count, self._lock = bar, noun, 0, Lock()

    def stage(self, name: str) -> None:
        """Name what is being done."""
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
def progress_bar(total: int, unit: str, noun: str = "", *, show: bool) -> Generator[Progress]:
    """A `Progress` over `total` units on standard error, silent unless `show`."""
    options: Any = {"file": sys.stderr, "dynamic_ncols": True, "disable": not show}
    with tqdm(total=total, unit=unit, **options) as bar:
        yield Progress(bar, noun)
