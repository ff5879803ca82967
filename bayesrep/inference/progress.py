"""What a long fit says on standard error."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from tqdm import tqdm


class Progress:
    """A bar over the draws of all chains, or silence.

    Shows draws per second, time left and divergences. Never touches the draws.
    """

    def __init__(self, bar: Any) -> None:
        self._bar, self._lock, self._divergences = bar, Lock(), 0

    def stage(self, name: str) -> None:
        """Name what is being done."""
        if self._bar is not None:
            self._bar.set_description_str(name, refresh=True)

    def advance(self, draws: int, divergences: int) -> None:
        """Count finished draws; safe to call from any thread."""
        if self._bar is None:
            return
        with self._lock:
            self._divergences += divergences
            self._bar.set_postfix_str(f"{self._divergences} divergences", refresh=False)
            self._bar.update(draws)


@contextmanager
def progress_bar(total: int, *, show: bool) -> Generator[Progress]:
    """A :class:`Progress` over ``total`` draws on standard error, silent unless ``show``."""
    if not show:
        yield Progress(None)
        return
    with tqdm(total=total, unit="draw", file=sys.stderr, dynamic_ncols=True, leave=True) as bar:
        yield Progress(bar)
