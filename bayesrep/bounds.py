"""What sizes an option may have, so that a slip of the keyboard is one line, not all memory."""

from bayesrep.errors import OptionError

# The largest of what several places take.
BOOTSTRAP = 100_000
COMPONENTS = 64
DRAWS = 1_000_000
SEED = 2**63 - 1
STARTS = 10_000


def refuse_above(name: str, value: int, largest: int) -> None:
    """Refuse a number that is larger than any that an option may have."""
    if value > largest:
        raise OptionError("option-above-limit", option=name, value=value, largest=largest)
