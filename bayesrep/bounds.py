"""Kinds and ranges of values that are typed or read back."""

from sys import float_info
from typing import Any, TypeGuard, TypeVar

from bayesrep.errors import OptionError

# The largest of what several places take.
LARGEST_COUNT = 2**31 - 1  # of answers or attempts
MAX_BOOTSTRAP = 100_000
MAX_COMPONENT_COUNT = 64
MAX_TOTAL_DRAWS = 1_000_000
MAX_SEED = 2**63 - 1
MAX_STARTS = 10_000

Kind = TypeVar("Kind")


def is_of_kind(value: Any, kind: type[Kind]) -> TypeGuard[Kind]:
    """Return whether a value is of a kind: a bool is no number, and a float must be finite."""
    if kind is float and isinstance(value, int | float):
        return type(value) is not bool and abs(value) <= float_info.max
    return isinstance(value, kind) and (kind is bool or type(value) is not bool)


def refuse_above(name: str, value: int, largest: int) -> None:
    """Refuse a number that is larger than any that an option may have."""
    if value > largest:
        raise OptionError("option-above-limit", option=name, value=value, largest=largest)
