"""Work that is kept while it is made: a folder of files, each there whole or not at all.

What one of them says that the work depends on names what differs where other work is refused.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bayesrep.atomic import find_foreign, replaced_file
from bayesrep.errors import BayesrepError, OptionError, StudyError, reason
from bayesrep.files import strict_json


def open_store(
    folder: str | Path,
    identity: Mapping[str, Any],
    *,
    name: str = "identity.json",
    refusal: type[BayesrepError] = OptionError,
) -> Path:
    """Make the folder of a work, or refuse the one that is there to any other."""
    place = Path(folder)
    facts = json.loads(json.dumps(identity))
    try:
        place.mkdir(parents=True, exist_ok=True)
        if not (place / name).exists():
            if find_foreign(place, ()):
                raise refusal("kept-work-folder-not-empty", path=place)
            write_json(place / name, facts)
        kept = strict_json.load(place / name)
        if not isinstance(kept, dict):
            raise ValueError(f"{name} is not ours")
    except BayesrepError:
        raise
    except (OSError, ValueError) as error:
        raise refusal("kept-work-unreadable", path=place, reason=reason(error)) from None
    if (setting := find_other(kept, facts)) is not None:
        texts = (json.dumps(each.get(setting)) for each in (kept, facts))
        one, other = (text if len(text) <= 60 else text[:57] + "..." for text in texts)
        facts = {"setting": setting, "kept_value": one, "value": other}
        raise refusal("kept-work-of-another", path=place, **facts)
    return place


def find_other(kept: Mapping[str, Any], asked: Mapping[str, Any]) -> str | None:
    """The first fact of the work that is asked for by which the kept one is another."""
    return next((name for name, value in asked.items() if kept.get(name) != value), None)


def write_json(path: Path, value: Any) -> None:
    """Write a value into a file of its own."""
    with replaced_file(path) as partial:
        partial.write_text(json.dumps(value, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def keep(folder: Path, key: str, result: Any) -> None:
    """Keep a result that JSON can hold."""
    write_json(folder / f"{key}.json", result)


def read_kept(folder: Path, keys: Iterable[str]) -> dict[str, Any]:
    """The results that are kept of some keys."""
    results: dict[str, Any] = {}
    for key in keys:
        with suppress(StudyError):
            results[key] = strict_json.read(folder / f"{key}.json")
    return results
