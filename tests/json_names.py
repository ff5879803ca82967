"""What names mean in the objects that `--json` prints, by the table of docs/reference/json.md."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "json.md"


@cache
def meanings() -> dict[str, tuple[str, str]]:
    """Kind and meaning by name."""
    table = PAGE.read_text(encoding="utf-8").partition("\n## Names\n")[2]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*) \|$", table, flags=re.M)
    return {name: (kind, meaning) for name, kind, meaning in rows}


def without_meaning(value: Any, own_levels: int = 0) -> Iterator[str]:
    """Names without a meaning; those of so many levels of objects are the data's own."""
    if isinstance(value, list):
        for each in value:
            yield from without_meaning(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if own_levels:
                yield from without_meaning(each, own_levels - 1)
            elif name != "format" and name not in meanings():
                yield name
            else:
                kind = meanings().get(name, ("", ""))[0]
                yield from without_meaning(each, kind.count("by name"))
