"""What a long evaluation says on standard error."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

__all__ = ["Progress", "progress_bar"]


class Progress:
    """A bar over images x classifiers, with images per second and time left; or silence."""

    def __init__(self, bar: Any, classifiers: int) -> None:
        self._bar, self._classifiers, self._done = bar, classifiers, 0

    def stage(self, name: str) -> None:
        """Name what is being done."""
        if self._bar is not None:
            self._bar.set_description_str(name, refresh=True)

    def advance(self, images: int) -> None:
        """Count images, once for each classifier that has seen them."""
        if self._bar is not None:
            self._bar.update(images)

    def classifier_done(self) -> None:
        """Count a classifier."""
        self._done += 1
        if self._bar is not None:
            self._bar.set_postfix_str(f"{self._done}/{self._classifiers} classifiers")

    def pause(self) -> None:
        """Clear the line for a warning."""
        if self._bar is not None:
            self._bar.clear()

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        if self._bar is not None:
            self._bar.write(text, file=sys.stderr)


@contextmanager
def progress_bar(images: int, classifiers: int, *, show: bool) -> Generator[Progress]:
    """A `Progress` over images x classifiers on standard error, silent unless ``show``."""
    if not show:
        yield Progress(None, classifiers)
        return
    with tqdm(total=images, unit="image", file=sys.stderr, dynamic_ncols=True) as bar:
        yield Progress(bar, classifiers)
