"""Names and values as a grid's file states them: each is checked, or refused with its place."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from bayesrep import bounds
from bayesrep.errors import BayesrepError, OptionError, did_you_mean, refuse_any
from bayesrep.sweeps.run_spec import Value

DEFAULT_WORD = "default"  # name in a grid for the library's default


@dataclass(frozen=True)
class GridPlace:
    """A name in a grid's file, for messages."""

    file: Path
    key: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.key}"

    def child(self, name: str) -> "GridPlace":
        """A name inside this one."""
        return GridPlace(self.file, f"{self.key}.{name}" if self.key else name)


Check: TypeAlias = Callable[[GridPlace, Any], Value]  # takes the value, or refuses it


def values(place: GridPlace, entry: Any, check: Check) -> tuple[Value, ...]:
    """The values at a place, one or a list of them."""
    if entry == []:
        raise OptionError("grid-axis-empty", place=place)
    listed: list[Any] = entry if isinstance(entry, list) else [entry]
    return tuple(check(place, each) for each in listed)


def optional(check: Check, nothing: str = DEFAULT_WORD) -> Check:
    """Allow a word, which is None, beside a check's own values."""
    return lambda place, value: None if value == nothing else check(place, value)


def check_names(place: GridPlace, entry: Any, names: Sequence[str]) -> None:
    """Refuse what is not a table, and names that nobody asks for."""
    if not isinstance(entry, dict):
        raise refuse_value(place, entry, "a table of names and values")
    for name in entry:
        if name not in names:
            hint = did_you_mean(name, names) or f"; there are {', '.join(names)}"
            raise OptionError("grid-key-unknown", place=place.child(name), hint=hint)


def refuse_value(place: GridPlace, value: Any, expected: str) -> OptionError:
    """Build the error that refuses a value of the wrong type."""
    return OptionError("grid-value-of-wrong-kind", place=place, value=repr(value), wanted=expected)


def whole_number(least: int, most: int = bounds.MAX_TOTAL_DRAWS) -> Check:
    """A whole number of some size."""

    def check(place: GridPlace, value: Any) -> int:
        if not bounds.is_of_kind(value, int) or value < least:
            raise refuse_value(place, value, f"a whole number from {least} on")
        call_at_place(place, bounds.refuse_above, place.key.rpartition(".")[2], value, most)
        return value

    return check


def word(words: Collection[str]) -> Check:
    """One of some words."""

    def check(place: GridPlace, value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise refuse_value(place, value, f"one of {', '.join(words)}")
        return value

    return check


def text(place: GridPlace, value: Any) -> str:
    """Words of any kind."""
    if not isinstance(value, str) or not value:
        raise refuse_value(place, value, "text")
    return value


def share(place: GridPlace, value: Any) -> float:
    """A number from 0 to below 1."""
    if not bounds.is_of_kind(value, float) or not 0 <= value < 1:
        raise refuse_value(place, value, "a number from 0 to below 1")
    return float(value)


KIND_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def scalar(*kinds: type) -> Check:
    """A value of one of some of the `KIND_NAMES`."""

    def check(place: GridPlace, value: Any) -> Value:
        if not any(bounds.is_of_kind(value, kind) for kind in kinds):
            raise refuse_value(place, value, " or ".join(KIND_NAMES[kind] for kind in kinds))
        return value

    return check


def path(place: GridPlace, value: Value) -> str:
    """A path as the grid's folder sees it, of what exists."""
    file = place.file.parent / str(value)
    if not file.exists():
        raise OptionError("grid-path-missing", place=place, path=file)
    return str(file)


def call_at_place(place: GridPlace, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Call a function on a value of the grid; an error names the value's place."""
    try:
        with refuse_any(lambda why: OptionError("grid-value-refused", reason=why)):
            return function(*args, **named)
    except BayesrepError as error:
        raise error.add_place(place) from None
