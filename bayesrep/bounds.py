"""What sizes an option may have, so that a slip of the keyboard is one line, not all memory."""

from bayesrep.errors import OptionError

__all__ = ["BOOTSTRAP", "COMPONENTS", "DRAWS", "SEED", "STARTS", "within"]

# The largest of what several places take.
BOOTSTRAP = 100_000
COMPONENTS = 64
DRAWS = 1_000_000
SEED = 2**63 - 1
STARTS = 10_000


def within(name: str, value: int, low: int, high: int) -> int:
    """Return a whole number that an option may have.

    Raises
    ------
    OptionError
        Naming the option and the range, where the number lies outside.
    """
    if not low <= value <= high:
        raise OptionError(f"{name} is {value}; give a whole number from {low:,} to {high:,}")
    return value
