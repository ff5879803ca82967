"""Results of long experiments, study by study, so that a killed run goes on."""

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tqdm import tqdm


def resume(
    path: Path,
    keys: Iterable[str],
    make: Callable[[str], dict[str, Any]],
    *,
    finished: bool = False,
) -> list[Any]:
    """Results of all keys, those in the file as they are and the others made and appended.

    Parameters
    ----------
    path
        JSON lines, one result each with its ``key``; a last line cut short is made again.
    keys
        What should be there, in this order.
    make
        Called with a key that is missing; returns what JSON can hold.
    finished
        Make nothing: results of those keys alone that are there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    held = done(path)
    wanted = [key for key in keys if key in held or not finished]
    with path.open("a", encoding="utf-8") as stream:
        for key in tqdm(wanted, file=sys.stderr, disable=all(key in held for key in wanted)):
            if key not in held:
                held[key] = {"key": key, **make(key)}
                stream.write(json.dumps(held[key]) + "\n")
                stream.flush()
    return [held[key] for key in wanted]


def done(path: Path) -> dict[str, Any]:
    """The results in a file, by key; a last line that was cut short is removed from it."""
    if not path.exists():
        return {}
    whole = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if whole and not whole[-1].endswith("\n"):
        whole.pop()
        path.write_text("".join(whole), encoding="utf-8")
    return {result["key"]: result for result in map(json.loads, whole)}
