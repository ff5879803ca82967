"""Real minus signs for what readers see of the page."""

import re
from collections.abc import Iterable

_MINUS_PATTERN = re.compile(r'`[^`"]*`|(?<![^\s(±"])-(?=[\d.])')


def real_minus(text: str, names: Iterable[str] = ()) -> str:
    """Write minus signs before numbers, also in JSON; those of `commands` and of names stay."""
    odd = (re.escape(name) for name in names if _MINUS_PATTERN.search(name))
    patterns = sorted(odd, key=len, reverse=True)
    pattern = re.compile(
        "|".join([*(rf"{name}(?![\w.])" for name in patterns), _MINUS_PATTERN.pattern])
    )
    return pattern.sub(lambda part: "\N{MINUS SIGN}" if part[0] == "-" else part[0], text)
